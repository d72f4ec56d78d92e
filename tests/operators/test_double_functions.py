"""Functions of f64 against exact values, which come from Python's decimals: within 4 units of the last place, on each kind of
processor, and specials as IEEE 754 has them."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.activation import Erf, Sigmoid, Tanh
from tosaic.lowering.dialects.tosa.binary import Pow
from tosaic.lowering.dialects.tosa.unary import Cos, Exp, Log, Reciprocal, Rsqrt, Sin
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.elements.tensor import stored
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import F64, Array, TensorType
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.schedule import schedule

from ..native.machines import runs_here
from ..schedule.kernels import TARGETS, Native
from .harness import evaluated

ULPS = 4
DIGITS = 60
"""Of the exact values. An angle is reduced with as many more as it has before the point."""
NAN, INF = math.nan, math.inf
PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214809")
on_each_target = pytest.mark.parametrize("target", [
    None, *(pytest.param(t, marks=pytest.mark.skipif(not runs_here(t), reason="this processor lacks its instructions"), id=key)
            for key, t in TARGETS.items() if key in ("512 bits", "256 bits, no masks", "128 bits", "scalar"))])


def computed(op: Op, target: Any, *arrays: Array) -> Array:
    """What the expression of an element gives, or its native code."""
    out = TensorType(np.broadcast_shapes(*(a.shape for a in arrays)), F64)
    if target is None:
        return evaluated(op, out, *arrays)
    data = {Buffer(f"x{i}", "float64", a.shape, "argument"): np.ascontiguousarray(a) for i, a in enumerate(arrays)}
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(out.dims))
    tensors = [stored(TensorType(b.shape, F64), b) for b in data]
    kernel = Kernel(Buffer("out", "float64", out.dims, "result"), axes, op.element(out, *tensors)(*map(Affine.of, axes)))
    function = schedule(kernel, target)
    return Native([function], target).call(0, function, kernel, data)


# ---- exact values ------------------------------------------------------------------------------------------------
def series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """first * (1 + ratio(1) * (1 + ratio(2) * ...)), until terms do not count."""
    total, term, k = first, first, 1
    while abs(term) > abs(total) * Decimal(10) ** -(DIGITS + 2) and term:
        term *= ratio(k)
        total += term
        k += 1
    return total


def exact_sine(x: float, quadrants: int = 0) -> Decimal:
    quadrant = round(Fraction(x) / (PI / 2))
    rest = Fraction(x) - quadrant * PI / 2
    r = Decimal(rest.numerator) / Decimal(rest.denominator)
    is_cosine, square = (quadrant + quadrants) % 2, r * r
    value = (series(Decimal(1), lambda k: -square / (2 * k * (2 * k - 1))) if is_cosine else
             series(r, lambda k: -square / (2 * k * (2 * k + 1))))
    return -value if (quadrant + quadrants) % 4 >= 2 else value


def exact_erf(x: float) -> Decimal:
    """2 / sqrt(pi) * exp(-x^2) * (x + 2/3 x^3 + ...), whose terms have one sign."""
    d = Decimal(x)
    root = (Decimal(PI.numerator) / Decimal(PI.denominator)).sqrt()
    return series(d, lambda k: 2 * d * d / (2 * k + 1)) * (-d * d).exp() * 2 / root


def exact_tanh(x: float) -> Decimal:
    d = Decimal(x)
    if abs(x) < 1e-8:  # where the difference would have few digits
        return d - d**3 / 3 + 2 * d**5 / 15 - 17 * d**7 / 315
    power = (2 * d).exp()
    return (power - 1) / (power + 1)


EXACT: dict[str, Callable[..., Decimal]] = {
    "tosa.exp": lambda x: Decimal(x).exp(), "tosa.log": lambda x: Decimal(x).ln(), "tosa.tanh": exact_tanh,
    "tosa.sigmoid": lambda x: 1 / (1 + (-Decimal(x)).exp()), "tosa.erf": exact_erf, "tosa.sin": exact_sine,
    "tosa.cos": lambda x: exact_sine(x, 1), "tosa.pow": lambda x, y: (Decimal(x).ln() * Decimal(y)).exp(),
    "tosa.rsqrt": lambda x: 1 / Decimal(x).sqrt()}


def error(found: float, exact: Decimal) -> float:
    """The distance in units of the last place of the exact value."""
    unit = Decimal(2) ** max(math.frexp(exact)[1] - 53 if exact else -1074, -1074)
    return float(abs(Decimal(found) - exact) / unit)


@functools.cache
def exact_values(number: int) -> list[Decimal]:
    """Of a case; once for all targets."""
    op, *arrays = CASES[number]
    with precision():
        return [EXACT[op.name](*values) for values in zip(*(a.tolist() for a in arrays))]


def precision() -> Any:
    return localcontext(Context(prec=DIGITS + 20, Emin=-10**6, Emax=10**6))


def spread(seed: int, low: float, high: float, count: int = 150) -> Array:
    """Numbers of an interval, and numbers of every size down to 1e-300."""
    random = np.random.default_rng(seed)
    small = np.exp(random.uniform(-690, math.log(max(abs(low), abs(high))), count)) * random.choice([-1, 1], count)
    return np.concatenate([random.uniform(low, high, 2 * count), np.clip(small, low, high), [low, high]])


def angles() -> Array:
    """Over a billion, and next to multiples of pi / 2, where a sine or a cosine is small."""
    random = np.random.default_rng(1)
    zeros = np.rint(random.uniform(-2.0**29, 2.0**29, 100)) * (math.pi / 2)
    return np.concatenate([spread(2, -8, 8), random.uniform(-2.0**30, 2.0**30, 200), zeros, np.arange(1, 60) * (math.pi / 2)])


def positive() -> Array:
    """Every exponent, subnormal ones too, and numbers near 1."""
    random = np.random.default_rng(3)
    return np.concatenate([np.exp(random.uniform(-744, 709, 300)), random.uniform(0.5, 2, 200),
                           1 + random.standard_normal(100) * 10.0 ** random.uniform(-15, -1, 100),
                           random.integers(1, 1 << 52, 30).view(np.float64)])


def powers() -> tuple[Array, Array]:
    """With results of every size."""
    x, random = positive(), np.random.default_rng(8)
    with np.errstate(all="ignore"):
        return x, np.clip(random.uniform(-707, 707, len(x)) / np.log(x), -1e300, 1e300)


CASES: list[tuple[Any, ...]] = [
    (Exp(), spread(4, -745, 709.7)), (Log(), positive()), (Tanh(), spread(5, -21, 21)), (Sigmoid(), spread(6, -744, 40)),
    (Erf(), spread(7, -6.1, 6.1)), (Sin(), angles()), (Cos(), angles()), (Rsqrt(), positive()), (Pow(), *powers())]


@on_each_target
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: str(CASES[n][0].name))
def test_functions_are_within_four_units(number: int, target: Any) -> None:
    op, *arrays = CASES[number]
    found = computed(op, target, *arrays).tolist()
    with precision():
        errors = [error(*pair) for pair in zip(found, exact_values(number))]
    worst = int(np.argmax(errors))
    assert errors[worst] < ULPS, f"{errors[worst]:.2f} units at {[a[worst] for a in arrays]}"


# ---- specials ----------------------------------------------------------------------------------------------------
TABLE: list[tuple[Op, list[float]]] = [  # for -inf, +inf, -0, +0, NaN
    (Cos(), [NAN, NAN, 1.0, 1.0, NAN]), (Sin(), [NAN, NAN, -0.0, 0.0, NAN]), (Exp(), [0.0, INF, 1.0, 1.0, NAN]),
    (Log(), [NAN, INF, -INF, -INF, NAN]), (Reciprocal(), [-0.0, 0.0, -INF, INF, NAN]),
    (Rsqrt(), [NAN, 0.0, -INF, INF, NAN]), (Tanh(), [-1.0, 1.0, -0.0, 0.0, NAN]),
    (Sigmoid(), [0.0, 1.0, 0.5, 0.5, NAN]), (Erf(), [-1.0, 1.0, -0.0, 0.0, NAN])]


def assert_same(found: Array, right: Array) -> None:
    """Equal, zeros by their sign too."""
    assert np.array_equal(found, right, equal_nan=True), (found, right)
    signs = ~np.isnan(right)
    assert (np.signbit(found) == np.signbit(right))[signs].all(), (found, right)


@on_each_target
@pytest.mark.parametrize(("op", "right"), TABLE, ids=lambda v: getattr(v, "name", ""))
def test_specials(op: Op, right: list[float], target: Any) -> None:
    assert_same(computed(op, target, np.array([-INF, INF, -0.0, 0.0, NAN])), np.array(right))


@on_each_target
def test_special_powers_are_those_of_ieee_754(target: Any) -> None:
    x = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -0.5, INF, -INF, NAN, 5e-324, -5e-324, 1.7e308, -1.7e308])
    y = np.array([0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, INF, -INF, NAN, 1e300, -1e300, 5e-324, 2.0**53 + 2, 2.0**52 + 1])
    found = computed(Pow(), target, *np.broadcast_arrays(x[:, None], y[None, :]))
    with np.errstate(all="ignore"):
        right = np.power(x[:, None], y[None, :])
    np.testing.assert_allclose(found, right, rtol=4 * 2.0**-52)
    assert (np.signbit(found) == np.signbit(right))[~np.isnan(right)].all()


@on_each_target
def test_results_underflow_gradually(target: Any) -> None:
    x = np.array([-745.5, -746.0, -1e4, 709.8, 710.0, 1e4])
    assert computed(Exp(), target, x).tolist() == [0.0, 0.0, 0.0, INF, INF, INF]
    tiny = np.array([5e-324, -5e-324, 2.0**-1060, -(2.0**-1022), 1e-300])
    for op in (Sin(), Tanh()):
        assert computed(op, target, tiny).tolist() == tiny.tolist()
