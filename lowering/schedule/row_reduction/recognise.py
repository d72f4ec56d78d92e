"""The pattern of softmax and normalisation: every reduction of a kernel is over the same row, and the outputs may run along
that row, too. This module finds the passes over a row, and the values that a later pass loads instead of recomputing them.

`lower` writes the loops; fusion (`fuse.row_fusion`) builds kernels with this pattern.
"""
from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Wrapped
from ...elements.expression import Apply, Cast, Const, Expr, Load, Reduce, is_float
from ...elements.traverse import nodes
from ...graph.types import ITEM_SIZES
from ..nest.loop_nest import Nest, free_axes, indices_of, operands

MIN_STORED_OPERATIONS = 4
"""Minimum number of operations to recompute a value for which storing and loading it is cheaper."""
DIVISION_OPERATIONS = 8
"""Number of operations that a division or a square root counts as (`Costs.division_cycles` counts sixteen)."""
FAR_LOAD_OPERATIONS = 8
"""Number of operations that a load of a vector of non-contiguous elements counts as."""
HALF_CONVERSION_OPERATIONS = 6
"""Number of operations that a conversion to or from a half float counts as."""


@dataclass(frozen=True, slots=True, eq=False)
class RowPass:
    """A pass over a row that computes `reductions`, or the outputs if there are none. `axes` run along the row."""
    axes: tuple[Axis, ...]
    reductions: tuple[Reduce, ...]
    roots: tuple[Expr, ...]
    loaded: Mapping[Expr, int] = field(default_factory=dict)
    """Values that an earlier pass has stored, by value number."""
    stored: Mapping[Expr, int] = field(default_factory=dict)
    """Values that later passes load, by value number."""
    uniform: tuple[Expr, ...] = ()
    """Values that are constant along the row."""

    @property
    def computed(self) -> list[Expr]:
        """Values that the pass computes or loads for each element, except those stored earlier or constant in a row."""
        return list(below(self.roots, {*self.loaded, *self.uniform}))


@dataclass(frozen=True, slots=True, eq=False)
class RowPattern:
    """The passes of a nest. `outer` are the axes of the rows, `inner` the axes along a row of `extent` elements. `twins` maps
    each reduction to the equal reduction that a pass computes."""
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    extent: int
    passes: tuple[RowPass, ...]
    twins: Mapping[Reduce, Reduce]
    across: bool
    """True if neighbours in memory are in neighbouring rows, not in one row."""


def recognise(nest: Nest) -> RowPattern | None:
    """Return the pattern of a nest with several reductions, or with outputs along the row of one reduction, or None."""
    every = list(nodes(nest.value))
    reductions = [e for e in every if isinstance(e, Reduce)]
    if not reductions or not all(plain(e) for e in every):
        return None
    outer = free_axes(reductions[0])
    if any(free_axes(r) != outer for r in reductions[1:]) or not outer <= set(nest.axes):
        return None
    if not all(i.hidden <= outer for e in every for i in indices_of(e)):
        return None
    inner = tuple(a for a in nest.axes if a not in outer)
    extents = {size(r.axes) for r in reductions} | ({size(inner)} if inner else set())
    if len(extents) > 1 or (len(reductions) == 1 and not inner):
        return None
    numbers = ValueNumbers([*(r.axes for r in reductions), inner])
    stages, twins = in_stages(nest.value, numbers)
    passes = [p for stage in stages for p in passes_of(stage)]
    passes.append(RowPass(inner, (), (nest.value,)))
    rows = tuple(a for a in nest.axes if a in outer)
    across = bool(rows) and rows[-1] is nest.axes[-1] and (bool(inner) or any(
        isinstance(e, Load) and e.index[0].coefficient(rows[-1]) == 1 for e in every))
    kept = tuple(with_values(passes, numbers, rows[-1] if across else None))
    return RowPattern(rows, inner, extents.pop(), kept, twins, across)


def plain(e: Expr) -> bool:
    """True if a node is arithmetic on elements at known positions, without a condition."""
    match e:
        case Const() | Apply() | Cast():
            return True
        case Load(index=index):
            return all(isinstance(t, (Axis, Wrapped)) for i in index for t, _ in i.terms)
        case Reduce(where=where):
            return not where
    return False


def size(axes: Iterable[Axis]) -> int:
    result = 1
    for a in axes:
        result *= a.extent
    return result


def below(roots: Sequence[Expr], ends: Container[Expr] = ()) -> Iterator[Expr]:
    """Yield the nodes of the arithmetic below `roots`, operands first, down to reductions and without `ends`."""
    seen = set[int]()
    stack = [(e, False) for e in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen and node not in ends:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend([(x, False) for x in reversed(operands(node))])


class ValueNumbers:
    """The value numbering: values that are equal at the same position of a row have the same number in all passes."""

    def __init__(self, rows: Sequence[tuple[Axis, ...]]) -> None:
        self.rows = {a: axes for axes in rows for a in axes}
        self.known: dict[tuple[object, ...], int] = {}
        self.memo: dict[Expr, int] = {}
        self.varying: set[Expr] = set()
        """Values, of those numbered so far, that vary along the row."""

    def of(self, e: Expr) -> int:
        if e not in self.memo:
            for node in below((e,)):
                if node not in self.memo:
                    self.memo[node] = self.known.setdefault(self.key(node), len(self.known))
                    if self.varies(node):
                        self.varying.add(node)
        return self.memo[e]

    def varies(self, e: Expr) -> bool:
        if isinstance(e, Load):
            return any(t in self.rows for i in e.index for t, _ in i.terms)
        return any(x in self.varying for x in operands(e))

    def key(self, e: Expr) -> tuple[object, ...]:
        match e:
            case Const(value, dtype):
                return "const", repr(value), dtype
            case Load(buffer, index):
                return "load", buffer, *map(self.place, index)
            case Apply(primitive, args, dtype):
                return primitive, dtype, *[self.memo[a] for a in args]
            case Cast(arg, dtype, bits):
                return "cast", dtype, bits, self.memo[arg]
            case Reduce(primitive, _, body):
                return "reduce", primitive, self.of(body)
        raise TypeError(e)

    def place(self, index: Affine) -> tuple[object, ...]:
        """Return an index as a position in the row, independent of the axes along the row; with their extents if it is none."""
        outer = frozenset((t, c) for t, c in index.terms if t not in self.rows)
        along = [t for t, _ in index.terms if t in self.rows]
        if not along:
            return index.const, outer
        axes = self.rows[along[0]]
        steps = tuple(index.coefficient(a) for a in axes)
        if all(c == steps[-1] * step for c, step in zip(steps, strides(axes))):
            return index.const, outer, steps[-1]
        return index.const, outer, steps, tuple(a.extent for a in axes)


def strides(axes: Sequence[Axis]) -> list[int]:
    """Return the stride of each axis in the row."""
    return [size(axes[d + 1:]) for d in range(len(axes))]


def position(axes: Sequence[Axis]) -> Affine:
    """Return the position in the row."""
    return Affine.sum([(a, step) for a, step in zip(axes, strides(axes))])


def in_stages(value: Expr, numbers: ValueNumbers) -> tuple[list[list[Reduce]], dict[Reduce, Reduce]]:
    """Return the reductions by the depth of reductions nested inside, and map each reduction to the equal one to compute."""
    first: dict[int, Reduce] = {}
    depth: dict[Reduce, int] = {}
    twins: dict[Reduce, Reduce] = {}

    def inside(e: Expr) -> int:
        return max((deep(n) for n in below((e,)) if isinstance(n, Reduce)), default=0)

    def deep(r: Reduce) -> int:
        if r not in depth:
            depth[r] = inside(r.body) + 1
            twins[r] = first.setdefault(numbers.of(r), r)
        return depth[r]

    found: list[list[Reduce]] = [[] for _ in range(inside(value))]
    for r in first.values():
        found[depth[r] - 1].append(r)
    return found, twins


def passes_of(stage: Sequence[Reduce]) -> list[RowPass]:
    """Return the passes for reductions that do not depend on each other: one pass for all reductions with the same axes."""
    groups: dict[tuple[Axis, ...], list[Reduce]] = {}
    for r in stage:
        groups.setdefault(r.axes, []).append(r)
    return [RowPass(axes, tuple(group), tuple(r.body for r in group)) for axes, group in groups.items()]


# ---- stored values, and values that are constant along the row -------------------------------------------------------
def with_values(passes: Sequence[RowPass], numbers: ValueNumbers, lanes: Axis | None) -> Iterator[RowPass]:
    """Yield the passes with the values that they store for each other: values that two passes need and that take longer to
    recompute than to store and load. Vectors run along `lanes`, or along each pass."""
    wanted = shared(passes, numbers, lanes)
    done: set[int] = set()
    for p in passes:
        loaded = topmost(p, numbers, done, done)
        stored = topmost(p, numbers, wanted - done, done)
        done |= set(stored.values())
        yield replace(p, loaded=loaded, stored=stored, uniform=tuple(uniform(p, numbers)))


def shared(passes: Sequence[RowPass], numbers: ValueNumbers, lanes: Axis | None) -> set[int]:
    """Return the numbers of the values to be stored."""
    known: set[int] = set()
    result: set[int] = set()
    for p in passes:
        along = lanes or (p.axes[-1] if p.axes else None)
        result |= {number for e, number in topmost(p, numbers, known, known).items() if worth_storing(e, along, numbers)}
        known |= {numbers.of(e) for e in below(p.roots)}
    return result


def topmost(p: RowPass, numbers: ValueNumbers, among: set[int], ends: set[int]) -> dict[Expr, int]:
    """Return the values that vary along the row, have a number in `among`, and are in no other such value and none of
    `ends`."""
    found: dict[Expr, int] = {}
    stack, seen = list(p.roots), set[int]()
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        number = numbers.of(e)
        if number in among and e in numbers.varying:
            found[e] = number
        if number not in (among | ends) or e not in numbers.varying:
            stack.extend(operands(e))
    return found


def uniform(p: RowPass, numbers: ValueNumbers) -> Iterator[Expr]:
    """Yield the values that are computed once for a row, without constants and parts of other such values."""
    inside = {id(x) for e in below(p.roots) if e in numbers.varying for x in operands(e)} | {id(e) for e in p.roots}
    for e in below(p.roots):
        if id(e) in inside and e not in numbers.varying and not isinstance(e, Const):
            yield e


def worth_storing(e: Expr, lanes: Axis | None, numbers: ValueNumbers) -> bool:
    """True if a value takes longer to recompute than to store and load."""
    return e.dtype != "bool" and sum(cost(x, lanes) for x in below((e,)) if x in numbers.varying) >= MIN_STORED_OPERATIONS


def cost(e: Expr, lanes: Axis | None) -> int:
    match e:
        case Apply(primitive):
            return DIVISION_OPERATIONS if primitive in ("div", "sqrt") else 1
        case Cast(arg, dtype, False):
            return HALF_CONVERSION_OPERATIONS if any(is_float(x) and ITEM_SIZES[x] < 4 for x in (arg.dtype, dtype)) else 1
        case Load(index=index) if lanes and abs(index[0].coefficient(lanes)) > 1:
            return FAR_LOAD_OPERATIONS
    return 0
