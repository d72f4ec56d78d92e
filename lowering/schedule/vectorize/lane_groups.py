"""Values that neighbouring lanes share, some at a time: what is read at a quotient of the vectors' axis, and what is made of
that alone (a pixel of a depthwise convolution with several filters a channel).

Such a value is computed for one lane of each group, and a shuffle with constant places gives all lanes theirs. That needs
vectors that begin a constant away from a multiple of the divisor, which `whole_groups` sees to.
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
"""Lanes that are one group, or several, at most; where there are more, the axis is better two."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """A value of which `by.by` neighbours are equal: `inner`, with the quotient in the place of `group`."""
    value: Expr
    inner: Expr
    group: Axis
    by: DividedPosition


Repeats = Mapping[int, Repeated]
"""By the identity of the value."""
NOTHING: Repeats = {}


class Grouped(Rewriter):
    """Puts an axis in the place of a quotient."""

    def __init__(self, group: Axis, by: DividedPosition) -> None:
        super().__init__({})
        self.group, self.by = group, by

    def place(self, term: Term) -> Affine:
        return Affine.of(self.group) if division(term) == self.by else super().place(term)


def repeats(value: Expr, axis: Axis) -> Repeats:
    """The largest subexpressions of a value that depend on an axis by one quotient alone."""
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
    """How values depend on an axis: not at all (False), by one quotient, or otherwise (True)."""

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
    """Lanes after which all groups begin anew; 1 where these are none, or too many."""
    common = math.lcm(*{r.by.by for r in found.values()})
    return common if common <= MAX_GROUP_LANES else 1


def whole_groups(size: int, group: int) -> int:
    """A number of lanes near `size` that is a multiple of `group`: groups begin anew after them."""
    return max(size // group, 1) * group
