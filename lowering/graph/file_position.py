"""Positions in files without lines: paths of names."""
from __future__ import annotations

from ...runtime.errors import Position, Source, printable
from ...runtime.records import dataclass

LONGEST_NAME = 120
"""Maximum number of characters of a name that messages show."""


def shown(name: str) -> str:
    """Return a name in quotes, shortened if a message has no room for it."""
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


@dataclass(frozen=True, slots=True)
class FilePosition(Position):
    """A position in a file without lines, `region main, block main, operator 3 CONV2D` of a flatbuffer."""
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = printable(self.source.name)
        parts = (part if len(part) <= LONGEST_NAME else f"{part[:LONGEST_NAME]}..." for part in self.path)
        return f"{name}: {printable(', '.join(parts))}" if self.path else name

    def excerpt(self, mark: str = "^") -> list[str]:
        return []

    def inside(self, what: str) -> FilePosition:
        """Return the position of a part of this position."""
        return FilePosition(self.source, self.line, self.column, self.width, path=(*self.path, what))


def whole(name: str) -> FilePosition:
    """Return the position of a whole file."""
    return FilePosition(Source(name, ""), 0, 0)
