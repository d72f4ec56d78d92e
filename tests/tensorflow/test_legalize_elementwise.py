"""Elementwise operations of TensorFlow in TOSA: the native code and the interpreter against each operation's reference, on
random and special numbers. Errors are in units in the last place of what the function has in 64 bits."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.graph.types import BY_STORAGE, Array
from tosaic.runtime.errors import Problem

from .one_operation import (
    BF16,
    INTEGERS,
    SPECIAL,
    answers,
    check_exactly,
    check_within,
    floats,
    integers,
    pairs,
    text_of,
)
from .three_ways import tosa_of


def of_each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python's `math`, infinite where it is not defined."""
    def value(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.inf
    return lambda x: np.vectorize(value, otypes=[float])(x)


def expm1_below(scale: float, slope: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < 0, scale * np.expm1(x), slope * x)


SELU = expm1_below(1.0507009873554805 * 1.6732632423543772, 1.0507009873554805)
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "Exp": (np.exp, 1), "Expm1": (np.expm1, 4), "Log": (np.log, 1), "Log1p": (np.log1p, 3), "Tan": (np.tan, 4),
    "Sin": (np.sin, 2), "Cos": (np.cos, 2), "Asin": (np.arcsin, 4), "Acos": (np.arccos, 4), "Atan": (np.arctan, 3),
    "Sinh": (np.sinh, 4), "Cosh": (np.cosh, 3), "Tanh": (np.tanh, 3), "Asinh": (np.arcsinh, 3), "Acosh": (np.arccosh, 3),
    "Atanh": (np.arctanh, 4), "Erf": (of_each(math.erf), 2), "Erfc": (of_each(math.erfc), 5), "Sqrt": (np.sqrt, 2),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 2), "Reciprocal": (lambda x: 1 / x, 0.5), "Inv": (lambda x: 1 / x, 0.5),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 2), "Elu": (expm1_below(1, 1), 4), "Selu": (SELU, 5),
    "Softplus": (lambda x: np.logaddexp(x, 0), 4), "Softsign": (lambda x: x / (abs(x) + 1), 2)}
"""In 64 bits, and how many units f32 may be off."""
TURNING = ("Sin", "Cos", "Tan")
"""TOSA's sine has a bound in units for angles of moderate size only."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_float_are_as_accurate_as_stated(name: str) -> None:
    function, ulp = FUNCTIONS[name]
    x = floats(1)
    x = x[~(np.abs(x) > 1e3)] if name in TURNING else x
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
    if name in TURNING:  # near the zeros of these the error is absolute
        for mine in answers(f"tf.{name}", x)[1:]:
            np.testing.assert_allclose(mine[0], exact, rtol=4e-7, atol=3e-7)
    else:
        check_within(ulp, f"tf.{name}", x, exact=exact)


@pytest.mark.parametrize("name", ["Lgamma", "Digamma"])
def test_lgamma_and_digamma_have_small_absolute_and_relative_errors(name: str) -> None:
    x = floats(2)
    x = x[~((x < 0) & (x > -1000) & (np.abs(x - np.rint(x)) < 1e-3) & (x != np.rint(x)))]
    expected, *found = answers(f"tf.{name}", x)
    for mine in found:
        finite = np.isfinite(expected[0])
        np.testing.assert_array_equal(mine[0][~finite], expected[0][~finite])
        np.testing.assert_allclose(mine[0][finite], expected[0][finite], rtol=3e-6, atol=3e-6)


def test_the_tail_of_erfc_has_a_relative_accuracy() -> None:
    x = np.linspace(3, 9, 500, dtype=np.float32)
    check_within(5, "tf.Erfc", x, exact=of_each(math.erfc)(x))


ZEROS = ("Sqrt", "Expm1", "Log1p", "Sin", "Tan", "Asin", "Atan", "Sinh", "Tanh", "Asinh", "Atanh", "Erf", "Round", "Rint",
         "Floor", "Ceil", "Elu", "Selu", "Softsign")


@pytest.mark.parametrize("name", ZEROS)
def test_minus_zero_stays(name: str) -> None:
    for mine in answers(f"tf.{name}", np.array([-0.0, 0.0], np.float32))[1:]:
        assert np.signbit(mine[0]).tolist() == [True, False] and not mine[0].any()


IN_TURN = [(name, ("float16", "bfloat16")[i % 2]) for i, name in enumerate((
    "Sqrt", "Exp", "Expm1", "Log1p", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erfc",
    "Sigmoid", "Elu", "Softplus", "Softsign", "Tanh"))]
"""Each function in one of the two types."""


@pytest.mark.parametrize(("name", "dtype"), IN_TURN)
def test_half_floats_are_rounded_once(name: str, dtype: str) -> None:
    x = floats(3, 400)
    x = (x[~(np.abs(x) > 1e3)] if name in TURNING else x).astype(BF16 if dtype == "bfloat16" else dtype)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name][0](x.astype(np.float64))
    check_within(0.51 if name not in TURNING else 1, f"tf.{name}", x, exact=exact)


@pytest.mark.parametrize("name", ["Sqrt", "Expm1", "Log1p", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
                                  "Erfc", "Softplus"])
def test_functions_in_64_bits(name: str) -> None:
    x = floats(22, 500).astype(np.float64) * (1 + 2.0**-40)
    with np.errstate(all="ignore"):
        check_within(6, f"tf.{name}", x, exact=FUNCTIONS[name][0](x))


@pytest.mark.parametrize("name", ["RealDiv", "FloorDiv", "FloorMod", "TruncateMod", "DivNoNan", "Maximum"])
def test_functions_of_two_numbers_in_64_bits(name: str) -> None:
    a, b = (x.astype(np.float64) * (1 + 2.0**-40) for x in pairs(23))
    with np.errstate(all="ignore"):
        inside = ~(np.abs(a / b) > 2.0**69)
    check_exactly(f"tf.{name}", a[inside], b[inside])


# ---- rounding ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["Round", "Rint"])
def test_round_takes_ties_to_even_and_every_float_is_right(name: str) -> None:
    halves = np.arange(-50, 50, dtype=np.float32) / 2
    near = np.concatenate([np.nextafter(halves, np.float32(side)) for side in (-np.inf, np.inf)])
    large = np.float32(2.0**23) + np.arange(-8, 8, dtype=np.float32) / 2
    check_exactly(f"tf.{name}", np.concatenate([halves, near, large, -large, floats(4)]))


def test_round_of_what_is_just_below_one_half_is_zero() -> None:
    """floor(x + 0.5) is 1: the sum is rounded."""
    for mine in answers("tf.Round", np.float32([0.49999997, -0.49999997, 2.5, 8388609.0]))[1:]:
        assert mine[0].tolist() == [0.0, -0.0, 2.0, 8388609.0]


@pytest.mark.parametrize("name", ["Floor", "Ceil", "Sign", "Abs", "Neg", "Square", "Relu", "Relu6"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_exact_functions_of_a_float(name: str, dtype: str) -> None:
    check_exactly(f"tf.{name}", floats(5, 300).astype(BF16 if dtype == "bfloat16" else dtype))


@pytest.mark.parametrize("name", ["IsNan", "IsInf", "IsFinite"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_questions_about_a_float(name: str, dtype: str) -> None:
    check_exactly(f"tf.{name}", SPECIAL.astype(BF16 if dtype == "bfloat16" else dtype), results=["i1"])


def test_leaky_relu() -> None:
    check_exactly("tf.LeakyRelu", floats(6), properties="alpha = 2.0e-01 : f32")
    check_exactly("tf.LeakyRelu", floats(6).astype(np.float16), properties="alpha = 2.0e-01 : f32")


# ---- two operands ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["AddV2", "Add", "Sub", "Mul", "MulNoNan", "Maximum", "Minimum", "SquaredDifference"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_exact_functions_of_two_floats(name: str, dtype: str) -> None:
    check_exactly(f"tf.{name}", *(x.astype(dtype) for x in pairs(7)))


COMPARED = [(dtype, name) for i, dtype in enumerate(("float32", "float16", *INTEGERS)) for j, name in enumerate((
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")) if (i + j) % 2 == 0]
"""Half of all, in turn from one type to the next, as below."""


@pytest.mark.parametrize(("dtype", "name"), COMPARED)
def test_comparisons(name: str, dtype: str) -> None:
    a, b = integers(dtype) if dtype in INTEGERS else (x.astype(dtype) for x in pairs(8))
    check_exactly(f"tf.{name}", a, b, results=["i1"])


@pytest.mark.parametrize("name", ["RealDiv", "Div", "DivNoNan", "Xdivy"])
def test_quotients_are_those_of_ieee_754(name: str) -> None:
    a, b = pairs(9)
    inside = is_ordinary(a, b)
    check_exactly(f"tf.{name}", a[inside], b[inside])
    check_within(2, f"tf.{name}", a, b)


def is_ordinary(a: Array, b: Array) -> Array:
    """Where quotients are stated to be exact: not near the ends of the range, nor with a divisor whose digits are all ones."""
    with np.errstate(all="ignore"):
        is_large = np.abs(a.astype(np.float64) / b) > 2.0**110
    has_only_ones = np.abs(np.frexp(b)[0]) == np.float32(1 - 2.0**-24)
    return ~(np.isfinite(a) & (a != 0) & (is_large | (np.abs(a) < 2.0**-60))) & ~has_only_ones


@pytest.mark.parametrize("divisor", [3.0, 255.0, 0.1, 8.0, 1e-39, 1e30, 0.0])
def test_a_known_divisor_gives_the_quotient_of_ieee_754(divisor: float) -> None:
    random = np.random.default_rng(10)
    x = np.concatenate([np.arange(256), random.standard_normal(500) * 100, [np.nan, np.inf, -np.inf]]).astype(np.float32)
    check_exactly("tf.RealDiv", x, np.float32(divisor), constants=[1])


def test_a_number_by_itself_is_one() -> None:
    """x * (1 / x) is not, for 41 and 49."""
    x = np.arange(1, 5000, dtype=np.float32)
    assert all((mine[0] == 1).all() for mine in answers("tf.RealDiv", x, x)[1:])


def test_roots_of_squares_are_exact() -> None:
    x = np.arange(5000, dtype=np.float32)
    for mine in answers("tf.Sqrt", x * x)[1:]:
        np.testing.assert_array_equal(mine[0], x)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_floor_division_of_floats(dtype: str) -> None:
    a, b = pairs(11)
    inside = is_ordinary(a, b)
    check_exactly("tf.FloorDiv", a[inside].astype(dtype), b[inside].astype(dtype))


@pytest.mark.parametrize("name", ["FloorMod", "TruncateMod", "Mod"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_remainders_of_floats_are_exact(name: str, dtype: str) -> None:
    a, b = (x.astype(dtype) for x in pairs(12))
    with np.errstate(all="ignore"):
        has_digits = ~(np.abs(a.astype(np.float64) / b) > 2.0**31)
    check_exactly(f"tf.{name}", a[has_digits], b[has_digits])


def test_a_remainder_is_multiplied_by_the_divisor() -> None:
    """x / y - floor(x / y) is the remainder by y only once it is multiplied by y."""
    for mine in answers("tf.FloorMod", np.float32([7, -7, 7, -7]), np.float32([3, 3, -3, -3]))[1:]:
        assert mine[0].tolist() == [1, 2, -2, -1]


def test_a_remainder_without_a_digit_left_is_zero_or_nan() -> None:
    found = answers("tf.FloorMod", np.float32([3e38, np.inf, 3e38, np.nan, 5]), np.float32([7, 7, 0, 7, np.inf]))[1]
    np.testing.assert_array_equal(found[0], [0, np.nan, np.nan, np.nan, 5])


@pytest.mark.parametrize(("name", "exact", "ulp"), [("Atan2", np.arctan2, 3), ("Pow", np.power, 8)])
def test_functions_of_two_floats_are_as_accurate_as_stated(name: str, exact: Any, ulp: float) -> None:
    a, b = pairs(13)
    with np.errstate(all="ignore"):
        check_within(ulp, f"tf.{name}", a, b, exact=exact(a.astype(np.float64), b.astype(np.float64)))


def test_signs_of_zeros_turn_an_angle() -> None:
    y, x = (v.ravel() for v in np.meshgrid(np.float32([0.0, -0.0]), np.float32([0.0, -0.0])))
    for mine in answers("tf.Atan2", y, x)[1:]:
        np.testing.assert_array_equal(mine[0], np.arctan2(y, x))
        np.testing.assert_array_equal(np.signbit(mine[0]), np.signbit(y))


@pytest.mark.parametrize("name", ["Xlogy", "Xlog1py"])
def test_a_product_with_a_logarithm_is_zero_where_the_factor_is(name: str) -> None:
    a, b = pairs(14)
    with np.errstate(all="ignore"):
        log = (np.log if name == "Xlogy" else np.log1p)(b.astype(np.float64))
        exact = np.where(a == 0, 0, a * log)
    check_within(4, f"tf.{name}", a, b, exact=exact)


# ---- powers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 8, -1, -2, -3, 0.5, 2.5, -7.5, 100])
def test_a_known_exponent(exponent: float) -> None:
    x = floats(15)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), np.full(len(x), exponent))
    check_within(8, "tf.Pow", x, np.float32(exponent), exact=exact, constants=[1])


def test_a_negative_base_has_the_sign_that_its_exponent_gives() -> None:
    base, exponent = np.float32([-2, -2, -2, -0.0, -0.0, -np.inf, -1, -8]), np.float32([3, 4, 0.5, -3, 2, 3, np.inf, -1])
    for mine in answers("tf.Pow", base, exponent)[1:]:
        np.testing.assert_allclose(mine[0], [-8, 16, np.nan, -np.inf, 0, -np.inf, 1, -0.125], rtol=1e-6)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_wrap(dtype: str) -> None:
    a, b = integers(dtype)
    check_exactly("tf.Pow", a, np.where(b < 0, b & np.array(15, dtype), b).astype(dtype))
    for exponent in (0, 1, 2, 5, 31):
        check_exactly("tf.Pow", a, np.array(exponent, dtype), constants=[1])
    check_exactly("tf.Pow", np.array(3, dtype), np.arange(6, dtype=dtype), constants=[1])


def test_an_integer_has_no_power_with_a_negative_exponent() -> None:
    with pytest.raises(Problem, match=r"tf\.Pow: an integer has no power with a negative exponent"):
        tosa_of(text_of("tf.Pow", [np.int32([2]), np.int32([-1])], ["i32"], constants=[1]))


# ---- integers ----------------------------------------------------------------------------------------------------
OF_TWO = [(name, dtype) for i, name in enumerate((
    "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "BitwiseAnd", "BitwiseOr", "BitwiseXor"))
    for j, dtype in enumerate(INTEGERS) if (i + j) % 2 == 0]


@pytest.mark.parametrize(("name", "dtype"), OF_TWO)
def test_functions_of_two_integers_wrap(name: str, dtype: str) -> None:
    check_exactly(f"tf.{name}", *integers(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Div", "Mod"])
def test_quotients_and_remainders_of_integers(name: str, dtype: str) -> None:
    a, b = integers(dtype)
    check_exactly(f"tf.{name}", a[b != 0], b[b != 0])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["Neg", "Abs", "Sign", "Square", "Invert", "Relu", "Relu6", "Round"])
def test_functions_of_an_integer(name: str, dtype: str) -> None:
    check_exactly(f"tf.{name}", integers(dtype)[0])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["LeftShift", "RightShift"])
def test_shifts(name: str, dtype: str) -> None:
    a, b = integers(dtype)
    width = np.iinfo(dtype).bits
    check_exactly(f"tf.{name}", a, (b.astype(np.int64) % width).astype(dtype))
    check_exactly(f"tf.{name}", a, np.array(width - 1, dtype), constants=[1])


def test_amounts_of_shifts_are_brought_into_the_width_as_in_tensorflow() -> None:
    """TensorFlow's own answers."""
    amounts = np.int32([0, 40, 9, -3])
    assert answers("tf.LeftShift", np.int32([1, 5, 7, 3]), amounts)[1][0].tolist() == [1, -2147483648, 3584, 3]
    assert answers("tf.RightShift", np.int32([100, -5, 127, 3]), amounts)[1][0].tolist() == [100, -1, 0, 3]


@pytest.mark.parametrize("name", ["Equal", "NotEqual", "LogicalAnd", "LogicalOr"])
def test_functions_of_two_bools(name: str) -> None:
    a, b = np.array([[True, True, False, False], [True, False, True, False]])
    check_exactly(f"tf.{name}", a, b, results=["i1"])
    check_exactly("tf.LogicalNot", a)


# ---- conversions -------------------------------------------------------------------------------------------------
KINDS = [*INTEGERS, "float64", "float32", "float16", "bfloat16", "bool"]


CASTS = [(source, target) for i, source in enumerate(KINDS) for j, target in enumerate(KINDS) if (i - j) % 3 != 1]
"""Two thirds of all, among them every type from and to several others, and to itself."""


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts(source: str, target: str) -> None:
    random, dtype = np.random.default_rng(16), BF16 if target == "bfloat16" else np.dtype(target)
    if source in INTEGERS:
        x = integers(source)[0]
    elif source == "bool":
        x = random.integers(0, 2, 20).astype(bool)
    else:  # what an integer can be: beyond it TensorFlow says nothing
        low = 0 if target == "uint8" else -100
        x = np.concatenate([random.uniform(low, 100, 200), [0.5, 1.5, 2.5, 99.99]])
        x = x.astype(BF16 if source == "bfloat16" else source)
    check_exactly("tf.Cast", x, results=[str(BY_STORAGE[dtype.name])])


def test_casts_to_integers_drop_the_fraction() -> None:
    found = answers("tf.Cast", np.float32([1.5, 2.5, -1.5, -0.9, 3.0]), results=["i32"])
    assert [x[0].tolist() for x in found] == [[1, 2, -1, 0, 3]] * 3


# ---- selection, bounds, several operands -------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float16", "bool"])
def test_selection(dtype: str) -> None:
    random = np.random.default_rng(17)
    condition, x = random.integers(0, 2, (4, 3)) > 0, random.integers(0, 9, (4, 3)).astype(dtype)
    element = [str(BY_STORAGE[dtype])]
    check_exactly("tf.SelectV2", condition[:, :1].copy(), x, np.zeros((), dtype), results=element)
    check_exactly("tf.SelectV2", condition, x, x[:1, ::-1].copy(), results=element)
    check_exactly("tf.Select", condition[:, 0].copy(), x, x[:, ::-1].copy(), results=element)
    check_exactly("tf.Select", condition[0, 0], x, x[:, ::-1].copy(), results=element)


@pytest.mark.parametrize("constants", [[], [1, 2]])
@pytest.mark.parametrize(("low", "high"), [(-1, 2), (5, 1)])
def test_bounds(low: float, high: float, constants: list[int]) -> None:
    x = floats(18, 100)
    check_exactly("tf.ClipByValue", x, np.float32(low), np.float32(high), constants=constants)
    for dtype in INTEGERS[:4]:
        check_exactly("tf.ClipByValue", integers(dtype)[0], np.array(low, dtype), np.array(high, dtype), constants=constants)


def test_operands_broadcast_from_the_last_axis() -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    for name in ("AddV2", "RealDiv", "FloorMod", "Maximum", "Atan2", "Pow"):
        check_within(4, f"tf.{name}", x, y + 1)
        check_within(4, f"tf.{name}", np.float32(2), y + 1, constants=[0])
    check_exactly("tf.AddN", x, x, x)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_a_bias_is_added_along_the_channels(data_format: str) -> None:
    x = np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2)
    bias = np.arange(x.shape[-1 if data_format == "NHWC" else 1], dtype=np.float32)
    check_exactly("tf.BiasAdd", x, bias, properties=f'data_format = "{data_format}"')
    if data_format == "NHWC":
        check_exactly("tf.BiasAddV1", x, bias)
    check_exactly("tf.BiasAddGrad", x, properties=f'data_format = "{data_format}"')


GRADIENTS = ["ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "SigmoidGrad", "TanhGrad",
             "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    random = np.random.default_rng(19)
    a, b = (random.uniform(0.1 if name in ("SqrtGrad", "RsqrtGrad") else -3, 3, 500).astype(np.float32) for _ in range(2))
    expected, *found = answers(f"tf.{name}", a, b)
    for mine in found:
        np.testing.assert_allclose(mine[0], expected[0], rtol=2e-6, atol=1e-6)


def test_the_gradient_of_leaky_relu() -> None:
    check_exactly("tf.LeakyReluGrad", *pairs(20), properties="alpha = 2.0e-01 : f32")


# ---- softmax -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(7,), (5, 9), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_softmax_along_the_last_axis(name: str, shape: tuple[int, ...], dtype: str) -> None:
    x = (np.random.default_rng(21).standard_normal(shape) * 10).astype(dtype)
    expected, *found = answers(f"tf.{name}", x)
    for mine in found:
        bound = 1e-6 if dtype == "float32" else 2e-3
        np.testing.assert_allclose(mine[0], expected[0], rtol=bound, atol=bound * np.abs(expected[0]).max())


def test_log_softmax_of_large_numbers_is_finite() -> None:
    """The exponential of 100 is not, in f32: the greatest must be taken away first."""
    for mine in answers("tf.LogSoftmax", np.float32([100, 0, -5]))[1:]:
        np.testing.assert_allclose(mine[0], [0, -100, -105], rtol=1e-6)


def test_softmax_of_infinities() -> None:
    x = np.float32([[np.inf, 1, 2], [-np.inf, 1, 2], [-np.inf] * 3, [np.nan, 1, 2]])
    for name in ("Softmax", "LogSoftmax"):
        expected, *found = answers(f"tf.{name}", x)
        for mine in found:
            np.testing.assert_allclose(mine[0], expected[0], rtol=1e-6)


# ---- what cannot be compiled -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "operands", "message"), [
    ("tf.Exp", [np.int32([1])], r"tf\.Exp: it takes floats, not i32"),
    ("tf.Sqrt", [np.int32([1])], r"tf\.Sqrt: it takes floats, not i32"),
    ("tf.BitwiseAnd", [np.float32([1])] * 2, r"tf\.BitwiseAnd: it takes integers, not f32"),
    ("tf.FloorMod", [np.array([True])] * 2, r"tf\.FloorMod: it takes floats or integers, not i1"),
    ("tf.IsNan", [np.int32([1])], r"tf\.IsNan: it takes floats, not i32"),
    ("tf.Softmax", [np.float32(1)], r"tf\.Softmax: it needs an axis, its operand has rank 0"),
    ("tf.Select", [np.array([True]), np.float32([1]), np.float32([1, 2])], r"tf\.Select: the two tensors must have one shape"),
    ("tf.BiasAdd", [np.zeros((2, 3), np.float32), np.float32(1)], r"tf\.BiasAdd: a bias of type tensor<f32> cannot be added"),
    ("tf.AddV2", [np.float32([1, 2]), np.float32([1, 2, 3])], r"tf\.AddV2: .*shapes 2 and 3 do not broadcast"),
    ("tf.AddV2", [np.array([1], np.uint32)] * 2, r"tf\.AddV2: .*ui32")])
def test_problems_name_the_operation_and_the_reason(name: str, operands: list[Array], message: str) -> None:
    with pytest.raises(Problem, match=message):
        tosa_of(text_of(name, operands, [str(BY_STORAGE[operands[-1].dtype.name])]))
