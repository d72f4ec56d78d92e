"""Pack B: the second operand of a product, packed so that a micro-kernel reads it sequentially: panels [K /
group][width][group], one after the other, the columns of a panel in the order of its vectors, with zeros for missing columns.

Constants are packed at compile time, in the narrowest integer type that holds them, or as float16 if the target keeps that, or
two to a byte. Other data is packed by loops into scratch (`pack_panels`), or read in place.
"""
from __future__ import annotations

import functools

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Cast, Expr, is_float
from ...graph.types import ITEM_SIZES, Array
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..derived_constants import Made, derive
from ..nest.constant_data import constant, stays_half
from ..nest.loop_nest import At, number_of
from ..nest.tile_axis import Cut, Piece
from ..vectorize.vectorize import Vectorizer
from .layout import PanelLayout, width_of
from .macro_kernel import Place
from .pattern import Contraction

LEAST_NIBBLES = 128
"""Minimum number of 4-bit weights: fewer save less memory than the code that unpacks them takes."""
INT32 = Type("int32", 1)
PACKED = ".packed"
"""Suffix of the names of packed weights."""


@dataclass(frozen=True, slots=True)
class Panels:
    """The panels from which a tile reads b: `buffer`, packed by `layout`, batch by batch; or `source` itself if there is no
    buffer. `axes` are the axes of K in the panels."""
    n: Axis
    axes: tuple[Axis, ...]
    dtype: str
    source: Expr
    layout: PanelLayout
    buffer: Buffer | None = None
    batch: tuple[Axis, ...] = ()

    def number_of_batch(self, at: At) -> Affine:
        """Return the number of the batch among the packed batches."""
        return number_of(self.batch, at)

    def place(self, at: At, column: Affine, k: Affine, width: int, limb: int = 0) -> Affine:
        """Return the offset of the elements of K from k on, in the panel that begins with a packed column."""
        return self.layout.place(column, k, width, limb) + self.number_of_batch(at) * self.layout.size

    def load(self, b: Builder, target: Target, place: Place, k: Affine) -> list[Operand]:
        """Return the vectors of columns of a tile for the step of K from k on."""
        if self.buffer is None:
            return [self.direct(b, target, place.at, piece) for piece in place.vectors]
        width = sum(piece.lanes for piece in place.vectors if piece.start < place.panel)
        start, result = self.place(place.at, place.column, k, width), []
        for piece in place.vectors:
            panels, column = divmod(piece.start, place.panel)
            result.append(self.vector(b, self.buffer, start + panels * place.panel * self.layout.depth, column, piece.lanes))
        return result

    def vector(self, b: Builder, buffer: Buffer, start: Affine, column: int, lanes: int) -> Operand:
        """Return columns of a panel, from a column on; `start` is the offset of the panel's columns."""
        return self.widened(b, b.load(buffer, start + column * self.layout.group, lanes * self.layout.group))

    def direct(self, b: Builder, target: Target, at: At, piece: Piece) -> Operand:
        place = {**at, self.n: at[self.n] + piece.start}
        return self.widened(b, Vectorizer(b, target, place, self.n, piece.lanes, piece.active).vector(self.source))

    def widened(self, b: Builder, x: Operand) -> Operand:
        return x if x.type.dtype == self.dtype else b.op("cast", x, type=Type(self.dtype, x.type.lanes))


class NibblePanels(Panels):
    """Panels with the numbers of two columns in each byte, the first column in the low half."""
    __slots__ = ()

    def vector(self, b: Builder, buffer: Buffer, start: Affine, column: int, lanes: int) -> Operand:
        """Return the number of a column; panels begin with a whole byte, because their widths are even."""
        byte = b.op("cast", b.load(buffer, divided(start + column // 2 * 2, 2), 1), type=INT32)
        upper = b.op("shl", byte, Literal(24 if column % 2 else 28, INT32))
        return self.widened(b, b.op("ashr", upper, Literal(28, INT32)))


def packed(b: Builder, pattern: Contraction, cut: Cut, target: Target) -> Panels:
    """Return panels of constant data, in fewer bytes if the `target` keeps narrow data."""
    source, n, axes, batch = pattern.b, pattern.n, pattern.reduce.axes, pattern.batch
    layout, dtype = PanelLayout(cut, pattern.depth), pattern.reduce.dtype
    make = functools.partial(in_panels, n=n, axes=axes, batch=batch, layout=layout,
                             dtype="float16" if stays_half(source, target) else dtype, keeps_int4=target.keeps_int4)
    (buffer,), _ = derive(b, (f"{pattern.nest.name}{PACKED}",), (source,), make)
    return (NibblePanels if has_nibbles(buffer) else Panels)(n, axes, dtype, source, layout, buffer, batch)


def in_panels(b: Expr, n: Axis, axes: tuple[Axis, ...], batch: tuple[Axis, ...], layout: PanelLayout, dtype: str,
              keeps_int4: bool) -> Made:
    """Return the elements of the panels, two to a byte with `keeps_int4` if possible, and whether the elements have four bits,
    which also decides the cut into panels."""
    data = constant(b, (*batch, n, *axes)).reshape(-1, 1, n.extent, layout.depth)
    stored = narrowest(data, dtype)
    flat = layout.packed(data, stored)
    are_four_bits = keeps_int4 and stored == "int8" and have_four_bits(data)
    if are_four_bits and has_even_panels(layout.cut):
        flat = flat[:, ::2].view(np.uint8) & 15 | flat[:, 1::2].view(np.uint8) << 4
    return Made((flat.reshape(-1),), are_four_bits)


def have_four_bits(data: Array) -> bool:
    """True if all integers fit int4, and there are enough of them to be worth it."""
    return data.size >= LEAST_NIBBLES and data.dtype.kind == "i" and int(data.min()) >= -8 and int(data.max()) < 8


def has_even_panels(cut: Cut) -> bool:
    """True if two columns that share a byte are always in one panel."""
    return all(t.start % 2 == 0 and t.size % 2 == 0 and width_of(vectors) % 2 == 0 for t, vectors in cut)


def has_nibbles(buffer: Buffer) -> bool:
    """True if a constant has two numbers in a byte: among packed weights, only these have unsigned bytes."""
    return buffer.role == "constant" and buffer.dtype == "uint8" and buffer.name.endswith(PACKED)


def divided(index: Affine, by: int) -> Affine:
    """Return an index, which must be a multiple of `by`, divided by `by`."""
    assert index.const % by == 0 and all(c % by == 0 for _, c in index.terms), f"{index} may be no multiple of {by}"
    return Affine(tuple([(term, c // by) for term, c in index.terms]), index.const // by)


def narrowest(data: Array, dtype: str) -> str:
    """Return the smallest integer type that holds the data; a float type stays as it is."""
    if is_float(dtype):
        return dtype
    low, high = int(data.min()), int(data.max())
    return next(t for t in ("int8", "int16", "int32", "int64")
                if (np.iinfo(t).min <= low and high <= np.iinfo(t).max) or ITEM_SIZES[t] >= ITEM_SIZES[dtype])


def unpacked(pattern: Contraction) -> Panels:
    return Panels(pattern.n, pattern.reduce.axes, pattern.reduce.dtype, narrow(pattern.b), PanelLayout([], pattern.depth))


def narrow(b: Expr) -> Expr:
    """Return b without a final conversion to a wider integer type, which can be done at each use instead."""
    match b:
        case Cast(arg=arg, dtype=dtype, bits=False) if not is_float(dtype) and not is_float(arg.dtype) and (
                ITEM_SIZES[arg.dtype] < ITEM_SIZES[dtype]):
            return arg
    return b
