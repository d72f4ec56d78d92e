"""The sections of a page that are tables: buffers live at the peak, the ladder, the fit, all bytes, kernels and buffers."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from .figures import BoardFit, BufferLine, Figures, FitLine, Peak, Rung
from .fit import UNCOUNTED, Fit
from .markup import Child, Markup, breaking, escaped, shortened, table, tag
from .text import KINDS, moved_rows, narrow_text, noted, sharing_text, step_text

ROWS = 500
"""Maximum number of rows in a table."""


# ---- sizes ---------------------------------------------------------------------------------------------------------
def short(nbytes: int) -> str:
    """Return a size in a suitable unit."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}" if nbytes < 1000 * factor else f"{nbytes / factor:,.0f} {unit}"
    return f"{nbytes} B"


def size(nbytes: int) -> str:
    return f"{nbytes:,} bytes" + (f" ({short(nbytes)})" if nbytes >= 1 << 10 else "")


# ---- peak, ladder ----------------------------------------------------------------------------------------------------
def peak_section(report: Figures, peak: Peak) -> Iterator[Markup]:
    known = {b.name: b for b in report.buffers}
    alive = [known[name] for name in peak.alive]
    yield tag("h2", "Alive at the peak")
    yield tag("p", f"{size(peak.nbytes)} at {step_text(report, peak.tick)}{sharing_text(report, peak)}.", class_="note")
    if peak.kernel is not None and (source := report.kernels[peak.kernel].source):
        yield tag("p", tag("code", source), class_="note")
    top = max(b.nbytes for b in alive)
    several = len(report.workspace_pools) > 1
    head = ("buffer", "type", *(("pool",) if several else ()), "bytes", "", "from", "last read by")
    yield table(head, ([called(b), typed(b), *((b.pool or "",) if several else ()), f"{b.nbytes:,}",
                        bar(b.nbytes, top, hot=True), kernel_name(report, b.producer), kernel_name(report, b.last_reader)]
                       for b in alive[:ROWS]), numbers=(2 + several,))
    yield from left_out(len(alive))


def kernel_name(report: Figures, number: int | None) -> Markup:
    if number is None:
        return Markup("–")
    return breaking(f"{number} {shortened(report.kernels[number].label or report.kernels[number].brief)}")


def called(buffer: BufferLine) -> Markup:
    return tag("code", breaking(shortened(buffer.called)))


def typed(buffer: BufferLine) -> Markup:
    return tag("span", buffer.type, class_="type")


def bar(value: int, most: int, mark: int | None = None, hot: bool = False) -> Markup:
    """Return a bar for `value` of `most`, with a line at `mark`."""
    def percent(nbytes: int) -> str:
        return f"{min(100.0, 100 * nbytes / max(most, 1)):.2f}%"

    line = None if mark is None else tag("u", style=f"left:{percent(mark)}")
    filled = tag("i", class_="hot" if hot else None, style=f"width:{percent(value)}") if value else None
    return tag("span", filled, line, class_="bar")


def ladder_section(report: Figures) -> Iterator[Markup]:
    yield tag("h2", "The ladder")
    yield tag("p", "What lies between operators, from every value in memory of its own to the plan.", class_="note")
    most = max(r.nbytes for r in report.ladder)
    yield table(("", "bytes", "live at once", "share", ""), (rung(r, most, r is report.ladder[-1]) for r in report.ladder),
                numbers=(1, 2, 3))


def rung(r: Rung, most: int, is_plan: bool) -> list[Child]:
    name = Markup(tag("b", r.name) + tag("span", r.explanation, class_="source"))
    mark = r.live_bytes if r.live_bytes < r.nbytes else None
    return [name, f"{r.nbytes:,}", f"{r.live_bytes:,}", share(r.nbytes, most), bar(r.nbytes, most, mark, hot=is_plan)]


def share(nbytes: int, whole: int) -> str:
    return f"{nbytes / whole:.1%}" if whole else "–"


def moved_section(report: Figures) -> Iterator[Markup]:
    """Yield the bytes moved, if there are several pools."""
    yield tag("h2", "Moved in a run")
    yield tag("p", "Each load and store that is executed, as without a cache.", class_="note")
    rows = list(moved_rows(report))
    most = max((read + written for _, read, written in rows), default=0)
    yield table(("", "read", "written", "bytes", ""),
                ([shortened(name), f"{read:,}", f"{written:,}", f"{read + written:,}", bar(read + written, most)]
                 for name, read, written in rows), numbers=(1, 2, 3))


# ---- fit, bytes ------------------------------------------------------------------------------------------------------
def fit_section(report: Figures, verdict: Fit | None) -> Iterator[Markup]:
    yield tag("h2", "Does it fit?")
    if verdict:
        yield limit_table(verdict)
        notes = verdict.notes
    elif report.boards:
        yield tag("p", "Each board with code for its own processor; the stack of a call against what the rest leaves of the "
                  "RAM.", class_="note")
        yield board_table(report.boards)
        notes = tuple(board_notes(report))
    else:
        notes = ("no board was judged when this report was made: --boards all does it",)
    for note in notes:
        yield tag("p", f"{note[0].upper()}{note[1:]}.", class_="note")


def limit_table(verdict: Fit) -> Markup:
    """Return the table of the user's limits, a row for each memory."""
    rows: Iterator[list[Child]] = ([shortened(x.name), f"{x.nbytes:,}", f"{x.limit:,}",
                                    bar(x.nbytes, x.limit, hot=bool(x.over)), fits(x), x.sum] for x in verdict.lines)
    return table(("memory", "needs", "has", "", "", "counted"), rows, numbers=(1, 2))


def board_table(boards: Sequence[BoardFit]) -> Markup:
    """Return the table of the boards, a row for each."""
    def verdict(board: BoardFit) -> Markup:
        mark, css = ("✓", "good") if board.fits else ("✗", "bad")
        return tag("span", f"{mark} {board.verdict}", class_=f"verdict {css}")

    rows = ([Markup(tag("b", b.name) + tag("span", b.chip, class_="source")), breaking(b.core),
             *(memory(b.memory(kind)) for kind in KINDS), verdict(b)] for b in boards)
    return table(("board", "code for", *KINDS, "verdict"), rows)


def memory(line: FitLine | None) -> Markup:
    """Return the needed bytes of the available ones."""
    if line is None:
        return tag("span", "not known", class_="muted")
    text = tag("span", f"{line.nbytes:,} of {line.limit:,}", class_="type")
    return Markup(text + bar(line.nbytes, line.limit, hot=bool(line.over)))


def board_notes(report: Figures) -> Iterator[str]:
    for note, where in noted(report.boards).items():
        yield f"{where}: {note}"
    yield UNCOUNTED.format(stack="the stack of interrupts")
    yield "Sizes of the boards: " + "; ".join(f"{b.name}, {b.source}" for b in report.boards)


def fits(line: FitLine) -> Markup:
    return tag("span", f"✗ over by {short(line.over)}", class_="bad") if line.over else tag("span", "✓ fits", class_="good")


def bytes_section(report: Figures) -> Iterator[Markup]:
    """Yield each kind of bytes, and the provider of the memory for it."""
    yield tag("h2", "All bytes")
    yield table(("", "bytes", ""), ([name, f"{nbytes:,}", text] for name, nbytes, text in all_bytes(report)), numbers=(1,))
    largest = sorted(report.constant_buffers, key=lambda b: (-b.nbytes, b.name))
    if largest:
        rows: Iterator[list[Child]] = ([called(b), typed(b), f"{b.nbytes:,}"] for b in largest[:ROWS])
        yield tag("details", tag("summary", f"Constants ({len(largest):,})"),
                  table(("constant", "type", "bytes"), rows, numbers=(2,)), left_out(len(largest)))


def all_bytes(report: Figures) -> Iterator[tuple[str, int, str]]:
    for pool in report.pools:
        what = "read and written by a run" if pool.kind == "workspace" else "read by a run"
        yield f"pool {shortened(pool.name)}", pool.nbytes, f"{what}; aligned to {pool.alignment}"
    if report.undo:
        yield "copies of variables", report.undo, "behind the arena, for a run that fails"
    yield "state", report.state, ", ".join(f"{shortened(v.called)} {v.type}" for v in report.variables) or "no variables"
    measured = report.object
    narrow = "".join(f"; in {n.type} {narrow_text(n)}" for n in report.narrow)
    yield ("constants", measured.constants, f"equal ones once{narrow}") if measured else (
        "constants", report.constants, f"as kernels read them{narrow}")
    if measured:
        yield "code", measured.text, f"for {report.target}"
        yield "tables", measured.tables, "read-only data that the compiler adds"
        if measured.stack is not None:
            yield "stack", measured.stack, "of a call at most, interrupts apart"
    for name, buffers in (("inputs", report.inputs), ("outputs", report.outputs)):
        yield name, sum(b.nbytes for b in buffers), ", ".join(f"{shortened(b.called)} {b.type}" for b in buffers) or "none"


# ---- the whole, as tables --------------------------------------------------------------------------------------------
def kernel_table(report: Figures) -> Iterator[Markup]:
    if not report.kernels:
        yield tag("p", "No kernels: outputs are inputs or constants.", class_="empty")
        return
    yield table(("kernel", "writes", "operators", "in the model"),
                ([str(i), tag("code", breaking(shortened(k.writes))), k.operators, place(k.place, k.source)]
                 for i, k in enumerate(report.kernels[:ROWS])), numbers=(0,))
    yield from left_out(len(report.kernels))


def place(where: str | None, source: str | None) -> Markup:
    line = tag("code", source, class_="source") if source else Markup("")
    return Markup(escaped(shortened(where or "–")) + line)


def buffer_table(report: Figures) -> Iterator[Markup]:
    if not report.buffers:
        yield tag("p", "Nothing is planned: no value is stored between kernels.", class_="empty")
        return
    order = {p.name: i for i, p in enumerate(report.pools)}
    held = sorted(report.buffers, key=lambda b: (order.get(b.pool or "", -1), b.offset or 0, b.name))
    yield table(("pool", "offset", "bytes", "buffer", "in the plan", "type", "kind", "steps", "from", "last read by"),
                ([b.pool or "–", f"{b.offset:,}", f"{b.nbytes:,}", called(b),
                  tag("code", breaking(shortened(b.name))), typed(b), b.kind, steps(b), kernel_name(report, b.producer),
                  kernel_name(report, b.last_reader)] for b in held[:ROWS]), numbers=(1, 2))
    yield from left_out(len(held))


def steps(buffer: BufferLine) -> str:
    """Return the first spans of ticks in which a buffer is live."""
    shown = ", ".join(f"{first}–{last}" if first < last else str(first) for first, last in buffer.live[:3])
    return shown + (f" and {len(buffer.live) - 3} more" if len(buffer.live) > 3 else "") or "never"


def left_out(count: int) -> Iterator[Markup]:
    if count > ROWS:
        yield tag("p", f"{count - ROWS:,} more are in the report as JSON.", class_="note")
