"""Strings in MLIR text: the value of a quoted token, and constants of strings. Strings are bytes, which need not be UTF-8.

A constant of strings is a `Strings` attribute: `dense<["a", "b"]> : tensor<2x!tf_type.string>`, or one string for all elements.
"""
from __future__ import annotations

import math
import re

from ..dialects.tf.types import TensorFlowTensor
from .attributes import Strings
from .syntax import SyntaxFault

ESCAPE = re.compile(rb"\\(?:([nt\"\\])|([0-9A-Fa-f]{2}))")
BAD_ESCAPE = re.compile(rb"[^\\]*+(?:\\(?:[nt\"\\]|[0-9A-Fa-f]{2})[^\\]*+)*+\\")
ESCAPED = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
PART = re.compile(r'\s*+("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[\[\],])')
MOST_STRINGS = 1 << 20
"""Strings of one constant."""


def unescape(text: str) -> bytes:
    """Return the bytes of a quoted text."""
    raw = text[1:-1].encode("utf-8")
    if b"\\" not in raw:
        return raw
    wrong = BAD_ESCAPE.match(raw)
    if wrong:
        offset = len(raw[:wrong.end()].decode("utf-8", "ignore"))
        raise SyntaxFault('expected \\n, \\t, \\", \\\\ or two hexadecimal digits', offset)
    return ESCAPE.sub(lambda m: ESCAPED[m.group(1)] if m.group(1) else bytes.fromhex(m.group(2).decode()), raw)


def decode_strings(text: str, type: TensorFlowTensor) -> Strings:
    """The strings of `dense<...>`, in order."""
    shape = tuple(n for n in type.shape or () if n is not None)
    if type.shape is None or len(shape) != len(type.shape):
        raise SyntaxFault(f"a constant needs a static type, not {type}", kind="type")
    if not text.startswith("dense<"):
        raise SyntaxFault("expected a constant of strings, as in dense<[\"a\", \"b\"]>")
    size = math.prod(shape)
    if size > MOST_STRINGS:
        raise SyntaxFault(f"{type} has {size} strings, more than {MOST_STRINGS}", kind="shape")
    parts = parts_of(text)
    if len(parts) == 1 and parts[0][0].startswith('"'):
        return Strings((value_of(*parts[0]),) * size, type)
    found = [value_of(word, at) for word, at in parts if word.startswith('"')]
    if [word if word in "[]," else '"' for word, _ in parts] != (skeleton(shape) if size else []):
        raise SyntaxFault(f"the strings do not have the shape of {type}, which has {size}", 6, kind="shape")
    return Strings(tuple(found), type)


def parts_of(text: str) -> list[tuple[str, int]]:
    """The strings, brackets and commas between `dense<` and `>`, each with its offset."""
    parts, at, end = [], len("dense<"), len(text) - 1
    while match := PART.match(text, at, end):
        parts.append((match.group(1), match.start(1)))
        at = match.end()
    if text[at:end].strip():
        raise SyntaxFault("expected a string", at)
    return parts


def value_of(word: str, at: int) -> bytes:
    try:
        return unescape(word)
    except SyntaxFault as fault:
        fault.offset += at
        raise


def skeleton(shape: tuple[int, ...]) -> list[str]:
    """Brackets and commas of a nested list of that shape, a quotation mark for each element."""
    if not shape:
        return ['"']
    inner = skeleton(shape[1:])
    items = [word for number in range(shape[0]) for word in ([","] if number else []) + inner]
    return ["[", *items, "]"]
