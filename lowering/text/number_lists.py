"""Nested lists of numbers, `[[1, 2], [3, 4]]` -> NumPy array.

The brackets are compared with the shape as a whole and the numbers read by NumPy. Only where that fails is the list
scanned piece by piece, to read what is unusual (`true`, `0x7FC00000`, comments) or to say what is wrong and where.
"""
from __future__ import annotations

import re

import numpy as np

from ..graph.types import Array, ElementType, TensorType
from .scalars import bits_of, from_bits, limits, wrap
from .syntax import SyntaxFault

PIECE = re.compile(r'"[^"]*"|[\[\],]|[^\s\[\],"]+|"')
EVERY_BYTE = bytes(range(256))
BRACKETS = b"[],"
INTEGERS = b"0123456789-[], \t\r\n"
FLOATS = INTEGERS + b".eE+"
MAXIMUM_RANK = 64


def decode_list(text: str, type: TensorType, offset: int = 0) -> Array:
    """The array of a list; a SyntaxFault's offset counts from `offset`."""
    raw = text.encode("utf-8", "replace")
    if type.size <= len(raw) and keep(raw, BRACKETS) == skeleton(type.dims):
        array = quick_list(raw, type)
        if array is not None:
            return array.reshape(type.dims)
    if "//" in text:
        text = re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), text)
    bits = ListScanner(type, offset).scan(text)
    return from_bits(np.array(bits, np.int64), type.element).reshape(type.dims)


def keep(raw: bytes, kept: bytes) -> bytes:
    """`raw` without the bytes that are not in `kept`."""
    return raw.translate(None, EVERY_BYTE.translate(None, kept))


def skeleton(dims: tuple[int, ...]) -> bytes | None:
    """Brackets and commas of a list of these dimensions; None where there is none."""
    if 0 in dims or len(dims) > MAXIMUM_RANK:
        return None
    text = b""
    for extent in reversed(dims):
        text = b"[" + b",".join([text] * extent) + b"]"
    return text


def quick_list(raw: bytes, type: TensorType) -> Array | None:
    """The elements of a list that has the right brackets, if all are plain decimal numbers in range."""
    element = type.element
    allowed = FLOATS if element.is_float else INTEGERS
    flat = raw.translate(None, b"[]")
    if element.kind in ("bool", "unsigned") or raw.translate(None, allowed):
        return None
    if element.is_float and flat.count(b".") != type.size:
        return None
    try:
        values = np.fromstring(flat, np.float64 if element.is_float else np.int64, sep=",")
    except (ValueError, DeprecationWarning):
        return None
    if values.size != type.size:
        return None
    if element.is_float:
        with np.errstate(all="ignore"):
            return values.astype(element.dtype)
    return quick_integers(values, element)


def quick_integers(values: Array, element: ElementType) -> Array | None:
    """Numbers that NumPy read, unless one is out of range; at the ends of int64 it may have clipped."""
    least, greatest = limits(element)
    lowest, highest = int(values.min()), int(values.max())
    if max(least, -(1 << 63) + 1) > lowest or min(greatest, (1 << 63) - 2) < highest:
        return None
    return (wrap(values, element) if element.bits < 64 else values).astype(element.dtype)


class ListScanner:
    """Reads a list piece by piece and holds it against the shape."""

    def __init__(self, type: TensorType, offset: int) -> None:
        self.type, self.offset = type, offset
        self.bits: list[int] = []
        self.counts: list[int] = []
        """Elements so far of each list that is open."""

    def scan(self, text: str) -> list[int]:
        """The bit patterns of the elements."""
        expects_value, started = True, False
        for match in PIECE.finditer(text):
            piece, at = match.group(), self.offset + match.start()
            if started and not self.counts:
                raise SyntaxFault(f"expected the end of the constant, found {piece[:20]!r}", at)
            empty = piece == "]" and self.counts and not self.counts[-1]
            if expects_value == (piece in ("]", ",")) and not empty:
                expected = "an element" if expects_value else "',' or ']'"
                raise SyntaxFault(f"expected {expected}, found {piece[:20]!r}", at, min(len(piece), 20))
            self.take(piece, at)
            expects_value, started = piece in ("[", ","), True
        if self.counts:
            raise SyntaxFault("'[' is not closed", self.offset)
        return self.bits

    def take(self, piece: str, at: int) -> None:
        dims, depth = self.type.dims, len(self.counts)
        match piece:
            case "[" if depth == len(dims):
                raise SyntaxFault(f"the list is nested deeper than {self.type} has dimensions", at, kind="shape")
            case "[":
                self.count(at)
                self.counts.append(0)
            case "]" if self.counts[-1] != dims[depth - 1]:
                raise SyntaxFault(f"expected {dims[depth - 1]} elements in this list of {self.type}, found {self.counts[-1]}",
                                  at, kind="shape")
            case "]":
                self.counts.pop()
            case ",":
                pass
            case _ if depth != len(dims):
                raise SyntaxFault(f"expected a list of {dims[depth]} elements, found {piece[:20]!r}", at, min(len(piece), 20),
                                  kind="shape")
            case _:
                self.count(at)
                self.bits.append(bits_of(piece, self.type.element, at))

    def count(self, at: int) -> None:
        """One more element in the innermost list."""
        if self.counts:
            self.counts[-1] += 1
            extent = self.type.dims[len(self.counts) - 1]
            if self.counts[-1] > extent:
                raise SyntaxFault(f"more than {extent} elements in this list of {self.type}", at, kind="shape")
