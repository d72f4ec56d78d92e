"""CONCAT, PAD, RESHAPE, REVERSE, SLICE, TILE, TRANSPOSE."""
from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.layout import Concat, Pad, Reshape, Reverse, Slice, Tile, Transpose
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load
from tosaic.lowering.elements.interpret import evaluate
from tosaic.lowering.elements.tensor import NotAffine, stored
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import (
    BF16,
    F8E4M3,
    F16,
    F32,
    I1,
    I4,
    I8,
    I16,
    I32,
    I48,
    Array,
    ElementType,
    ShapeType,
    TensorType,
)
from tosaic.runtime.errors import Problem

from .harness import Given, check, infer, unknown

ELEMENTS = [I1, I4, I8, I16, I32, I48, F16, BF16, F32, F8E4M3]


def numbers(shape: tuple[int, ...], element: ElementType = I32) -> Array:
    """Different values, as far as the type has them."""
    values = np.arange(math.prod(shape)).reshape(shape)
    values = values % 2 == 1 if element == I1 else values % 8 - 3 if element == I4 else values % 99
    return values.astype(element.dtype)


def shape(*extents: int) -> Array:
    return np.array(extents, np.int64)


# ---- meaning -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("extents", "axis"), [
    ([(3,), (2,), (4,)], 0), ([(2, 3)], 1), ([(2, 3), (2, 1)], 1), ([(1, 3), (4, 3), (2, 3), (1, 3)], 0),
    ([(2, 3, 2), (2, 5, 2), (2, 1, 2)], 1), ([(1, 1, 2, 3, 2, 2), (1, 1, 2, 3, 2, 1)], 5)], ids=str)
def test_concat_puts_one_after_the_other(extents: list[tuple[int, ...]], axis: int, element: ElementType) -> None:
    arrays = [numbers(s, element) for s in extents]
    out = check(Concat(axis), *arrays, elements={i: element for i in range(len(arrays))})
    assert (out == np.concatenate(arrays, axis)).all()


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("extents", "padding"), [
    ((3,), (0, 0)), ((3,), (2, 1)), ((2, 3), (0, 1, 2, 0)), ((1, 2, 3), (1, 1, 0, 0, 3, 2)),
    ((1, 2, 1, 2, 1, 2), (1, 0, 0, 1, 0, 0, 2, 0, 0, 2, 1, 1))], ids=str)
@pytest.mark.parametrize("constants", [(1, 2), (1,)], ids=["known border", "border from data"])
def test_pad_surrounds_with_one_value(extents: tuple[int, ...], padding: tuple[int, ...], element: ElementType,
                                      constants: tuple[int, ...]) -> None:
    x, border = numbers(extents, element), np.array([1], element.dtype)
    out = check(Pad(), x, shape(*padding), border, constants=constants, elements={0: element, 2: element})
    pairs = list(zip(padding[::2], padding[1::2]))
    assert (out.astype(np.float64) == np.pad(x.astype(np.float64), pairs, constant_values=1.0)).all()


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("before", "after"), [
    ((6,), (6,)), ((6,), (1, 6, 1)), ((1, 1), ()), ((), (1, 1, 1)), ((6,), (2, 3)), ((2, 12), (2, 3, 4)),
    ((6, 1, 4), (2, 3, 1, 4)), ((4, 1, 3), (4, 3)), ((1, 4, 6), (1, 4, 1, 6)), ((2, 5), (2, 5, 1, 1))], ids=str)
def test_a_reshape_that_splits_axes_is_index_arithmetic(before: tuple[int, ...], after: tuple[int, ...],
                                                        element: ElementType) -> None:
    x = numbers(before, element)
    out = check(Reshape(), x, shape(*after), constants=(1,), elements={0: element})
    assert (out == x.reshape(after)).all()


@pytest.mark.parametrize(("before", "after"), [((2, 3), (6,)), ((2, 3, 4), (2, 12)), ((2, 3, 4), (6, 1, 4)),
                                               ((2, 3), (3, 2))], ids=str)
def test_a_reshape_that_joins_axes_must_be_stored(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    x = numbers(before)
    assert (Reshape().reference(x, shape(*after)) == x.reshape(after)).all()
    with pytest.raises(NotAffine):
        check(Reshape(), x, shape(*after), constants=(1,))


def test_a_reshape_is_affine_where_the_consumer_splits_its_index() -> None:
    """Reshapes of reshapes divide again: [2, 3, 4] to [24] and back."""
    x = stored(TensorType((2, 3, 4), I32), Buffer("x", "int32", (2, 3, 4), "constant", numbers((2, 3, 4))))
    op, flat = Reshape(), TensorType((24,), I32)
    element = op.element(flat, x, x)
    a, b, c = (Axis(n, e) for n, e in zip("abc", (2, 3, 4)))
    assert (evaluate(element(Affine.of(a) * 12 + Affine.of(b) * 4 + c), (a, b, c)) == numbers((2, 3, 4))).all()


def test_a_reshape_infers_one_extent() -> None:
    assert infer(Reshape(), numbers((2, 3, 4)), shape(4, -1), constants=(1,)) == TensorType((4, 6), I32)
    assert (Reshape().reference(numbers((2, 3, 4)), shape(4, -1)) == numbers((4, 6))).all()
    operands = [unknown(None, 3, element=F32), Given(ShapeType(2), shape(-1, 6))]
    assert Reshape().result_types(operands) == (TensorType((None, 6), F32),)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("extents", "axis"), [((1,), 0), ((5,), 0), ((3, 4), 0), ((3, 4), 1), ((1, 2, 3, 2, 1, 2), 2)],
                         ids=str)
def test_reverse_turns_an_axis_round(extents: tuple[int, ...], axis: int, element: ElementType) -> None:
    x = numbers(extents, element)
    assert (check(Reverse(axis), x, elements={0: element}) == np.flip(x, axis)).all()


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("extents", "start", "size"), [
    ((5,), (0,), (5,)), ((5,), (2,), (3,)), ((4, 6), (1, 2), (2, 1)), ((2, 3, 4), (1, 0, 3), (1, 3, 1)),
    ((2, 2, 2, 2, 2, 3), (0, 1, 0, 1, 0, 1), (2, 1, 2, 1, 1, 2))], ids=str)
def test_slice_takes_a_part(extents: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...],
                            element: ElementType) -> None:
    x = numbers(extents, element)
    out = check(Slice(), x, shape(*start), shape(*size), constants=(1, 2), elements={0: element})
    assert (out == x[tuple(slice(s, s + n) for s, n in zip(start, size))]).all()


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("extents", "multiples"), [
    ((3,), (1,)), ((3,), (4,)), ((1,), (5,)), ((2, 3), (1, 2)), ((3, 1), (2, 7)), ((5, 3, 2), (3, 1, 4)),
    ((1, 2, 1, 3, 1, 2), (2, 2, 1, 1, 3, 2))], ids=str)
def test_tile_repeats(extents: tuple[int, ...], multiples: tuple[int, ...], element: ElementType) -> None:
    x = numbers(extents, element)
    out = check(Tile(), x, shape(*multiples), constants=(1,), elements={0: element})
    assert (out == np.tile(x, multiples)).all()


def test_a_tile_is_affine_where_the_consumer_splits_its_index() -> None:
    buffer = Buffer("x", "int32", (3,))
    element = Tile().element(TensorType((12,), I32), stored(TensorType((3,), I32), buffer),
                             stored(TensorType((1,), I32), Buffer("m", "int64", (1,), "constant", shape(4))))
    outer, inner = Axis("outer", 4), Axis("inner", 3)
    found = element(Affine.of(outer) * 3 + inner)
    assert isinstance(found, Load) and found.index == (Affine.of(inner),)


@pytest.mark.parametrize("perms", [p for n in (1, 2, 3, 4) for p in itertools.permutations(range(n))], ids=str)
def test_transpose_moves_axes(perms: tuple[int, ...]) -> None:
    x = numbers((2, 3, 4, 5)[:len(perms)])
    assert (check(Transpose(perms), x) == x.transpose(perms)).all()


@pytest.mark.parametrize("element", ELEMENTS)
def test_transpose_keeps_every_element_type(element: ElementType) -> None:
    x = numbers((2, 3, 1, 2, 1, 3), element)
    out = check(Transpose((5, 0, 3, 1, 4, 2)), x, elements={0: element})
    assert (out == x.transpose(5, 0, 3, 1, 4, 2)).all()


# ---- what is refused ---------------------------------------------------------------------------------------------
def t(*extents: int | None, element: ElementType = I32) -> Given:
    return unknown(*extents, element=element)


def s(*extents: int) -> Given:
    return Given(ShapeType(len(extents)), shape(*extents))


BORDER = Given(TensorType((1,), I32), np.zeros(1, np.int32))
BAD: list[tuple[Op, list[Any], str]] = [
    (Concat(0), [], "a concat needs at least one operand"),
    (Concat(2), [t(2, 3), t(2, 3)], "axis 2 is outside the 2 axes"),
    (Concat(-1), [t(2, 3)], "axis -1 is outside the 2 axes"),
    (Concat(0), [t()], "axis 0 is outside the 0 axes"),
    (Concat(0), [t(2, 3), t(2, 3, 1)], "the rank of operand 1, .*, is not that of"),
    (Concat(0), [t(2, 3), t(2, 4)], "operand 1 is 2x4, those before it 2x3: they may differ along axis 0 only"),
    (Concat(0), [t(2, 3), t(2, 3), t(2, 3, element=I8)], "operand 2 is tensor<2x3xi8>, the first is tensor<2x3xi32>"),
    (Concat(0), [t(2), Given(ShapeType(2))], "operand 1 must be a tensor"),
    (Pad(), [t(2, 3), s(0, 0, 0, -1), BORDER], "padding must not be negative"),
    (Pad(), [t(2, 3), s(0, 0), BORDER], "the padding has 2 numbers, 4 are needed"),
    (Pad(), [t(), s(), BORDER], "has no axis to pad"),
    (Pad(), [t(2, element=I8), s(0, 0), BORDER], "the value of the border must be i8"),
    (Pad(), [t(2), s(0, 0), t(2)], "the value of the border must have one element"),
    (Pad(), [t(2), Given(ShapeType(3)), BORDER], "the padding has 3 numbers, 2 are needed"),
    (Pad(), [t(2), t(2, element=I32), BORDER], "the padding must be known when compiling"),
    (Reshape(), [t(2, 3), s(7)], "has 6 elements, 7 does not"),
    (Reshape(), [t(2, 3), s(-1, 4)], "has 6 elements, -1x4 does not"),
    (Reshape(), [t(2, 3), s(-1, -1)], r"\[-1, -1\] is not a shape"),
    (Reshape(), [t(2, 3), s(0, 6)], r"\[0, 6\] is not a shape"),
    (Reshape(), [t(2, 3), t(1, element=I32)], "the shape must be known when compiling"),
    (Reshape(), [s(2), s(2)], "the input must be a tensor"),
    (Reverse(2), [t(2, 3)], "axis 2 is outside the 2 axes"),
    (Reverse(-1), [t(2, 3)], "axis -1 is outside the 2 axes"),
    (Slice(), [t(4, 4), s(-1, 0), s(1, 1)], "start must not be negative"),
    (Slice(), [t(4, 4), s(0, 0), s(1, 0)], "size must be positive"),
    (Slice(), [t(4, 4), s(0, 2), s(1, 3)], "axis 1 of .* has no 3 elements from 2 on"),
    (Slice(), [t(4, 4), s(0), s(1, 3)], "the start has 1 numbers, 2 are needed"),
    (Slice(), [t(4, 4), s(0, 0), s(1)], "the size has 1 numbers, 2 are needed"),
    (Slice(), [t(4), t(1, element=I32), s(1)], "the start must be known when compiling"),
    (Slice(), [t(), s(), s()], "has no axis to slice"),
    (Tile(), [t(2, 3), s(1)], "the multiples has 1 numbers, 2 are needed"),
    (Tile(), [t(2, 3), s(1, 0)], "multiples must be positive"),
    (Tile(), [t(), s()], "has no axis to repeat"),
    (Transpose((0, 2)), [t(2, 3)], r"\[0, 2\] is no order of the 2 axes"),
    (Transpose((0, -1)), [t(2, 3)], r"\[0, -1\] is no order of the 2 axes"),
    (Transpose((1, 1)), [t(2, 3)], r"\[1, 1\] is no order of the 2 axes"),
    (Transpose((0,)), [t(2, 3)], r"\[0\] is no order of the 2 axes"),
    (Transpose(()), [t()], "has no axis to move"),
]


@pytest.mark.parametrize(("op", "operands", "message"), BAD, ids=[f"{b[0].name}: {b[2]}" for b in BAD])
def test_layout_refuses(op: Op, operands: list[Any], message: str) -> None:
    with pytest.raises(Problem, match=message):
        op.result_types(operands)


def test_unknown_extents_stay_unknown() -> None:
    assert Concat(0).result_types([t(None, 3), t(2, None)]) == (TensorType((None, 3), I32),)
    assert Pad().result_types([t(None, 3), s(1, 1, 0, 2), BORDER]) == (TensorType((None, 5), I32),)
    assert Reverse(0).result_types([t(None)]) == (TensorType((None,), I32),)
    assert Slice().result_types([t(None, 3), s(5, 1), s(2, 2)]) == (TensorType((2, 2), I32),)
    assert Tile().result_types([t(None, 3), s(2, 2)]) == (TensorType((None, 6), I32),)
    assert Transpose((1, 0)).result_types([t(None, 3)]) == (TensorType((3, None), I32),)


def test_extents_that_follow_from_unknown_ones_are_unknown() -> None:
    shape = Given(ShapeType(2))
    assert Pad().result_types([t(3), shape, BORDER]) == (TensorType((None,), I32),)
    assert Reshape().result_types([t(6), shape]) == (TensorType((None, None), I32),)
    assert Slice().result_types([t(4, 4), shape, s(2, 2)]) == (TensorType((2, 2), I32),)
    assert Slice().result_types([t(4, 4), s(0, 0), shape]) == (TensorType((None, None), I32),)
    assert Tile().result_types([t(2, 3), shape]) == (TensorType((None, None), I32),)
