"""Where something is in a .tosa file: a path of names, because a flatbuffer has no lines; and where it was in MLIR text."""
from __future__ import annotations

import re

from ...runtime.errors import Position, Source, printable
from ...runtime.records import dataclass

LONGEST_NAME = 120
"""Characters of a name that messages show at most."""


def shown(name: str) -> str:
    """A name in quotes, shortened where a message has no room for it."""
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


@dataclass(frozen=True, slots=True)
class FilePosition(Position):
    """A place in a flatbuffer, such as `region main, block main, operator 3 CONV2D`; there is no line to show."""
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = printable(self.source.name)
        parts = (part if len(part) <= LONGEST_NAME else f"{part[:LONGEST_NAME]}..." for part in self.path)
        return f"{name}: {printable(', '.join(parts))}" if self.path else name

    def excerpt(self, mark: str = "^") -> list[str]:
        return []

    def inside(self, what: str) -> FilePosition:
        """A part of this place."""
        return FilePosition(self.source, self.line, self.column, self.width, (*self.path, what))


def whole(name: str) -> FilePosition:
    """The position of a whole file."""
    return FilePosition(Source(name, ""), 0, 0)


LOCATION = re.compile(r"loc\((.*)\)", re.DOTALL)
PIECE = re.compile(r'"(?:[ !#-\[\]-~]|\\["\\nt]|\\[0-9A-Fa-f]{2})*"|[\[\](),: ]|unknown|callsite|fused|at\b|[0-9]{1,9}')
CLOSED_BY = {"(": ")", "[": "]"}


def location_of(text: str) -> str | None:
    """MLIR's `loc(...)` for an operator's location, which may be any text; None for no text."""
    if not text:
        return None
    match = LOCATION.fullmatch(text)
    if match and is_location(match.group(1)):
        return text
    from ..text.attribute_printer import quoted
    return f"loc({quoted(text)})"


def is_location(text: str) -> bool:
    """Whether it is made of the pieces of MLIR's locations, brackets in pairs."""
    place, wanted = 0, []
    while place < len(text):
        match = PIECE.match(text, place)
        if match is None:
            return False
        piece, place = match.group(), match.end()
        if piece in CLOSED_BY:
            wanted.append(CLOSED_BY[piece])
        elif piece in CLOSED_BY.values() and (not wanted or wanted.pop() != piece):
            return False
    return not wanted and bool(text.strip())
