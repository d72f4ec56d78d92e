"""A report as text for a terminal; the same report gives the same text, byte for byte."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....runtime.errors import printable
from .figures import BoardFit, BufferLine, Figures, KernelLine, Memory, NarrowConstants, Peak, Rung, StepLine
from .live import bytes_shared
from .terminal import letters, picture

ALIVE = 8
"""Maximum number of the buffers live at a peak that are named."""

NAMED = 3
"""Maximum number of boards that a note names."""

KINDS: tuple[Memory, ...] = ("flash", "RAM", "stack")


def print_report(report: Figures) -> str:
    """Return figures, the ladder, a picture of each pool, kernels, buffers."""
    return "\n".join(line.rstrip() for part in parts(report) for line in part)


def parts(report: Figures) -> Iterator[list[str]]:
    yield [printable(report.name), *(f"  {name:<10} {printable(text)}" for name, text in rows(report))]
    if len(report.pools) > 1 or any(p.limit is not None for p in report.pools):
        yield ["", *pool_table(report)]
    if len(report.pools) > 1:
        yield ["", *moved_table(report)]
    if report.ladder:
        yield ["", *ladder(report.ladder)]
    if report.boards:
        yield ["", *board_table(report.boards)]
    for pool in report.workspace_pools:
        if drawn := picture(report, pool):
            yield ["", *drawn]
    yield ["", *table(("kernel", "writes", "operators"),
                      [(str(i), k.writes, k.operators) for i, k in enumerate(report.kernels)])]
    if report.buffers:
        yield ["", *buffer_table(report)]


def rows(report: Figures) -> Iterator[tuple[str, str]]:
    if report.made_from:
        yield "model", report.made_from
    yield "inputs", listed(report.inputs)
    yield "outputs", listed(report.outputs)
    yield "variables", listed(report.variables)
    yield "arena", f"{report.arena:,} bytes ({bound(report)})"
    if len(report.workspace_pools) > 1:
        yield "objective", objective_text(report)
    if report.peak:
        yield "peak", peak_text(report, report.peak)
        yield "alive", alive_text(report, report.peak)
    if report.variables:
        pinned = ", ".join(f"{report.state_in(p.name):,} in {p.name}" for p in report.pools if report.state_in(p.name))
        yield "state", f"{report.state:,} bytes" + (f" ({pinned})" if pinned else "")
    yield "constants", f"{report.constants:,} bytes"
    for narrow in report.narrow:
        yield f"in {narrow.type}", narrow_text(narrow)
    if report.object:
        yield "code", code_text(report)
        yield "stack", stack_text(report.object.stack)
    yield "kernels", f"{len(report.kernels)} in {report.steps} steps"
    for number, line in enumerate(report.in_float):
        yield "" if number else "in float", line
    yield "target", report.target
    if report.seconds:
        yield "seconds", ", ".join(f"{name} {value:.3f}" for name, value in report.seconds.items())


def bound(report: Figures) -> str:
    """Return the distance of the arena from its lower bounds."""
    text = "all live at once" if not report.waste else f"live at once {report.live_bytes:,}, waste {report.waste:,}"
    if not report.is_proved:
        text += ", not proved to be the best plan of this schedule"
    text += f"; no schedule needs less than {report.lower_bound:,}"
    return text + (f"; and {report.undo:,} for copies of variables" if report.undo else "")


def objective_text(report: Figures) -> str:
    """Return the first criterion and both figures: the bytes in all pools but the first, and the bytes that a run moves
    there."""
    first, *others = report.workspace_pools
    other = "bytes" if report.objective == "traffic" else "traffic"
    slow = ", ".join(p.name for p in others)
    return (f"{report.objective} before {other}: {sum(p.nbytes for p in others):,} bytes beside {first.name} ({slow}), and "
            f"{sum(p.moved for p in others):,} bytes moved there in a run")


def peak_text(report: Figures, peak: Peak) -> str:
    return f"{peak.nbytes:,} bytes live at {step_text(report, peak.tick)}"


def step_text(report: Figures, tick: int) -> str:
    """Return the description of a tick: the kernel, its operators, its position in the model."""
    step = report.timeline[tick]
    if step.kernel is None:
        return {"test": "the test of a branch or loop", "check": "the check of a variable"}.get(step.kind, "a mark")
    return kernel_text(report.kernels[step.kernel], step.kernel) + rows_text(step)


def rows_text(step: StepLine) -> str:
    if step.rows is None:
        return ""
    first, end = step.rows
    return f", row {first}" if end == first + 1 else f", rows {first} to {end - 1}"


def kernel_text(kernel: KernelLine, number: int) -> str:
    label = f" of {kernel.label}" if kernel.label else ""
    place = f" ({kernel.place})" if kernel.place else ""
    return f"kernel {number} {kernel.brief}{label}{place}"


def alive_text(report: Figures, peak: Peak) -> str:
    known = {b.name: b for b in report.buffers}
    more = f" and {len(peak.alive) - ALIVE} more" if len(peak.alive) > ALIVE else ""
    alive = [known[name] for name in peak.alive[:ALIVE]]
    return ", ".join(f"{b.called} {b.nbytes:,}" for b in alive) + more + sharing_text(report, peak)


def sharing_text(report: Figures, peak: Peak) -> str:
    shared = bytes_shared(report.buffers, peak)
    return f"; they share {shared:,} bytes" if shared else ""


def code_text(report: Figures) -> str:
    size = report.object
    assert size is not None
    return f"{size.text:,} bytes, and {size.tables:,} of tables (constants in the object: {size.constants:,})"


def narrow_text(narrow: NarrowConstants) -> str:
    if narrow.saved < 0:
        return (f"{-narrow.saved:,} bytes of flash more, and {-narrow.instructions:,} instructions of a run fewer: "
                f"{-narrow.conversions:,} numbers not converted")
    return (f"{narrow.saved:,} bytes of flash saved, and {narrow.instructions:,} instructions of a run more: "
            f"{narrow.conversions:,} numbers converted")


def stack_text(nbytes: int | None) -> str:
    return "no bound of a call is known" if nbytes is None else f"at most {nbytes:,} bytes in a call, interrupts apart"


def pool_table(report: Figures) -> list[str]:
    return table(("pool", "kind", "bytes", "limit", "live at once", "waste", "peak"),
                 [(p.name, p.kind, str(p.nbytes), "-" if p.limit is None else str(p.limit), str(p.live_bytes), str(p.waste),
                   "-" if p.peak is None else str(p.peak.nbytes)) for p in report.pools])


def moved_table(report: Figures) -> list[str]:
    """Return a table of the bytes that a run moves through each memory, and that one pool would move."""
    return table(("moved in a run", "read", "written", "bytes"),
                 [(name, str(read), str(written), str(read + written)) for name, read, written in moved_rows(report)])


def moved_rows(report: Figures) -> Iterator[tuple[str, int, int]]:
    """Yield each memory with the bytes that a run reads and writes there: the pools, workspace pools as one, memory outside
    them."""
    for p in report.pools:
        yield p.name, p.read, p.written
    if len(report.workspace_pools) > 1:
        slowest = report.workspace_pools[-1].name
        read, written = (sum(getattr(p, name) for p in report.workspace_pools) for name in ("read", "written"))
        yield f"if all lay in {slowest}", read, written
    has_io = any(b.kind in ("input", "output") for b in report.buffers)
    outside = [("inputs and outputs", () if has_io else (*report.inputs, *report.outputs)),
               ("variables", report.variables),
               ("constants in no pool", () if report.constant_pools else report.constant_buffers)]
    for name, held in outside:
        if any(b.read or b.written for b in held):
            yield name, sum(b.read for b in held), sum(b.written for b in held)


def ladder(rungs: Sequence[Rung]) -> list[str]:
    return table(("ladder", "bytes", "live at once", ""),
                 [(r.name, str(r.nbytes), str(r.live_bytes), r.explanation) for r in rungs])


def board_table(boards: Sequence[BoardFit]) -> list[str]:
    """Return a table of each board's sizes, and the program's needs of them with code for the board's own processor."""
    head = ("board", "code for", "flash", "of", "RAM", "of", "stack", "of", "")
    return [*table(head, [(b.name, b.core, *(cell for line in memories(b) for cell in line), b.verdict) for b in boards]),
            *(f"  {where}: {note}" for note, where in noted(boards).items())]


def noted(boards: Sequence[BoardFit]) -> dict[str, str]:
    """Return the notes about missing needs, with the boards that each applies to."""
    notes = {note: [b.name for b in boards if b.note == note] for note in dict.fromkeys(b.note for b in boards if b.note)}
    return {note: ", ".join(names) if len(names) <= NAMED else f"{len(names)} boards" for note, names in notes.items()}


def memories(board: BoardFit) -> Iterator[tuple[str, str]]:
    for kind in KINDS:
        line = board.memory(kind)
        yield (f"{line.nbytes:,}", f"{line.limit:,}") if line else ("-", "-")


def buffer_table(report: Figures) -> list[str]:
    """Return the buffers by pool and offset, with the letters of the pictures."""
    several, named = len(report.pools) > 1, any(b.label for b in report.buffers)
    marks = {name: letter for pool in report.workspace_pools for name, letter in letters(report, pool).items()}
    ordered = sorted(report.buffers, key=lambda b: (pool_order(report, b), b.offset or 0, b.name))
    head = ("", "offset", "bytes", *(("pool",) if several else ()), "buffer", *(("in the plan",) if named else ()), "producer",
            "last reader")
    return table(head, [(marks.get(b.name, ""), str(b.offset), str(b.nbytes), *((b.pool or "",) if several else ()),
                         f"{b.called}: {b.type}", *((b.name,) if named else ()), numbered(b.producer), numbered(b.last_reader))
                        for b in ordered])


def pool_order(report: Figures, buffer: BufferLine) -> int:
    return next((i for i, p in enumerate(report.pools) if p.name == buffer.pool), -1)


def numbered(kernel: int | None) -> str:
    return "-" if kernel is None else str(kernel)


def listed(buffers: Sequence[BufferLine]) -> str:
    return ", ".join(f"{b.called} {b.type}" for b in buffers) or "none"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows in columns; numbers to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    right = [bool(rows) and all(is_number(row[i]) for row in rows) for i in range(len(head))]
    return ["  " + "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right)).rstrip()
            for row in (head, *rows)]


def is_number(cell: str) -> bool:
    return cell in ("-", "=") or cell.replace(",", "").lstrip("+-").isdigit()
