"""A kernel as a loop nest over flat memory: one index for each access, no axis of extent 1, as few axes as possible.

`flatten` makes a nest of a kernel, `split` cuts it where a guard changes, `collapse` merges axes. After that, what a
nest computes can be told by its form.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..elements.affine import Affine, Axis, Computed, Range, Term, Wrapped
from ..elements.expression import (
    Apply,
    Buffer,
    Cast,
    Const,
    Expr,
    Guard,
    Likely,
    Load,
    Position,
    Reduce,
    extreme,
    guard,
    is_float,
    nodes,
)
from ..fuse.kernel import Kernel
from .tiles import breaks

MOST_PARTS = 64
"""A nest is cut into no more parts than this, unless one axis alone needs more (a concatenation of many)."""


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """out[index] = value for all axes, outermost first; every load has one flat index. `low` is where the first axis
    starts in the kernel's, if that is cut. `name` is a prefix for buffers made for it."""
    name: str
    out: Buffer
    axes: tuple[Axis, ...]
    index: Affine
    value: Expr
    low: int = 0


def operands(e: Expr) -> tuple[Expr, ...]:
    """What a node needs whatever conditions say: the operands of arithmetic."""
    match e:
        case Apply(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
    return ()


class Rewriter:
    """Rebuilds an expression for other axes: `at` says what stands for an axis (for a reduction's, one axis or
    nothing), `flat` what an access is. Known guards disappear, shared nodes stay shared."""

    def __init__(self, at: Mapping[Axis, Affine], flat: Callable[[Load], tuple[Buffer, Affine]] | None = None) -> None:
        self.at, self.flat = at, flat
        self.nodes: dict[int, Expr] = {}
        self.terms: dict[Computed, Affine] = {}

    def value(self, e: Expr) -> Expr:
        """The expression at the new place; without recursion over arithmetic, because chains may be long."""
        stack = [e]
        while stack:
            node = stack[-1]
            pending = [x for x in operands(node) if id(x) not in self.nodes] if id(node) not in self.nodes else []
            if pending:
                stack.extend(pending)
                continue
            stack.pop()
            if id(node) not in self.nodes:
                self.nodes[id(node)] = self.rebuild(node)
        return self.nodes[id(e)]

    def rebuild(self, e: Expr) -> Expr:
        match e:
            case Load():
                buffer, index = self.flat(e) if self.flat else (e.buffer, e.index[0])
                return Load(buffer, (self.index(index),))
            case Apply(primitive, args, dtype):
                moved = tuple([self.value(a) for a in args])
                return arithmetic(primitive, moved, dtype) or Apply(primitive, moved, dtype)
            case Cast(arg, dtype, bits):
                inner = self.value(arg)
                return (converted(inner, dtype) if not bits else None) or Cast(inner, dtype, bits)
            case Guard(where, inside, outside):
                conditions = self.conditions(where)
                known = [r.known for r in conditions]
                if False in known:
                    return self.value(outside)
                return self.value(inside) if None not in known else guard(
                    conditions, self.value(inside), self.value(outside))
            case Reduce():
                return self.reduction(e)
            case Likely(valid, fast, exact):
                return Likely(self.value(valid), self.value(fast), self.value(exact))
            case Position(index, dtype):
                return Position(self.index(index), dtype)
        return e

    def reduction(self, e: Reduce) -> Expr:
        where = self.conditions(e.where)
        if any(r.known is False for r in where) or any(a.extent == 0 for a in e.axes):
            return Const(e.identity, e.dtype)
        where = tuple(r for r in where if r.known is not True)
        axes = tuple(t for a in e.axes for t, _ in self.at.get(a, Affine(((a, 1),))).terms if isinstance(t, Axis))
        body = self.value(e.body)
        return Reduce(e.primitive, axes, body, where) if axes else guard(where, body, e.identity)

    def conditions(self, where: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple([Range(self.index(r.index), r.low, r.high) for r in where])

    def index(self, i: Affine) -> Affine:
        terms: list[tuple[Term, int]] = []
        const = i.const
        for term, c in i.terms:
            place = self.place(term)
            terms += [(t, c * k) for t, k in place.terms]
            const += c * place.const
        return Affine.sum(terms, const)

    def place(self, term: Term) -> Affine:
        match term:
            case Wrapped(source, extent):
                moved = self.index(source)
                return Affine(((Wrapped(moved, extent), 1),)) if moved.terms else Affine((), moved.const % extent)
            case Computed(value, extent):
                if term not in self.terms:
                    self.terms[term] = computed_index(self.value(value), extent)
                return self.terms[term]
            case _:
                return self.at.get(term) or Affine(((term, 1),))


# ---- index arithmetic in expressions -----------------------------------------------------------------------------
def arithmetic(primitive: str, args: tuple[Expr, ...], dtype: str) -> Expr | None:
    """An operation on positions that is a position itself, so that it stays affine; None where it is not."""
    if len(args) != 2 or not isinstance(args[0], Position) or not isinstance(args[1], (Position, Const)):
        return None
    x, y = args[0].index, args[1].index if isinstance(args[1], Position) else Affine((), int(args[1].value))
    match primitive:
        case "add":
            return position(x + y, dtype)
        case "sub":
            return position(x - y, dtype)
        case "mul" if not y.terms:
            return position(x * y.const, dtype)
        case "div" if not y.terms and y.const > 0 and x.bounds[0] >= 0 and (parts := x.divide(y.const)):
            return position(parts[0], dtype)
    return None


def position(index: Affine, dtype: str) -> Expr | None:
    """A position, if the dtype holds all its values."""
    low, high = index.bounds
    if low < extreme(dtype, "min") or high > extreme(dtype, "max"):
        return None
    return Position(index, dtype) if index.terms else Const(index.const, dtype)


def converted(e: Expr, dtype: str) -> Expr | None:
    """A position in another integer type."""
    return position(e.index, dtype) if isinstance(e, Position) and not is_float(dtype) and dtype != "bool" else None


def computed_index(value: Expr, extent: int) -> Affine:
    """The index that a value is, clamped into range(extent); affine where the value is."""
    if isinstance(value, Const):
        return Affine((), min(max(int(value.value), 0), extent - 1))
    if isinstance(value, Position) and value.index.bounds[0] >= 0 and value.index.bounds[1] < extent:
        return value.index
    return Affine(((Computed(value, extent), 1),))


def flatten(kernel: Kernel, rings: Mapping[Buffer, Buffer] = {}) -> Nest:
    """`rings` says which buffers hold only the last rows, and the smaller buffer that they lie in: as many rows as its
    first extent above 1 that differs (a power of two)."""
    def flat(load: Load) -> tuple[Buffer, Affine]:
        buffer = load.buffer
        if len(load.index) == 1 and (len(buffer.shape) == 1 or buffer not in rings):
            return buffer, load.index[0]
        return rings.get(buffer, buffer), flat_index(buffer, load.index, rings)

    units = {a: Affine() for a in kernel.axes if a.extent == 1}
    units |= {a: Affine() for e in nodes(kernel.value) if isinstance(e, Reduce) for a in e.axes if a.extent == 1}
    rewriter = Rewriter(units, flat)
    index = rewriter.index(flat_index(kernel.out, tuple(map(Affine.of, kernel.axes)), rings))
    out = rings.get(kernel.out, kernel.out)
    axes = tuple(a for a in kernel.axes if a.extent != 1)
    return Nest(kernel.out.name, out, axes, index, rewriter.value(kernel.value))


def flat_index(buffer: Buffer, index: tuple[Affine, ...], rings: Mapping[Buffer, Buffer]) -> Affine:
    """The place of buffer[index] in memory."""
    if ring := rings.get(buffer):
        d = next(d for d, n in enumerate(buffer.shape) if n > 1)
        rows = ring.shape[d]
        index = (*index[:d], Affine.of(Wrapped(index[d], rows)) if rows > 1 else Affine(), *index[d + 1:])
    terms, const = [], 0
    for i, stride in zip(index, buffer.strides):
        terms += [(t, c * stride) for t, c in i.terms]
        const += i.const * stride
    return Affine.sum(terms, const)


# ---- forms -------------------------------------------------------------------------------------------------------
def free_axes(e: Expr) -> frozenset[Axis]:
    """Axes on which the value depends; those that its reductions run over are not among them."""
    free: set[Axis] = set()
    bound: set[Axis] = set()
    for node in nodes(e):
        if isinstance(node, Reduce):
            bound.update(node.axes)
        for i in indices_of(node):
            for term, _ in i.terms:
                if isinstance(term, Axis):
                    free.add(term)
    return frozenset(free - bound)


def indices_of(e: Expr) -> Iterator[Affine]:
    """The index expressions of one node, those inside a modulo too."""
    match e:
        case Load(index=index):
            stack = list(index)
        case Position(index=single):
            stack = [single]
        case Guard(where=where) | Reduce(where=where):
            stack = [r.index for r in where]
        case _:
            return
    while stack:
        i = stack.pop()
        yield i
        stack.extend(t.source for t, _ in i.terms if isinstance(t, Wrapped))


def exposed(e: Expr, kind: type[Reduce] = Reduce) -> list[Reduce]:
    """Reductions of the value that no guard and no other reduction stands before."""
    found: list[Reduce] = []
    seen: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case Reduce():
                found.append(node)
            case Apply(args=args):
                stack.extend(args)
            case Cast(arg=arg):
                stack.append(arg)
            case Likely(valid, fast, exact):
                stack.extend((valid, fast, exact))
            case Load(index=index):
                stack.extend(t.value for i in index for t, _ in i.terms if isinstance(t, Computed))
    return found


# ---- fewer axes --------------------------------------------------------------------------------------------------
def collapse(nest: Nest, keep: Axis | None = None) -> Nest:
    """Merge neighbouring axes that every access and every condition walks as if they were one; not `keep`."""
    every = list(nodes(nest.value))
    indices = [nest.index, *(i for e in every for i in indices_of(e))]
    coefficients = [dict(i.terms) for i in indices]
    at: dict[Axis, Affine] = {}

    def merged(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        result: list[list[Axis]] = []
        for axis in axes:
            if result and keep is not axis and keep is not result[-1][-1] and all(
                    c.get(result[-1][-1], 0) == c.get(axis, 0) * axis.extent for c in coefficients):
                result[-1].append(axis)
            else:
                result.append([axis])
        return tuple(group[0] if len(group) == 1 else one(group) for group in result)

    def one(group: list[Axis]) -> Axis:
        if group[-1] in at:  # a reduction that shares its axes with another
            return at[group[-1]].terms[0][0]  # type: ignore[return-value]
        both = Axis("_".join(a.name for a in group), math.prod(a.extent for a in group))
        at.update({a: Affine() for a in group[:-1]})
        at[group[-1]] = Affine(((both, 1),))
        return both

    axes = merged(nest.axes)
    for e in every:
        if isinstance(e, Reduce):
            merged(e.axes)
    if not at:
        return nest
    rewriter = Rewriter(at)
    return Nest(nest.name, nest.out, axes, rewriter.index(nest.index), rewriter.value(nest.value), nest.low)


# ---- parts -------------------------------------------------------------------------------------------------------
def split(nest: Nest, by_rows: bool) -> list[Nest]:
    """Parts in which guards on one output axis are settled: a padding, its border; a concatenation, its operands. And
    parts in which a quotient of an axis is affine: the phases of a transposed convolution. With `by_rows` the first
    axis stays, even with an extent of 1."""
    steps = {a: s for a, s in quotients(nest).items() if not (by_rows and a is nest.axes[0])}
    if not steps or math.prod(steps.values()) > MOST_PARTS:
        return cut(nest, by_rows)
    phases = itertools.product(*(range(steps.get(a, 1)) for a in nest.axes))
    return [piece for number, starts in enumerate(phases) for piece in cut(
        phase(nest, f"{nest.name}.{number}", starts, steps), by_rows)]


def quotients(nest: Nest) -> dict[Axis, int]:
    """Axes, other than the last, of which the expression computes a quotient, with the divisor."""
    result: dict[Axis, int] = {}
    for e in nodes(nest.value):
        match e:
            case Apply("div", (Position(index), Const(divisor))):
                for a in nest.axes[:-1]:
                    if index.coefficient(a) == 1 and a not in result and 1 < divisor <= a.extent:
                        result[a] = int(divisor)
    return result


def phase(nest: Nest, name: str, starts: tuple[int, ...], steps: Mapping[Axis, int]) -> Nest:
    """The part at every `steps[axis]`-th place of these axes, beginning at `starts`."""
    axes = [Axis(a.name, -(-(a.extent - s) // steps[a])) if a in steps else a for a, s in zip(nest.axes, starts)]
    rewriter = Rewriter({a: Affine.of(b) * steps[a] + s for a, b, s in zip(nest.axes, axes, starts) if a in steps})
    kept = tuple(b for d, (a, b) in enumerate(zip(nest.axes, axes)) if b.extent > 1 or a not in steps)
    return Nest(name, nest.out, kept, rewriter.index(nest.index), rewriter.value(nest.value), nest.low)


def cut(nest: Nest, by_rows: bool) -> list[Nest]:
    """Parts in which guards on one output axis are settled."""
    where = deciding(nest.value)
    cuts = {a: breaks(a, where) for a in nest.axes}
    chosen: set[Axis] = set()
    parts = 1
    for axis in sorted((a for a in nest.axes if len(cuts[a]) > 2), key=lambda a: -len(cuts[a])):
        if not chosen or parts * (len(cuts[axis]) - 1) <= MOST_PARTS:
            chosen.add(axis)
            parts *= len(cuts[axis]) - 1
    if not chosen:
        return [nest]
    spans = [list(zip(cuts[a], cuts[a][1:])) if a in chosen else [(0, a.extent)] for a in nest.axes]
    return [part(nest, f"{nest.name}.{number}", span, by_rows) for number, span in enumerate(itertools.product(*spans))]


def deciding(value: Expr) -> list[Range]:
    """Conditions that decide about the form: those of and around reductions; all, where there is no reduction."""
    every = list(nodes(value))
    reductions = any(isinstance(e, Reduce) for e in every)
    return [r for e in every if isinstance(e, Reduce) or (isinstance(e, Guard) and (not reductions or any(
        isinstance(inner, Reduce) for inner in nodes(e)))) for r in e.where]


def part(nest: Nest, name: str, spans: tuple[tuple[int, int], ...], by_rows: bool) -> Nest:
    axes = [a if high - low == a.extent else Axis(a.name, high - low) for a, (low, high) in zip(nest.axes, spans)]
    at = {a: Affine.of(b) + low for a, b, (low, _) in zip(nest.axes, axes, spans) if a is not b}
    rewriter = Rewriter(at)
    kept = tuple(b for d, b in enumerate(axes) if b.extent > 1 or (by_rows and d == 0))
    return Nest(name, nest.out, kept, rewriter.index(nest.index), rewriter.value(nest.value), spans[0][0])
