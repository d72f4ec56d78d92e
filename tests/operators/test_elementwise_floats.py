"""Elementwise operators of floats: inside the specification's bounds everywhere, specials as its tables say."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.activation import Clamp, Erf, Sigmoid, Tanh
from tosaic.lowering.dialects.tosa.binary import Add, Maximum, Minimum, Mul, Pow, Sub
from tosaic.lowering.dialects.tosa.comparison import Equal, Greater, GreaterEqual
from tosaic.lowering.dialects.tosa.elementwise import rounded
from tosaic.lowering.dialects.tosa.ternary import Select
from tosaic.lowering.dialects.tosa.unary import Abs, Ceil, Cos, Exp, Floor, Log, Negate, Reciprocal, Rsqrt, Sin
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import BF16, F16, F32, F64, Array, ElementType

from . import float_bounds as bounds
from .harness import check, wide

FLOATS = [F32, F16, BF16, F64]
NAN, INF = math.nan, math.inf
SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, INF, -INF, NAN, 2.0**-14, -(2.0**-14), 2.0**-126, 2.0**-24, 2.0**-133,
            2.0**-149, -(2.0**-149), 65504.0, -65504.0, 3e38, -3e38, 88.7, -87.4, 89.0, -104.0, 11.1, -9.0, 1e5, 4e6]
RESULT_ULPS: list[tuple[Op, float]] = [(Ceil(), 0.5), (Floor(), 0.5), (Reciprocal(), 1), (Rsqrt(), 2), (Erf(), 5)]
FUNCTIONS: list[tuple[Op, Any]] = [
    *((op, lambda e, n=n: bounds.ulps(e, n)) for op, n in RESULT_ULPS), (Exp(), bounds.exp), (Log(), bounds.log),
    (Tanh(), bounds.tanh), (Sigmoid(), bounds.sigmoid), (Sin(), bounds.sin), (Cos(), bounds.cos)]


def specials(element: ElementType) -> Array:
    with np.errstate(all="ignore"):
        return np.array(SPECIALS).astype(element.dtype)


def bit_patterns(element: ElementType, count: int = 30_000) -> Array:
    """Every number of a half float; of others a random choice that meets every exponent."""
    if element == F64:
        return np.random.default_rng(5).integers(0, 1 << 64, count, np.uint64).view(np.float64)
    if element.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16).view(element.dtype)
    return np.random.default_rng(5).integers(0, 1 << 32, count, np.uint32).view(np.float32)


def grid(element: ElementType) -> Array:
    return np.linspace(-110, 110, 20_001).astype(element.dtype)


def near_zero(element: ElementType) -> Array:
    magnitudes = np.geomspace(2.0**-149, 4.0, 10_000)
    return np.concatenate([magnitudes, -magnitudes]).astype(element.dtype)


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize(("op", "bound"), FUNCTIONS, ids=lambda x: getattr(x, "name", ""))
def test_functions_are_inside_the_bounds(op: Op, bound: Any, element: ElementType) -> None:
    for x in (specials(element), bit_patterns(element), grid(element), near_zero(element)):
        check(op, x, bound=bound(element))


@pytest.mark.parametrize(("op", "low", "high"), [(Exp(), -87, 88), (Tanh(), -12, 12), (Sigmoid(), -87, 120),
                                                 (Erf(), -5, 5)], ids=lambda x: getattr(x, "name", ""))
def test_activations_have_a_small_relative_error(op: Op, low: float, high: float) -> None:
    """Smaller than the bounds: a recurrent network's output shows every error of its activations."""
    x = np.concatenate([np.linspace(low, high, 200_001), np.geomspace(1e-37, high, 50_000)]).astype(np.float32)
    check(op, x, bound=lambda exact, _: np.abs(exact) * 3e-7)


TABLES: list[tuple[Op, list[float]]] = [  # for -inf, +inf, -0, +0, NaN
    (Abs(), [INF, INF, 0.0, 0.0, NAN]), (Ceil(), [-INF, INF, -0.0, 0.0, NAN]), (Floor(), [-INF, INF, -0.0, 0.0, NAN]),
    (Cos(), [NAN, NAN, 1.0, 1.0, NAN]), (Sin(), [NAN, NAN, -0.0, 0.0, NAN]), (Exp(), [0.0, INF, 1.0, 1.0, NAN]),
    (Log(), [NAN, INF, -INF, -INF, NAN]), (Reciprocal(), [-0.0, 0.0, -INF, INF, NAN]),
    (Rsqrt(), [NAN, 0.0, -INF, INF, NAN]), (Tanh(), [-1.0, 1.0, -0.0, 0.0, NAN]),
    (Sigmoid(), [0.0, 1.0, 0.5, 0.5, NAN]), (Erf(), [-1.0, 1.0, -0.0, 0.0, NAN])]


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize(("op", "table"), TABLES, ids=lambda x: getattr(x, "name", ""))
def test_specials_are_what_the_specification_tables_say(op: Op, table: list[float], element: ElementType) -> None:
    x = np.array([-INF, INF, -0.0, 0.0, NAN]).astype(element.dtype)
    for result in (check(op, x, bound=lambda e, *_: np.zeros_like(e)), op.reference(x)):
        found = wide(result)
        assert np.array_equal(found, table, equal_nan=True)
        signs = ~np.isnan(found)
        assert (np.signbit(found) == np.signbit(table))[signs].all()


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_logarithms_below_zero_are_nan(element: ElementType) -> None:
    x = -np.geomspace(2.0**-24, 6e4, 100).astype(element.dtype)
    assert np.isnan(wide(check(Log(), x))).all()
    assert np.isnan(wide(check(Rsqrt(), x))).all()


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_sine_and_cosine_stay_between_minus_1_and_1(element: ElementType) -> None:
    x = bit_patterns(element)
    for op in (Sin(), Cos()):
        found = wide(check(op, x, bound=(bounds.sin if isinstance(op, Sin) else bounds.cos)(element)))
        assert np.nanmax(np.abs(found)) <= 1 + 2.0**-22
        assert (np.isnan(found) == ~np.isfinite(wide(x))).all()


def test_sine_and_cosine_are_near_over_many_periods() -> None:
    x = np.linspace(-1e5, 1e5, 100_001).astype(np.float32)
    for op in (Sin(), Cos()):
        check(op, x, bound=lambda e, *_: np.full_like(e, 1.5e-7))


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("op", [Add(), Sub(), Maximum(), Minimum(), Maximum("IGNORE"), Minimum("IGNORE"), Equal(),
                                Greater(), GreaterEqual()], ids=lambda op: f"{op.name}-{getattr(op, 'nan_mode', '')}")
def test_binary_elements_equal_the_reference(op: Op, element: ElementType) -> None:
    x = specials(element)
    check(op, x[:, None], x[None, :])
    bits = bit_patterns(element)
    check(op, bits, np.random.default_rng(6).permutation(bits))
    check(op, x[:1].reshape(()), x[1:2].reshape(()))


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_products_equal_the_reference(element: ElementType) -> None:
    x, bits, shift = specials(element), bit_patterns(element), np.zeros(1, np.int8)
    for constants in ((), (2,)):
        check(Mul(), x[:, None], x[None, :], shift, constants=constants)
        check(Mul(), bits, np.random.default_rng(7).permutation(bits), shift, constants=constants)


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_negate_flips_the_sign_of_everything(element: ElementType) -> None:
    x, zero = bit_patterns(element), np.zeros(1, element.dtype)
    result = wide(check(Negate(), x, zero, zero))
    assert (np.signbit(result) != np.signbit(wide(x)))[~np.isnan(result)].all()
    check(Abs(), x)


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_nan_modes_of_maximum_and_minimum(element: ElementType) -> None:
    a, b = (np.array(v).astype(element.dtype) for v in ([NAN, 1.0, NAN], [2.0, NAN, NAN]))
    for op in (Maximum, Minimum):
        assert np.isnan(wide(check(op("PROPAGATE"), a, b))).all()
        ignored = wide(check(op("IGNORE"), a, b))
        assert ignored[:2].tolist() == [2.0, 1.0] and np.isnan(ignored[2])


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_clamp_gives_nan_or_the_minimum_for_nan(element: ElementType) -> None:
    x = np.concatenate([bit_patterns(element), np.array([NAN, INF, -INF]).astype(element.dtype)])
    for low, high in ((-1.5, 6.0), (0.0, INF), (-INF, INF), (2.0, 2.0)):
        kept = wide(check(Clamp(low, high), x))
        assert (np.isnan(kept) == np.isnan(wide(x))).all()
        replaced = wide(check(Clamp(low, high, "IGNORE"), x))
        assert (replaced[np.isnan(wide(x))] == low).all()
        assert (replaced >= low).all() and (replaced <= high).all()


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_select_moves_floats_unchanged(element: ElementType) -> None:
    x = bit_patterns(element)
    y = np.roll(x, 1)
    condition = np.arange(len(x)) % 3 == 0
    result = check(Select(), condition, x, y)
    numbers = ~np.isnan(wide(result))
    assert (result.view(f"u{result.itemsize}") == np.where(condition, x, y).view(f"u{result.itemsize}"))[numbers].all()


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_powers_of_positive_numbers_are_inside_the_bounds(element: ElementType) -> None:
    random = np.random.default_rng(8)
    x = np.exp(random.uniform(-80, 80, 30_000))
    y = random.uniform(-88, 88, 30_000) / np.log(x)
    near = random.uniform(0.3, 3, 30_000), random.uniform(-60, 60, 30_000)
    for a, b in ((x, y), near):
        with np.errstate(all="ignore"):
            a, b = a.astype(element.dtype), b.astype(element.dtype)
        defined = (a > 0) & np.isfinite(wide(a)) & np.isfinite(wide(b))
        check(Pow(), a[defined], b[defined], bound=bounds.power(element))


def test_powers_have_a_small_relative_error() -> None:
    random = np.random.default_rng(9)
    x = np.exp(random.uniform(-80, 80, 100_000)).astype(np.float32)
    y = (random.uniform(-86, 86, 100_000) / np.log(wide(x))).astype(np.float32)
    check(Pow(), x, y, bound=lambda e, *_: np.abs(e) * 2.0**-20)
    check(Pow(), -x, np.rint(y), bound=lambda e, *_: np.abs(e) * 2.0**-20 + 2.0**-149)


def test_special_powers_are_those_of_ieee_754() -> None:
    x = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -0.5, INF, -INF, NAN, 1e-40, -1e-40, 3e38, -3e38], np.float32)
    y = np.array([0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, INF, -INF, NAN, 1e30, -1e30, 1e-40, 16777217, 3e38],
                 np.float32)
    found = check(Pow(), x[:, None], y[None, :], bound=lambda e, *_: np.abs(e) * 2.0**-20 + 2.0**-149)
    with np.errstate(all="ignore"):
        expected = np.power(wide(x[:, None]), wide(y))
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(found)].all()


@pytest.mark.parametrize("element", [F16, BF16], ids=str)
def test_the_reference_rounds_once(element: ElementType) -> None:
    """Numbers next to the middle of two half floats, nearer than float32 can tell."""
    half = bit_patterns(element)
    half = np.unique(wide(half[np.isfinite(wide(half))]))
    middle = (half[:-1] + half[1:]) / 2
    assert (wide(rounded(np.nextafter(middle, INF), element.dtype)) == half[1:]).all()
    assert (wide(rounded(np.nextafter(middle, -INF), element.dtype)) == half[:-1]).all()
    assert (wide(rounded(half, element.dtype)) == half).all()
