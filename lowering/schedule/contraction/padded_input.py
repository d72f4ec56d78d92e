"""Padded copies for windows that leave their input at a border: the input of a small contraction is copied to scratch in the
type of the sums, with a border of zeros (a halo). Then no row of a tile meets a condition, the border has no code of its own,
and narrow floats are converted once and not at each use. `schedule.schedule` uses this module before it cuts a nest into
pieces.

A zero adds nothing to a sum only if the weights are finite, so the weights must be constants.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....runtime.arena import empty
from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Apply, Buffer, Cast, Const, Expr, Load, Reduce, is_float
from ...elements.interpret import numpy_dtype
from ...elements.traverse import loads
from ...graph.types import ITEM_SIZES
from ...kernels.kernel import Kernel
from ...loops.builder import Builder
from ...target.target import Target
from ..derived_constants import Made, derive
from ..elementwise.elementwise import ONE_BY_ONE
from ..elementwise.elementwise import lower as lower_map
from ..nest.constant_data import constant, stays_half
from ..nest.loop_nest import At, Nest, Rewriter, flat_index, flatten, free_axes, main_reduction, units
from ..nest.row_range import RowRange, nested
from ..nest.split_nest import collapse, iterations
from ..nest.tile_axis import chunks, over, pieces, repeating
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from .contraction_strategies import ContractionStrategy, of_pattern
from .recognise import recognise as contraction_of

COPY_L2_PART = 8
"""Divisor: the copy takes at most 1/8 of the second-level cache."""
MAX_HALO_FACTOR = 3
"""Maximum ratio of the size of the copy to the part of the input that it holds."""
MAX_TERMS = 1 << 24
"""Maximum terms for a copy that converts nothing: with more, the code of borders is a small part, and the copy takes time."""
MIN_TILE_ROWS_WITHOUT_HALO = 9
"""Minimum rows of a tile for a copy without a halo: with these, conversions of narrow floats take more code than the copy."""


@dataclass(frozen=True, slots=True)
class PaddedInput(Strategy):
    """The strategy for a whole kernel: for each point of the axes `outer`, `fill` writes `copy`, and the contraction `inner`
    reads it. `weights` are the other factor."""
    nest: Nest
    target: Target
    weights: Expr
    outer: tuple[Axis, ...]
    copy: Buffer
    fill: tuple[Nest, ...]
    inner: ContractionStrategy

    @staticmethod
    def recognise(kernel: Kernel, constraints: Constraints) -> PaddedInput | None:
        return None if constraints.by_rows or constraints.precision != "f32" else recognise(kernel, constraints)

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self)

    def alternatives(self) -> Iterator[PaddedInput]:
        return (replace(self, inner=other) for other in self.inner.alternatives())

    def __str__(self) -> str:
        return f"{self.inner}, of a padded copy: {self.copy.dtype}{list(self.copy.shape)}"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of the input: the index with which it is read, its extent, and the range [low, high) that the copy holds."""
    index: Affine
    extent: int
    low: int
    high: int

    @property
    def inside(self) -> range:
        """Range of positions that exist in the input."""
        return range(max(self.low, 0), min(self.high, self.extent))


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """The sum of products of a nest whose loads have one index for each dimension. `a` reads the input, `b` the weights."""
    nest: Nest
    reduce: Reduce
    a: Expr
    read: Load
    b: Expr

    @staticmethod
    def of(nest: Nest) -> SumOfProducts | None:
        match main_reduction(nest, nest.axes[-1]):
            case Reduce("add", _, Apply("mul", factors)) as r if is_float(r.dtype):
                for a, b in (factors, factors[::-1]):
                    match a:
                        case (Load() as read) | Cast(Load() as read, bits=False):
                            if nest.axes[-1] not in free_axes(a) and is_plain(read):
                                return SumOfProducts(nest, r, a, read, b)
        return None

    @property
    def row(self) -> Axis:
        """Axis of a tile's rows."""
        return self.nest.axes[-2]

    def dimension_of(self, w: Range) -> int | None:
        """Return the dimension that a condition keeps in range, or None."""
        return next((d for d, (i, n) in enumerate(zip(self.read.index, self.read.buffer.shape))
                     if (w.low, w.high, w.index.const) == (0, n, i.const) and dict(w.index.terms) == dict(i.terms)), None)

    def haloed(self) -> tuple[Range, ...]:
        """Return the conditions that a halo makes true: those on rows, and those that can bound no loop of the sum."""
        return tuple(w for w in self.reduce.where if self.dimension_of(w) is not None and (
            self.row in w.index.axes or not w.index.axes & set(self.reduce.axes)))


def is_finite(b: Expr) -> bool:
    """True if b is constant data of finite numbers."""
    match b:
        case (Load() as x) | Cast(Load() as x, bits=False):
            with np.errstate(invalid="ignore"):  # floats of 8 bits that are NaN
                return x.buffer.data is not None and is_float(x.dtype) and bool(np.isfinite(x.buffer.data).all())
    return False


def is_plain(x: Load) -> bool:
    """True if each dimension has an affine index."""
    return len(x.index) == len(x.buffer.shape) and all(isinstance(t, Axis) for i in x.index for t, _ in i.terms)


def recognise(kernel: Kernel, constraints: Constraints) -> PaddedInput | None:
    """Return the padded copy for a kernel whose rows meet conditions, if the copy is small; else None."""
    axes = tuple(a for a in kernel.axes if a.extent != 1)
    if len(axes) < 2 or any(x.buffer is kernel.out for x in loads(kernel.value)):
        return None
    rewriter = Rewriter(units(kernel))
    index = rewriter.index(flat_index(kernel.out, tuple(map(Affine.of, kernel.axes)), {}))
    product = SumOfProducts.of(iterations(Nest(kernel.out.name, kernel.out, axes, index, rewriter.value(kernel.value)), 1))
    if product is None or len(product.nest.axes) < 2 or not is_worthwhile(product):
        return None
    return of_product(flatten(kernel), product, constraints) if not product.haloed() or is_finite(product.b) else None


def is_worthwhile(p: SumOfProducts) -> bool:
    """True if rows meet conditions, or narrow floats are converted again at each position of a window."""
    summed = set(p.reduce.axes)
    if p.read.dtype == p.reduce.dtype and math.prod(a.extent for a in (*p.nest.axes, *p.reduce.axes)) > MAX_TERMS:
        return False
    if any(p.row in w.index.axes and w.index.axes & summed for w in p.haloed()):
        return True
    return p.read.dtype != p.reduce.dtype and any(i.axes & summed and i.axes - summed for i in p.read.index)


def of_product(nest: Nest, p: SumOfProducts, constraints: Constraints) -> PaddedInput | None:
    """Return the padded copy for a sum of products, of a kernel with this nest, or None."""
    target = constraints.target
    where = [w for w in p.reduce.where if w not in p.haloed()]
    outer = tuple(a for a in p.nest.axes[:-2] if is_outer(p, a))
    dimensions = [dimension(p, d) for d in range(len(p.read.index))]
    held = [d for d in dimensions if not d.index.axes & set(outer)]
    copy = Buffer(f"{p.nest.name}.halo", p.reduce.dtype, tuple(d.high - d.low for d in held), "scratch")
    if copy.nbytes > target.l2_bytes // COPY_L2_PART or math.prod(len(d.inside) for d in held) * MAX_HALO_FACTOR < copy.size:
        return None
    read = Load(copy, (flat_index(copy, tuple(d.index - d.low for d in held), {}),))
    main = reading(p, read, where, outer, target)
    pattern = contraction_of(collapse(main), False) if main else None
    if pattern is None:
        return None
    pattern = replace(pattern, iterations=math.prod(a.extent for a in outer))
    inner = of_pattern(pattern, constraints)
    if not p.haloed() and inner.choice.tile.rows < MIN_TILE_ROWS_WITHOUT_HALO:
        return None
    return PaddedInput(nest, target, p.b, outer, copy, (*zeros(p, copy), collapse(copied(p, copy, dimensions, held))), inner)


def is_outer(p: SumOfProducts, axis: Axis) -> bool:
    """True if the whole input that is read moves with this axis alone."""
    moved = [i for i in p.read.index if axis in i.axes]
    return len(moved) == 1 and moved[0].terms == ((axis, 1),) and not any(
        axis in w.index.axes for w in (*p.reduce.where, *p.nest.where))


def dimension(p: SumOfProducts, number: int) -> Dimension:
    index, extent = p.read.index[number], p.read.buffer.shape[number]
    if any(p.dimension_of(w) == number for w in p.reduce.where if w not in p.haloed()):
        return Dimension(index, extent, 0, extent)
    low, high = index.bounds
    return Dimension(index, extent, low, high + 1)


def zeros(p: SumOfProducts, copy: Buffer) -> tuple[Nest, ...]:
    """Return a nest that fills the whole copy with zeros, if it has a halo."""
    place = Axis("place", copy.size)
    return (Nest(f"{p.nest.name}.zeros", copy, (place,), Affine.of(place), Const(0.0, copy.dtype)),) if p.haloed() else ()


def copied(p: SumOfProducts, copy: Buffer, dimensions: Sequence[Dimension], held: Sequence[Dimension]) -> Nest:
    """Return the nest that copies the inside of the input, as the sum reads it."""
    axes = {id(d): Axis(f"x{number}", len(d.inside)) for number, d in enumerate(held)}
    place = [Affine.of(axes[id(d)]) + d.inside.start for d in held]
    there = flat_index(copy, tuple(i - d.low for i, d in zip(place, held)), {})
    source = tuple(Affine.of(axes[id(d)]) + d.inside.start if id(d) in axes else d.index for d in dimensions)
    x = Load(p.read.buffer, (flat_index(p.read.buffer, source, {}),))
    value = x if isinstance(p.a, Load) else Cast(x, p.a.dtype)
    return Nest(f"{p.nest.name}.copy", copy, tuple(a for a in axes.values() if a.extent > 1), there, value)


def reading(p: SumOfProducts, read: Load, where: Sequence[Range], outer: tuple[Axis, ...], target: Target) -> Nest | None:
    """Return the nest that reads the copy. Weights that run against the input are reversed, if possible, so that both are one
    run of memory."""
    r = p.reduce
    if any(p.dimension_of(w) is None and w.index.axes - {*r.axes, *free_axes(p.b)} for w in where):
        return None
    back = {a: Axis(a.name, a.extent) for a in r.axes
            if read.index[0].coefficient(a) < 0 and is_finite(p.b) and not any(a in w.index.axes for w in where)}
    forth = Rewriter({a: Affine.of(b) * -1 + (a.extent - 1) for a, b in back.items()})
    axes = tuple(back.get(a, a) for a in r.axes)
    b = forth.value(p.b)
    if (back or where) and is_finite(b):
        b = weights(p, b, tuple(a for a in p.nest.axes if a in free_axes(b)) + axes, target)
    conditions = tuple(bounding(w, axes) for w in forth.conditions(tuple(where)))
    total = Reduce("add", axes, Apply("mul", (forth.value(read), b), r.dtype), conditions)
    flat = Rewriter({}, lambda x: (x.buffer, x.index[0] if x.is_flat else flat_index(x.buffer, x.index, {})))
    flat.nodes[id(r)] = flat.value(total)
    return Nest(p.nest.name, p.nest.out, tuple(a for a in p.nest.axes if a not in outer), p.nest.index,
                flat.value(p.nest.value), where=p.nest.where)


def bounding(w: Range, axes: tuple[Axis, ...]) -> Range:
    """Return a condition as a bound of a loop of the sum; a condition without these axes passes all or nothing of the first."""
    if w.index.axes & set(axes):
        return w
    n = axes[0].extent
    return Range((w.index - w.low) * n + axes[0], 0, (w.high - w.low) * n)


def weights(p: SumOfProducts, b: Expr, axes: tuple[Axis, ...], target: Target) -> Expr:
    """Return the weights in the order in which they are used."""
    if isinstance(b, Cast) and stays_half(b, target):
        return Cast(weights(p, b.arg, axes, target), b.dtype)
    flat = Rewriter({}, lambda x: (x.buffer, x.index[0] if x.is_flat else flat_index(x.buffer, x.index, {})))
    data = empty(tuple(a.extent for a in axes), numpy_dtype(b.dtype))
    data[...] = constant(flat.value(b), axes)
    buffer = Buffer(f"{p.nest.name}.weights", b.dtype, data.shape, "constant", data)
    return Load(buffer, tuple(map(Affine.of, axes)))


def lower(b: Builder, halo: PaddedInput) -> None:
    """Write the copy and the contraction that reads it, for each point of the outer axes."""
    b.scratch(halo.copy)
    derive(b, (), (halo.weights,), lambda e: Made((), is_finite(e)))

    def iteration(_: At) -> None:
        for nest in halo.fill:
            filled(b, nest, halo.target)
        halo.inner.lower(b, None)

    nested(b, halo.outer, {}, iteration)


def filled(b: Builder, nest: Nest, target: Target) -> None:
    """Store a nest in vectors, which may overlap within a line, for the least code. Elements that are not contiguous in the
    copy (a column of an image that is one pixel wide, beside its halo), or a single element, are stored one by one."""
    if not nest.axes or nest.index.coefficient(nest.axes[-1]) != 1:
        lower_map(b, nest, ONE_BY_ONE, target, None)
        return
    *outer, n = nest.axes
    cut = repeating if outer else chunks  # threads divide a loop whose iterations are independent
    lanes, writer = target.lanes(ITEM_SIZES[nest.out.dtype]), EpilogueWriter(b, target, nest)

    def line(at: At) -> None:
        over(b, cut(n.extent, min(lanes, n.extent)), lambda start, t: writer.write(
            OutputBlock({**at, n: start}, None, 1, n, pieces(t.size, lanes, target.has_masked))))

    nested(b, tuple(outer), {}, line)
