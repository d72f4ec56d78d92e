"""Files that another system reads, in this process: Keras files, SavedModels and graphs through TensorFlow, exported programs
through PyTorch. What these give goes on as `from_tensorflow` and `from_torch` take it.

These systems take a model for a program (a SavedModel may run operators as it is read): such files are for those who trust
their makers.
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
"""Keras looks at a name's ending: a copy has the right one."""


def load_foreign(kind: Kind, source: str | os.PathLike[str] | bytes, shown: str) -> Model:
    """The model in a file or a folder, or in a file's bytes, of a kind that another system reads; messages call it `shown`. Its
    variables are called after the file, and are its own."""
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
    """Around the reader of another system: what it raises is a Problem."""
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
    """A Keras model, without what it is trained with. Python code in the file is not run."""
    tf = tensorflow()
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder, read_by("Keras", kind, shown):
        copy = Path(folder, "model" + ENDINGS[kind.name])
        with temporary_file():
            copy.write_bytes(data_of(source))
        if kind.name == "hdf5":
            check_network(copy, shown)
        return tf.keras.models.load_model(copy, compile=False, safe_mode=True)


def check_network(path: Path, shown: str) -> None:
    """A Problem where a file of HDF5 holds no network: weights alone, or something else than Keras writes."""
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
