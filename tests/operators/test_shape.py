"""Operators on shapes: folded when compiling, run by the interpreter, refused where the specification says so."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tosa.shape import (
    AddShape,
    DivCeilShape,
    DivFloorShape,
    Exp2Shape,
    Log2CeilShape,
    Log2FloorShape,
    MaxShape,
    MinShape,
    ModShape,
    MulShape,
    SubShape,
)
from tosaic.lowering.dialects.tosa.shape_lists import AssertEqualShape, ConcatShape, Dim, SliceShape
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import F32, I8, I32, I64, MXINT8, ElementType, OpaqueType, ShapeType, TensorType, block_scaled
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .harness import Given, unknown

LEAST, MOST = -(1 << 31), (1 << 31) - 1


def shape(*extents: int) -> Given:
    return Given(ShapeType(len(extents)), np.array(extents, np.int64))


def number(value: int, element: ElementType = I32) -> Given:
    return Given(TensorType((1,), element), np.array([value], element.dtype))


VALUES: list[tuple[Op, Sequence[Given], list[int]]] = [
    (AddShape(), [shape(1, -2, MOST), shape(3, 2, LEAST)], [4, 0, -1]),
    (SubShape(), [shape(1, -2, MOST), shape(3, 2, 1)], [-2, -4, MOST - 1]),
    (MulShape(), [shape(7, -2, 65536), shape(3, 2, 32767)], [21, -4, MOST - 65535]),
    (DivCeilShape(), [shape(0, 7, 8, 9, MOST), shape(4, 4, 4, 4, 1)], [0, 2, 2, 3, MOST]),
    (DivFloorShape(), [shape(0, 7, 8, 9, MOST), shape(4, 4, 4, 4, MOST)], [0, 1, 2, 2, 1]),
    (ModShape(), [shape(0, 7, 8, 9), shape(4, 4, 4, 4)], [0, 3, 0, 1]),
    (DivCeilShape(), [shape(-992989567, -8), shape(-31030924, -4)], [32, 2]),
    (DivFloorShape(), [shape(-992989567, -8, 7), shape(-31030924, -4, -2)], [31, 2, -3]),
    (ModShape(), [shape(-7, 7), shape(4, -4)], [-3, 3]),
    (MaxShape(), [shape(1, -2), shape(3, -3)], [3, -2]),
    (MinShape(), [shape(1, -2), shape(3, -3)], [1, -3]),
    (Exp2Shape(), [shape(0, 1, 10, 30)], [1, 2, 1024, 1 << 30]),
    (Log2CeilShape(), [shape(1, 2, 3, 4, 5, (1 << 30) - 1, 1 << 30, MOST)], [0, 1, 2, 2, 3, 30, 30, 31]),
    (Log2FloorShape(), [shape(1, 2, 3, 4, 5, (1 << 30) - 1, 1 << 30, MOST)], [0, 1, 1, 2, 2, 29, 30, 30]),
    (ConcatShape(), [shape(1), shape(2, 3), shape(4)], [1, 2, 3, 4]),
    (ConcatShape(), [shape(5)], [5]),
    (SliceShape(), [shape(4, 5, 6, 7), number(1), number(2)], [5, 6]),
    (SliceShape(), [shape(4, 5, 6, 7), number(0), number(4)], [4, 5, 6, 7]),
    (Dim(1), [unknown(4, 6, 8, element=I8)], [6]),
    (Dim(0), [unknown(None, 2, element=I8)], []),
    (AddShape(), [shape(), shape()], []),
]


@pytest.mark.parametrize(("op", "operands", "expected"), VALUES, ids=lambda x: getattr(x, "name", ""))
def test_a_shape_is_known_as_soon_as_its_operation_is_made(op: Op, operands: Sequence[Given], expected: list[int]) -> None:
    unknown_extent = isinstance(op, Dim) and not expected
    assert op.result_types(operands) == (ShapeType(1 if unknown_extent else len(expected)),)
    found = op.constant(operands)
    if unknown_extent:
        assert found is None
    else:
        assert found is not None and found.dtype == np.int64 and found.tolist() == expected and not found.flags.writeable


@pytest.mark.parametrize(("op", "operands", "expected"), [v for v in VALUES if not isinstance(v[0], Dim)],
                         ids=lambda x: getattr(x, "name", ""))
def test_the_reference_gives_what_is_folded(op: Op, operands: Sequence[Given], expected: list[int]) -> None:
    found = op.reference(*(o.constant for o in operands))
    assert isinstance(found, np.ndarray) and found.dtype == np.int64 and found.tolist() == expected


def test_the_reference_of_dim_reads_the_array() -> None:
    for axis, extent in enumerate((3, 1, 5)):
        found = Dim(axis).reference(np.zeros((3, 1, 5), np.int8))
        assert found.dtype == np.int64 and found.tolist() == [extent]


UNKNOWN = Given(ShapeType(2))


@pytest.mark.parametrize("op", [AddShape(), SubShape(), MulShape(), DivCeilShape(), DivFloorShape(), ModShape(),
                                MaxShape(), MinShape()], ids=lambda op: op.name)
def test_a_shape_of_unknown_extents_has_a_length(op: Op) -> None:
    assert op.result_types([UNKNOWN, shape(1, 2)]) == (ShapeType(2),)
    assert op.constant([UNKNOWN, shape(1, 2)]) is None
    with pytest.raises(Problem, match="the shapes have 2 and 3 extents"):
        op.result_types([UNKNOWN, shape(1, 2, 3)])
    assert ConcatShape().constant([shape(1), UNKNOWN]) is None
    assert ConcatShape().result_types([shape(1), UNKNOWN]) == (ShapeType(3),)


TENSOR = Given(TensorType((2,), I64), np.array([1, 2]))
BAD: list[tuple[Op, Sequence[Given], str]] = [
    *((op, [shape(1), shape(1, 2)], "the shapes have 1 and 2 extents")
      for op in (AddShape(), SubShape(), MulShape(), DivCeilShape(), DivFloorShape(), ModShape(), MaxShape(), MinShape(),
                 AssertEqualShape(False), AssertEqualShape(True))),
    *((op, [TENSOR, shape(1, 2)], "the first operand must be a shape") for op in (AddShape(), AssertEqualShape(True))),
    (MaxShape(), [shape(1, 2), TENSOR], "the second operand must be a shape"),
    (Exp2Shape(), [TENSOR], "the operand must be a shape"),
    (Log2FloorShape(), [Given(OpaqueType("none"))], "the operand must be a shape, it is none"),
    (AddShape(), [shape(1)], "does not take 1 operands"),
    (AddShape(), [shape(MOST), shape(1)], "2147483648 is beyond what a shape may hold"),
    (SubShape(), [shape(LEAST), shape(1)], "-2147483649 is beyond"),
    (MulShape(), [shape(65536), shape(32768)], "2147483648 is beyond"),
    *((op, [shape(3), shape(0)], "3 is divided by 0") for op in (DivCeilShape(), DivFloorShape(), ModShape())),
    *((op, [shape(LEAST), shape(-1)], "2147483648 is beyond") for op in (DivCeilShape(), DivFloorShape())),
    (Exp2Shape(), [shape(31)], r"2 to the power 31: the power must be in \[0, 31\)"),
    (Exp2Shape(), [shape(-1)], "2 to the power -1"),
    (Log2CeilShape(), [shape(0)], "the logarithm of 0, which must be positive"),
    (Log2FloorShape(), [shape(-8)], "the logarithm of -8, which must be positive"),
    (ConcatShape(), [], "at least one shape is needed"),
    (ConcatShape(), [shape(1), shape()], "a shape without extents cannot be part of another"),
    (ConcatShape(), [shape(1), TENSOR], "operand 1 must be a shape"),
    (SliceShape(), [shape(1, 2), number(0), number(0)], "the size must be positive, it is 0"),
    (SliceShape(), [shape(1, 2), number(-1), number(1)], "the start must not be negative, it is -1"),
    (SliceShape(), [shape(1, 2), number(1), number(2)], "a shape of 2 extents has no 2 from 1 on"),
    (SliceShape(), [shape(1, 2), number(0, I64), number(1)], "the start must be i32"),
    (SliceShape(), [shape(1, 2), number(0), TENSOR], "the size must be i32"),
    (SliceShape(), [shape(1, 2), unknown(1, element=I32), number(1)], "the start must be known when compiling"),
    (SliceShape(), [shape(1, 2), shape(0), number(1)], "the start must be a tensor"),
    (Dim(2), [unknown(4, 5, element=F32)], "axis 2 is outside the 2 axes"),
    (Dim(-1), [unknown(4, 5, element=F32)], "axis -1 is outside the 2 axes"),
    (Dim(0), [unknown(element=F32)], "axis 0 is outside the 0 axes"),
    (Dim(0), [shape(4)], "the input must be a tensor"),
    (Dim(0), [Given(TensorType((4, 33), block_scaled(MXINT8)))], "is no multiple of 32"),
    (AssertEqualShape(False), [shape(1, 2), shape(1, 3)], r"\[1, 2\] and \[1, 3\] must be equal in each extent"),
    (AssertEqualShape(False), [shape(1, 2), shape(2, 2)], "must be equal"),
    (AssertEqualShape(True), [shape(1, 2), shape(4, 3)], "must be equal, or 1, in each extent"),
]


@pytest.mark.parametrize(("op", "operands", "message"), BAD, ids=[f"{b[0].name} {b[2]}" for b in BAD])
def test_shapes_are_refused(op: Op, operands: Sequence[Given], message: str) -> None:
    with pytest.raises(Problem, match=message):
        op.result_types(operands)
    assert op.constant(operands) is None


def test_equal_shapes_are_no_result() -> None:
    for op, a, b in ((AssertEqualShape(False), shape(2, 3), shape(2, 3)), (AssertEqualShape(True), shape(1, 3), shape(2, 1)),
                     (AssertEqualShape(True), UNKNOWN, shape(2, 1)), (AssertEqualShape(False), shape(), shape())):
        assert op.result_types([a, b]) == ()
        if a.constant is not None:
            assert op.reference(a.constant, b.constant) == ()
    with pytest.raises(Problem, match=r"shapes \[2\] and \[3\] differ"):
        AssertEqualShape(False).reference(np.array([2]), np.array([3]))
    with pytest.raises(Problem, match=r"shapes \[2, 1\] and \[3, 1\] differ"):
        AssertEqualShape(True).reference(np.array([2, 1]), np.array([3, 1]))


def test_a_block_scaled_tensor_has_extents_in_elements() -> None:
    operand = Given(TensorType((4, 64), block_scaled(MXINT8)))
    found = Dim(1).constant([operand])
    assert found is not None and found.tolist() == [64]


TEXT = """
func.func @main(%x: tensor<4x6xi8>) -> tensor<3x8xi8> {
  %a = tosa.dim %x {axis = 0 : i32} : (tensor<4x6xi8>) -> !tosa.shape<1>
  %b = tosa.dim %x {axis = 1 : i32} : (tensor<4x6xi8>) -> !tosa.shape<1>
  %n = tosa.mul_shape %a, %b : (!tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<1>
  %two = tosa.const_shape {values = dense<2> : tensor<1xindex>} : () -> !tosa.shape<1>
  %log = tosa.log2_ceil_shape %b : (!tosa.shape<1>) -> !tosa.shape<1>
  %eight = tosa.exp2_shape %log : (!tosa.shape<1>) -> !tosa.shape<1>
  %three = tosa.div_ceil_shape %n, %eight : (!tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<1>
  %all = tosa.concat_shape %n, %three, %eight : (!tosa.shape<1>, !tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<3>
  %start = "tosa.const"() <{values = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
  %size = "tosa.const"() <{values = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
  %s = tosa.slice_shape %all, %start, %size : (!tosa.shape<3>, tensor<1xi32>, tensor<1xi32>) -> !tosa.shape<2>
  %check = tosa.const_shape {values = dense<[3, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  tosa.assert_equal_shape %s, %check {allow_broadcast = true} : (!tosa.shape<2>, !tosa.shape<2>) -> ()
  %y = tosa.reshape %x, %s : (tensor<4x6xi8>, !tosa.shape<2>) -> tensor<3x8xi8>
  return %y : tensor<3x8xi8>
}
"""


def test_a_shape_that_is_computed_costs_nothing_at_run_time() -> None:
    model = tosaic.load(TEXT)
    x = np.arange(24, dtype=np.int8).reshape(4, 6)
    np.testing.assert_array_equal(model(x), x.reshape(3, 8))
    assert model.entry().check([[x]]).agrees
    assert len(model.entry().lower().kernels.kernels) == 1


def test_shapes_are_printed_and_read_again() -> None:
    text = print_module(read_module(TEXT))
    assert '"tosa.assert_equal_shape"' in text and "allow_broadcast = true" in text and "axis = 1 : i32" in text
    assert print_module(read_module(text)) == text
    x = np.arange(24, dtype=np.int8).reshape(4, 6)
    np.testing.assert_array_equal(tosaic.load(text)(x), x.reshape(3, 8))


def test_a_wrong_assertion_is_an_error_at_its_place() -> None:
    with pytest.raises(Problem, match=r"\[3, 8\] and \[5, 1\] must be equal") as found:
        tosaic.load(TEXT.replace("dense<[3, 1]>", "dense<[5, 1]>"))
    assert found.value.position is not None and found.value.position.line == 15


def test_traced_functions_compute_shapes() -> None:
    tosa = tosaic.tosa

    @tosaic.jit
    def flat(x: tosaic.Tensor) -> tosaic.Tensor:
        size = tosa.mul_shape(tosa.dim(x, axis=0), tosa.dim(x, axis=1))
        tosa.assert_equal_shape(size, [24])
        whole = tosa.concat_shape([4, 2], size)
        return tosa.reshape(x, tosa.slice_shape(whole, start=2, size=1))

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(flat(x), x.reshape(-1))
    with pytest.raises(Problem, match=r"\[12\] and \[24\] must be equal"):
        flat(x[:2])
