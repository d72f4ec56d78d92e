"""Formulas over the emitter's values, written as arithmetic: `(x - 1) * reciprocal(x + 1)` emits TOSA for it.

A `Term` is a value of the new graph with the emitter that extends it; a plain number beside it takes its type. `formula`
registers a function of terms as a legalization: half floats are computed in f32 and rounded once at the end, as TensorFlow
computes them, narrow integers in i32. What depends on the float format alone is in `Precision`.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .....runtime.errors import Problem
from .....runtime.records import dataclass
from ....graph.graph import Operation, Value
from ....graph.types import F32, F64, I1, I32, ElementType
from .emitter import Emitter, is_narrow
from .table import legalization


@dataclass(frozen=True, slots=True)
class Precision:
    """A float format. From `whole` on every number is an integer; x * `splitter` tells the upper half of the digits of x;
    x - x**3 is x for |x| below `negligible`."""
    digits: int
    """Binary ones."""
    negligible: float

    @property
    def whole(self) -> float:
        return 2.0 ** (self.digits - 1)

    @property
    def splitter(self) -> float:
        return 2.0 ** ((self.digits + 1) // 2) + 1


PRECISIONS = {F32: Precision(24, 2.0**-13), F64: Precision(53, 2.0**-27)}


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value while a formula is built of it. Comparisons give terms of bools, which `&`, `|` and `~` take."""
    emitter: Emitter
    value: Value

    @property
    def element(self) -> ElementType:
        return self.value.tensor.element

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.element]

    def of(self, value: Value) -> Term:
        return Term(self.emitter, value)

    def term(self, other: Term | float) -> Term:
        """A number as a constant of this term's type."""
        return other if isinstance(other, Term) else self.of(self.emitter.splat(other, self.value))

    def apply(self, name: str, *others: Term | float, **attributes: Any) -> Term:
        """The result of an elementwise operator of TOSA."""
        return self.of(self.emitter.arithmetic(name, self.value, *(self.term(x).value for x in others), **attributes))

    def __add__(self, other: Term | float) -> Term:
        return self.apply("add", other)

    def __radd__(self, other: float) -> Term:
        return self.term(other) + self

    def __sub__(self, other: Term | float) -> Term:
        return self.apply("sub", other)

    def __rsub__(self, other: float) -> Term:
        return self.term(other) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.of(self.emitter.product(self.value, self.term(other).value))

    def __rmul__(self, other: float) -> Term:
        return self.term(other) * self

    def __neg__(self) -> Term:
        return self * -1 if self.element.is_float else 0 - self

    def __truediv__(self, other: Term | float) -> Term:
        """By way of the reciprocal, which is one ulp off; `division.divided` is exact."""
        return self * reciprocal(self.term(other))

    def __rtruediv__(self, other: float) -> Term:
        return self.term(other) / self

    def __gt__(self, other: Term | float) -> Term:
        return self.apply("greater", other)

    def __ge__(self, other: Term | float) -> Term:
        return self.apply("greater_equal", other)

    def __lt__(self, other: Term | float) -> Term:
        return self.term(other) > self

    def __le__(self, other: Term | float) -> Term:
        return self.term(other) >= self

    def equals(self, other: Term | float) -> Term:
        return self.apply("equal", other)

    def __and__(self, other: Term) -> Term:
        return self.apply("logical_and", other)

    def __or__(self, other: Term) -> Term:
        return self.apply("logical_or", other)

    def __xor__(self, other: Term) -> Term:
        return self.apply("logical_xor", other)

    def __invert__(self) -> Term:
        return self.apply("logical_not")


Function = Callable[..., Term]


def operator(name: str) -> Callable[[Term], Term]:
    return lambda x: x.apply(name)


absolute, reciprocal, rsqrt, floor, ceil = map(operator, ("abs", "reciprocal", "rsqrt", "floor", "ceil"))
exp, log, sin, cos, tanh, erf, sigmoid = map(operator, ("exp", "log", "sin", "cos", "tanh", "erf", "sigmoid"))


def select(condition: Term, yes: Term | float, no: Term | float) -> Term:
    """One of the two, of which at least one is a term."""
    like = yes if isinstance(yes, Term) else no
    assert isinstance(like, Term)
    return like.of(like.emitter.select(condition.value, like.term(yes).value, like.term(no).value))


def maximum(x: Term, y: Term | float) -> Term:
    """A NaN is the result."""
    return x.apply("maximum", y)


def minimum(x: Term, y: Term | float) -> Term:
    """A NaN is the result."""
    return x.apply("minimum", y)


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """The sum of coefficients[i] * x**i."""
    *rest, last = coefficients
    found = x * last + rest[-1]
    for coefficient in reversed(rest[:-1]):
        found = found * x + coefficient
    return found


def working_type(element: ElementType, integers: bool, floats: bool) -> ElementType:
    """The type in which a formula computes for operands of that type."""
    if floats and element.is_float:
        return element if element in PRECISIONS else F32
    if integers and element.is_integer:
        return I32 if is_narrow(element) else element
    kinds = " or ".join(kind for kind, wanted in (("floats", floats), ("integers", integers)) if wanted)
    raise Problem(f"it takes {kinds}, not {element}", kind="type")


def evaluated(function: Function, e: Emitter, operands: Sequence[Value], integers: bool = False, floats: bool = True) -> Value:
    """A function of terms of these operands, which are of one type, computed in the working type; bools stay what they are."""
    check_count(function, operands)
    element = operands[0].tensor.element
    working = working_type(element, integers, floats)
    given = e.same_rank(*(e.cast(x, working) for x in operands))
    found = function(*(Term(e, x) for x in given)).value
    return found if found.tensor.element == I1 else e.cast(found, element)


def check_count(function: Function, operands: Sequence[Value]) -> None:
    """As many operands as the function has parameters."""
    wanted = list(inspect.signature(function).parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in wanted):
        wanted = []
    if not operands or (wanted and len(wanted) != len(operands)):
        raise Problem(f"it takes {len(wanted) or 'some'} operands, not {len(operands)}", kind="type")


def formula(*names: str, integers: bool = False, floats: bool = True) -> Callable[[Function], Function]:
    """The function of terms is what these operations are, for operands of these kinds."""
    def add(function: Function) -> Function:
        def emit(e: Emitter, operation: Operation, *operands: Value) -> Value:
            return evaluated(function, e, operands, integers, floats)
        legalization(*names)(emit)
        return function
    return add
