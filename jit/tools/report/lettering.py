"""Text in a picture: its width, its position, and its overlaps.

The reader's font is unknown when a picture is drawn, so widths are upper estimates: those of DejaVu Sans and Verdana, which
screen fonts seldom exceed. A label is written only where its box is free, and inside the object that it labels.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .markup import Markup, tag

SIZE = 11
"""Font size of all text in a picture, in its units."""
ABOVE, BELOW = 0.95 * SIZE, 0.25 * SIZE
"""Extent of letters above and below their base line."""
LINE = ABOVE + BELOW
BOLD = 1.12
"""Width of bold letters relative to regular ones."""
GAP = 3.0
"""Minimum distance between a label and its neighbours."""
LEAST = 5
"""Minimum number of letters of a name that is cut."""

NARROW, WIDE = frozenset("fijlrtIJ .,:;/\\()[]'|!-\""), frozenset("mwMW%=+<>~@#^&…")
Anchor = Literal["start", "middle", "end"]


def width(text: str, bold: bool = False) -> float:
    """Return an upper bound of the width of a text."""
    return sum(map(width_of, text)) * SIZE * (BOLD if bold else 1.0)


def width_of(letter: str) -> float:
    """Return the width of a letter, as a fraction of the font size."""
    if letter in NARROW:
        return 0.46
    if letter in WIDE or not letter.isascii():
        return 1.0
    return 0.79 if letter.isupper() else 0.64


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of the picture."""
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: Box) -> bool:
        return (self.left <= other.left and other.right <= self.right and self.top <= other.top
                and other.bottom <= self.bottom)


@dataclass(frozen=True, slots=True)
class Label:
    """Text at a position: `x` and `y` are the start of its line (or its middle or end); `upright` text is written upwards."""
    text: str
    x: float
    y: float
    anchor: Anchor = "start"
    upright: bool = False
    bold: bool = False

    @property
    def box(self) -> Box:
        long = width(self.text, self.bold)
        before = {"start": 0.0, "middle": long / 2, "end": long}[self.anchor]
        if self.upright:
            return Box(self.x - ABOVE, self.y - (long - before), self.x + BELOW, self.y + before)
        return Box(self.x - before, self.y - ABOVE, self.x - before + long, self.y + BELOW)

    def markup(self, css: str) -> Markup:
        turn = f"rotate(-90 {self.x:.2f} {self.y:.2f})" if self.upright else None
        anchor = "" if self.anchor == "start" else f" {self.anchor}"
        return tag("text", self.text, x=self.x, y=self.y, transform=turn, class_=f"{css}{anchor}")


@dataclass(slots=True)
class Lettering:
    """The labels of a picture of this size."""
    width: float
    height: float
    taken: list[Box] = field(default_factory=list)

    def write(self, label: Label, css: str) -> Markup | None:
        """Return the label if its position is free, with a gap to its neighbours; None otherwise."""
        box = label.box
        wide = Box(box.left - GAP, box.top, box.right + GAP, box.bottom)
        if not Box(0, 0, self.width, self.height).holds(box) or any(wide.meets(other) for other in self.taken):
            return None
        self.taken.append(box)
        return label.markup(css)

    def first(self, labels: Iterable[Label], css: str) -> Markup | None:
        """Return the first label whose position is free."""
        return next((found for label in labels if (found := self.write(label, css))), None)


def names_in(name: str, box: Box, telling: Telling) -> Iterator[Label]:
    """Yield the positions for a name, or for the part of it that fits, inside a box, across or upwards. Less shortened forms
    come first."""
    across, upward = box.right - box.left - 2 * GAP, box.bottom - box.top - 2 * GAP
    forms = [(telling.cut(name, across), False), (telling.cut(name, upward), True)]
    room = {False: box.bottom - box.top >= LINE, True: box.right - box.left >= LINE}
    for text, upright in sorted(forms, key=lambda form: -len(form[0])):
        if text and room[upright]:
            yield from places(text, upright, box)


def places(text: str, upright: bool, box: Box) -> Iterator[Label]:
    """Yield the possible positions of a text in a box: its line in the middle or at an edge; on the line the start, the middle,
    the end."""
    long = width(text)
    if upright:
        low, high = box.left + ABOVE, box.right - BELOW
        first, last = box.bottom - GAP, box.top + GAP + long
        yield from (Label(text, x, y, upright=True) for y in (first, (first + last) / 2, last)
                    for x in ((low + high) / 2, low, high))
        return
    low, high = box.top + ABOVE, box.bottom - BELOW
    first, last = box.left + GAP, box.right - GAP - long
    yield from (Label(text, x, y) for x in (first, (first + last) / 2, last) for y in ((low + high) / 2, low, high))


@dataclass(frozen=True, slots=True)
class Telling:
    """Counts for shortening names that are paths so that they stay distinct: the number of names with each part, and with each
    end."""
    parts: Counter[str]
    ends: Counter[str]

    @classmethod
    def of(cls, names: Iterable[str]) -> Telling:
        paths = [name.split("/") for name in names]
        return cls(Counter(part for path in paths for part in set(path)), Counter(end for path in paths for end in ends(path)))

    def cut(self, name: str, room: float) -> str:
        """Return the longest form of a name that fits: all of it, an end that no other name has, the part that the fewest
        others have, the beginning and the end of that part; else an empty text."""
        path = name.split("/")
        part = min((part for part in reversed(path) if part), key=lambda part: self.parts[part], default=name)
        whole = [name, *(f"…/{end}" for end in ends(path) if end and self.ends[end] == 1), part]
        return next((text for text in (*whole, *shorter(part)) if width(text) <= room), "")


def ends(path: Sequence[str]) -> list[str]:
    """Return the ends of a path, the longest first, without the whole path."""
    return ["/".join(path[first:]) for first in range(1, len(path))]


def shorter(part: str) -> Iterator[str]:
    """Yield a part of a name with less and less of its middle: numbers are at its end."""
    for length in range(len(part) - 2, LEAST - 1, -1):
        last = (length + 1) // 2
        yield f"{part[:length - last]}…{part[-last:]}"
