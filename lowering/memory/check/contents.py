"""The contents of the pools at one point of a run: part of the verifier's replay (`replay`)."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from .placed_buffers import Layout, Use

Gone = tuple[int, int, str]
"""First byte and end of a range of a buffer, and the name of the buffer that has overwritten it."""


@dataclass(slots=True)
class Contents:
    """The buffers that have some of their bytes, and for each buffer the bytes that are gone since they were written."""
    layout: Layout
    present: set[Buffer] = field(default_factory=set)
    gone: dict[Buffer, list[Gone]] = field(default_factory=dict)

    def copy(self) -> Contents:
        return Contents(self.layout, set(self.present), dict(self.gone))  # the lists are never changed

    def meet(self, other: Contents) -> Contents:
        """Return the contents that are certain when either may be the case."""
        met = self.copy()
        met.present |= other.present
        for buffer, spans in other.gone.items():
            for first, end, by in spans:
                met.lose(buffer, first, end, by)
        return met

    def same(self, other: Contents) -> bool:
        mine, others = ({b: {span[:2] for span in spans} for b, spans in c.gone.items()} for c in (self, other))
        return mine == others and self.present == other.present

    def clobbered(self, use: Use) -> str | None:
        """Return the name of a buffer that has overwritten some of these bytes; None if none has."""
        for first, end, by in self.gone.get(use.buffer, ()):
            if first < use.end and use.first < end:
                return by
        return None

    def write(self, use: Use) -> None:
        """Record that bytes hold the buffer's own contents; other buffers lose theirs there."""
        layout, (buffer, first, end) = self.layout, use
        if not layout.is_shared(buffer):
            return
        offset = layout.at[buffer][0]
        start, stop = offset + first, offset + end
        for other in layout.near(buffer, self.present):
            low, high = layout.at[other]
            if start < high and low < stop:
                self.lose(other, max(start - low, 0), min(stop, high) - low, layout.name(buffer))
        self.gain(use)

    def forget(self, buffers: Iterable[Buffer]) -> None:
        """Forget buffers that no later step reads."""
        for buffer in buffers:
            self.present.discard(buffer)
            self.gone.pop(buffer, None)

    def lose(self, buffer: Buffer, first: int, end: int, by: str) -> None:
        """Record that bytes are overwritten; spans that touch are merged, under the name of the first buffer to overwrite
        some."""
        rest: list[Gone] = []
        for span in self.gone.get(buffer, ()):
            if span[0] <= end and first <= span[1]:
                first, end, by = min(first, span[0]), max(end, span[1]), span[2]
            else:
                rest.append(span)
        self.gone[buffer] = [*rest, (first, end, by)]
        low, high = self.layout.at[buffer]
        if end - first == high - low:
            self.present.discard(buffer)

    def gain(self, use: Use) -> None:
        """Record that bytes hold the buffer's own contents again."""
        buffer, low, high = use
        self.present.add(buffer)
        spans = self.gone.pop(buffer, None)
        if spans:
            pieces = [piece for first, end, by in spans for piece in ((first, min(end, low), by), (max(first, high), end, by))]
            if rest := [piece for piece in pieces if piece[0] < piece[1]]:
                self.gone[buffer] = rest
