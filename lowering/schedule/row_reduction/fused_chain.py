"""The loops of a chain of kernels that run together, one block of rows after the other (`row_tiling.row_chains`): outside the
loops over their common axes, inside the loops of each kernel for the rows of one block. Intermediate tensors need scratch for
one block only.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Load
from ...graph.types import ITEM_SIZES
from ...kernels.kernel import Kernel
from ...loops.builder import Builder
from ...loops.ir import Function
from ...row_tiling.row_chains import RowChain
from ...target.costs import COSTS
from ..nest.loop_nest import Nest, Rewriter, flat_index, units
from ..nest.row_range import nested
from ..nest.tile_axis import Tiles, balanced, over


def schedule(kernels: Sequence[Kernel], chain: RowChain, lower_nest: Callable[[Builder, int, Nest], None], keeps: int = 0
             ) -> Function:
    """Return one function for all kernels of a chain. `lower_nest` writes the loops of a nest, given its kernel's number."""
    *before, last = (kernels[i] for i in chain.kernels)
    b = Builder(last.out.name, keeps=keeps)
    *outer, row = chain.rows[-1]
    tiles = balanced(row.extent, chain.block)
    kept = {k.out: BlockScratch.of(b, k, rows, tiles[0].size) for k, rows in zip(before, chain.rows)}

    def block(start: Affine, t: Tiles) -> None:
        place = RowBlock(tuple(map(Affine.of, outer)), start, Axis(row.name, t.size))
        for number, kernel, rows in zip(chain.kernels, (*before, last), chain.rows):
            lower_nest(b, number, nest_at(kernel, rows, place, kept))

    nested(b, tuple(outer), {}, lambda at: over(b, tiles, block))
    return b.finish()


@dataclass(frozen=True, slots=True)
class RowBlock:
    """A block of rows: the positions of the outer axes, the first row, and the axis of the block's rows."""
    outer: tuple[Affine, ...]
    start: Affine
    row: Axis

    def of(self, rows: tuple[Axis, ...]) -> dict[Axis, Affine]:
        """Return the index of each of a kernel's row axes."""
        return dict(zip(rows, (*self.outer, self.start + Affine.of(self.row))))


@dataclass(frozen=True, slots=True)
class BlockScratch:
    """The scratch for one block of a tensor: `dims` are its dimensions that remain, `row` is the dimension of its rows."""
    buffer: Buffer
    dims: tuple[int, ...]
    row: int

    @staticmethod
    def of(b: Builder, kernel: Kernel, rows: tuple[Axis, ...], block: int) -> BlockScratch:
        row = kernel.axes.index(rows[-1])
        dims = tuple(d for d, a in enumerate(kernel.axes) if d == row or (a not in rows and a.extent > 1))
        shape = [block if d == row else kernel.axes[d].extent for d in dims]
        item = ITEM_SIZES[kernel.out.dtype]
        if dims[0] == row and len(dims) == 2 and shape[1] * item % COSTS.few_sets_stride_bytes == 0:
            shape[1] += COSTS.cache_line_bytes // item
        return BlockScratch(b.scratch(Buffer(kernel.out.name, kernel.out.dtype, tuple(shape), "scratch")), dims, row)

    def index(self, index: Sequence[Affine], start: Affine) -> Affine:
        """Return the flat index of an element of the tensor in the scratch."""
        return flat_index(self.buffer, tuple(index[d] - start if d == self.row else index[d] for d in self.dims), {})


def nest_at(kernel: Kernel, rows: tuple[Axis, ...], place: RowBlock, kept: Mapping[Buffer, BlockScratch]) -> Nest:
    """Return a kernel as a nest over the rows of one block."""
    def flat(load: Load) -> tuple[Buffer, Affine]:
        if own := kept.get(load.buffer):
            return own.buffer, own.index(load.index, place.start)
        if len(load.index) == 1:
            return load.buffer, load.index[0]
        return load.buffer, flat_index(load.buffer, load.index, {})

    rewriter = Rewriter({**units(kernel), **place.of(rows)}, flat)
    out, index = flat(Load(kernel.out, tuple(map(Affine.of, kernel.axes))))
    axes = tuple(place.row if a is rows[-1] else a for a in kernel.axes if a.extent > 1 and a not in rows[:-1])
    return Nest(out.name, out, tuple(a for a in axes if a.extent > 1), rewriter.index(index), rewriter.value(kernel.value))
