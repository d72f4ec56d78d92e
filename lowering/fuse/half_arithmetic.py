"""Kernels -> kernels: float16 arithmetic that is computed in float32 and rounded to float16 becomes float16 arithmetic, if the
processor has instructions for it: twice the elements in a vector, and no conversions.

The bits are the same. A float32 has twice the digits of a float16, plus two. So a sum, difference, product, quotient or square
root of float16 numbers that is rounded to float32 and then to float16 equals the result of a single rounding (Figueroa, When is
double rounding innocuous?, 1995). The minimum or maximum of two float16 numbers, and an absolute value, are float16 numbers.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..elements.expression import Apply, Cast, Const, Expr
from ..elements.traverse import in_order, post_order, rebuilt
from ..kernels.kernel import Kernels
from ..target.target import Target

ROUNDED = frozenset({"add", "sub", "mul", "div", "sqrt"})
CHOSEN = frozenset({"min", "max", "minimum", "maximum", "minnum", "maxnum", "abs"})
"""Operations whose result is rounded, and those whose result is one of their operands, perhaps without its sign."""
HALF, SINGLE = "float16", "float32"


def half_arithmetic(kernels: Kernels, target: Target) -> Kernels:
    """Return the kernels with float16 arithmetic, if the target computes float16."""
    if not target.computes_float16:
        return kernels
    return replace(kernels, kernels=tuple(replace(k, value=in_halves(k.value)) for k in kernels.kernels))


def in_halves(value: Expr) -> Expr:
    """Return an expression with float16 arithmetic; without recursion, operands first, because chains may be long."""
    made: dict[Expr, Expr] = {}
    twins: dict[Expr, Expr] = {}
    for e in post_order((value,), in_order):
        new = rebuilt(e, made)
        match new:
            case Cast(arg, "float16", False) if arg.dtype == SINGLE:
                new = twin_of(arg, twins) or rounded(arg, twins) or new
            case Apply(primitive, args, "float32") if primitive in CHOSEN and (halves := twins_of(args, twins)):
                twins[new] = Apply(primitive, halves, HALF)
        made[e] = new
    return made[value]


def rounded(e: Expr, twins: Mapping[Expr, Expr]) -> Expr | None:
    """Return a rounded float32 operation in float16, if all of its operands have a float16 twin."""
    match e:
        case Apply(primitive, args, "float32") if primitive in ROUNDED and (halves := twins_of(args, twins)):
            return Apply(primitive, halves, HALF)
    return None


def twins_of(args: Sequence[Expr], twins: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """Return the float16 twins of all operands; an empty tuple if an operand has no twin."""
    found = [twin_of(a, twins) for a in args]
    return tuple(x for x in found if x is not None) if None not in found else ()


def twin_of(e: Expr, twins: Mapping[Expr, Expr]) -> Expr | None:
    """Return a float16 expression of the same value as a float32 expression, if one is known."""
    match e:
        case Cast(arg, "float32", False) if arg.dtype == HALF:
            return arg
        case Const(value, "float32") if is_half(value):
            return Const(value, HALF)
    return twins.get(e)


def is_half(value: float) -> bool:
    """True if a float32 number is a float16 number; False for a NaN."""
    with np.errstate(over="ignore"):
        return bool(np.float32(np.float16(value)) == np.float32(value))
