"""EXT-INT64: 64-bit integers everywhere but in products of matrices, on values that no float and no int32 holds."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tosa.bitwise import ArithmeticRightShift, LogicalLeftShift, LogicalRightShift
from tosaic.lowering.dialects.tosa.conversion import Cast
from tosaic.lowering.dialects.tosa.gather import Gather, RowGather, Scatter
from tosaic.lowering.dialects.tosa.reduction import ArgMax, ReduceMax, ReduceMin, ReduceSum
from tosaic.lowering.dialects.tosa.ternary import Select
from tosaic.lowering.dialects.tosa.unary import Clz, Negate
from tosaic.lowering.elements.expression import PRIMITIVES
from tosaic.lowering.graph.types import BF16, F16, F32, I1, I8, I16, I32, I64, Array, ElementType

from ..native.machines import runs_here
from ..schedule.kernels import TARGETS
from .harness import check
from .test_elementwise_integers import edges, some
from .test_elementwise_native import check as check_native

LEAST, MOST = -(1 << 63), (1 << 63) - 1
on_each_target = pytest.mark.parametrize("target", [
    pytest.param(t, marks=pytest.mark.skipif(not runs_here(t), reason="this processor lacks its instructions"), id=key)
    for key, t in TARGETS.items() if key in ("512 bits", "256 bits, no masks", "128 bits", "scalar")])


def wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


# ---- the reference against Python's integers ---------------------------------------------------------------------
def test_leading_zeros_are_counted_in_all_64_bits() -> None:
    x = edges(I64)
    expected = [64 - (v % (1 << 64)).bit_length() for v in x.tolist()]
    assert Clz().reference(x).tolist() == expected
    for values in (*map(edges, (I8, I16, I32, I64)), np.array([0, 1, 2, 127, 128, 255], np.uint8)):
        bits = 8 * values.dtype.itemsize
        found = PRIMITIVES["clz"](values)
        assert found.dtype == values.dtype
        assert found.tolist() == [bits - (v % (1 << bits)).bit_length() for v in values.tolist()]


def test_shifts_are_those_of_python() -> None:
    x, by = edges(I64)[::3], np.arange(64)
    for op, words in ((LogicalLeftShift(), lambda a, b: wrapped(a << b)),
                      (LogicalRightShift(), lambda a, b: wrapped(a % (1 << 64) >> b)),
                      (ArithmeticRightShift(False), lambda a, b: a >> b),
                      (ArithmeticRightShift(True), lambda a, b: (a >> b) + (a >> b - 1 & 1 if b else 0))):
        found = check(op, x[:, None], by[None, :])
        assert found.tolist() == [[words(a, b) for b in by.tolist()] for a in x.tolist()]


# ---- reductions --------------------------------------------------------------------------------------------------
REDUCTIONS = [ReduceMax, ReduceMin, ReduceSum]


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reductions_are_those_of_python(reduction: Any, axis: int) -> None:
    x = some(np.random.default_rng(3), I64, 3, 7, 5)
    found = check(reduction(axis), x)
    words = {ReduceMax: max, ReduceMin: min, ReduceSum: lambda row: wrapped(sum(row))}[reduction]
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]).tolist()
    assert np.moveaxis(found, axis, -1).reshape(-1).tolist() == [words(row) for row in rows]


@pytest.mark.sampled(2)
@on_each_target
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("shape", [(1,), (37,), (3, 70), (70, 3), (2, 19, 17), (5, 1, 9)], ids=str)
def test_reductions_in_native_code(reduction: Any, shape: tuple[int, ...], target: Any) -> None:
    x = some(np.random.default_rng(4), I64, *shape)
    for axis in range(len(shape)):
        check_native(target, reduction(axis), x)
    check_native(target, reduction(0), np.full(shape, LEAST))
    check_native(target, reduction(0), np.full(shape, MOST))


# ---- argmax ------------------------------------------------------------------------------------------------------
def near(random: np.random.Generator, *shape: int) -> Array:
    """Values that differ in their lowest bits alone, or in their highest, many of them equal."""
    return random.choice(np.array([LEAST, LEAST + 1, -(1 << 53) - 1, -(1 << 53), -1, 0, 1, 1 << 53, (1 << 53) + 1, MOST - 1]),
                         shape)


@pytest.mark.parametrize("to", [I32, I64], ids=str)
@pytest.mark.parametrize("shape", [(1,), (9,), (4, 6), (2, 3, 5)], ids=str)
def test_argmax_is_the_first_greatest(shape: tuple[int, ...], to: ElementType) -> None:
    random = np.random.default_rng(5)
    for axis, x in itertools.product(range(len(shape)), (near(random, *shape), some(random, I64, *shape),
                                                         np.full(shape, LEAST), np.full(shape, MOST))):
        found = check(ArgMax(axis, to=to), x)
        assert found.dtype == to.dtype
        rows = np.moveaxis(x, axis, -1).reshape(-1, shape[axis]).tolist()
        assert found.reshape(-1).tolist() == [row.index(max(row)) for row in rows]


@on_each_target
@pytest.mark.parametrize("shape, to", [((1,), I32), ((37,), I64), ((3, 70), I32), ((70, 3), I64), ((2, 19, 17), I32),
                                       ((5, 1, 9), I64)], ids=str)
def test_argmax_in_native_code(shape: tuple[int, ...], to: ElementType, target: Any) -> None:
    random = np.random.default_rng(6)
    for axis in range(len(shape)):
        for x in (near(random, *shape), some(random, I64, *shape), np.full(shape, LEAST), np.full(shape, MOST)):
            check_native(target, ArgMax(axis, to=to), x)


@pytest.mark.parametrize("element", [I8, I16, I32, F32, F16, BF16], ids=str)
def test_places_of_narrow_values_may_be_wide(element: ElementType) -> None:
    x = np.random.default_rng(7).integers(-3, 3, (4, 33)).astype(element.dtype)
    found = check(ArgMax(1, to=I64), x)
    assert found.dtype == np.int64 and found.tolist() == x.astype(np.float64).argmax(axis=1).tolist()


# ---- moves and casts ---------------------------------------------------------------------------------------------
@on_each_target
@pytest.mark.parametrize("element", [I1, I64, I16], ids=str)
def test_rows_by_wide_numbers_in_native_code(element: ElementType, target: Any) -> None:
    """Numbers out of range, in 64 bits too, among them."""
    random = np.random.default_rng(8)
    values = some(random, element, 2, 6, 5)
    for index in (np.int32, np.int64):
        info = np.iinfo(index)
        rows = np.array([[0, 5, 3, 5, info.min], [-1, 6, info.max, 2, 1]], index)
        check_native(target, Gather(), values, rows)
        for count in (1, 2, 3, 7):
            check_native(target, RowGather(), values, rows, np.array([count], np.int32), constants=(2,))
        once = np.array([[0, 5, 3, info.max, info.min], [-1, 6, 4, 2, 1]], index)
        check_native(target, Scatter(), values, once, some(random, element, 2, 5, 5))


def test_a_number_beyond_32_bits_is_out_of_range() -> None:
    values = np.arange(6, dtype=np.int64).reshape(1, 6, 1)
    rows = np.array([[1 << 32, (1 << 32) + 3, -(1 << 32), MOST, LEAST]])
    for op, arrays in ((Gather(), (values, rows)), (RowGather(), (values, rows, np.array([1], np.int32)))):
        assert check(op, *arrays, constants={2}).reshape(-1).tolist() == [5, 5, 0, 5, 0]
    assert check(Scatter(), values, rows, np.full((1, 5, 1), 9)).tolist() == values.tolist()


CASTS = [(I64, I1), (I64, I32), (I1, I64), (I32, I64)]


@on_each_target
@pytest.mark.parametrize(("source", "to"), CASTS, ids=str)
def test_casts_in_native_code(source: ElementType, to: ElementType, target: Any) -> None:
    x = edges(source)
    check_native(target, Cast(to), x)
    expected = [bool(v) if to == I1 else (v + (1 << 31)) % (1 << 32) - (1 << 31) if to == I32 else int(v) for v in x.tolist()]
    assert check(Cast(to), x).tolist() == expected


@on_each_target
def test_choices_and_negation_in_native_code(target: Any) -> None:
    x = edges(I64)
    check_native(target, Select(), np.arange(len(x)) % 3 == 0, x, x[::-1].copy())
    check_native(target, Negate(), x, np.zeros(1, np.int64), np.zeros(1, np.int64), constants=(1, 2))


# ---- the whole compiler ------------------------------------------------------------------------------------------
def long_chain(x: tosaic.Tensor, y: tosaic.Tensor) -> Any:
    tosa = tosaic.tosa
    product = tosa.mul(x, tosa.sub(y, x))
    shifted = tosa.arithmetic_right_shift(product, tosa.const([[3]], "i64"), round=True)
    place = tosa.argmax(tosa.maximum(shifted, y), axis=1, to="i64")
    total = tosa.reduce_sum(tosa.abs(shifted), axis=1)
    return place, total, tosa.clz(tosa.bitwise_xor(x, y)), tosa.intdiv(x, y)


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (17, 9)], ids=str)
def test_a_graph_of_wide_integers_agrees_with_its_reference(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(9)
    x, y = some(random, I64, *shape), some(random, I64, *shape)
    traced = tosaic.jit(long_chain).trace(x, y)
    found = traced.check([[x, y], [y, x], [x, x]])
    assert found.agrees, str(found)
