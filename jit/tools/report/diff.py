"""The changes from one report to another: totals, pools, buffers that were added, removed, grew or shrank, and the position of
the peak."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ....runtime.errors import printable
from .figures import BufferLine
from .shown_report import Report
from .text import step_text, table

SHOWN = 20
"""Maximum number of buffers in a list of the text."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure in both reports; None if a report lacks it."""
    name: str
    before: int | None
    after: int | None

    @property
    def difference(self) -> int:
        return (self.after or 0) - (self.before or 0)


@dataclass(frozen=True, slots=True)
class Diff:
    """Totals and pools (all of them), buffers and constants (those that differ, the largest change first), and the peak in
    words, before and after."""
    totals: tuple[FigureChange, ...]
    pools: tuple[FigureChange, ...]
    buffers: tuple[FigureChange, ...]
    constants: tuple[FigureChange, ...]
    peaks: tuple[str, str]

    @property
    def peak_moved(self) -> bool:
        return self.peaks[0] != self.peaks[1]

    def as_dict(self) -> dict[str, Any]:
        """{totals, pools, buffers, constants: lists of {name, before, after}, peak {before, after, moved}}."""
        return {name: [asdict(c) for c in getattr(self, name)] for name in ("totals", "pools", "buffers", "constants")} | {
            "peak": {"before": self.peaks[0], "after": self.peaks[1], "moved": self.peak_moved}}

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for part in self.parts() for line in part)

    def parts(self) -> Iterator[list[str]]:
        yield table(("", "before", "after", "change"), [row(c) for c in (*self.totals, *self.pools)])
        before, after = map(printable, self.peaks)
        yield ["", f"  peak before  {before}", f"  peak after   {after}"] if self.peak_moved else [
            "", f"  peak unmoved: {before}"]
        for title, changes in (("buffers", self.buffers), ("constants", self.constants)):
            yield from lists(title, changes)


def diff(before: Report, after: Report) -> Diff:
    """Return the changes from `before` to `after`; buffers are matched by the model's names for them, or by their own."""
    return Diff(tuple(totals(before, after)),
                changes({f"pool {p.name}": p.nbytes for p in before.pools}, {f"pool {p.name}": p.nbytes for p in after.pools}),
                changed(before.buffers, after.buffers), changed(before.constant_buffers, after.constant_buffers),
                (peak(before), peak(after)))


def totals(before: Report, after: Report) -> Iterator[FigureChange]:
    for name in ("arena", "live_bytes", "lower_bound", "waste", "undo", "state", "constants"):
        yield FigureChange(name.replace("_", " "), getattr(before, name), getattr(after, name))
    yield FigureChange("kernels", len(before.kernels), len(after.kernels))
    yield FigureChange("steps", len(before.timeline), len(after.timeline))
    if before.object or after.object:
        yield FigureChange("code", *(r.object.text if r.object else None for r in (before, after)))
        yield FigureChange("stack", *(r.object.stack if r.object else None for r in (before, after)))


def changes(before: dict[str, int], after: dict[str, int]) -> tuple[FigureChange, ...]:
    """Return the figures of both, by name in the order of appearance."""
    return tuple(FigureChange(name, before.get(name), after.get(name)) for name in {**before, **after})


def changed(before: Sequence[BufferLine], after: Sequence[BufferLine]) -> tuple[FigureChange, ...]:
    """Return buffers whose size differs, or that only one report has."""
    both = changes({b.called: b.nbytes for b in before}, {b.called: b.nbytes for b in after})
    return tuple(sorted((c for c in both if c.before != c.after), key=lambda c: (-abs(c.difference), c.name)))


def peak(report: Report) -> str:
    if report.peak is None:
        return "nothing is planned"
    return f"{report.peak.nbytes:,} bytes at {step_text(report, report.peak.tick)}"


def row(change: FigureChange) -> tuple[str, str, str, str]:
    return change.name, number(change.before), number(change.after), signed(change.difference)


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def signed(value: int) -> str:
    return f"{value:+,}" if value else "="


def lists(title: str, changes: Sequence[FigureChange]) -> Iterator[list[str]]:
    """Yield the changes as lists: added, removed, grew, shrank."""
    kinds = {"added": [c for c in changes if c.before is None], "removed": [c for c in changes if c.after is None],
             "grew": [c for c in changes if None not in (c.before, c.after) and c.difference > 0],
             "shrank": [c for c in changes if None not in (c.before, c.after) and c.difference < 0]}
    for kind, found in kinds.items():
        if found:
            yield ["", f"  {title} {kind}: {len(found)}", *(f"  {line}" for line in listed(found))]


def listed(changes: Sequence[FigureChange]) -> list[str]:
    rows = [row(c) for c in changes[:SHOWN]]
    more = [f"  and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
    return table(("name", "before", "after", "change"), rows) + more
