"""Files that another system reads, in this process: Keras files, SavedModels and graphs through TensorFlow, exported programs
through PyTorch. The results are passed to `from_tensorflow` and `from_torch`.

These systems treat a model as a program (a SavedModel may run operators as it is read): read such files only if you trust their
makers.
"""
from __future__ import annotations

import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...runtime.errors import Problem, temporary_file
from ...runtime.variables import Context
from .file_kinds import Kind
from .model import Model
from .tensorflow.from_tensorflow import from_tensorflow, tensorflow

ENDINGS = {"keras": ".keras", "hdf5": ".h5"}
"""File name suffixes that Keras requires: a copy of the file gets the right one."""


def load_foreign(kind: Kind, source: str | os.PathLike[str] | bytes, shown: str) -> Model:
    """Load the model in a file or a folder, or in a file's bytes, of a kind that another system reads; messages call it
    `shown`. Its variables are named after the file, and belong to the model."""
    title = "model" if isinstance(source, bytes) else Path(source).resolve().stem
    match kind.name:
        case "saved_model":
            return from_tensorflow(source, name=title, context=Context(title))
        case "graph_def":
            return from_tensorflow(graph_of(source, kind, shown), name=title, context=Context(title))
        case "keras" | "hdf5":
            return from_tensorflow(keras_model(source, kind, shown), name=title, context=Context(title))
        case _:
            from .torch.from_torch import from_torch
            return from_torch(exported_program(source, kind, shown), name=title, context=Context(title))


def data_of(source: str | os.PathLike[str] | bytes) -> bytes:
    return source if isinstance(source, bytes) else Path(source).read_bytes()


@contextmanager
def read_by(system: str, kind: Kind, shown: str) -> Iterator[None]:
    """Turn exceptions of another system's reader into a Problem."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Problem:
        raise
    except Exception as error:
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise Problem(f"{shown} is {kind.words}, and {system} cannot read it: {type(error).__name__}: {said.strip()[:300]}",
                      kind="file", help="the file is damaged, or another version wrote it") from error


def keras_model(source: str | os.PathLike[str] | bytes, kind: Kind, shown: str) -> Any:
    """Load a Keras model, without its training state. Python code in the file is not run."""
    tf = tensorflow()
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder, read_by("Keras", kind, shown):
        copy = Path(folder, "model" + ENDINGS[kind.name])
        with temporary_file():
            copy.write_bytes(data_of(source))
        if kind.name == "hdf5":
            check_network(copy, shown)
        return tf.keras.models.load_model(copy, compile=False, safe_mode=True)


def check_network(path: Path, shown: str) -> None:
    """Raise a Problem if an HDF5 file holds no network: only weights, or other data than Keras writes."""
    import h5py
    with h5py.File(path, "r") as file:
        if "model_config" not in file.attrs:
            raise Problem(f"{shown} is an HDF5 file without a network: weights alone, or something else than Keras writes",
                          kind="file", help='load the weights into the model, and save it whole: model.save("model.keras")')


def graph_of(source: str | os.PathLike[str] | bytes, kind: Kind, shown: str) -> Any:
    graph = tensorflow().compat.v1.GraphDef()
    with read_by("TensorFlow", kind, shown):
        graph.ParseFromString(data_of(source))
    return graph


def exported_program(source: str | os.PathLike[str] | bytes, kind: Kind, shown: str) -> Any:
    import torch
    with read_by("PyTorch", kind, shown):
        return torch.export.load(io.BytesIO(data_of(source)))
