"""Bitwise functions of traced tensors of integers and bools, shifts, and common divisors of two integers. NumPy's names."""
from __future__ import annotations

from typing import Any

from ...lowering.formulas import integers
from ...lowering.formulas.term import Term, absolute, select
from ...lowering.formulas.working_types import working_type
from ...lowering.graph.types import ElementType
from .conversion import broadcast, converted, operands
from .elementwise import checked_loop, elementwise, of_loop
from .formulas_of_numpy import Formulas
from .tensor import Tensor
from .trace import recorded


def bitwise_and(a: Any, b: Any) -> Tensor:
    """Bits that are set in both operands."""
    return elementwise("bitwise_and", a, b)


def bitwise_or(a: Any, b: Any) -> Tensor:
    """Bits that are set in at least one operand."""
    return elementwise("bitwise_or", a, b)


def bitwise_xor(a: Any, b: Any) -> Tensor:
    """Bits in which the operands differ."""
    return elementwise("bitwise_xor", a, b)


def invert(x: Any) -> Tensor:
    """Every bit flipped; the logical not for bools."""
    return elementwise("invert", x)


def bitwise_count(x: Any) -> Tensor:
    """Number of bits set in the magnitude, a ui8."""
    return elementwise("bitwise_count", x)


def left_shift(a: Any, b: Any) -> Tensor:
    """a shifted left by b bits; 0 where b is negative, or the width or more."""
    return shifted("left_shift", lambda element: integers.shifted_left(element.bits), a, b)


def right_shift(a: Any, b: Any) -> Tensor:
    """a shifted right by b bits, filled with the sign; only sign bits are left where b is negative, or the width or more."""
    return shifted("right_shift", lambda element: integers.shifted_right(element.bits, element.kind == "signed"), a, b)


def shifted(name: str, shift: Any, a: Any, b: Any) -> Tensor:
    given = operands(a, b, operator=name)
    (element, _), _ = checked_loop(name, given)
    formula = shift(element)
    return of_loop(name, Formulas(integers=formula, unsigned=formula), given)[0]


# ---- divisors ----------------------------------------------------------------------------------------------------
def gcd(a: Any, b: Any) -> Tensor:
    """The greatest common divisor; 0 for two zeros."""
    x, y, result = magnitudes("gcd", a, b)
    return converted(common_divisor(x, y), result)


def lcm(a: Any, b: Any) -> Tensor:
    """The least common multiple; 0 if either operand is 0."""
    x, y, result = magnitudes("lcm", a, b)
    return converted(recorded(lambda t, u, d: integers.unsigned_quotient(t, d) * u, x, y, common_divisor(x, y)), result)


def magnitudes(name: str, a: Any, b: Any) -> tuple[Tensor, Tensor, ElementType]:
    """Return the magnitudes in one shape, in unsigned integers, which hold that of the least integer; and the result's type."""
    given = operands(a, b, operator=name)
    (element, _), (result,) = checked_loop(name, given)
    working = working_type(element, integers=True, floats=False)
    dims = broadcast(*(x.shape for x in given), operator=name)

    def magnitude(x: Term) -> Term:
        wide = x.cast(working).broadcast_to(dims)
        return wide if element.kind == "unsigned" else absolute(wide)
    x, y = (recorded(magnitude, x) for x in given)
    return x, y, result


def common_divisor(x: Tensor, y: Tensor) -> Tensor:
    """Run Euclid's algorithm on all elements until no element has a remainder."""
    from .control_flow import while_loop
    from .reduction import any

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        rest = recorded(integers.unsigned_remainder, x, y)
        is_done = recorded(lambda u: u.equals(0), y)
        return recorded(select, is_done, x, y), rest
    if not x.size:
        return x
    found: Tensor = while_loop(lambda x, y: any(recorded(lambda u: u.differs(0), y)), step, x, y)[0]
    return found


__all__ = ["bitwise_and", "bitwise_count", "bitwise_or", "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift"]
