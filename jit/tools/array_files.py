"""NumPy's array files, `.npy` and `.npz`: read without executing their contents, and without unpacking more than the reader
takes (`npy_format`); written whole or not at all."""
from __future__ import annotations

import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import Problem, unwritten
from ...runtime.limits import most_bytes
from .npy_format import MAGIC, array_of, check_entry, damaged

ZIP = b"PK"
DAMAGE = (ValueError, EOFError, KeyError, IndexError, TypeError, NotImplementedError, RuntimeError, OverflowError, MemoryError,
          struct.error, zlib.error, zipfile.BadZipFile)
"""Exceptions of `zipfile` and `zlib` on damaged bytes; RuntimeError is for encryption."""


def read_arrays(path: str, most: Mapping[str, int] | None = None) -> Array | dict[str, Array]:
    """Return a `.npy` file's array, or a `.npz` file's arrays by name. With `most`, the maximum bytes of each array, unpack
    only those arrays, and a file's only array. Raise a Problem for any other bytes."""
    with damage_refused(path), opened(path) as (file, nbytes):
        head = file.read(len(MAGIC))
        file.seek(0)
        if head == MAGIC:
            return array_of(file, nbytes, path, bound("", most, True))
        if head[:2] != ZIP:
            raise damaged(path, "it is no .npy or .npz file" if head else "it is empty")
        with zipfile.ZipFile(file) as archive:
            return dict(members(archive, nbytes, path, most))


def array_names(path: str) -> list[str]:
    """Return the names of the arrays in a `.npz` file."""
    with damage_refused(path), opened(path) as (file, _), zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def members(archive: zipfile.ZipFile, nbytes: int, path: str, most: Mapping[str, int] | None) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of a `.npz` file, by name. Check the whole directory before unpacking the first array."""
    entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
    if len(entries) < len(archive.infolist()):
        raise damaged(path, "two of its arrays have one name")
    is_lone = len(entries) == 1
    wanted = {name: entry for name, entry in entries.items() if most is None or is_lone or name in most}
    for name, entry in wanted.items():
        check_entry(entry, nbytes, f"{path}: {name}", bound(name, most, is_lone))
    for name, entry in wanted.items():
        with archive.open(entry) as member:
            yield name, array_of(member, entry.file_size, f"{path}: {name}", bound(name, most, is_lone))


def bound(name: str, most: Mapping[str, int] | None, is_lone: bool) -> int:
    """Return the maximum bytes of an array; a file's only array may be any of the wanted ones."""
    known = (most or {}).get(name)
    if known is None and is_lone and most:
        known = max(most.values())
    return most_bytes() if known is None else min(known, most_bytes())


@contextmanager
def opened(path: str) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file for random access, with its size in bytes; read a pipe completely first."""
    with open(path, "rb") as file:
        if file.seekable():
            yield file, os.fstat(file.fileno()).st_size
        else:
            data = file.read()
            yield io.BytesIO(data), len(data)


@contextmanager
def damage_refused(path: str) -> Iterator[None]:
    """Convert exceptions of the system, `zipfile` and `zlib` to a Problem."""
    try:
        yield
    except Problem:
        raise
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}", kind="argument") from None
    except DAMAGE as error:
        said = str(error).splitlines() or [type(error).__name__]
        raise damaged(path, f"it is a damaged .npz file: {said[0][:200]}") from None


def save_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Write a .npz file; an existing file stays unchanged until the new one is complete."""
    with whole(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def save_array(path: str, array: Array) -> None:
    """Write a .npy file, in the same way."""
    with whole(path) as partial, open(partial, "wb") as file:
        np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


PARTIAL = re.compile(r"\..+\.\d+")
"""Names of the temporary files that `whole` writes."""


def remove_partial(folder: str) -> None:
    """Remove the temporary files of writers that were ended; no writer may be running."""
    for place, _, names in os.walk(folder):
        for name in filter(PARTIAL.fullmatch, names):
            with suppress(OSError):
                os.unlink(os.path.join(place, name))


@contextmanager
def whole(path: str) -> Iterator[Path]:
    """Yield a file beside that of the path, and move it to the path when it is complete. Raise a Problem if the system
    refuses."""
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
