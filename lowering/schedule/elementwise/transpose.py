"""The transpose strategy, out[.., i, .., j] = f(x[.., j, .., i]): shuffles transpose square blocks of x in registers."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ....runtime.records import dataclass
from ...elements.expression import Guard, Load, Reduce
from ...elements.traverse import computed, nodes
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Operand
from ...target.target import Target
from ..code_size_model import cheapest
from ..nest.loop_nest import At, Nest, indices_of, is_dense
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Piece, chunks, over
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock

MAX_BLOCK_LINES = 16
"""Maximum lines of a block: more would not fit the registers."""


@dataclass(frozen=True, slots=True)
class TransposeChoice:
    """Blocks of `size` by `size` elements; `turned` is the number of the output axis along which x is contiguous."""
    size: int
    turned: int

    def __str__(self) -> str:
        return f"transpose: blocks of {self.size} by {self.size}, axis {self.turned} is contiguous in the source"


@dataclass(frozen=True, slots=True)
class Transpose(Strategy):
    """The strategy that transposes square blocks in registers."""
    nest: Nest
    target: Target
    choice: TransposeChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> Transpose | None:
        choice = recognise(nest, constraints.target, constraints.by_rows) if is_dense(nest) else None
        return Transpose(nest, constraints.target, choice) if choice else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target, rows)

    def __str__(self) -> str:
        return str(self.choice)


def recognise(nest: Nest, target: Target, rows: bool) -> TransposeChoice | None:
    """Return a choice if exactly one load runs across the output and all others are regular along both axes, else None."""
    start = 1 if rows else 0
    every = list(nodes(nest.value))
    if len(nest.axes) - start < 2 or any(isinstance(e, (Guard, Reduce)) for e in every):
        return None
    j = nest.axes[-1]
    turned = [x for x in every if isinstance(x, Load) and abs(x.index[0].coefficient(j)) > 1]
    if len(turned) != 1 or computed(turned[0].index) or any(j in i.hidden for e in every for i in indices_of(e)):
        return None
    d = next((d for d, a in enumerate(nest.axes[:-1]) if d >= start and turned[0].index[0].coefficient(a) == 1), None)
    widest = max(ITEM_SIZES[nest.out.dtype], *(ITEM_SIZES[e.dtype] for e in every if ITEM_SIZES[e.dtype] <= 4), 1)
    size = min(MAX_BLOCK_LINES, target.lanes(max(widest, ITEM_SIZES[turned[0].dtype])))
    if d is None or size < 4 or nest.axes[d] in turned[0].index[0].hidden or min(j.extent, nest.axes[d].extent) < 3:
        return None
    return TransposeChoice(block_size(nest, nest.axes[d].extent, j.extent, size), d)


def block_size(nest: Nest, height: int, width: int, most: int) -> int:
    """Return the lines of a block: fewer than `most` if the code is not worth it."""
    count = math.prod(a.extent for a in nest.axes)

    def instructions(size: int) -> int:
        return size * (size.bit_length() - 1) + 2 * size

    def lines(size: int) -> int:
        return (instructions(size) + 2 * size) * len(chunks(height, size)) * len(chunks(width, size))

    sizes = [size for size in (16, 8, 4) if size <= most]
    return cheapest(sizes, lambda size: count / size ** 2 * instructions(size), lines)


def lower(b: Builder, nest: Nest, choice: TransposeChoice, target: Target, rows: RowRange | None) -> None:
    i, j, size = nest.axes[choice.turned], nest.axes[-1], choice.size
    source = next(x for x in nodes(nest.value) if isinstance(x, Load) and abs(x.index[0].coefficient(j)) > 1)
    writer = EpilogueWriter(b, target, nest)

    def block(at: At, height: int, width: int) -> None:
        x, step = source.index[0].substitute(at), source.index[0].coefficient(j)
        lines = [b.load(source.buffer, x + min(c, width - 1) * step, size, height) for c in range(size)]
        for r, line in enumerate(iteration(b, lines)[:height]):
            place = {**at, i: at[i] + r}
            writer.write(OutputBlock(place, None, 1, j, (Piece(0, size, width),)), given={source: line})

    def blocks(at: At) -> None:
        over(b, chunks(i.extent, size), lambda si, ti: over(b, chunks(j.extent, size), lambda sj, tj: block(
            {**at, i: si, j: sj}, ti.size, tj.size)))

    nested(b, tuple(a for a in nest.axes if a is not i and a is not j), {}, blocks, rows)


def iteration(b: Builder, lines: Sequence[Operand]) -> Sequence[Operand]:
    """Transpose a block: swap off-diagonal halves of ever smaller blocks."""
    n = len(lines)
    half = n // 2
    while half:
        low = tuple(k if not k & half else k - half + n for k in range(n))
        high = tuple(k + half if not k & half else k + n for k in range(n))
        result: list[Operand] = list(lines)
        for r in range(n):
            if not r & half:
                result[r] = b.shuffle(lines[r], lines[r + half], low)
                result[r + half] = b.shuffle(lines[r], lines[r + half], high)
        lines, half = result, half // 2
    return lines
