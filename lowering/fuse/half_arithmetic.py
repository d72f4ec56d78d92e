"""Kernels -> kernels: arithmetic of float16 that is computed in float32 and rounded to float16 becomes arithmetic of float16,
where the processor has instructions for it: twice the elements in a vector, and no conversions.

The bits are the same. A float32 has twice the digits of a float16, and two: a sum, difference, product, quotient or square root
of numbers of float16 that is rounded to float32 and then to float16 is what one rounding makes of it (Figueroa, When is double
rounding innocuous?, 1995). The smaller or larger of two such numbers, and an absolute value, are such numbers.
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
"""Operations that are rounded, and those whose result is one of their operands, perhaps without its sign."""
HALF, SINGLE = "float16", "float32"


def half_arithmetic(kernels: Kernels, target: Target) -> Kernels:
    """The kernels with such arithmetic."""
    if not target.computes_float16:
        return kernels
    return replace(kernels, kernels=tuple(replace(k, value=in_halves(k.value)) for k in kernels.kernels))


def in_halves(value: Expr) -> Expr:
    """An expression with such arithmetic. Operands come before what is made of them; chains may be long."""
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
    """A float32 as it is computed in float16, if all that it takes is there."""
    match e:
        case Apply(primitive, args, "float32") if primitive in ROUNDED and (halves := twins_of(args, twins)):
            return Apply(primitive, halves, HALF)
    return None


def twins_of(args: Sequence[Expr], twins: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """Those of all operands; none where one has no twin."""
    found = [twin_of(a, twins) for a in args]
    return tuple(x for x in found if x is not None) if None not in found else ()


def twin_of(e: Expr, twins: Mapping[Expr, Expr]) -> Expr | None:
    """A float16 of the same value as a float32, if there is one that is known."""
    match e:
        case Cast(arg, "float32", False) if arg.dtype == HALF:
            return arg
        case Const(value, "float32") if is_half(value):
            return Const(value, HALF)
    return twins.get(e)


def is_half(value: float) -> bool:
    """True if a number of float32 is one of float16; of a NaN nobody knows."""
    with np.errstate(over="ignore"):
        return bool(np.float32(np.float16(value)) == np.float32(value))
