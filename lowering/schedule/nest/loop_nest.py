"""A kernel as a loop nest over flat memory: one index for each access, no axis of extent 1, as few axes as possible.

`flatten` turns a kernel into a nest; `split_nest` splits the nest and merges axes. After that, strategies can match the nest's
pattern.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Computed, Range, Term, Wrapped
from ...elements.expression import Apply, Buffer, Cast, Const, Expr, Guard, IndexValue, Load, Reduce, guard
from ...elements.traverse import nodes
from ...kernels.kernel import Kernel
from .index_arithmetic import arithmetic, computed_index, converted
from .quotient_axes import put_together

At = Mapping[Axis, Affine]
"""A point of the iteration space: the index expression of each axis there."""


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """out[index] = value for all axes, outermost first, where the conditions `where` on axes hold; every load has one flat
    index. `low` is the start of the first axis in the kernel's first axis, if that is cut. `name` prefixes the names of
    the nest's buffers."""
    name: str
    out: Buffer
    axes: tuple[Axis, ...]
    index: Affine
    value: Expr
    low: int = 0
    where: tuple[Range, ...] = ()


def number_of(axes: Iterable[Axis], at: At) -> Affine:
    """Return the row-major number of a point over these axes."""
    number = Affine()
    for axis in axes:
        number = number * axis.extent + at[axis]
    return number


def operands(e: Expr) -> tuple[Expr, ...]:
    """Return the operands that a node needs whether conditions hold or not: those of arithmetic."""
    if isinstance(e, Apply):
        return e.args
    return (e.arg,) if isinstance(e, Cast) else ()


class Rewriter:
    """Rebuilds an expression for other axes. `at` maps an axis to its index expression (a reduction axis to one axis or
    none), `flat` maps a load to a buffer and a flat index. Known guards disappear; shared nodes stay shared."""

    def __init__(self, at: Mapping[Axis, Affine], flat: Callable[[Load], tuple[Buffer, Affine]] | None = None) -> None:
        self.at, self.flat = at, flat
        self.nodes: dict[int, Expr] = {}
        self.terms: dict[Computed, Affine] = {}

    def value(self, e: Expr) -> Expr:
        """Return the expression for the new axes. Do not recurse over arithmetic, because chains may be long."""
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
                if self.flat is None:
                    return Load(e.buffer, tuple([self.index(i) for i in e.index]))
                buffer, index = self.flat(e)
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
            case IndexValue(index, dtype):
                return IndexValue(self.index(index), dtype)
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
        return put_together(terms, const)

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


def flatten(kernel: Kernel, rings: Mapping[Buffer, Buffer] = {}) -> Nest:
    """Return a kernel as a nest. `rings` maps each buffer of which only the last rows are kept to a smaller ring buffer, whose
    number of rows is its extent in the first dimension where the buffer has more than one element."""
    rewriter = flattening(kernel, rings)
    index = rewriter.index(flat_index(kernel.out, tuple(map(Affine.of, kernel.axes)), rings))
    out = rings.get(kernel.out, kernel.out)
    axes = tuple(a for a in kernel.axes if a.extent != 1)
    return Nest(kernel.out.name, out, axes, index, rewriter.value(kernel.value))


def flat_values(kernel: Kernel, parts: Iterable[Expr]) -> list[Expr]:
    """Return parts of a kernel's value as in its nest: every load has one flat index, including loads in computed indices."""
    return list(map(flattening(kernel, {}).value, parts))


def flattening(kernel: Kernel, rings: Mapping[Buffer, Buffer]) -> Rewriter:
    """Return the rewriter that flattens the accesses of a kernel and drops axes of extent 1."""
    def flat(load: Load) -> tuple[Buffer, Affine]:
        buffer = load.buffer
        if len(load.index) == 1 and (len(buffer.shape) == 1 or buffer not in rings):
            return buffer, load.index[0]
        return rings.get(buffer, buffer), flat_index(buffer, load.index, rings)

    return Rewriter(units(kernel), flat)


def units(kernel: Kernel) -> dict[Axis, Affine]:
    """Return a map from each axis of extent 1 to index 0."""
    reduced = (a for e in nodes(kernel.value) if isinstance(e, Reduce) for a in e.axes)
    return {a: Affine() for a in (*kernel.axes, *reduced) if a.extent == 1}


def flat_index(buffer: Buffer, index: tuple[Affine, ...], rings: Mapping[Buffer, Buffer]) -> Affine:
    """Return the flat index of buffer[index] in memory."""
    if ring := rings.get(buffer):
        d = next(d for d, n in enumerate(buffer.shape) if n > 1)
        rows = ring.shape[d]
        index = (*index[:d], Affine.of(Wrapped(index[d], rows)) if rows > 1 else Affine(), *index[d + 1:])
    terms, const = [], 0
    for i, stride in zip(index, buffer.strides):
        terms += [(t, c * stride) for t, c in i.terms]
        const += i.const * stride
    return Affine.sum(terms, const)


# ---- patterns ----------------------------------------------------------------------------------------------------
def free_axes(e: Expr) -> frozenset[Axis]:
    """Return the axes on which the value depends, without the axes of its own reductions."""
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
    """Yield the index expressions of one node, including those inside a modulo."""
    match e:
        case Load(index=index):
            stack = list(index)
        case IndexValue(index=single):
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
    """Return the reductions of the value that are not inside a guard or another reduction."""
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
            case Load(index=index):
                stack.extend(t.value for i in index for t, _ in i.terms if isinstance(t, Computed))
    return found


def is_dense(nest: Nest) -> bool:
    """True if all outputs are written, and outputs are contiguous along the last axis."""
    return not nest.where and (not nest.axes or nest.index.coefficient(nest.axes[-1]) == 1)


def main_reduction(nest: Nest, axis: Axis) -> Reduce | None:
    """Return the only reduction that depends on `axis`; None if there are several or it is inside a guard or reduction."""
    found = [r for r in nodes(nest.value) if isinstance(r, Reduce) and axis in free_axes(r)]
    return found[0] if len(found) == 1 and found[0] in exposed(nest.value) else None
