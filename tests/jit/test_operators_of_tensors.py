"""What a traced function computes is what NumPy computes: in the reference interpreter and compiled."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.runtime.interpreter import interpret

F = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
G = np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32)
ROW = np.array([0.5, -1.5, 2.0, -3.0], np.float32)
I = np.array([[7, -7, 6, -6], [1, 0, -1, 100], [5, -5, 3, -3]], np.int32)
J = np.array([[2, 2, -4, -4], [3, 7, 2, -9], [-5, 5, 1, -1]], np.int32)
BYTES = np.array([[-128, 127, 100, -100], [1, 0, -1, 5], [7, -7, 6, -6]], np.int8)
MORE = np.array([[-1, 1, 100, -100], [3, 7, 2, -9], [-5, 5, 1, -1]], np.int8)
TRUE = np.array([[True, False, True, False]] * 3)
OTHER = np.array([[True, True, False, False]] * 3)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(function: Callable[..., Any], *arrays: Any) -> Any:
    """What the interpreter gives for the function's graph; compiled code gives the same, floats nearly."""
    traced = tosaic.jit(function).trace(*arrays)
    results = interpret(traced.module, traced.function, arrays)
    compiled = traced.compile().executable(*(np.require(a, requirements=["C", "A"]) for a in arrays))
    for value, result, other in zip(traced.function.body.yields, results, compiled, strict=True):
        assert result.shape == other.shape == value.tensor.dims and result.dtype == other.dtype
        if result.dtype.kind in "iub":
            np.testing.assert_array_equal(other, result)
        else:
            np.testing.assert_allclose(other, result, rtol=1e-2 if result.dtype == np.float16 else 3e-6, atol=1e-6)
    return results[0] if len(results) == 1 else results


def agree(function: Callable[..., Any], *arrays: Any, exact: bool = False) -> None:
    """The function means the same on tensors as on arrays, dtype and shape too."""
    actual = run(function, *arrays)
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*arrays))
    if expected.dtype == np.float64:
        expected = expected.astype(np.float32)
    if expected.dtype == np.int64:
        expected = expected.astype(np.int32)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if exact or expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=5e-6)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "maximum": np.maximum,
    "minimum": np.minimum, "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b, "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b}

BITS: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}


ARRAYS = {"f32": (F, G), "i32": (I, J), "i8": (BYTES, MORE), "broadcast": (F, ROW), "broadcast the other way": (ROW, F)}
OF_TYPES = [pytest.param(*arrays, name, id=f"{kind}-{name}") for i, (kind, arrays) in enumerate(ARRAYS.items())
            for j, name in enumerate(ARITHMETIC) if not kind.startswith("broadcast") or (i + j) % 2 == 0]
"""Each operator on all types, and broadcast one way."""


@pytest.mark.parametrize(("a", "b", "name"), OF_TYPES)
def test_arithmetic_is_that_of_numpy(name: str, a: Any, b: Any) -> None:
    b = np.where(b == 0, 3, b).astype(b.dtype)
    agree(ARITHMETIC[name], a, b)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize(("a", "b"), [(I, J), (BYTES, MORE), (TRUE, OTHER)], ids=["i32", "i8", "bool"])
def test_bitwise_operators_are_those_of_numpy(name: str, a: Any, b: Any) -> None:
    agree(BITS[name], a, b)


@pytest.mark.parametrize("number", [3, -3, 2, -128, 127])
def test_integers_divided_by_a_number_round_down(number: int) -> None:
    agree(lambda a: a // number, I)
    agree(lambda a: a % number, I)
    agree(lambda a: a // np.int8(number), BYTES)
    agree(lambda a: a % np.int8(number), BYTES)
    agree(lambda a: number // np.where(a == 0, 1, a) if isinstance(a, np.ndarray)
          else number // tosaic.ops.where(a == 0, 1, a), I)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_whole_floats_divided_by_whole_floats_round_down(dtype: Any) -> None:
    """A product by the reciprocal alone misses 49 // 49."""
    a, b = (x.astype(dtype) for x in np.meshgrid(np.arange(-60, 61), [*range(-60, 0), *range(1, 61)]))
    agree(lambda x, y: x // y, a, b, exact=True)
    agree(lambda x, y: x % y, a, b, exact=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16])
def test_narrow_integers_have_bits_signs_bounds_and_a_choice(dtype: Any) -> None:
    a = np.array([[0, 1, 100, np.iinfo(dtype).max], [7, 6, 5, 4]], dtype)
    b = np.array([[1, 3, 2, 7], [7, 0, 1, 5]], dtype)
    for function in (lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: x << y, lambda x, y: x >> y):
        agree(function, a, b)
    agree(lambda x: ~x, a)
    agree(np.sign, a)
    agree(lambda x: np.clip(x, 1, 6), a)
    agree(lambda x, y: np.where(x > y, x, y), a, b)


def test_the_sign_of_nan_is_nan() -> None:
    agree(np.sign, np.float32([np.nan, -np.inf, -2, 0, 3]), exact=True)


def test_softmax_of_bytes_takes_differences_of_more_than_a_byte() -> None:
    a = np.array([[-128, 127, 126, 0]], np.int8)
    powers = np.exp(a.astype(np.float64) - 127)
    np.testing.assert_allclose(run(tosaic.ops.softmax, a), powers / powers.sum(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(run(tosaic.ops.logsumexp, a), 127 + np.log(powers.sum(1)), rtol=1e-6)


def test_numbers_take_the_element_type_of_the_tensor() -> None:
    agree(lambda a: 2 * a + 1.5, F)
    agree(lambda a: 1 - a, BYTES)
    agree(lambda a: a > 2, BYTES)
    agree(lambda a: 1 / a, F)
    half = F.astype(np.float16)
    assert run(lambda a: a * 0.1 + 1, half).dtype == np.float16


def test_equality_of_bools_is_logical() -> None:
    agree(lambda a, b: a == b, TRUE, OTHER)
    agree(lambda a, b: a != b, TRUE, OTHER)
    agree(lambda a: ~a, TRUE)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, -1, -2, 2.0])
def test_whole_powers_multiply(exponent: Any) -> None:
    agree(lambda a: a ** exponent, F)
    if isinstance(exponent, int) and exponent >= 0:
        agree(lambda a: a ** exponent, J)


def test_other_powers_are_those_of_positive_floats() -> None:
    agree(lambda a: abs(a) ** 0.5, F)
    agree(lambda a: 2.0 ** a, F)
    agree(lambda a, b: abs(a) ** b, F, G)


@pytest.mark.parametrize("function", [
    np.negative, np.abs, np.exp, np.sin, np.cos, np.tanh, np.floor, np.ceil, np.sign, np.square, np.isnan,
    lambda a: np.sqrt(abs(a)), lambda a: np.log(abs(a) + 1), lambda a: -a, abs, lambda a: +a],
    ids=lambda f: getattr(f, "__name__", "function"))
def test_functions_of_one_tensor_are_those_of_numpy(function: Callable[[Any], Any]) -> None:
    agree(function, F)
    agree(function, np.array([0.0, -0.0, 1.0, 100.0], np.float32))


def test_functions_of_integers_are_those_of_numpy() -> None:
    for function in (np.negative, np.abs, np.sign, np.square, np.invert):
        agree(function, J)
        agree(function, BYTES)


def test_square_root_is_right_at_its_ends() -> None:
    agree(np.sqrt, np.array([0, np.inf, -1, np.nan, 1e-30, 1e30], np.float32))


def test_nan_is_handled_as_numpy_does() -> None:
    a, b = np.array([np.nan, 1, np.nan, 2], np.float32), np.array([1, np.nan, np.nan, 3], np.float32)
    for function in (np.maximum, np.minimum, np.fmax, np.fmin, lambda x, y: x < y, lambda x, y: x != y):
        agree(function, a, b)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.float16, np.float32, np.bool_])
@pytest.mark.parametrize("array", [np.array([0.0, 1.9, -1.9, 2.5, -0.5, 100.0], np.float32), BYTES, I, TRUE],
                         ids=["f32", "i8", "i32", "bool"])
def test_conversion_drops_fractions_and_bits_as_numpy_does(dtype: Any, array: Any) -> None:
    agree(lambda a: a.astype(dtype), array)


def test_elements_can_be_named_as_mlir_does() -> None:
    traced = tosaic.jit(lambda x: x.astype("bf16")).trace(F)
    assert traced.outputs == ("tensor<3x4xbf16>",)


def test_where_broadcasts_all_three() -> None:
    agree(lambda c, a: np.where(c, a, 0), TRUE, F)
    agree(lambda a, b: np.where(a > 0, a, b), F, ROW)
    agree(lambda a: np.where(a > 0, np.float32(1), np.float32(-1)), F)


def test_clip_takes_numbers_tensors_and_missing_bounds() -> None:
    agree(lambda a: np.clip(a, -0.5, 0.5), F)
    agree(lambda a: np.clip(a, -3, 3), I)
    agree(lambda a: np.clip(a, -3, 3), BYTES)
    agree(lambda a, b: np.clip(a, -abs(b), abs(b)), F, ROW)
    agree(lambda a: a.clip(0, None), F)


ALONG = [pytest.param(keepdims, axis, id=f"{keepdims}-{axis}") for i, axis in enumerate((None, 0, 1, -1, (0, 1), (1,)))
         for keepdims in (False, True) if (i + keepdims) % 2 == 0 or axis is None]
"""Each axis with its extent or without."""


@pytest.mark.parametrize(("keepdims", "axis"), ALONG)
def test_reductions_are_those_of_numpy(axis: Any, keepdims: bool) -> None:
    function: Any
    for function in (np.sum, np.max, np.min, np.mean, np.prod, np.var):
        agree(lambda a: function(a, axis=axis, keepdims=keepdims), F)
    for function in (np.max, np.min, np.sum, np.mean):
        agree(lambda a: function(a, axis=axis, keepdims=keepdims), I)
    for function in (np.any, np.all):
        agree(lambda a: function(a, axis=axis, keepdims=keepdims), TRUE)


def test_reductions_are_methods_too() -> None:
    agree(lambda a: a.sum(1) + a.max(1) - a.min(axis=1) * a.mean(1), F)
    agree(lambda a: a.argmax(1), F)
    agree(lambda a: a.argmin(0), BYTES)
    agree(lambda a: np.argmax(a), F)


SHAPES = [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
          ((3, 4), (2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((2, 3, 4), (4,))]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matrix_products_have_the_shapes_of_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    generator = np.random.default_rng(3)
    a, b = generator.standard_normal(left).astype(np.float32), generator.standard_normal(right).astype(np.float32)
    agree(lambda x, y: x @ y, a, b)
    agree(lambda x: x @ b, a)
    agree(lambda y: a @ y, b)


def test_products_of_bytes_are_i32() -> None:
    expected = BYTES.astype(np.int32) @ MORE.T.astype(np.int32)
    for dtype in (np.int8, np.int16, np.int32):
        result = run(lambda a, b: a @ b, BYTES.astype(dtype), MORE.T.astype(dtype))
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, expected)


def test_products_of_batches_of_integers_broadcast() -> None:
    a, b = np.arange(48, dtype=np.int32).reshape(2, 1, 4, 6), np.arange(90, dtype=np.int32).reshape(3, 6, 5)
    agree(lambda x, y: x @ y, a, b)
    agree(lambda x, y: x @ y, a, b[0, :, 0])


def test_bools_among_numbers_are_0_and_1() -> None:
    agree(lambda c, a: c * a + (a > 0), TRUE, F)
    agree(lambda c, a: np.where(a > 0, c, 2) - c, TRUE, J)
    agree(lambda c: (c * 2.0, c + 1)[0], TRUE)
    agree(lambda c: c + 1, TRUE)
    agree(lambda c: c == 1, TRUE)


@pytest.mark.parametrize("function", [
    lambda a: a.reshape(4, 6), lambda a: a.reshape((-1, 2)), lambda a: a.T, lambda a: a.transpose(1, 0, 2),
    lambda a: a.transpose((2, 0, 1)), lambda a: np.swapaxes(a, 0, -1), lambda a: np.moveaxis(a, 0, 2),
    lambda a: np.concatenate([a, a * 2], axis=1), lambda a: np.stack([a, -a], axis=-1), lambda a: np.flip(a, 1),
    lambda a: np.expand_dims(a, 1), lambda a: np.squeeze(a[:1]), lambda a: np.tile(a, (2, 1, 1, 3)),
    lambda a: np.pad(a, ((1, 0), (0, 2), (1, 1))), lambda a: np.broadcast_to(a[:, :1], (2, 3, 4)), np.ravel,
    lambda a: np.take(a, [2, 0, -1], axis=1), lambda a: np.split(a, 2, axis=2)[1], np.zeros_like, np.ones_like,
    lambda a: np.full_like(a, 3.0), lambda a: a.flatten()])
def test_moving_elements_is_as_in_numpy(function: Callable[[Any], Any]) -> None:
    agree(function, CUBE, exact=True)


@pytest.mark.parametrize("function", [
    lambda x: np.stack([x, x, -x], 1), lambda x: np.stack([x.T, x.T], -1), lambda x: np.stack([x[:, ::-1], x], 2),
    lambda x: np.stack([x.sum(1), x.max(1)], -1), lambda x: np.pad(x.sum(0, keepdims=True), ((0, 3), (1, 0))).T,
    lambda x: np.stack([x @ x.T, (x @ x.T).T], -1), lambda x: np.pad(x @ x.T, ((1, 1), (2, 1))),
    lambda x: np.concatenate([x.sum(1, keepdims=True), x.max(1, keepdims=True), x], 1),
    lambda x: np.tile(np.concatenate([-abs(x[0]), x[1, :3]]), 2)])
def test_computed_parts_are_joined_as_in_numpy(function: Callable[[Any], Any]) -> None:
    agree(function, np.random.default_rng(5).standard_normal((16, 24)).astype(np.float32))


INDICES = [np.s_[0], np.s_[-1], np.s_[1, 2, 3], np.s_[..., 0], np.s_[:, 1], np.s_[:, 1:3], np.s_[:, :, ::2],
           np.s_[:, :, 1::2], np.s_[:, :, ::-1], np.s_[:, ::-2, 3:0:-2], np.s_[:, :, ::3], np.s_[:, None, ..., None],
           np.s_[1:, ..., -2:], np.s_[:, [0, 2, 2]], np.s_[[1, -1]], np.s_[..., np.array([[0, 1], [2, 3]])],
           np.s_[[1, 0], [2, 1]], np.s_[0, [1, 2]], np.s_[[0, 1], :, [3, 1]], np.s_[:, [[0], [2]], [1, -1]],
           np.s_[1, None, [0, 2]], np.s_[:, :, 3::-1], np.s_[None], np.s_[:, :, 1:4:2], np.s_[...], np.s_[::2, ::2, ::2]]


@pytest.mark.parametrize("key", INDICES, ids=str)
def test_indexing_is_that_of_numpy(key: Any) -> None:
    agree(lambda a: a[key], CUBE, exact=True)


def test_every_slice_of_an_axis_is_right() -> None:
    a = np.arange(7, dtype=np.int32)
    bounds = [None, *range(-8, 9)]
    keys = [slice(i, j, k) for i in bounds[::2] for j in bounds[1::2] for k in (None, 1, 2, 3, 5, 9, -1, -2, -3, -7)]
    keys = [k for k in keys if a[k].size]
    assert len(keys) > 200
    results = run(lambda x: tuple(x[k] for k in keys), a)
    for key, result in zip(keys, results):
        np.testing.assert_array_equal(result, a[key], err_msg=str(key))


def test_a_tensor_can_be_an_index() -> None:
    place = np.array([2, 0], np.int32)
    agree(lambda a, i: a[:, i], CUBE, place)
    agree(lambda a, i: np.take(a, i, axis=2), CUBE, place)
    agree(lambda a, i: a[i], TRUE, place)
    np.testing.assert_array_equal(run(lambda a, i: a[i], CUBE[0], np.array(2, np.int32)), CUBE[0][2])


def test_iteration_goes_over_the_first_axis() -> None:
    agree(lambda a: sum(2 * row for row in a), F)
    assert run(lambda a: np.full_like(a, len(a)), F)[0, 0] == 3


def test_neural_functions_are_what_they_say() -> None:
    def softmax(a: Any) -> Any:
        e = np.exp(a - a.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    np.testing.assert_allclose(run(tosaic.ops.softmax, F), softmax(F), rtol=1e-5)
    np.testing.assert_allclose(run(lambda a: tosaic.ops.logsumexp(a, 0), F), np.log(np.exp(F).sum(0)), rtol=1e-5)
    np.testing.assert_allclose(run(tosaic.ops.sigmoid, F), 1 / (1 + np.exp(-F)), rtol=1e-5)
    np.testing.assert_array_equal(run(tosaic.ops.relu, F), np.maximum(F, 0))


def test_arrays_on_either_side_become_constants() -> None:
    agree(lambda a: ROW * a + G - [1.0, 2.0, 3.0, 4.0], F)
    agree(lambda a: a + np.arange(4), I)
    assert run(lambda a: a * np.arange(4), F).dtype == np.float32


def test_arrays_are_copied_when_traced() -> None:
    weights = np.ones(4, np.float32)
    traced = tosaic.jit(lambda a: a * weights).trace(F)
    weights[:] = 0
    np.testing.assert_array_equal(interpret(traced.module, traced.function, (F,))[0], F)


def test_unsigned_bytes_are_computed_with_as_numpy_does() -> None:
    pixels = np.array([[0, 1, 127, 128, 255]], np.uint8)
    other = np.array([[255, 2, 128, 128, 3]], np.uint8)
    for name in ("add", "subtract", "multiply", "maximum", "less", "equal", "floor_divide"):
        agree(ARITHMETIC[name], pixels, other)
    agree(lambda a: a.astype(np.float32) / 255, pixels)
    agree(lambda a: a.astype(np.int8), pixels)
    agree(lambda a: a.astype(np.uint8), np.array([0, -1, 255, 256, 300, -300], np.int32))


def test_a_large_array_that_is_used_twice_is_one_constant() -> None:
    weights = np.arange(1024, dtype=np.float32).reshape(32, 32)
    traced = tosaic.jit(lambda x: x @ weights @ weights + weights).trace(weights)
    large = [o for o in traced.function.body.walk() if o.op.name == "tosa.const" and o.results[0].tensor.size == 1024]
    assert len(large) == 1


def test_an_array_that_changes_while_tracing_is_two_constants() -> None:
    buffer = np.zeros((32, 32), np.float32)

    def function(x: Any) -> Any:
        for i in range(3):
            buffer[...] = i
            x = x + buffer
        return x

    assert run(function, np.zeros((32, 32), np.float32)).max() == 3


def test_an_array_that_is_used_in_two_branches_is_a_constant_of_each() -> None:
    weights = np.arange(1024, dtype=np.float32).reshape(32, 32)

    def function(x: Any) -> Any:
        return tosaic.cond(x[0, 0] > 0, lambda: x + weights, lambda: x - weights) * weights

    np.testing.assert_array_equal(run(function, weights), -0.0 * weights)
