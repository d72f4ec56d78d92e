"""Formulas in TOSA's operators give what NumPy (or the C library) gives, in the interpreter and compiled."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import add, and_, invert, lshift, mul, neg, or_, rshift, sub, xor
from typing import Any

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects import tosa as _  # noqa: F401  fills the table of operators
from tosaic.lowering.formulas import division, rounding, softmax
from tosaic.lowering.formulas.term import Function as Formula
from tosaic.lowering.formulas.term import Term, in_float, polynomial, product_of_squares
from tosaic.lowering.formulas.tosa_builder import PlacedBuilder
from tosaic.lowering.graph.graph import BlockBuilder, Function, Module
from tosaic.lowering.graph.types import BY_STORAGE, I1, I32, Array, TensorType
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

INTEGERS = ("int8", "int16", "int32", "uint8")
FLOATS = ("float16", "float32")
RANDOM = np.random.default_rng(11)


def module(formula: Formula, *arrays: Array) -> Module:
    """One function of operands that are brought to one rank."""
    block = BlockBuilder()
    values = [block.argument(TensorType(a.shape, BY_STORAGE[a.dtype.name]), f"x{i}") for i, a in enumerate(arrays)]
    builder = PlacedBuilder(block)
    found = formula(*(Term(builder, v) for v in builder.same_rank(*values))).value
    return Module((Function("f", block.finish(found), (found.type,)),))


def value(formula: Formula, *arrays: Any) -> Array:
    """What the interpreter gives; compiled code gives the same bits, transcendental functions nearly the same numbers."""
    given = tuple(map(np.asarray, arrays))
    made = module(formula, *given)
    expected, = interpret(made, made.functions[0], given)
    actual = np.asarray(Traced(made, "f").compile()(*given))
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-2 if expected.dtype == np.float16 else 3e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(actual, expected)
    return np.asarray(expected)


def integers(dtype: str, count: int = 200) -> Array:
    """The ends of the range, numbers around 0, and others by lot."""
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, 7]
    return np.array([*ends, *np.random.default_rng(3).integers(info.min, info.max, count - len(ends), endpoint=True)], dtype)


def shuffled(array: Array) -> Array:
    return np.asarray(RANDOM.permutation(array))


# ---- integers ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("function", "dtype"), product((add, sub, mul), INTEGERS))
def test_sums_and_products_of_integers_wrap(function: Callable[[Any, Any], Any], dtype: str) -> None:
    a = integers(dtype)
    b = shuffled(a)
    np.testing.assert_array_equal(value(function, a, b), function(a, b))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_number_less_itself_twice_is_negative(dtype: str) -> None:
    np.testing.assert_array_equal(value(neg, integers(dtype)), np.negative(integers(dtype)))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_integer_quotients_and_remainders_round_down(dtype: str) -> None:
    a = integers(dtype)
    b = shuffled(a)
    b[(a == np.iinfo(dtype).min) & (b == -1)] = 2  # i32 has no such quotient
    b[b == 0] = 5

    def wide(formula: Formula) -> Formula:
        return lambda x, y: formula(x.cast(I32), y.cast(I32)).cast(x.element)
    np.testing.assert_array_equal(value(wide(division.floored_quotient), a, b), np.floor_divide(a, b))
    np.testing.assert_array_equal(value(wide(division.floored_remainder), a, b), np.remainder(a, b))


@pytest.mark.parametrize(("function", "dtype"), product((and_, or_, xor), (*INTEGERS, "bool")))
def test_bits_are_those_of_numpy(function: Callable[[Any, Any], Any], dtype: str) -> None:
    a = integers("int8").astype(dtype) if dtype == "bool" else integers(dtype)
    b = shuffled(a)
    np.testing.assert_array_equal(value(function, a, b), function(a, b))
    np.testing.assert_array_equal(value(invert, a), np.invert(a))


@pytest.mark.parametrize(("function", "dtype"), product((lshift, rshift), INTEGERS))
def test_shifts_are_those_of_numpy(function: Callable[[Any, Any], Any], dtype: str) -> None:
    a = integers(dtype)
    amounts = (np.arange(a.size) % np.iinfo(dtype).bits).astype(dtype)
    np.testing.assert_array_equal(value(function, a, amounts), function(a, amounts))


@pytest.mark.parametrize(("exponent", "dtype"), product((0, 1, 2, 3, 7, 12), ("int32", "float32")))
def test_products_of_squares_are_powers(exponent: int, dtype: str) -> None:
    a = np.array([[-3, -1, 0, 1, 2, 5]], dtype)
    np.testing.assert_array_equal(value(lambda x: product_of_squares(x, exponent), a), a ** exponent)


# ---- conversions -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("own", "to"), product((*INTEGERS, *FLOATS, "bool"), repeat=2))
def test_conversions_are_those_of_numpy(own: str, to: str) -> None:
    """Of numbers that the integer types hold: what is beyond is saturated by TOSA, and undefined in C."""
    numbers = np.array([-1.75, -1, -0.5, 0, 0.5, 1, 1.5, 2.5, 100, 127])
    numbers = np.abs(numbers) if "uint8" in (own, to) else numbers
    a = numbers.astype(own)
    np.testing.assert_array_equal(value(lambda x: x.cast(BY_STORAGE[to]), a), a.astype(to))


def test_bfloat16_and_float16_convert_by_way_of_f32() -> None:
    import ml_dtypes
    a = RANDOM.standard_normal(500).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(value(lambda x: x.cast(BY_STORAGE["float16"]), a), a.astype(np.float16))


# ---- floats ------------------------------------------------------------------------------------------------------
def test_exact_quotients_are_those_of_ieee_754() -> None:
    a, b = (np.random.default_rng(seed).standard_normal(2000) * 10.0 ** RANDOM.integers(-12, 12, 2000)
            for seed in range(2))
    a, b = a.astype(np.float32), b.astype(np.float32)
    whole = np.arange(1, 400, dtype=np.float32)
    np.testing.assert_array_equal(value(division.divided, a, b), a / b)
    np.testing.assert_array_equal(value(division.divided, whole, whole), np.ones_like(whole))


@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients_of_floats_are_rounded_down(dtype: str) -> None:
    """Of all pairs of small whole numbers, of which a product by a reciprocal misses many, and of numbers by lot."""
    a, b = (x.reshape(-1).astype(dtype) for x in np.meshgrid(np.arange(-60, 61), [*range(-60, 0), *range(1, 61)]))
    np.testing.assert_array_equal(value(lambda x, y: division.floored_float(x, y)[0], a, b), np.floor_divide(a, b))
    np.testing.assert_array_equal(value(lambda x, y: division.floored_float(x, y)[1], a, b), np.remainder(a, b))


def test_exact_remainders_are_those_of_the_c_library() -> None:
    a = (RANDOM.standard_normal(2000) * 1e6).astype(np.float32)
    b = (RANDOM.standard_normal(2000) * 3).astype(np.float32)
    fits = np.abs(a / b) < 2.0 ** 31
    a, b = a[fits], b[fits]
    np.testing.assert_array_equal(value(division.float_remainder, a, b), np.fmod(a, b))


def test_roots_of_squares_are_exact() -> None:
    a = np.arange(0, 3000, dtype=np.float32) ** 2
    np.testing.assert_array_equal(value(division.square_root, a), np.sqrt(a))


HALVES = np.concatenate([np.arange(-8, 8.25, 0.25), [2.0 ** 23 - 0.5, -2.0 ** 22 - 0.5, 1e10, np.inf, -np.inf, np.nan]])


def test_the_nearest_integer_with_ties_to_even_and_away_from_zero() -> None:
    a = HALVES.astype(np.float32)
    np.testing.assert_array_equal(value(rounding.nearest_even, a), np.rint(a))
    finite = a[np.isfinite(a)]
    away = np.copysign(np.floor(np.abs(finite.astype(np.float64)) + 0.5), finite)
    np.testing.assert_array_equal(value(rounding.nearest_away, finite), away.astype(np.float32))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_signs_are_those_of_numpy(dtype: str) -> None:
    a = HALVES.astype(dtype) if dtype in FLOATS else integers(dtype)
    np.testing.assert_array_equal(value(rounding.sign, a), np.sign(a))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_numbers_are_brought_between_bounds(dtype: str) -> None:
    a = HALVES[:-1].astype(dtype) if dtype in FLOATS else integers(dtype)
    np.testing.assert_array_equal(value(lambda x: rounding.clamp(x, 1, 6), a), np.clip(a, 1, 6))
    np.testing.assert_array_equal(value(lambda x: rounding.clamp(x, 0, np.inf), a), np.maximum(a, 0))


def test_polynomials_are_sums_of_powers() -> None:
    a = np.linspace(-1, 1, 17, dtype=np.float32)
    expected = np.polynomial.polynomial.polyval(a.astype(np.float64), (1, -2, 0.5, 3))
    np.testing.assert_allclose(value(lambda x: polynomial(x, (1, -2, 0.5, 3)), a), expected, rtol=1e-6, atol=1e-6)


# ---- softmax -----------------------------------------------------------------------------------------------------
ROWS: dict[str, Array] = {
    "floats": RANDOM.standard_normal((4, 9)).astype(np.float32), "large floats": np.float32([[1e4, 1e4 + 1, -1e4]]),
    "bytes over their whole range": np.array([[-128, 127, 126, 0]], np.int8),
    "integers that f32 does not tell apart": np.array([[2**24, 2**24 + 1, 2**24 + 3]], np.int32)}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_and_its_logarithms(name: str, axis: int) -> None:
    a = ROWS[name]
    wide = a.astype(np.float64)
    distance = wide - wide.max(axis, keepdims=True)
    total = np.exp(distance).sum(axis, keepdims=True)
    for formula, expected in ((softmax.softmax, np.exp(distance) / total), (softmax.log_softmax, distance - np.log(total)),
                              (softmax.log_sum_exp, wide.max(axis, keepdims=True) + np.log(total))):
        np.testing.assert_allclose(value(lambda x, formula=formula: formula(x, axis), a), expected, rtol=2e-6, atol=2e-6)


# ---- the language itself -----------------------------------------------------------------------------------------
def test_operands_of_other_ranks_broadcast() -> None:
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.float32([1, 2, 3, 4])
    np.testing.assert_array_equal(value(lambda x, y: 2 - x * y + y, a, b), 2 - a * b + b)


def test_comparisons_choose() -> None:
    a, b = shuffled(integers("int8")), integers("int8")
    found = value(lambda x, y: x.of(x.builder.select(((x <= y) & x.differs(3)).value, x.value, y.value)), a, b)
    np.testing.assert_array_equal(found, np.where((a <= b) & (a != 3), a, b))


def test_integers_in_a_function_of_floats_become_f32() -> None:
    assert value(in_float, np.int8([1, 2])).dtype == np.float32


def test_what_has_no_elements_is_a_constant_and_joins_nothing() -> None:
    block = BlockBuilder()
    builder, x = PlacedBuilder(block), block.argument(TensorType((2, 4), BY_STORAGE["float32"]))
    nothing = builder.slice(x, (0, 0), (0, 4))
    assert nothing.constant is not None and nothing.tensor.dims == (0, 4)
    assert builder.concat([nothing, x], 0) is x and builder.broadcast_to(nothing, (0, 4)) is not x


def test_one_extent_may_follow() -> None:
    a = np.arange(8, dtype=np.float32)
    assert module(lambda x: x.of(x.builder.reshape(x.value, (2, None))), a).functions[0].body.yields[0].tensor.dims == (2, 4)


def test_large_zeros_are_repeated_and_not_kept() -> None:
    block = BlockBuilder()
    found = PlacedBuilder(block).zeros(TensorType((1 << 10, 1 << 10), BY_STORAGE["float32"]))
    assert found.tensor.dims == (1 << 10, 1 << 10) and [o.op.name for o in block.operations][-1] == "tosa.tile"


def test_numbers_that_tosa_has_not_are_refused() -> None:
    with pytest.raises(Problem, match="complex128 has no place in TOSA"):
        PlacedBuilder(BlockBuilder()).constant(np.complex128(1))


def test_equality_of_bools_is_logical() -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    np.testing.assert_array_equal(value(Term.equals, a, b), a == b)
    np.testing.assert_array_equal(value(lambda x: x.cast(I32).cast(I1).differs(x), a), np.zeros(4, bool))
