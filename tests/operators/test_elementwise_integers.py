"""Elementwise operators of integers and bools: exact, whatever the operands are."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.activation import Clamp
from tosaic.lowering.dialects.tosa.binary import Add, IntDiv, Maximum, Minimum, Mul, Sub
from tosaic.lowering.dialects.tosa.bitwise import (
    ArithmeticRightShift,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    LogicalAnd,
    LogicalLeftShift,
    LogicalOr,
    LogicalRightShift,
    LogicalXor,
)
from tosaic.lowering.dialects.tosa.comparison import Equal, Greater, GreaterEqual
from tosaic.lowering.dialects.tosa.elementwise import Elementwise
from tosaic.lowering.dialects.tosa.ternary import Select
from tosaic.lowering.dialects.tosa.unary import Abs, BitwiseNot, Clz, LogicalNot, Negate
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import I1, I8, I16, I32, I64, Array, ElementType

from .harness import check, infer

UNARY = [Abs(), BitwiseNot(), Clz(), LogicalNot()]
BINARY = [Add(), Sub(), IntDiv(), Maximum(), Minimum(), BitwiseAnd(), BitwiseOr(), BitwiseXor(), LogicalAnd(),
          LogicalOr(), LogicalXor(), LogicalLeftShift(), LogicalRightShift(), ArithmeticRightShift(True),
          ArithmeticRightShift(False), Equal(), Greater(), GreaterEqual()]


def edges(element: ElementType) -> Array:
    """Values where something changes: ends of the range, zero, one, powers of two and their neighbours."""
    if element == I1:
        return np.array([False, True])
    powers = [s * (1 << b) + d for b in range(element.bits) for s in (1, -1) for d in (-1, 0, 1)]
    inside = sorted({p for p in powers if element.minimum <= p <= element.maximum} | {element.minimum, element.maximum})
    return np.array(inside, element.dtype)


def some(random: np.random.Generator, element: ElementType, *shape: int) -> Array:
    """Values over the whole range, edges among them."""
    if element == I1:
        return random.integers(0, 2, shape).astype(bool)
    values = random.integers(element.minimum, element.maximum, shape, element.dtype, endpoint=True)
    return np.where(random.random(shape) < 0.3, random.choice(edges(element), shape), values)


def cases(ops: list[Elementwise]) -> list[Any]:
    """Each operator with each of its integer types."""
    return [pytest.param(op, e, id=f"{op.name}-{e}{'-round' if getattr(op, 'round', False) else ''}")
            for op in ops for e in op.results if not e.is_float]


@pytest.mark.parametrize(("op", "element"), cases(UNARY))
def test_unary_elements_equal_the_reference(op: Op, element: ElementType) -> None:
    check(op, edges(element))
    check(op, some(np.random.default_rng(1), element, 4, 1, 37))
    check(op, edges(element)[0].reshape(()))


@pytest.mark.parametrize(("op", "element"), cases(BINARY))
def test_binary_elements_equal_the_reference_for_all_pairs_of_edges(op: Op, element: ElementType) -> None:
    """Shift amounts out of range, divisors of 0 and the least integer by -1 among them."""
    check(op, edges(element)[:, None], edges(element)[None, :])


SHAPES = [((), ()), ((7,), (1,)), ((1,), (5,)), ((3, 1, 4), (1, 5, 1)), ((2, 3), (2, 3)), ((1, 1), (1, 1)),
          ((2, 1, 3, 1, 2, 1), (1, 2, 1, 3, 1, 2))]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
@pytest.mark.parametrize(("op", "element"), cases(BINARY))
def test_an_axis_of_extent_1_is_broadcast(op: Op, element: ElementType, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    random = np.random.default_rng(2)
    x, y = some(random, element, *a), some(random, element, *b)
    assert check(op, x, y).shape == np.broadcast_shapes(a, b)
    check(op, x, y, constants={1})


def wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def rounded_shift(a: int, b: int) -> int:
    return (a >> b) + (a >> b - 1 & 1 if b else 0)


WORDS: list[tuple[Op, Callable[[int, int], int]]] = [
    (Add(), lambda a, b: a + b), (Sub(), lambda a, b: a - b), (IntDiv(), truncated), (Maximum(), max), (Minimum(), min),
    (LogicalLeftShift(), lambda a, b: a << b % 32), (LogicalRightShift(), lambda a, b: a % (1 << 32) >> b % 32),
    (ArithmeticRightShift(False), lambda a, b: a >> b % 32),
    (ArithmeticRightShift(True), lambda a, b: rounded_shift(a, b % 32)),
    (BitwiseXor(), lambda a, b: a ^ b)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("op", "words"), WORDS, ids=lambda x: getattr(x, "name", ""))
def test_the_reference_is_what_python_integers_say(op: Op, words: Callable[[int, int], int]) -> None:
    values = edges(I32)
    for a, b in itertools.product(values.tolist(), repeat=2):
        found = op.reference(np.array([a], np.int32), np.array([b], np.int32))
        assert found.tolist() == [wrapped(words(a, b), 32)], (a, b)


@pytest.mark.parametrize("element", [I32, I64], ids=str)
def test_leading_zeros_are_counted(element: ElementType) -> None:
    values = edges(element)
    mask = (1 << element.bits) - 1
    assert check(Clz(), values).tolist() == [element.bits - (v & mask).bit_length() for v in values.tolist()]


@pytest.mark.parametrize(("shift", "constants"), [*((n, c) for n in range(64) for c in ((), (2,))), (-1, ()), (-128, ())])
def test_a_product_of_i32_is_shifted_and_rounded(shift: int, constants: tuple[int, ...]) -> None:
    a, b = edges(I32)[:, None], edges(I32)[None, :]
    result = check(Mul(), a, b, np.array([shift], np.int8), constants=constants)
    amount = shift % 64
    for i, j in ((0, 1), (0, -1), (-1, -1), (5, 9)):
        product = int(a[i, 0]) * int(b[0, j])
        assert result[i, j] == wrapped(product + (1 << amount >> 1) >> amount, 32)


@pytest.mark.parametrize("element", [I8, I16, I64], ids=str)
@pytest.mark.parametrize("constants", [(), (2,)], ids=["shift-loaded", "shift-known"])
def test_products_of_other_integers_are_not_shifted(element: ElementType, constants: tuple[int, ...]) -> None:
    a, b = edges(element)[:, None], edges(element)[None, :]
    result = check(Mul(), a, b, np.zeros(1, np.int8), constants=constants)
    assert result.dtype == (np.int64 if element == I64 else np.int32)
    assert result[0, 0] == wrapped(element.minimum**2, 64)
    assert check(Mul(), a, b, np.array([3], np.int8)).tolist() == result.tolist()


@pytest.mark.parametrize("constants", [(), (1, 2)], ids=["zero-points-loaded", "zero-points-known"])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (-128, 127), (127, -128), (-128, -128), (127, 127), (5, -3)])
def test_negate_moves_zero_points_and_clips_i8(before: int, after: int, constants: tuple[int, ...]) -> None:
    x = np.arange(-128, 128, dtype=np.int8)
    zero_points = [np.array([z], np.int8) for z in (before, after)]
    result = check(Negate(), x, *zero_points, constants=constants)
    assert result.tolist() == [min(max(after - (v - before), -128), 127) for v in range(-128, 128)]


@pytest.mark.parametrize("element", [I16, I32, I64], ids=str)
@pytest.mark.parametrize("constants", [(), (1, 2)], ids=["zero-points-loaded", "zero-points-known"])
def test_negate_clips_i16_and_wraps_wider_integers(element: ElementType, constants: tuple[int, ...]) -> None:
    zero = np.zeros(1, element.dtype)
    result = check(Negate(), edges(element), zero, zero, constants=constants)
    assert result[0] == (32767 if element == I16 else element.minimum)
    assert result[-1] == -element.maximum


@pytest.mark.parametrize("element", [I8, I16], ids=str)
@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 6), (-3, -3), (5, 127)])
def test_clamp_keeps_what_is_inside(element: ElementType, low: int, high: int) -> None:
    result = check(Clamp(low, high), edges(element))
    assert result.tolist() == [min(max(v, low), high) for v in edges(element).tolist()]


@pytest.mark.parametrize("element", [I1, I8, I16, I32, I64], ids=str)
@pytest.mark.parametrize("shapes", [((4, 1, 2), (1, 3, 2), (4, 3, 1)), ((1,), (5,), (1,)), ((), (), ()),
                                    ((6,), (1,), (1,))], ids=str)
def test_select_takes_one_or_the_other_and_broadcasts_all_three(element: ElementType, shapes: Any) -> None:
    random = np.random.default_rng(3)
    condition, yes, no = (some(random, e, *s) for e, s in zip((I1, element, element), shapes))
    result = check(Select(), condition, yes, no)
    assert (result == np.where(condition, yes, no)).all()


def test_every_operator_gives_the_type_of_its_reference() -> None:
    random = np.random.default_rng(4)
    for op in UNARY + BINARY:
        for element in op.results:
            if not element.is_float:
                arrays = [some(random, element, 3) for _ in range(1 if op in UNARY else 2)]
                assert infer(op, *arrays).element.storage == op.reference(*arrays).dtype.name
