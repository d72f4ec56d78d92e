"""Type rules of the elementwise operators: what they take, what they give, and what they refuse."""
from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import tosaic.lowering.dialects.tosa  # noqa: F401  registers the operators
from tosaic.lowering.dialects.tosa.activation import Clamp, Erf, Sigmoid, Tanh
from tosaic.lowering.dialects.tosa.binary import Add, IntDiv, Maximum, Minimum, Mul, Pow, Sub
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
from tosaic.lowering.dialects.tosa.unary import (
    Abs,
    BitwiseNot,
    Ceil,
    Clz,
    Cos,
    Exp,
    Floor,
    Log,
    LogicalNot,
    Negate,
    Reciprocal,
    Rsqrt,
    Sin,
)
from tosaic.lowering.graph.operator import OPERATORS, Op
from tosaic.lowering.graph.types import (
    BF16,
    ELEMENT_TYPES,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    ElementType,
    OpaqueType,
    ShapeType,
    TensorType,
)
from tosaic.runtime.errors import Problem

from .harness import Given, given, unknown

REAL = {F16, F32, BF16, F64}
"""f64 is no type of the specification, but an extension."""
UNARY: list[tuple[Op, set[ElementType]]] = [
    (Abs(), {I32, I64} | REAL), (BitwiseNot(), {I8, I16, I32, I64}), (Ceil(), REAL), (Clz(), {I32, I64}), (Cos(), REAL),
    (Exp(), REAL), (Floor(), REAL), (Log(), REAL), (LogicalNot(), {I1}), (Reciprocal(), REAL), (Rsqrt(), REAL),
    (Sin(), REAL), (Erf(), REAL), (Sigmoid(), REAL), (Tanh(), REAL), (Clamp(0, 1), {I8, I16, I32, I64} | REAL)]
BINARY: list[tuple[Op, set[ElementType]]] = [
    *((op, {I32, I64} | REAL) for op in (Add(), Sub(), Maximum(), Minimum(), Equal(), Greater(), GreaterEqual())),
    *((op, {I8, I16, I32, I64}) for op in (BitwiseAnd(), BitwiseOr(), BitwiseXor(), LogicalLeftShift(),
                                           LogicalRightShift(), ArithmeticRightShift(True))),
    *((op, {I1}) for op in (LogicalAnd(), LogicalOr(), LogicalXor())), (IntDiv(), {I32, I64}), (Pow(), REAL)]
SHIFT = given(np.zeros(1, np.int8), constant=True)


def refused(op: Op, *operands: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        op.result_types(operands)
    return caught.value


def name(x: Any) -> str:
    return getattr(x, "name", "")


def test_every_operator_is_registered_under_its_mlir_name() -> None:
    names = """abs bitwise_not ceil clz cos exp floor log logical_not negate reciprocal rsqrt sin erf sigmoid tanh clamp
        add sub mul intdiv int_div pow maximum minimum arithmetic_right_shift logical_left_shift logical_right_shift
        bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor select equal greater greater_equal cast
        rescale table"""
    for each in names.split():
        found = OPERATORS[f"tosa.{each}"]
        assert found.name == f"tosa.{each}" or f"tosa.{each}" in found.aliases


@pytest.mark.parametrize(("op", "allowed"), UNARY, ids=name)
def test_unary_operators_take_the_types_of_the_specification(op: Op, allowed: set[ElementType]) -> None:
    for element in ELEMENT_TYPES.values():
        if element in allowed:
            assert op.result_types([unknown(2, 3, element=element)]) == (TensorType((2, 3), element),)
        else:
            assert refused(op, unknown(2, 3, element=element)).message == f"{op.name} does not take {element}"


@pytest.mark.parametrize(("op", "allowed"), BINARY, ids=name)
def test_binary_operators_take_two_of_the_types_of_the_specification(op: Op, allowed: set[ElementType]) -> None:
    for element in ELEMENT_TYPES.values():
        pair = [unknown(2, 1, element=element), unknown(1, 3, element=element)]
        if element in allowed:
            result = I1 if isinstance(op, Equal | Greater | GreaterEqual) else element
            assert op.result_types(pair) == (TensorType((2, 3), result),)
        else:
            assert refused(op, *pair).kind == "type"
    element, other = next(iter(allowed)), F32 if F32 not in allowed else F16
    if element == other:
        other = BF16
    assert "not" in refused(op, unknown(2, element=element), unknown(2, element=other)).message


@pytest.mark.parametrize(("op", "allowed"), BINARY, ids=name)
@pytest.mark.parametrize(("a", "b"), [((2,), (3,)), ((2, 3), (3, 2)), ((2,), (1, 2)), ((), (1,)), ((4, 2), (2, 2))],
                         ids=str)
def test_shapes_that_do_not_broadcast_are_refused(op: Op, allowed: set[ElementType], a: Any, b: Any) -> None:
    element = next(iter(allowed))
    problem = refused(op, unknown(*a, element=element), unknown(*b, element=element))
    assert problem.kind == "shape" and problem.help


def test_the_message_names_both_shapes() -> None:
    problem = refused(Add(), unknown(2, 3, element=F32), unknown(2, 4, element=F32))
    assert problem.message == "shapes 2x3 and 2x4 do not broadcast: 3 and 4"
    problem = refused(Add(), unknown(2, 3, element=F32), unknown(3, element=F32))
    assert problem.message == "operands of shapes 2x3 and 3 have ranks 2 and 1"


@pytest.mark.parametrize(("a", "b", "result"), [((None,), (1,), None), ((None,), (4,), 4), ((None,), (None,), None),
                                                ((1,), (None,), None), ((5,), (None,), 5)], ids=str)
def test_extents_that_are_not_known_are_kept(a: Any, b: Any, result: int | None) -> None:
    for op in (Add(), Greater(), Maximum()):
        (found,) = op.result_types([unknown(7, *a, element=F32), unknown(1, *b, element=F32)])
        assert isinstance(found, TensorType) and found.shape == (7, result)
    (found,) = Mul().result_types([unknown(*a, element=F32), unknown(*b, element=F32), SHIFT])
    assert isinstance(found, TensorType) and found.shape == (result,)
    assert Exp().result_types([unknown(*a, element=F32)]) == (TensorType(a, F32),)


def test_a_rank_that_is_not_known_is_kept() -> None:
    unranked = Given(TensorType(None, F32))
    assert Exp().result_types([unranked]) == (TensorType(None, F32),)
    assert Add().result_types([unranked, unknown(2, element=F32)]) == (TensorType(None, F32),)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_operands_is_refused(count: int) -> None:
    assert refused(Add(), *[unknown(1, element=F32)] * count).message == f"tosa.add does not take {count} operands"


@pytest.mark.parametrize("type", [ShapeType(2), OpaqueType("!tf_type.resource")], ids=str)
def test_an_operand_that_is_no_tensor_is_refused(type: Any) -> None:
    assert refused(Abs(), Given(type)).message == f"an operand must be a tensor, not {type}"


def test_products_are_wider_than_i8_and_i16() -> None:
    for element, result in {I8: I32, I16: I32, I32: I32, I64: I64, F16: F16, F32: F32, BF16: BF16}.items():
        pair = [unknown(2, 1, element=element), unknown(1, 3, element=element)]
        assert Mul().result_types([*pair, SHIFT]) == (TensorType((2, 3), result),)
    assert refused(Mul(), *[unknown(2, element=I1)] * 2, SHIFT).message == "tosa.mul does not take i1"


def test_a_shift_is_one_i8() -> None:
    pair = [unknown(2, element=I32)] * 2
    assert refused(Mul(), *pair, unknown(1, element=I32)).message == "the shift must be i8, it is tensor<1xi32>"
    assert refused(Mul(), *pair, unknown(2, element=I8)).message \
        == "the shift must have one element, it is tensor<2xi8>"


def test_zero_points_of_negate_are_0_unless_the_type_is_i8() -> None:
    for element in (I16, I32, F16, F32, BF16):
        x, zero, one = unknown(2, element=element), np.zeros(1, element.dtype), np.ones(1, element.dtype)
        for zero_points in ((zero, one), (one, zero)):
            problem = refused(Negate(), x, *(given(z, element, constant=True) for z in zero_points))
            assert re.match(r"(input1|output)_zp must be 0 for", problem.message)
    x = unknown(2, element=I8)
    assert Negate().result_types([x, *[given(np.array([-7], np.int8), constant=True)] * 2]) == (x.type,)
    assert refused(Negate(), x, unknown(1, element=I32), unknown(1, element=I8)).kind == "type"
    assert refused(Negate(), x, unknown(2, element=I8), unknown(1, element=I8)).kind == "shape"
    assert refused(Negate(), unknown(2, element=I1), *[unknown(1, element=I1)] * 2).kind == "type"


@pytest.mark.parametrize(("op", "message"), [
    (Clamp(2, 1), "min_val 2 is above max_val 1"), (Clamp(math.nan, 1), "min_val nan and max_val 1 must be numbers"),
    (Clamp(0, math.nan), "min_val 0 and max_val nan must be numbers"),
    (Clamp(0, 1, "MAYBE"), "nan_mode 'MAYBE' is not known")])
def test_clamp_refuses_bad_attributes(op: Op, message: str) -> None:
    assert refused(op, unknown(2, element=F32)).message == message


def test_bounds_of_integers_are_values_of_their_type() -> None:
    for low, high in ((-129, 0), (0, 128), (0.5, 1), (-math.inf, 0), (0, math.inf)):
        assert "is not a value of i8" in refused(Clamp(low, high), unknown(2, element=I8)).message


def test_unknown_nan_modes_are_refused() -> None:
    for op in (Maximum("NO"), Minimum("NO")):
        assert refused(op, *[unknown(2, element=F32)] * 2).message == "nan_mode 'NO' is not known"


def test_select_wants_a_bool_and_two_values_of_one_type() -> None:
    yes, no = unknown(2, 1, element=F32), unknown(1, 3, element=F32)
    assert Select().result_types([unknown(1, 1, element=I1), yes, no]) == (TensorType((2, 3), F32),)
    assert Select().result_types([unknown(4, element=I1), *[unknown(1, element=I8)] * 2]) == (TensorType((4,), I8),)
    assert refused(Select(), yes, yes, no).message == "the condition must be i1, it is tensor<2x1xf32>"
    assert refused(Select(), unknown(2, 1, element=I1), yes, unknown(1, 3, element=F16)).kind == "type"
    assert refused(Select(), unknown(3, 1, element=I1), yes, no).kind == "shape"
    assert refused(Select(), unknown(2, element=I1), yes, no).kind == "shape"


def test_an_operator_without_a_meaning_says_so() -> None:
    for made in (Elementwise().reference, Elementwise().scalar):
        with pytest.raises(Problem, match="unsupported"):
            made(np.zeros(1, np.float32))
