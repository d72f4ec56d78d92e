"""Decode the `.npy` format, versions 1 to 3, and check entries of `.npz` files: no element is read before the sizes that the
header, the zip directory and the file state agree, and are within what the reader takes.

NumPy's own reader (`numpy.lib.format`) allocates the size that a header states, and passes on any exception of `ast` on damaged
text.
"""
from __future__ import annotations

import ast
import math
import re
import struct
import warnings
import zipfile
from typing import IO

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ...runtime.records import dataclass

MAGIC = b"\x93NUMPY"
LENGTHS = {(1, 0): ("<H", "latin1"), (2, 0): ("<I", "latin1"), (3, 0): ("<I", "utf8")}
"""Storage format of the header's length and encoding of its text, by version of the format."""
LONGEST_HEADER = 10_000
"""Maximum bytes of a header, as in NumPy: `ast.literal_eval` of longer text may exhaust the stack."""
MOST_AXES = 64
"""Maximum number of axes of an array in NumPy 2."""
PLAIN = re.compile(r"[<>=|]?(?:\?|[biufcSUV]\d{1,9})")
"""Spellings of a dtype of one number, string or row of bytes."""
LONG = re.compile(r"(?<=\d)L\b")
"""The suffix of integers that Python 2 wrote."""
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
MOST_DEFLATED = 1032
"""Maximum number of bytes that one byte of a deflate stream can encode (RFC 1951: 258 for a length and a distance of one bit
each)."""
PIECE = 1 << 20
"""Number of bytes read at once."""


@dataclass(frozen=True, slots=True)
class Header:
    """The statements of a `.npy` file about its array."""
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[np.generic]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def check_entry(entry: zipfile.ZipInfo, nbytes: int, shown: str, most: int) -> None:
    """Refuse an entry of a zip file that is not an array, is larger than `most`, or states an impossible size."""
    if not entry.filename.endswith(".npy"):
        raise damaged(shown, "it is no .npy file")
    if entry.flag_bits & 1 or entry.compress_type not in (STORED, DEFLATED):
        raise damaged(shown, "it is encrypted" if entry.flag_bits & 1 else "it is neither stored nor deflated",
                      "numpy.savez and numpy.savez_compressed write what can be read")
    if entry.file_size - LONGEST_HEADER > most:
        raise too_large(shown, entry.file_size, most)
    ratio = 1 if entry.compress_type == STORED else MOST_DEFLATED
    if entry.compress_size > nbytes or entry.file_size > ratio * (entry.compress_size + 1):
        raise damaged(shown, f"its directory states {entry.file_size:,} bytes, more than it can hold")


def array_of(file: IO[bytes], nbytes: int, shown: str, most: int) -> Array:
    """Return the array of a `.npy` file that has `nbytes` bytes."""
    header, length = header_of(file, shown)
    if header.nbytes > most:
        raise too_large(shown, header.nbytes, most)
    if header.nbytes != nbytes - length:
        raise damaged(shown, f"its header states {header.nbytes:,} bytes, {max(0, nbytes - length):,} follow")
    data = bytearray(header.nbytes)
    place, view = 0, memoryview(data)
    while count := file.readinto(view[place:place + PIECE]):  # type: ignore[attr-defined]
        place += count
    if place < header.nbytes:
        raise damaged(shown, f"its header states {header.nbytes:,} bytes, it ends after {place:,}")
    file.read(1)  # at the end of an entry, zipfile checks its checksum
    flat = np.frombuffer(data, header.dtype) if header.nbytes else np.empty(math.prod(header.shape), header.dtype)
    return flat.reshape(header.shape, order="F" if header.is_fortran else "C")


def header_of(file: IO[bytes], shown: str) -> tuple[Header, int]:
    """Return the header of a `.npy` file, and its number of bytes."""
    begin = exactly(file, len(MAGIC) + 2, shown)
    version = (begin[-2], begin[-1])
    if begin[:-2] != MAGIC or version not in LENGTHS:
        raise damaged(shown, "it does not begin as a .npy file" if begin[:-2] != MAGIC else
                      f"it is of version {version[0]}.{version[1]} of the format")
    form, encoding = LENGTHS[version]
    (length,) = struct.unpack(form, exactly(file, struct.calcsize(form), shown))
    if length > LONGEST_HEADER:
        raise damaged(shown, f"its header has {length:,} bytes, {LONGEST_HEADER:,} is the most")
    try:
        text = exactly(file, length, shown).decode(encoding)
    except UnicodeDecodeError:
        raise damaged(shown, "its header is no text") from None
    return stated(text, shown), len(begin) + struct.calcsize(form) + length


def exactly(file: IO[bytes], count: int, shown: str) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise damaged(shown, "it ends within its header")
    return data


def stated(text: str, shown: str) -> Header:
    """Return the header that a text states. Raise a Problem for any other text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fields = ast.literal_eval(LONG.sub("", text).strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise damaged(shown, "its header is none of NumPy's")
    shape, is_fortran = fields["shape"], fields["fortran_order"]
    if not isinstance(is_fortran, bool):
        raise damaged(shown, "its header does not say the order of the elements")
    if not isinstance(shape, tuple) or len(shape) > MOST_AXES or not all(type(n) is int and n >= 0 for n in shape):
        raise damaged(shown, "its header states no shape")
    return Header(shape, is_fortran, dtype_of(fields["descr"], shown))


def dtype_of(descr: object, shown: str) -> np.dtype[np.generic]:
    """Return the dtype that a header names. Raise a Problem for records, objects and times, which cannot be elements of a
    tensor."""
    if isinstance(descr, str) and descr.lstrip("<>=|") == "O":
        raise damaged(shown, "it holds objects of Python, which are not read",
                      "save an array of numbers: array.astype('float32')")
    if isinstance(descr, list | tuple):
        raise damaged(shown, "it holds records, which are no elements of a tensor", "save each field as an array of its own")
    try:
        if isinstance(descr, str) and PLAIN.fullmatch(descr):
            return np.dtype(descr)
    except (TypeError, ValueError):
        pass
    raise damaged(shown, "its header names no type of elements that a tensor has")


def too_large(shown: str, nbytes: int, most: int) -> Problem:
    return Problem(f"{shown} states {nbytes:,} bytes, {most:,} is the most that is taken there", kind="argument",
                   help="the array is larger than the input, or than a tensor may be; nothing of it was unpacked")


def damaged(shown: str, reason: str, help: str | None = None) -> Problem:
    return Problem(f"{shown} cannot be read: {reason}", kind="argument", help=help or
                   "numpy.save and numpy.savez write such files; the file is damaged, or of another kind")
