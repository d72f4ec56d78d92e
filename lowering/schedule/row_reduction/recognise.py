"""The pattern of softmax and of normalisation: every reduction of a kernel is over the same row, of which the outputs are then
computed too. Says which passes over a row that takes, and which values a later pass reads instead of computing them again.

`lower` writes its loops; fusion (`fuse.row_fusion`) puts such kernels together.
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
"""Operations that computing a value again must take, for storing and loading it to be less."""
DIVISION_OPERATIONS = 8
"""Operations that a division or a square root counts for (`Costs.division_cycles` counts sixteen)."""
FAR_LOAD_OPERATIONS = 8
"""Operations that the load of a vector counts for whose elements are no neighbours."""
HALF_CONVERSION_OPERATIONS = 6
"""Operations that a conversion to or from a half float counts for."""


@dataclass(frozen=True, slots=True, eq=False)
class RowPass:
    """One walk along a row: its `reductions`, or, where there are none, the outputs. `axes` run along the row."""
    axes: tuple[Axis, ...]
    reductions: tuple[Reduce, ...]
    roots: tuple[Expr, ...]
    loaded: Mapping[Expr, int] = field(default_factory=dict)
    """Values that an earlier pass has stored, with their numbers."""
    stored: Mapping[Expr, int] = field(default_factory=dict)
    """Values that later passes load."""
    uniform: tuple[Expr, ...] = ()
    """Values that are the same all along the row."""

    @property
    def computed(self) -> list[Expr]:
        """What the pass computes or loads for each element; not what an earlier one has stored, nor what a row has once."""
        return list(below(self.roots, {*self.loaded, *self.uniform}))


@dataclass(frozen=True, slots=True, eq=False)
class RowPattern:
    """`outer` are the axes of the rows, `inner` those along one, of `extent` elements. `twins` says of each reduction which
    equal one a pass computes."""
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    extent: int
    passes: tuple[RowPass, ...]
    twins: Mapping[Reduce, Reduce]
    across: bool
    """True if neighbours lie in neighbouring rows, not in one row."""


def recognise(nest: Nest) -> RowPattern | None:
    """The pattern of a nest with several reductions, or with outputs along the row of one."""
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
    """True if it is arithmetic on elements whose places are known, and no condition stands before it."""
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
    """What arithmetic needs, operands first; it ends at reductions, and before `ends`."""
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
    """Numbers for values: equal ones at the same place of a row have the same, whichever pass they are in."""

    def __init__(self, rows: Sequence[tuple[Axis, ...]]) -> None:
        self.rows = {a: axes for axes in rows for a in axes}
        self.known: dict[tuple[object, ...], int] = {}
        self.memo: dict[Expr, int] = {}
        self.varying: set[Expr] = set()
        """Values, of those numbered so far, that are not the same all along the row."""

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
        """An index as a place in the row, whatever the axes along it are; the axes, where it is none."""
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
    """How far apart neighbours along each axis are in the row."""
    return [size(axes[d + 1:]) for d in range(len(axes))]


def position(axes: Sequence[Axis]) -> Affine:
    """The place in the row."""
    return Affine.sum([(a, step) for a, step in zip(axes, strides(axes))])


def in_stages(value: Expr, numbers: ValueNumbers) -> tuple[list[list[Reduce]], dict[Reduce, Reduce]]:
    """The reductions by how many others stand inside, and for all of them the one of an equal value that is computed."""
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
    """The walks for reductions that do not wait for each other: one for all with the same axes."""
    groups: dict[tuple[Axis, ...], list[Reduce]] = {}
    for r in stage:
        groups.setdefault(r.axes, []).append(r)
    return [RowPass(axes, tuple(group), tuple(r.body for r in group)) for axes, group in groups.items()]


# ---- values that are stored, and values of the whole row -------------------------------------------------------------
def with_values(passes: Sequence[RowPass], numbers: ValueNumbers, lanes: Axis | None) -> Iterator[RowPass]:
    """The passes with what they store for each other: what two of them need, and what takes longer than that. Vectors lie
    along `lanes`, or along each pass."""
    wanted = shared(passes, numbers, lanes)
    done: set[int] = set()
    for p in passes:
        loaded = topmost(p, numbers, done, done)
        stored = topmost(p, numbers, wanted - done, done)
        done |= set(stored.values())
        yield replace(p, loaded=loaded, stored=stored, uniform=tuple(uniform(p, numbers)))


def shared(passes: Sequence[RowPass], numbers: ValueNumbers, lanes: Axis | None) -> set[int]:
    """Numbers of the values to be stored."""
    known: set[int] = set()
    result: set[int] = set()
    for p in passes:
        along = lanes or (p.axes[-1] if p.axes else None)
        result |= {number for e, number in topmost(p, numbers, known, known).items() if worth_storing(e, along, numbers)}
        known |= {numbers.of(e) for e in below(p.roots)}
    return result


def topmost(p: RowPass, numbers: ValueNumbers, among: set[int], ends: set[int]) -> dict[Expr, int]:
    """The values along the row with a number `among` these, that no other such value and no value of `ends` is made of."""
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
    """What is computed once for a row: no number, and no part of another such value."""
    inside = {id(x) for e in below(p.roots) if e in numbers.varying for x in operands(e)} | {id(e) for e in p.roots}
    for e in below(p.roots):
        if id(e) in inside and e not in numbers.varying and not isinstance(e, Const):
            yield e


def worth_storing(e: Expr, lanes: Axis | None, numbers: ValueNumbers) -> bool:
    """True if a value takes longer to compute again than to store and to load."""
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
