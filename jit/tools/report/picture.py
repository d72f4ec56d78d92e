"""A pool as a picture (SVG): steps across, offsets up, a rectangle for each time that a buffer lies there; below it the bytes
live at each step, with the peak, the lower bound and what the plan needs above it.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from .axes import LEFT, RIGHT, WIDTH, ByteScale, TimeScale, kernel_labels, stretch_labels
from .columns import columns
from .figures import BufferLine, PoolLine
from .live import live_bytes
from .markup import Markup, shortened, tag
from .text import Report, kernel_text

MOST_COLUMNS = 600

MOST_BUFFERS = 800
"""Rectangles of a picture at most; the smallest are left out."""

PLAN_TOP, PLAN_HEIGHT, GAP, CURVE_HEIGHT, FOOT = 32, 340, 38, 130, 46

THIN = 3.5

LETTER = 6.2
"""Width of a letter of a buffer's name, in the picture's units."""


def pool_picture(report: Report, pool: PoolLine, shared: dict[str, list[str]], number: int) -> Markup:
    """The picture of a pool. `shared` names the buffers that each one shares bytes with on purpose."""
    held = shown(report.held_by(pool.name))
    times = TimeScale(columns(report.timeline, MOST_COLUMNS))
    top = capacity(pool)
    plan = ByteScale(top, PLAN_TOP, PLAN_TOP + PLAN_HEIGHT)
    low = plan.bottom + GAP
    curve = ByteScale(top, low, low + CURVE_HEIGHT)
    parts = [*hatch(number), *frame(plan, "offset, ", 8), *frame(curve, "live, ", 4), *time_axis(report, times, curve),
             *peak_band(pool, times, plan, curve), *rectangles(report, held, shared, pool, times, plan, number),
             *live_curve(report, pool, times, curve, number), *limits(pool, plan, curve)]
    return tag("div", tag("svg", *parts, class_="plan", viewBox=f"0 0 {WIDTH} {curve.bottom + FOOT:.0f}", role="group",
                          aria_label=f"Plan of pool {pool.name}: steps across, bytes up"), class_="scroll")


def shown(held: Sequence[BufferLine]) -> list[BufferLine]:
    """The buffers of a picture: those with bytes and a life, the largest if there are too many, in their order."""
    drawn = [b for b in held if b.nbytes and b.live]
    largest = sorted(drawn, key=lambda b: (-b.nbytes * sum(last - first + 1 for first, last in b.live), b.name))[:MOST_BUFFERS]
    names = {b.name for b in largest}
    return sorted((b for b in drawn if b.name in names), key=lambda b: (b.live[0], b.offset or 0))


def capacity(pool: PoolLine) -> int:
    """Bytes at the top of the picture: the limit, if it is near enough to be drawn."""
    near = pool.limit is not None and pool.limit <= pool.nbytes * 1.4
    return max(pool.nbytes, pool.lower_bound, pool.limit if near and pool.limit else 0, 1)


# ---- axes ------------------------------------------------------------------------------------------------------------
def frame(scale: ByteScale, what: str, count: int) -> Iterator[Markup]:
    """Lines and labels of the bytes."""
    yield tag("text", f"{what}{scale.unit}", x=4, y=scale.top - 14, class_="axis")
    for nbytes in scale.ticks(count):
        y = scale.y(nbytes)
        yield tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="base" if nbytes == 0 else "grid")
        yield tag("text", scale.label(nbytes), x=LEFT - 7, y=y + 4, class_="axis end")


def time_axis(report: Report, times: TimeScale, scale: ByteScale) -> Iterator[Markup]:
    """Numbers of kernels, and brackets under those that run by rows."""
    for x, text in kernel_labels(report, times):
        yield tag("line", x1=x, x2=x, y1=scale.bottom, y2=scale.bottom + 4, class_="base")
        yield tag("text", text, x=x, y=scale.bottom + 16, class_="axis middle")
    for start, end, text in stretch_labels(report, times):
        yield tag("path", d=f"M{start + 1:.1f} {scale.bottom + 3:.1f}v4H{end - 1:.1f}v-4", class_="bracket")
        yield tag("text", text, x=(start + end) / 2, y=scale.bottom + 18, class_="axis middle")
    yield tag("text", "kernel, in the order of execution", x=LEFT, y=scale.bottom + 36, class_="axis")


HATCHES = {"scratch": "M-1 5L5 -1M3 9L9 3", "waste": "M-1 3L3 -1M5 9L9 5M-1 -1L9 9"}


def hatch(number: int) -> Iterator[Markup]:
    """The patterns of scratch and of waste."""
    for name, lines in HATCHES.items():
        pattern = tag("pattern", tag("path", d=lines, class_=f"{name}-line"), id=f"{name}-{number}", width=8, height=8,
                      patternUnits="userSpaceOnUse")
        yield tag("defs", pattern)


# ---- the plan --------------------------------------------------------------------------------------------------------
def rectangles(report: Report, held: Sequence[BufferLine], shared: dict[str, list[str]], pool: PoolLine, times: TimeScale,
               scale: ByteScale, number: int) -> Iterator[Markup]:
    alive = set(pool.peak.alive) if pool.peak else set()
    for i, b in enumerate(held):
        spans = times.columns.cover(b.live)
        top, bottom = scale.y(b.end), scale.y(b.offset or 0)
        boxes = [(times.x(first), times.x(last + 1)) for first, last in spans]
        parts = [piece for start, end in boxes for piece in box(b, start, end, top, bottom, number)]
        start, end = max(boxes, key=lambda s: s[1] - s[0])
        text = description(report, b, shared.get(b.name, []))
        yield tag("g", tag("title", text), parts, label(b, start, end, top, bottom),
                  class_=css(b, b.name in alive, b.name in shared), tabindex=0 if i == 0 else -1, role="img")


def box(buffer: BufferLine, start: float, end: float, top: float, bottom: float, number: int) -> Iterator[Markup]:
    """A rectangle; one too small for a border has none, and is as large as can be seen."""
    is_thin = end - start < THIN or bottom - top < THIN
    size = {"x": start, "y": min(top, bottom - 1.2), "width": max(end - start, 1.0), "height": max(bottom - top, 1.2)}
    yield tag("rect", **size, class_="thin" if is_thin else None)
    if buffer.kind == "scratch":
        yield tag("rect", fill=f"url(#scratch-{number})", class_="over", **size)


def css(buffer: BufferLine, at_peak: bool, is_shared: bool) -> str:
    kind = "io" if buffer.kind in ("input", "output") else "value"
    return f"b {kind}{' peak' if at_peak else ''}{' shares' if is_shared else ''}"


def label(buffer: BufferLine, start: float, end: float, top: float, bottom: float) -> Markup | None:
    """The name, where there is room for it or its beginning."""
    room = int((end - start - 8) / LETTER)
    if bottom - top < 13 or room < 2 or (room < len(buffer.name) and room < 5):
        return None
    text = buffer.name if len(buffer.name) <= room else buffer.name[:room - 1] + "…"
    return tag("text", text, x=start + 4, y=(top + bottom) / 2 + 4)


def description(report: Report, b: BufferLine, shared: Sequence[str]) -> str:
    """All that is known of a buffer, a line for each fact."""
    lines = [f"{shortened(b.name)}: {b.type}", f"{b.nbytes:,} bytes at {b.offset or 0:,}" + (f", {b.kind}" if b.kind else "")]
    if b.producer is not None and b.kind != "scratch":
        lines.append(f"from {kernel_text(report.kernels[b.producer], b.producer)}")
        lines += [f"  {source}" for source in [report.kernels[b.producer].source] if source]
    if b.last_reader is not None:
        verb = "inside" if b.kind == "scratch" else "last read by"
        lines.append(f"{verb} {kernel_text(report.kernels[b.last_reader], b.last_reader)}")
    if shared:
        lines.append(f"shares bytes with {', '.join(map(shortened, shared[:6]))}")
    return "\n".join(lines)


# ---- live bytes ------------------------------------------------------------------------------------------------------
def live_curve(report: Report, pool: PoolLine, times: TimeScale, scale: ByteScale, number: int) -> Iterator[Markup]:
    """The curve, and the band between the lower bound and what the plan needs."""
    curve = times.columns.highest(live_bytes(report.held_by(pool.name), len(report.timeline)))
    if pool.waste > 0:
        yield tag("rect", x=LEFT, y=scale.y(pool.nbytes), width=WIDTH - LEFT - RIGHT,
                  height=scale.y(pool.lower_bound) - scale.y(pool.nbytes), class_="waste", fill=f"url(#waste-{number})")
    steps = "".join(f"V{scale.y(value):.1f}H{times.x(i + 1):.1f}" for i, value in enumerate(curve))
    if steps:
        yield tag("path", d=f"M{LEFT} {scale.bottom:.1f}{steps}V{scale.bottom:.1f}Z", class_="area")
        yield tag("path", d=f"M{LEFT} {scale.bottom:.1f}{steps}V{scale.bottom:.1f}", class_="curve")
    yield tag("rect", x=LEFT, y=scale.top, width=WIDTH - LEFT - RIGHT, height=scale.bottom - scale.top, class_="hit",
              data_live=" ".join(map(str, curve)))
    if pool.peak:
        x, y = times.x(times.columns.of[pool.peak.tick] + 0.5), scale.y(pool.peak.nbytes)
        yield tag("line", x1=x, x2=x, y1=PLAN_TOP, y2=scale.bottom, class_="guide")
        yield tag("circle", cx=x, cy=y, r=4.5, class_="dot")


def peak_band(pool: PoolLine, times: TimeScale, plan: ByteScale, curve: ByteScale) -> Iterator[Markup]:
    """The column of the peak, through both parts, with what runs there."""
    if not pool.peak:
        return
    width = max(times.step, 2.0)
    x = times.x(times.columns.of[pool.peak.tick] + 0.5)
    yield tag("rect", x=x - width / 2, y=plan.top, width=width, height=curve.bottom - plan.top, class_="band")
    where = "start" if x < LEFT + 90 else "end" if x > WIDTH - RIGHT - 90 else "middle"
    kernel = "" if pool.peak.kernel is None else f", kernel {pool.peak.kernel}"
    yield tag("text", f"peak: {pool.peak.nbytes:,} bytes{kernel}", x=x, y=plan.top - 8, class_=f"peak-label {where}")


def limits(pool: PoolLine, plan: ByteScale, curve: ByteScale) -> Iterator[Markup]:
    """Lines across for what the plan needs, the lower bound and the limit; labels that would meet are one."""
    marks = [("planned", pool.nbytes, "planned"), ("lower bound", pool.lower_bound, "bound")]
    if pool.limit is not None and pool.limit <= plan.most:
        marks.append(("limit", pool.limit, "limit"))
        yield across(plan, pool.limit, "limit")
    texts: dict[int, str] = {}
    for name, nbytes, style in marks:
        texts[nbytes] = f"{texts[nbytes]} = {name}" if nbytes in texts else name
        yield across(curve, nbytes, style)
    last = 0.0
    for nbytes in sorted(texts, reverse=True):
        last = max(curve.y(nbytes), last + 30)
        yield tag("text", texts[nbytes], x=WIDTH - RIGHT + 8, y=last - 3, class_="axis")
        yield tag("text", f"{nbytes:,}", x=WIDTH - RIGHT + 8, y=last + 11, class_="axis strong")


def across(scale: ByteScale, nbytes: int, style: str) -> Markup:
    y = scale.y(nbytes)
    return tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_=f"across {style}")
