"""Pack B: the second operand of a product, packed so that a micro-kernel reads it from beginning to end: panels [K /
group][width][group], one after the other, the columns of a panel in the order of its vectors, missing ones filled up
with zeros.

Data that is known is packed while compiling, in the narrowest integer type that holds it, or as float16 where the target keeps
that, or by two in a byte; other data by loops at the start of the kernel, into scratch memory; or it is read where it lies.
"""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Cast, Expr, is_float
from ...elements.traverse import loads
from ...graph.types import ITEM_SIZES, Array
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..code_size_model import price_of, share_of
from ..derived_constants import Made, derive
from ..elementwise.elementwise import scattered
from ..nest.constant_data import constant, stays_half
from ..nest.loop_nest import At, free_axes, number_of
from ..nest.reduction_loops import reduce_loops
from ..nest.tile_axis import Cut, Piece, over
from ..vectorize.vectorize import Vectorizer
from .layout import PanelLayout
from .macro_kernel import Place
from .pattern import Contraction

GATHER_LINES = 500
"""Lines of LLVM's text that put vectors together from elements that are far apart. Counted."""
LEAST_NIBBLES = 128
"""Fewer weights of four bits save less than the code that takes them apart."""
INT32 = Type("int32", 1)
PACKED = ".packed"
"""What names of packed weights end in."""
SINGLE_PACK_CYCLES, SINGLE_FLOAT8_PACK_CYCLES = 0.5, 8
"""How much longer an element takes that is packed alone; a float of a byte, which is converted alone. Chosen."""


@dataclass(frozen=True, slots=True)
class Panels:
    """How a tile reads b: from `buffer`, packed as the layout says, batch by batch; or, where there is none, from `source`
    itself. `axes` are K as panels have it. With `has_nibbles` a byte has the numbers of two columns, the first one below."""
    n: Axis
    axes: tuple[Axis, ...]
    dtype: str
    source: Expr
    layout: PanelLayout
    buffer: Buffer | None = None
    batch: tuple[Axis, ...] = ()
    has_nibbles: bool = False

    def number_of_batch(self, at: At) -> Affine:
        """Which batch it is, of those that are packed."""
        return number_of(self.batch, at)

    def place(self, at: At, column: Affine, k: Affine, width: int, limb: int = 0) -> Affine:
        """Where the elements of K from k on are, of the panel that begins with a column of those that are packed."""
        return self.layout.place(column, k, width, limb) + self.number_of_batch(at) * self.layout.size

    def load(self, b: Builder, target: Target, place: Place, k: Affine) -> list[Operand]:
        """The vectors of columns of a tile, for the step of K from k on."""
        if self.buffer is None:
            return [self.direct(b, target, place.at, piece) for piece in place.vectors]
        width = sum(piece.lanes for piece in place.vectors if piece.start < place.panel)
        start, group, result = self.place(place.at, place.column, k, width), self.layout.group, []
        for piece in place.vectors:
            panels, column = divmod(piece.start, place.panel)
            first = start + panels * place.panel * self.layout.depth
            result.append(self.nibble(b, self.buffer, first, column) if self.has_nibbles else self.widened(
                b, b.load(self.buffer, first + column * group, piece.lanes * group)))
        return result

    def nibble(self, b: Builder, buffer: Buffer, start: Affine, column: int) -> Operand:
        """The number of a column; panels begin with a byte, as their widths are even."""
        byte = b.op("cast", b.load(buffer, divided(start + column // 2 * 2, 2), 1), type=INT32)
        upper = b.op("shl", byte, Literal(24 if column % 2 else 28, INT32))
        return self.widened(b, b.op("ashr", upper, Literal(28, INT32)))

    def direct(self, b: Builder, target: Target, at: At, piece: Piece) -> Operand:
        place = {**at, self.n: at[self.n] + piece.start}
        return self.widened(b, Vectorizer(b, target, place, self.n, piece.lanes, piece.active).vector(self.source))

    def widened(self, b: Builder, x: Operand) -> Operand:
        return x if x.type.dtype == self.dtype else b.op("cast", x, type=Type(self.dtype, x.type.lanes))


def packed(b: Builder, pattern: Contraction, cut: Cut, target: Target) -> Panels:
    """Panels of constant data, which is stored in fewer bytes where the `target` keeps it so."""
    source, n, axes, batch = pattern.b, pattern.n, pattern.reduce.axes, pattern.batch
    layout, dtype = PanelLayout(cut, pattern.depth), pattern.reduce.dtype
    make = functools.partial(in_panels, n=n, axes=axes, batch=batch, layout=layout,
                             dtype="float16" if stays_half(source, target) else dtype, keeps_int4=target.keeps_int4)
    (buffer,), _ = derive(b, (f"{pattern.nest.name}{PACKED}",), (source,), make)
    return Panels(n, axes, dtype, source, layout, buffer, batch, has_nibbles(buffer))


def in_panels(b: Expr, n: Axis, axes: tuple[Axis, ...], batch: tuple[Axis, ...], layout: PanelLayout, dtype: str,
              keeps_int4: bool) -> Made:
    """The elements of the panels; with `keeps_int4` two to a byte where that can be. Whether they have four bits decides how
    panels are cut, too."""
    data = constant(b, (*batch, n, *axes)).reshape(-1, 1, n.extent, layout.depth)
    stored = narrowest(data, dtype)
    flat = layout.packed(data, stored)
    are_four_bits = keeps_int4 and stored == "int8" and have_four_bits(data)
    if are_four_bits and has_even_panels(layout.cut):
        flat = flat[:, ::2].view(np.uint8) & 15 | flat[:, 1::2].view(np.uint8) << 4
    return Made((flat.reshape(-1),), are_four_bits)


def have_four_bits(data: Array) -> bool:
    """Whether integers are those of int4, and enough to be worth it."""
    return data.size >= LEAST_NIBBLES and data.dtype.kind == "i" and int(data.min()) >= -8 and int(data.max()) < 8


def has_even_panels(cut: Cut) -> bool:
    """Whether two columns that share a byte are of one panel."""
    return all(t.start % 2 == 0 and t.size % 2 == 0 and sum(p.lanes for p in vectors) % 2 == 0 for t, vectors in cut)


def has_nibbles(buffer: Buffer) -> bool:
    """Whether a constant has two numbers in a byte: of packed weights, only those have bytes without a sign."""
    return buffer.role == "constant" and buffer.dtype == "uint8" and buffer.name.endswith(PACKED)


def divided(index: Affine, by: int) -> Affine:
    """A fraction of an index that is a multiple of a number."""
    assert index.const % by == 0 and all(c % by == 0 for _, c in index.terms), f"{index} may be no multiple of {by}"
    return Affine(tuple([(term, c // by) for term, c in index.terms]), index.const // by)


def narrowest(data: Array, dtype: str) -> str:
    """The smallest integer type that holds the data; floats stay as they are."""
    if is_float(dtype):
        return dtype
    low, high = int(data.min()), int(data.max())
    return next(t for t in ("int8", "int16", "int32", "int64")
                if (np.iinfo(t).min <= low and high <= np.iinfo(t).max) or ITEM_SIZES[t] >= ITEM_SIZES[dtype])


def unpacked(pattern: Contraction) -> Panels:
    return Panels(pattern.n, pattern.reduce.axes, pattern.reduce.dtype, narrow(pattern.b), PanelLayout([], pattern.depth))


def narrow(b: Expr) -> Expr:
    """b without a conversion to a wider type at the end, which can as well be done where it is used."""
    match b:
        case Cast(arg=arg, dtype=dtype, bits=False) if not is_float(dtype) and not is_float(arg.dtype) and (
                ITEM_SIZES[arg.dtype] < ITEM_SIZES[dtype]):
            return arg
    return b


def pack_at_run_time(b: Builder, pattern: Contraction, cut: Cut, target: Target) -> tuple[Panels, Callable[[At], None]]:
    """Panels in scratch memory, and what fills them for the batch at a place, for the values of K for which the conditions on b
    hold."""
    source, n, axes, layout = narrow(pattern.b), pattern.n, pattern.reduce.axes, PanelLayout(cut, pattern.depth)
    scratch = b.scratch(Buffer(f"{pattern.nest.name}.packed", source.dtype, (layout.size,), "scratch"))

    def fill(at: At) -> None:
        for t, vectors in cut:
            over(b, [t], lambda start, _: panel(at, start, vectors))

    singly = scattered(source, n) and pack_singly(source, n.extent * layout.depth)

    def panel(at: At, start: Affine, vectors: tuple[Piece, ...]) -> None:
        width, columns = sum(piece.lanes for piece in vectors), Axis("column", sum(piece.active for piece in vectors))

        def row(at: At, _: Sequence[Operand]) -> tuple[()]:
            row = layout.place(start, number_of(axes, at), width)
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

        reduce_loops(b, axes, pattern.inside, at, (), row, unroll=1)

    return Panels(n, axes, pattern.reduce.dtype, source, layout, scratch), fill


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
