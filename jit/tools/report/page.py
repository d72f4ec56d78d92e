"""A report as one HTML page: nothing is loaded from anywhere, names are escaped, the same report gives the same bytes.

Everything is in the page as text and drawings; the script only describes a rectangle when the pointer is over it, and moves
between rectangles by the arrow keys.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from .axes import LAYOUTS
from .columns import columns
from .figures import BufferLine, Figures, PoolLine
from .fit import Fit
from .live import sharing
from .markup import Markup, shortened, tag
from .picture import MOST_COLUMNS, capacity, pool_pictures
from .sections import (
    buffer_table,
    bytes_section,
    fit_section,
    kernel_table,
    ladder_section,
    moved_section,
    peak_section,
    short,
    size,
)
from .text import step_text

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""Content that a browser may load for the page: nothing."""


def page(report: Figures, title: str, verdict: Fit | None = None) -> str:
    """Return the page of a report; `verdict` is the comparison with limits; None compares with some boards."""
    head = tag("head", tag("meta", charset="utf-8"),
               tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
               tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
               tag("title", f"{shortened(title)} in memory"), tag("style", asset("page.css")))
    labels = tag("script", in_script(step_labels(report)), type="application/json", id="steps")
    script = [labels, tag("script", asset("page.js"))]
    body = tag("body", tag("main", sections(report, title, verdict)), tag("div", id="tip"), script)
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


@functools.cache
def asset(name: str) -> Markup:
    """Return a style sheet or script from this file's folder."""
    return Markup("\n" + Path(__file__).with_name(name).read_text(encoding="utf-8"))


def in_script(value: object) -> Markup:
    """Return JSON that cannot end the script that contains it."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def step_labels(report: Figures) -> list[str]:
    """Return a description of the steps in each column of the pictures."""
    def label(first: int, last: int) -> str:
        text = step_text(report, first)
        return text if first == last else f"{text}, and {last - first:,} steps more"

    return [label(first, last) for first, last in columns(report.timeline, MOST_COLUMNS).spans]


def sections(report: Figures, title: str, verdict: Fit | None) -> Iterator[Markup]:
    yield tag("h1", shortened(title))
    yield tag("p", summary(report), class_="muted")
    if report.made_from:
        yield tag("p", report.made_from, class_="muted")
    yield tag("div", tiles(report), class_="tiles")
    shared = sharing(report.buffers)
    for number, pool in enumerate(report.workspace_pools):
        yield tag("section", pool_section(report, pool, shared, number))
    if report.peak:
        yield tag("section", peak_section(report, report.peak))
    if len(report.pools) > 1:
        yield tag("section", moved_section(report))
    if report.ladder:
        yield tag("section", ladder_section(report))
    yield tag("section", fit_section(report, verdict))
    yield tag("section", bytes_section(report))
    if report.in_float:
        lines = (tag("li", line) for line in report.in_float)
        yield tag("section", folded(f"In float ({len(report.in_float):,})", iter([tag("ul", lines)])))
    yield tag("section", folded(f"Kernels ({len(report.kernels):,})", kernel_table(report)))
    yield tag("section", folded(f"Buffers ({len(report.buffers):,})", buffer_table(report)))


# ---- head ------------------------------------------------------------------------------------------------------------
def summary(report: Figures) -> str:
    if not report.peak:
        return f"It needs no working memory. Compiled for {report.target}."
    least = ("the least that any plan of these steps could have" if not report.waste
             else f"{report.waste:,} above the least that any plan of these steps could have")
    least += "" if report.is_proved else " (not proved to be the best plan)"
    return (f"It needs {size(report.arena)} of working memory, {least}. The most bytes are live at "
            f"{step_text(report, report.peak.tick)}. Compiled for {report.target}.")


def tiles(report: Figures) -> Iterator[Markup]:
    figures = [("Arena", report.arena), ("Live at once", report.live_bytes), ("Waste", report.waste), ("State", report.state),
               ("Constants", report.object.constants if report.object else report.constants)]
    if report.object:
        figures.append(("Code", report.object.text))
        figures += [("Stack", report.object.stack)] if report.object.stack is not None else []
    for name, nbytes in figures:
        yield tag("div", tag("span", name), tag("b", short(nbytes)), tag("span", f"{nbytes:,} bytes"), class_="tile")


def folded(title: str, content: Iterator[Markup]) -> Markup:
    return tag("details", tag("summary", title), content)


# ---- pools -----------------------------------------------------------------------------------------------------------
def pool_section(report: Figures, pool: PoolLine, shared: dict[str, list[str]], number: int) -> Iterator[Markup]:
    yield tag("h2", f"Pool {shortened(pool.name)}")
    limit = "without a limit" if pool.limit is None else f"limit {size(pool.limit)}"
    yield tag("p", f"{size(pool.nbytes)}, live at once {pool.live_bytes:,}, waste {pool.waste:,}, {limit}.", class_="note")
    held = report.held_by(pool.name)
    if not pool.peak:
        yield tag("p", "Nothing lies in this pool.", class_="empty")
        return
    yield tag("ul", legend(held, shared), lines(pool), class_="legend")
    yield from pool_pictures(report, pool, shared, number)
    if pool.peak.nbytes > pool.live_bytes:
        yield tag("p", "The buffers at the peak have more bytes than are live at once: bytes that buffers may share while both "
                  "are in use count once there, and this plan does not share all of them.", class_="note")
    for layout in LAYOUTS:
        if len(held) > layout.most_buffers:
            yield tag("p", f"The {layout.most_buffers} largest of {len(held):,} buffers are drawn.",
                      class_=f"note {layout.name}")


def legend(held: Sequence[BufferLine], shared: dict[str, list[str]]) -> Iterator[Markup]:
    kinds = {b.kind for b in held}
    entries = [("value", "between kernels", "intermediate" in kinds),
               ("scratch", "scratch inside a kernel", "scratch" in kinds),
               ("io", "input or output", bool(kinds & {"input", "output"})), ("peak", "alive at the peak", True),
               ("shares", "shares bytes with another while both are live", any(b.name in shared for b in held))]
    return (tag("li", tag("i", class_=css), text) for css, text, there in entries if there)


def lines(pool: PoolLine) -> Iterator[Markup]:
    """Yield the legend of the lines across a picture."""
    yield tag("li", tag("i", class_="line planned"), f"planned: {pool.nbytes:,} bytes")
    yield tag("li", tag("i", class_="line bound"), f"live at once: {pool.live_bytes:,}")
    if pool.limit is not None and pool.limit <= capacity(pool):
        yield tag("li", tag("i", class_="line limit"), f"limit: {pool.limit:,}")
