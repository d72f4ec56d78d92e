"""Groups of kernels that need not be a chain: both sides of a fork that joins again, and the kernels beside them. If memory
counts, such groups are tiled by rows, too (`row_tiling`). Kernels between those of a group that do not depend on the group run
before it.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..elements.traverse import loads
from ..kernels.kernel import Compute, Kernels, Step
from .row_access import RowAccess, begins_early
from .row_groups import Groups


def connected(found: Sequence[RowAccess | None], most: int) -> Groups:
    """Return groups in which each kernel but the first reads rows of a tensor that has more than `most` bytes and that an
    earlier kernel of the group writes."""
    def cut(run: Sequence[int]) -> Iterator[list[int]]:
        group: list[int] = []
        for number in run:
            if group and not joins(number, group, found, most):
                yield group
                group = []
            group.append(number)
        if group:
            yield group

    return cut


def joins(number: int, group: Sequence[int], found: Sequence[RowAccess | None], most: int = 0) -> bool:
    """True if a kernel reads rows of a tensor that has more than `most` bytes and that a kernel of a group writes."""
    kernel = found[number]
    before = [f for i in group if (f := found[i]) is not None and f.kernel.out.nbytes > most]
    return kernel is not None and number not in group and any(begins_early(kernel, f) for f in before)


def gathered(program: Kernels, found: Sequence[RowAccess | None]) -> Kernels:
    """Return the program with kernels that could be tiled together moved next to one another: kernels in between that read
    nothing of the group run before the group."""
    outs = [k.out for k in program.kernels]
    reads = [frozenset(x.buffer for x in loads(k.value)) for k in program.kernels]
    may_move = [out.role in ("temporary", "result") and outs.count(out) == 1 for out in outs]

    def order(run: Sequence[int]) -> list[int]:
        done: list[int] = []
        group: list[int] = []
        for number in run:
            if not group or joins(number, group, found):
                group.append(number)
            elif may_move[number] and reads[number].isdisjoint({outs[i] for i in group}):
                done.append(number)
            else:
                done, group = done + group, [number]
        return done + group

    steps: list[Step] = []
    run: list[int] = []
    for step in (*program.steps, None):
        if isinstance(step, Compute) and step.rows is None and step.tasks == 1:
            run.append(step.kernel)
            continue
        steps += map(Compute, order(run))
        run = []
        steps += [step] if step is not None else []
    return replace(program, steps=tuple(steps))
