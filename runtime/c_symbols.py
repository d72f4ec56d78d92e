"""The C symbols of an object's variables: objects of one namespace share these symbols, by which a process finds the variables
of a library that it has loaded (`variables`).

A symbol consists of a namespace and a name, both spelled such that distinct pairs have distinct symbols; the same applies to
all other names of a model in C that must not clash (`lowering/native/c_object/c_names`).
"""
from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple

RESERVED = frozenset({"variable", "written", "type"})
"""Words between the parts of a symbol."""

ESCAPE = re.compile(r"x(?:[0-9a-f]{2})+")
"""Form of the characters that `spelled_apart` escapes: the hexadecimal digits of their UTF-8 bytes, with underscores around."""

NO_NAME = "xff"
"""The part for an empty name; no text has this byte in UTF-8."""

WORD = re.compile(r"[0-9A-Za-z]+")


class VariableSymbols(NamedTuple):
    """The symbols of one variable: its data, the byte that is set once it has been written, the checksum of its type."""
    data: str
    flag: str
    type: str


def variable_symbols(namespace: str, name: str) -> VariableSymbols:
    return VariableSymbols(*(f"tosaic_{symbol_part(namespace)}_{what}_{symbol_part(name)}"
                             for what in ("variable", "written", "type")))


def type_checksum(element: str, shape: Sequence[int]) -> int:
    """Return the checksum of a variable's type; two declarations of the same memory must have the same checksum."""
    return zlib.crc32(f"{element}{list(shape)}".encode()) & 0x7FFFFFFF


def symbol_part(name: str) -> str:
    """Return a name as a part of a symbol: distinct names have distinct parts. Letters, digits and single underscores between
    them stay; others become `_x<hexadecimal>_`: a.b is a_x2e_b. The part may follow an underscore and be followed by one."""
    return spelled_apart(name, WORD, RESERVED)


def spelled_apart(name: str, words: re.Pattern[str], reserved: frozenset[str]) -> str:
    """Return a reversible spelling of a name: `words` stay, except that the first letter of a word that is `reserved`, or reads
    as an escape, is escaped together with the text before it."""
    found: list[str] = []
    end = 0
    for match in words.finditer(name):
        word, between = match[0], name[end:match.start()]
        is_escaped = word in reserved or ESCAPE.fullmatch(word) is not None
        if is_escaped or between != ("_" if found else ""):
            found += [escape(between + word[:is_escaped]), word[is_escaped:]]
        else:
            found.append(word)
        end = match.end()
    if name[end:]:
        found.append(escape(name[end:]))
    return "_".join(found) or NO_NAME


def escape(text: str) -> str:
    return f"x{text.encode('utf-8', 'surrogatepass').hex()}"
