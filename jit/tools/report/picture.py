"""A pool as a picture (SVG): steps across, offsets up, a rectangle for each lifetime of a buffer. Below it the live bytes at
each step, with the peak, the maximum live at once and the plan's size above it.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from .axes import LAYOUTS, RIGHT, ByteScale, Layout, TimeScale, kernel_labels, stretch_labels, title_of_axis
from .columns import columns
from .figures import BufferLine, Figures, PoolLine
from .lettering import SIZE, Box, Label, Lettering, Telling, names_in, width
from .live import live_bytes
from .markup import Markup, shortened, tag
from .text import kernel_text

MOST_COLUMNS = 600

PLAN_TOP, GAP, FOOT = 36, 38, 40
"""Space above the plan for two lines, between the plan and the curve for one, below for two."""

THIN = 3.5


def pool_pictures(report: Figures, pool: PoolLine, shared: dict[str, list[str]], number: int) -> Iterator[Markup]:
    """Yield the picture of a pool in each size. `shared` names the buffers that each buffer shares bytes with on purpose."""
    for layout in LAYOUTS:
        yield pool_picture(report, pool, shared, f"{number}-{layout.name}", layout)


def pool_picture(report: Figures, pool: PoolLine, shared: dict[str, list[str]], number: str, layout: Layout) -> Markup:
    held = shown(report.held_by(pool.name), layout.most_buffers)
    top = capacity(pool)
    plan = ByteScale(top, PLAN_TOP, PLAN_TOP + layout.plan_height)
    low = plan.bottom + GAP
    curve = ByteScale(top, low, low + layout.curve_height)
    times = TimeScale(columns(report.timeline, MOST_COLUMNS), plan.margin(layout.ticks), layout.width - RIGHT)
    height = curve.bottom + FOOT
    letters = Lettering(layout.width, height)
    around = [*frame(plan, times, layout.ticks, letters, title_of_axis(plan, "offset", PLAN_TOP - SIZE)),
              *frame(curve, times, layout.ticks // 2, letters, title_of_axis(curve, "live", SIZE)),
              *time_axis(report, times, curve, letters), *peak_band(pool, times, plan, curve, letters)]
    boxes = {b.name: boxes_of(b, times, plan) for b in held}
    parts = [*hatch(number), *around, *rectangles(report, held, shared, pool, boxes, number),
             *names(held, shared, boxes, letters), *live_curve(report, pool, times, curve, number),
             *limits(pool, plan, curve, times)]
    return tag("svg", *parts, class_=f"plan {layout.name}", viewBox=f"0 0 {layout.width} {height:.0f}", font_size=SIZE,
               role="group", aria_label=f"Plan of pool {pool.name}: steps across, bytes up")


def shown(held: Sequence[BufferLine], most: int) -> list[BufferLine]:
    """Return the buffers of a picture: those with bytes and a lifetime, the largest if there are too many, in their order."""
    drawn = [b for b in held if b.nbytes and b.live]
    largest = sorted(drawn, key=lambda b: (-b.nbytes * sum(last - first + 1 for first, last in b.live), b.name))[:most]
    names = {b.name for b in largest}
    return sorted((b for b in drawn if b.name in names), key=lambda b: (b.live[0], b.offset or 0))


def capacity(pool: PoolLine) -> int:
    """Return the bytes at the top of the picture: the limit, if it is near enough to be drawn."""
    near = pool.limit is not None and pool.limit <= pool.nbytes * 1.4
    return max(pool.nbytes, pool.live_bytes, pool.limit if near and pool.limit else 0, 1)


# ---- axes ------------------------------------------------------------------------------------------------------------
def frame(scale: ByteScale, times: TimeScale, count: int, letters: Lettering, title: Label) -> Iterator[Markup]:
    """Yield lines and labels of the bytes."""
    yield from written(letters, title)
    for nbytes in scale.ticks(count):
        y = scale.y(nbytes)
        yield tag("line", x1=times.left, x2=times.right, y1=y, y2=y, class_="base" if nbytes == 0 else "grid")
        yield from written(letters, Label(scale.label(nbytes), times.left - 6, y + 0.35 * SIZE, "end"))


def written(letters: Lettering, *labels: Label, css: str = "axis") -> Iterator[Markup]:
    """Yield the first of some labels that fits."""
    found = letters.first(labels, css)
    if found is not None:
        yield found


def time_axis(report: Figures, times: TimeScale, scale: ByteScale, letters: Lettering) -> Iterator[Markup]:
    """Yield numbers of kernels, and brackets under those that run by rows."""
    line = scale.bottom + 5 + SIZE
    for start, end, labels in stretch_labels(report, times, line):
        yield tag("path", d=f"M{start + 1:.1f} {scale.bottom + 2:.1f}v3H{end - 1:.1f}v-3", class_="bracket")
        yield from written(letters, *labels)
    for label in kernel_labels(report, times, line):
        if (found := letters.write(label, "axis")) is not None:
            yield tag("line", x1=label.x, x2=label.x, y1=scale.bottom, y2=scale.bottom + 4, class_="base")
            yield found
    yield from written(letters, Label("kernel, in the order of execution", times.left, line + 1.5 * SIZE))


HATCHES = {"scratch": "M-1 5L5 -1M3 9L9 3", "waste": "M-1 3L3 -1M5 9L9 5M-1 -1L9 9"}


def hatch(number: str) -> Iterator[Markup]:
    """Yield the patterns of scratch and of waste."""
    for name, lines in HATCHES.items():
        pattern = tag("pattern", tag("path", d=lines, class_=f"{name}-line"), id=f"{name}-{number}", width=8, height=8,
                      patternUnits="userSpaceOnUse")
        yield tag("defs", pattern)


# ---- the plan --------------------------------------------------------------------------------------------------------
def boxes_of(buffer: BufferLine, times: TimeScale, scale: ByteScale) -> list[Box]:
    """Return the boxes of a buffer: one for each lifetime."""
    top, bottom = scale.y(buffer.end), scale.y(buffer.offset or 0)
    return [Box(times.x(first), top, times.x(last + 1), bottom) for first, last in times.columns.cover(buffer.live)]


def rectangles(report: Figures, held: Sequence[BufferLine], shared: dict[str, list[str]], pool: PoolLine,
               boxes: dict[str, list[Box]], number: str) -> Iterator[Markup]:
    alive = set(pool.peak.alive) if pool.peak else set()
    for i, b in enumerate(held):
        parts = [piece for box in boxes[b.name] for piece in rectangle(b, box, number)]
        text = description(report, b, shared.get(b.name, []))
        yield tag("g", tag("title", text), parts, class_=css(b, b.name in alive, b.name in shared),
                  tabindex=0 if i == 0 else -1, role="img")


def rectangle(buffer: BufferLine, box: Box, number: str) -> Iterator[Markup]:
    """Yield a rectangle; one too small for a border has none, and is at least large enough to be visible."""
    wide, high = box.right - box.left, box.bottom - box.top
    size = {"x": box.left, "y": min(box.top, box.bottom - 1.2), "width": max(wide, 1.0), "height": max(high, 1.2)}
    yield tag("rect", **size, class_="thin" if wide < THIN or high < THIN else None)
    if buffer.kind == "scratch":
        yield tag("rect", fill=f"url(#scratch-{number})", class_="over", **size)


def css(buffer: BufferLine, at_peak: bool, is_shared: bool) -> str:
    kind = "io" if buffer.kind in ("input", "output") else "value"
    return f"b {kind}{' peak' if at_peak else ''}{' shares' if is_shared else ''}"


def names(held: Sequence[BufferLine], shared: dict[str, list[str]], boxes: dict[str, list[Box]],
          letters: Lettering) -> Iterator[Markup]:
    """Yield the names of the buffers, the largest first, each in its widest box. If buffers share bytes, prefer a position
    outside the others' boxes, and never cross their edges."""
    largest = {b.name: max(boxes[b.name], key=lambda box: box.right - box.left) for b in held}
    telling = Telling.of(shortened(b.called) for b in held)
    for b in sorted(held, key=lambda b: -area(largest[b.name])):
        others = [box for name in shared.get(b.name, ()) for box in boxes.get(name, ())]
        labels = list(names_in(shortened(b.called), largest[b.name], telling))
        clear = [label for label in labels if not any(label.box.meets(o) and not o.holds(label.box) for o in others)]
        alone = [label for label in clear if not any(label.box.meets(o) for o in others)]
        yield from written(letters, *alone, *clear, css="name")


def area(box: Box) -> float:
    return (box.right - box.left) * (box.bottom - box.top)


def description(report: Figures, b: BufferLine, shared: Sequence[str]) -> str:
    """Return all that is known of a buffer, a line for each fact."""
    known = {other.name: other.called for other in report.buffers} if shared else {}
    lines = [f"{shortened(b.called)}: {b.type}", f"{b.nbytes:,} bytes at {b.offset or 0:,}" + (f", {b.kind}" if b.kind else "")]
    if b.producer is not None and b.kind != "scratch":
        lines.append(f"from {kernel_text(report.kernels[b.producer], b.producer)}")
        lines += [f"  {source}" for source in [report.kernels[b.producer].source] if source]
    if b.last_reader is not None:
        verb = "inside" if b.kind == "scratch" else "last read by"
        lines.append(f"{verb} {kernel_text(report.kernels[b.last_reader], b.last_reader)}")
    if shared:
        lines.append(f"shares bytes with {', '.join(shortened(known.get(name, name)) for name in shared[:6])}")
    return "\n".join(lines)


# ---- live bytes ------------------------------------------------------------------------------------------------------
def live_curve(report: Figures, pool: PoolLine, times: TimeScale, scale: ByteScale, number: str) -> Iterator[Markup]:
    """Yield the curve, and the band between the maximum live at once and the plan's size."""
    curve = times.columns.highest(live_bytes(report.held_by(pool.name), len(report.timeline)))
    if pool.waste > 0:
        yield tag("rect", x=times.left, y=scale.y(pool.nbytes), width=times.right - times.left,
                  height=scale.y(pool.live_bytes) - scale.y(pool.nbytes), class_="waste", fill=f"url(#waste-{number})")
    steps = "".join(f"V{scale.y(value):.1f}H{times.x(i + 1):.1f}" for i, value in enumerate(curve))
    if steps:
        yield tag("path", d=f"M{times.left:.1f} {scale.bottom:.1f}{steps}V{scale.bottom:.1f}Z", class_="area")
        yield tag("path", d=f"M{times.left:.1f} {scale.bottom:.1f}{steps}V{scale.bottom:.1f}", class_="curve")
    yield tag("rect", x=times.left, y=scale.top, width=times.right - times.left, height=scale.bottom - scale.top, class_="hit",
              data_live=" ".join(map(str, curve)))
    if pool.peak:
        x, y = times.x(times.columns.of[pool.peak.tick] + 0.5), scale.y(pool.peak.nbytes)
        yield tag("line", x1=x, x2=x, y1=PLAN_TOP, y2=scale.bottom, class_="guide")
        yield tag("circle", cx=x, cy=y, r=4.5, class_="dot")


def peak_band(pool: PoolLine, times: TimeScale, plan: ByteScale, curve: ByteScale, letters: Lettering) -> Iterator[Markup]:
    """Yield the column of the peak, through both parts, with a description of its step."""
    if not pool.peak:
        return
    wide = max(times.step, 2.0)
    x = times.x(times.columns.of[pool.peak.tick] + 0.5)
    yield tag("rect", x=x - wide / 2, y=plan.top, width=wide, height=curve.bottom - plan.top, class_="band")
    kernel = "" if pool.peak.kernel is None else f", kernel {pool.peak.kernel}"
    texts = (f"peak: {pool.peak.nbytes:,} bytes{kernel}", f"peak: {pool.peak.nbytes:,}", "peak")
    yield from written(letters, *(over(text, x, plan.top - 6, letters.width) for text in texts), css="peak-label")


def over(text: str, x: float, y: float, most: float) -> Label:
    """Return a label with its middle at `x`, or as near to it as the picture allows."""
    long = width(text, bold=True)
    return Label(text, max(0.0, min(x - long / 2, most - long)), y, bold=True)


def limits(pool: PoolLine, plan: ByteScale, curve: ByteScale, times: TimeScale) -> Iterator[Markup]:
    """Yield lines across for the plan's size, the maximum live at once and the limit; the legend has their numbers."""
    yield across(curve, times, pool.nbytes, "planned")
    yield across(curve, times, pool.live_bytes, "bound")
    if pool.limit is not None and pool.limit <= plan.most:
        yield across(plan, times, pool.limit, "limit")
        yield across(curve, times, pool.limit, "limit")


def across(scale: ByteScale, times: TimeScale, nbytes: int, style: str) -> Markup:
    y = scale.y(nbytes)
    return tag("line", x1=times.left, x2=times.right, y1=y, y2=y, class_=f"across {style}")
