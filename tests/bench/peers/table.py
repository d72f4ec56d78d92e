"""What was measured, as text: a block for each row, a summary of all in Markdown; and as JSON."""
from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from .cases import tolerance
from .measure import Outcome, Row
from .roster import OWN

BOUNDS = {"f32": "GFLOP/s", "int8": "GOP/s", "copy": "GB/s"}


def ratio(row: Row, outcome: Outcome) -> float | None:
    """The least time beside tosaic's least: above 1 tosaic is faster."""
    own = own_of(row)
    return min(outcome.batches) / min(own.batches) if own and own.batches and outcome.batches else None


def paired(row: Row, outcome: Outcome) -> float | None:
    """The median over the rounds of the peer's time beside tosaic's in the same round."""
    own = own_of(row)
    if not own or not own.batches or not outcome.batches:
        return None
    return statistics.median(theirs / ours for theirs, ours in zip(outcome.batches, own.batches))


def own_of(row: Row) -> Outcome | None:
    return next((outcome for outcome in row.outcomes if outcome.peer == OWN.name), None)


def share(row: Row, outcome: Outcome) -> float | None:
    """The part of the measured peak that the least time is."""
    return row.work / min(outcome.batches) / row.peak if outcome.batches and row.peak and row.work else None


def differs(row: Row, outcome: Outcome) -> bool:
    return outcome.difference > tolerance(row.case)


def best(row: Row) -> Outcome | None:
    """The fastest peer whose results are tosaic's."""
    peers = [o for o in row.outcomes if o.peer != OWN.name and o.batches and not o.refused and not differs(row, o)]
    return min(peers, key=lambda o: min(o.batches), default=None)


def block(row: Row) -> str:
    """A row's table: one line for each peer."""
    peak = f"{row.unit}: {row.peak / 1e9:,.0f} {BOUNDS[row.case.bound]}" if row.peak else row.unit
    lines = [f"{row.case.title}, {threads(row.threads)} ({peak})",
             f"  {'':12}{'least us':>12}{'median':>12}{'ratio':>7}{'paired':>8}{'peak':>7}{'compile':>9}{'start':>8}"
             f"{'MB comp.':>9}{'MB run':>8}"]
    return "\n".join([*lines, *(f"  {outcome.peer:12}{line(row, outcome)}" for outcome in row.outcomes)])


def line(row: Row, outcome: Outcome) -> str:
    """Times in microseconds, ratios, share of the peak, seconds to load (compiled now; again), megabytes."""
    if outcome.refused or not outcome.batches:
        return f"  - {outcome.refused}"
    part, first, again = share(row, outcome), *loads(outcome)
    cells = [f"{min(outcome.batches) * 1e6:12,.1f}{statistics.median(outcome.batches) * 1e6:12,.1f}",
             f"{number(ratio(row, outcome)):>7}{number(paired(row, outcome)):>8}",
             f"{'-' if part is None else f'{part:.1%}':>7}", f"{seconds(first.get('load')):>9}{seconds(again.get('load')):>8}",
             f"{megabytes(first.get('load_mb')):>9}{megabytes(outcome.run_mb):>8}"]
    note = f"  differs by {outcome.difference:.3g}" if differs(row, outcome) else ""
    return "".join(cells) + note


def loads(outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """What compiling took, and what a second start; empty where there is no such thing."""
    return (outcome.cold, outcome.load) if outcome.keeps else (outcome.load, {})


def megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def summary(rows: Iterable[Row]) -> str:
    """Markdown: one line for each case and number of threads, the best peer beside tosaic."""
    lines = ["| case | threads | tosaic | best peer | | ratio | of peak | compile | second start | memory compiling, running |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        own, peer = own_of(row), best(row)
        if own is None or not own.batches:
            lines.append(f"| {row.case.title} | {row.threads} | - {own.refused if own else ''} | | | | | | | |")
            continue
        part, first, again = share(row, own), *loads(own)
        theirs = f"{microseconds(min(peer.batches))} | {peer.peer} | {number(ratio(row, peer))}" if peer else "- | | -"
        starts = f"{seconds(first.get('load'))} s | {seconds(again.get('load'))} s"
        lines.append(f"| {row.case.title} | {row.threads} | {microseconds(min(own.batches))} | {theirs} | "
                     f"{'-' if part is None else f'{part:.0%}'} | {starts} | "
                     f"{megabytes(first.get('load_mb'))}, {megabytes(own.run_mb)} MB |")
    return "\n".join(lines)


def microseconds(value: float) -> str:
    return f"{value * 1e6:,.0f} us" if value >= 1e-4 else f"{value * 1e6:.1f} us"


def as_json(row: Row) -> dict[str, Any]:
    """A row with every batch, and the figures of the table."""
    outcomes = [{**asdict(outcome), "least": min(outcome.batches, default=None), "ratio": ratio(row, outcome),
                 "paired": paired(row, outcome), "share": share(row, outcome), "differs": differs(row, outcome)}
                for outcome in row.outcomes]
    return {"case": row.case.name, "title": row.case.title, "threads": row.threads, "work": row.work, "bound": row.case.bound,
            "unit": row.unit, "peak": row.peak, "peak_here": row.peak_here, "peers": outcomes}
