"""NumPy's files of arrays, `.npy` and `.npz`: read without running anything in them, written whole or not at all."""
from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import Problem, unwritten


def read_arrays(path: str) -> Array | dict[str, Array]:
    """A .npy file's array, or a .npz file's by name. Nothing in a file is run."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        found = np.load(io.BytesIO(data), allow_pickle=False)
        return found if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or "it is no .npy or .npz file that NumPy can read"
        raise Problem(f"{path} cannot be read: {reason}", kind="argument") from None


def save_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Write a .npz file; one that is there stays as it was until the new one is whole."""
    with whole(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def save_array(path: str, array: Array) -> None:
    """Write a .npy file, in the same way."""
    with whole(path) as partial, open(partial, "wb") as file:
        np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


PARTIAL = re.compile(r"\..+\.\d+")
"""Names that `whole` writes under."""


def remove_partial(folder: str) -> None:
    """Remove what writers have left that were ended; none may be writing."""
    for place, _, names in os.walk(folder):
        for name in filter(PARTIAL.fullmatch, names):
            with suppress(OSError):
                os.unlink(os.path.join(place, name))


@contextmanager
def whole(path: str) -> Iterator[Path]:
    """A file beside that of the path, which takes its place when it is whole; a Problem where the system refuses."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield partial
        os.replace(partial, target)
    except OSError as error:
        raise unwritten(error, f"{path} cannot be written", "argument") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
