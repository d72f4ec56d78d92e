"""Values that groups of neighbouring lanes share: values read at a quotient of the vector axis, and values computed from these
alone (a pixel of a depthwise convolution with several filters a channel).

The value is computed for one lane of each group, and a shuffle with a constant pattern distributes it to all lanes. Vectors
must then begin at a constant distance from a multiple of the divisor, which `whole_groups` ensures.
"""
from __future__ import annotations

import math
from collections.abc import Mapping

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Computed, Term
from ...elements.expression import Apply, Cast, Expr, Guard, IndexValue, Load
from ...elements.traverse import children, nodes
from ..nest.loop_nest import Rewriter, indices_of
from ..nest.quotient_axes import DividedPosition, division, shared_by

MAX_GROUP_LANES = 64
"""Maximum number of lanes after which all groups begin anew; with more, it is better to split the axis in two."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """A value that is equal for `by.by` neighbours: `inner`, with the quotient substituted for `group`."""
    value: Expr
    inner: Expr
    group: Axis
    by: DividedPosition


Repeats = Mapping[int, Repeated]
"""Repeated values by the identity of the value."""
NOTHING: Repeats = {}


class Grouped(Rewriter):
    """A rewriter that replaces a quotient by an axis."""

    def __init__(self, group: Axis, by: DividedPosition) -> None:
        super().__init__({})
        self.group, self.by = group, by

    def place(self, term: Term) -> Affine:
        return Affine.of(self.group) if division(term) == self.by else super().place(term)


def repeats(value: Expr, axis: Axis) -> Repeats:
    """Return the largest subexpressions of a value that depend on an axis through one quotient alone."""
    if not any(isinstance(t, Computed) for e in nodes(value) for i in indices_of(e) for t, _ in i.terms):
        return NOTHING
    found = QuotientDependence(axis)
    result: dict[int, Repeated] = {}
    rewriters: dict[DividedPosition, Grouped] = {}
    seen, stack = set[int](), [value]
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        by = found.of(e)
        if isinstance(by, DividedPosition):
            rewriter = rewriters.setdefault(by, Grouped(Axis(f"{axis.name}_group", by.most + 1), by))
            result[id(e)] = Repeated(e, rewriter.value(e), rewriter.group, by)
        elif by:
            stack.extend(children(e))
    return result


class QuotientDependence:
    """The dependence of values on an axis: none (False), through one quotient, or any other (True)."""

    def __init__(self, axis: Axis) -> None:
        self.axis = axis
        self.known: dict[int, DividedPosition | bool] = {}

    def of(self, e: Expr) -> DividedPosition | bool:
        stack = [e]
        while stack:
            node = stack[-1]
            pending = [x for x in children(node) if id(x) not in self.known]
            if pending and id(node) not in self.known:
                stack.extend(pending)
                continue
            stack.pop()
            if id(node) not in self.known:
                self.known[id(node)] = self.derived(node)
        return self.known[id(e)]

    def derived(self, e: Expr) -> DividedPosition | bool:
        indices = [self.of_index(i) for i in indices_of(e)]
        match e:
            case Load() | IndexValue():
                ways = indices
            case Apply() | Cast() | Guard():
                ways = indices + [self.known[id(x)] for x in operands(e)]
            case _:
                return any(indices) or any(self.known[id(x)] for x in children(e))
        one = {way for way in ways if way is not False}
        return False if not one else one.pop() if len(one) == 1 else True

    def of_index(self, i: Affine) -> DividedPosition | bool:
        return (shared_by(i, self.axis) or True) if self.axis in i.axes else False


def operands(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Guard(_, inside, outside):
            return inside, outside
        case Apply() | Cast():
            return children(e)
    return ()


def group_of(found: Repeats) -> int:
    """Return the number of lanes after which all groups begin anew; 1 if there are no groups, or these lanes are too many."""
    common = math.lcm(*{r.by.by for r in found.values()})
    return common if common <= MAX_GROUP_LANES else 1


def whole_groups(size: int, group: int) -> int:
    """Return a number of lanes near `size` that is a multiple of `group`, so that vectors begin with a group."""
    return max(size // group, 1) * group
