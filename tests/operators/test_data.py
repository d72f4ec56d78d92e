"""CONST, CONST_SHAPE, IDENTITY, VARIABLE, VARIABLE_READ, VARIABLE_WRITE."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.data import Const, ConstShape, Identity
from tosaic.lowering.dialects.tosa.variable import Variable, VariableRead, VariableWrite
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import BF16, F16, F32, I1, I4, I8, I16, I32, I48, ElementType, ShapeType, TensorType
from tosaic.runtime.errors import Problem

from .harness import Given, check, evaluated, unknown

ELEMENTS = [I1, I4, I8, I16, I32, I48, F16, BF16, F32]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 3)], ids=str)
def test_a_constant_is_its_data(element: ElementType, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 2, shape).astype(element.dtype)
    op = Const(values, to=element)
    out, = op.result_types([])
    assert out == TensorType(shape, element) and isinstance(out, TensorType)
    assert (op.reference() == values).all() and (evaluated(op, out) == values).all()


def test_a_constant_has_the_type_of_its_array() -> None:
    assert Const(np.zeros(2, np.int16)).result_types([]) == (TensorType((2,), I16),)
    with pytest.raises(Problem, match="int8 does not hold i16"):
        Const(np.zeros(2, np.int8), to=I16).result_types([])


def test_a_transposed_constant_is_read_in_its_own_order() -> None:
    values = np.arange(6, dtype=np.int32).reshape(2, 3).T
    op = Const(values)
    assert (evaluated(op, TensorType((3, 2), I32)) == values).all()


def test_const_shape_is_a_shape() -> None:
    assert ConstShape(np.array([2, 3], np.int64)).result_types([]) == (ShapeType(2),)
    assert ConstShape(np.zeros(0, np.int64)).result_types([]) == (ShapeType(0),)
    assert ConstShape(np.array([2, 3], np.int64)).reference().tolist() == [2, 3]
    with pytest.raises(Problem, match="a shape is one list of integers, not 2"):
        ConstShape(np.zeros((1, 1), np.int64)).result_types([])


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 3)], ids=str)
def test_identity_is_its_operand(element: ElementType, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 2, shape).astype(element.dtype)
    assert (check(Identity(), x, elements={0: element}) == x).all()


def test_identity_takes_a_tensor() -> None:
    with pytest.raises(Problem, match=r"the input must be a tensor, not !tosa.shape<2>"):
        Identity().result_types([Given(ShapeType(2))])
    assert Identity().result_types([unknown(None, 2, element=F32)]) == (TensorType((None, 2), F32),)


def test_variables_declare_read_and_write() -> None:
    type = TensorType((2,), F32)
    assert Variable("s", type).result_types([]) == Variable("s", type, np.zeros(2, np.float32)).result_types([]) == ()
    assert VariableRead("s", type).result_types([]) == (type,)
    assert VariableWrite("s").result_types([unknown(2, element=F32)]) == ()
    assert [c.variable_effect for c in (Variable, VariableRead, VariableWrite)] == ["declare", "read", "write"]


def test_variables_have_their_older_names() -> None:
    assert OPERATORS["tosa.variable.read"] is OPERATORS["tosa.variable_read"] is VariableRead
    assert OPERATORS["tosa.variable.write"] is OPERATORS["tosa.variable_write"] is VariableWrite


@pytest.mark.parametrize("initial", [np.zeros(3, np.float32), np.zeros(2, np.float64), np.zeros((2, 1), np.float32)],
                         ids=str)
def test_an_initial_value_has_the_type_of_its_variable(initial: np.ndarray) -> None:
    with pytest.raises(Problem, match=r"variable @s is tensor<2xf32>, its initial value has shape"):
        Variable("s", TensorType((2,), F32), initial).result_types([])


def test_a_shape_cannot_be_written_to_a_variable() -> None:
    with pytest.raises(Problem, match="what is written to @s must be a tensor"):
        VariableWrite("s").result_types([Given(ShapeType(2))])
