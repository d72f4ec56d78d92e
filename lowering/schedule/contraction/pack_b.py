"""Pack B: the second operand of a product, packed so that a micro-kernel reads it from beginning to end: panels [K /
group][width][group], one after the other, the columns of a panel in the order of its vectors, missing ones filled up
with zeros.

Data that is known is packed while compiling, in the narrowest integer type that holds it, or as float16 where the target keeps
that; other data by loops at the start of the kernel, into scratch memory; or it is read where it lies.
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ....runtime.arena import empty
from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Buffer, Cast, Expr, is_float
from ...elements.interpret import numpy_dtype
from ...elements.traverse import loads
from ...graph.types import ITEM_SIZES, Array
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..code_size_model import price_of, share_of
from ..derived_constants import Made, derive
from ..elementwise.elementwise import scattered
from ..nest.constant_data import constant
from ..nest.loop_nest import At, free_axes
from ..nest.reduction_loops import reduce_loops
from ..nest.tile_axis import Cut, Piece, over
from ..vectorize.vectorize import Vectorizer
from .pattern import Contraction

GATHER_LINES = 500
"""Lines of LLVM's text that put vectors together from elements that are far apart. Counted."""
SINGLE_PACK_CYCLES, SINGLE_FLOAT8_PACK_CYCLES = 0.5, 8
"""How much longer an element takes that is packed alone; a float of a byte, which is converted alone. Chosen."""


@dataclass(frozen=True, slots=True)
class Panels:
    """How a tile reads b: from `buffer`, packed, of which the panels of one batch are `batch_size` elements; or, where
    there is no buffer, from `source` itself."""
    n: Axis
    axes: tuple[Axis, ...]
    dtype: str
    source: Expr
    buffer: Buffer | None = None
    batch: tuple[Axis, ...] = ()
    batch_size: int = 0
    group: int = 1

    def load(self, b: Builder, target: Target, at: At, vectors: tuple[Piece, ...], panel: int, k: Affine) -> list[Operand]:
        """The vectors of the panels, of `panel` columns each, that start at at[n], for one step of K."""
        if self.buffer is None:
            return [self.direct(b, target, at, piece) for piece in vectors]
        width, depth = sum(piece.lanes for piece in vectors if piece.start < panel), math.prod(a.extent for a in self.axes)
        start = at[self.n] * depth + k * width
        which = Affine()
        for a in self.batch:
            which = which * a.extent + at[a]
        start = start + which * self.batch_size
        return [self.widened(b, b.load(self.buffer, start + offset, piece.lanes * self.group))
                for piece in vectors for offset in [piece.start // panel * panel * depth + piece.start % panel * self.group]]

    def direct(self, b: Builder, target: Target, at: At, piece: Piece) -> Operand:
        place = {**at, self.n: at[self.n] + piece.start}
        return self.widened(b, Vectorizer(b, target, place, self.n, piece.lanes, piece.active).vector(self.source))

    def widened(self, b: Builder, x: Operand) -> Operand:
        return x if x.type.dtype == self.dtype else b.op("cast", x, type=Type(self.dtype, x.type.lanes))


def packed(builder: Builder, name: str, b: Expr, n: Axis, axes: tuple[Axis, ...], batch: tuple[Axis, ...], cut: Cut, dtype: str,
           group: int = 1, is_half: bool = False) -> Panels:
    """Panels of constant data, which is stored as float16 if that `is_half` of what it is used as."""
    make = functools.partial(in_panels, n=n, axes=axes, batch=batch, cut=cut, group=group,
                             dtype="float16" if is_half else dtype)
    (buffer,), _ = derive(builder, (f"{name}.packed",), (b,), make)
    depth = Axis("k", -(-math.prod(a.extent for a in axes) // group) * group)
    return Panels(n, axes if group == 1 else (depth,), dtype if group == 1 else buffer.dtype, b, buffer, batch,
                  buffer.size // math.prod(a.extent for a in batch), group)


def in_panels(b: Expr, n: Axis, axes: tuple[Axis, ...], batch: tuple[Axis, ...], cut: Cut, dtype: str, group: int) -> Made:
    """The elements of the panels."""
    data = constant(b, (*batch, n, *axes)).reshape(-1, n.extent, math.prod(a.extent for a in axes))
    stored = narrowest(data, dtype)
    filled = data if data.shape[2] % group == 0 else np.pad(data, ((0, 0), (0, 0), (0, -data.shape[2] % group)))
    width = sum(t.count * sum(p.lanes for p in vectors) for t, vectors in cut)
    flat = empty((len(filled), filled.shape[2] * width), numpy_dtype(stored))  # aligned, so that code reads it where it is
    end = 0
    for t, vectors in cut:
        width, active = sum(p.lanes for p in vectors), sum(p.active for p in vectors)
        rows = filled[:, t.start:t.start + t.count * active].reshape(len(filled), t.count, active, -1, group)
        start, end = end, end + t.count * width * filled.shape[2]
        panel_view = flat[:, start:end].reshape(len(filled), t.count, -1, width, group)
        panel_view[:, :, :, :active] = rows.transpose(0, 1, 3, 2, 4)  # each weight is written once
        panel_view[:, :, :, active:] = 0
    return Made((flat.reshape(-1),))


def narrowest(data: Array, dtype: str) -> str:
    """The smallest integer type that holds the data; floats stay as they are."""
    if is_float(dtype):
        return dtype
    low, high = int(data.min()), int(data.max())
    return next(t for t in ("int8", "int16", "int32", "int64")
                if (np.iinfo(t).min <= low and high <= np.iinfo(t).max) or ITEM_SIZES[t] >= ITEM_SIZES[dtype])


def unpacked(b: Expr, n: Axis, axes: tuple[Axis, ...], dtype: str) -> Panels:
    return Panels(n, axes, dtype, narrow(b))


def narrow(b: Expr) -> Expr:
    """b without a conversion to a wider type at the end, which can as well be done where it is used."""
    match b:
        case Cast(arg=arg, dtype=dtype, bits=False) if not is_float(dtype) and not is_float(arg.dtype) and (
                ITEM_SIZES[arg.dtype] < ITEM_SIZES[dtype]):
            return arg
    return b


def pack_at_run_time(b: Builder, name: str, source: Expr, n: Axis, axes: tuple[Axis, ...], cut: Cut, dtype: str,
                     target: Target, where: Sequence[Range] = ()) -> tuple[Panels, Callable[[At], None]]:
    """Panels in scratch memory, and what fills them for the batch at a place, for the values of `axes` for which the
    conditions hold."""
    source = narrow(source)
    depth = math.prod(a.extent for a in axes)
    size = depth * sum(t.count * sum(p.lanes for p in vectors) for t, vectors in cut)
    scratch = b.scratch(Buffer(f"{name}.packed", source.dtype, (size,), "scratch"))

    def fill(at: At) -> None:
        for t, vectors in cut:
            over(b, [t], lambda start, _: panel(at, start, vectors))

    singly = scattered(source, n) and pack_singly(source, n.extent * depth)

    def panel(at: At, start: Affine, vectors: tuple[Piece, ...]) -> None:
        width, columns = sum(piece.lanes for piece in vectors), Axis("column", sum(piece.active for piece in vectors))

        def row(at: At, _: Sequence[Operand]) -> tuple[()]:
            k = Affine()
            for axis in axes:
                k = k * axis.extent + at[axis]
            row = start * depth + k * width
            if singly:
                if width > columns.extent:
                    b.store(scratch, row + vectors[-1].start, Literal(0, Type(source.dtype, vectors[-1].lanes)))
                column = Affine.of(columns)
                b.loop(columns, lambda: b.store(scratch, row + column, Vectorizer(
                    b, target, {**at, n: start + column}).value(source)))
                return ()
            for piece, count in repeated(vectors, scattered(source, n)):
                number = Axis("vector", count)

                def store() -> None:
                    first = Affine.of(number) * piece.lanes + piece.start
                    v = Vectorizer(b, target, {**at, n: start + first}, n, piece.lanes, piece.active)
                    b.store(scratch, row + first, v.vector(source))

                b.loop(number, store)
            return ()

        reduce_loops(b, axes, where, at, (), row, unroll=1)

    return Panels(n, axes, dtype, source, scratch), fill


def pack_singly(source: Expr, size: int) -> bool:
    """Whether elements that are far apart are packed one by one, which is little code: where that takes hardly longer."""
    slower = SINGLE_FLOAT8_PACK_CYCLES if any(ITEM_SIZES[x.dtype] == 1 and is_float(x.dtype) for x in loads(source)) else (
        SINGLE_PACK_CYCLES)
    return size * slower <= price_of(share_of(source)) * GATHER_LINES


def repeated(vectors: tuple[Piece, ...], alike: bool) -> list[tuple[Piece, int]]:
    """The vectors one by one; or, where those that are `alike` share their code, the first of each kind and how many
    follow each other."""
    if not alike:
        return [(piece, 1) for piece in vectors]
    groups = [list(group) for _, group in itertools.groupby(vectors, lambda piece: (piece.lanes, piece.active))]
    return [(group[0], len(group)) for group in groups]


def depth_of_panels(b: Builder, pattern: Contraction) -> int:
    """How many of the open loops panels depend on: they are packed before the others, unless these store what is packed."""
    if any(x.buffer.role == "scratch" for x in loads(pattern.b)):
        return b.depth
    outer = {*free_axes(pattern.b), *(a for w in pattern.inside for a in w.index.axes)} - {pattern.n, *pattern.reduce.axes}
    return b.depth_of(outer)
