"""Every spelling of a type gives the type; what is no tensor of a known element is kept as text."""
from __future__ import annotations

import pytest
from tosaic.lowering.graph.types import (
    ELEMENT_TYPES,
    F6E3M2,
    F32,
    I8,
    MXINT8,
    OpaqueType,
    ShapeType,
    TensorType,
    Type,
    block_scaled,
)
from tosaic.lowering.text.reader import read_module


def argument(type: str, before: str = "", after: str = "") -> Type:
    module = read_module(f"{before}\nfunc.func @f(%a: {type}) -> {type} {{ return %a : {type} }}\n{after}")
    (value,) = module.functions[0].arguments
    assert module.functions[0].result_types == (value.type,)
    return value.type


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_a_tensor_may_hold_each_element_type(name: str) -> None:
    found = argument(f"tensor<2x3x{name}>")
    assert found == TensorType((2, 3), ELEMENT_TYPES[name])
    assert str(found) == f"tensor<2x3x{name}>"


@pytest.mark.parametrize(("text", "expected"), [
    ("tensor<f32>", TensorType((), F32)),
    ("tensor<?x1xf32>", TensorType((None, 1), F32)),
    ("tensor<*xf32>", TensorType(None, F32)),
    ("tensor< 2 x 3 x f32 >", TensorType((2, 3), F32)),
    ("tensor<0xi8>", TensorType((0,), I8)),
    ("tensor<0x1xi8>", TensorType((0, 1), I8)),
    ("tensor<9223372036854775807xi8>", TensorType(((1 << 63) - 1,), I8)),
    ("!tosa.shape<4>", ShapeType(4)),
    ("tensor<4x!tosa.mxint8>", TensorType((4,), MXINT8)),
    ("tensor<2x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f6E3M2FN>>", TensorType((2,), block_scaled(F6E3M2))),
    ("!tosa.shape<0>", ShapeType(0)),
    ("!tosa.shape< 12 >", ShapeType(12))])
def test_tensors_and_shapes_are_understood(text: str, expected: Type) -> None:
    assert argument(text) == expected


@pytest.mark.parametrize("text", [
    "f32", "index", "i32", "i17", "none", "f80", "!tosa.mxint8", "tensor<2xi17>",
    "tensor<2x!tosa.block_scaled<BLOCK_SHAPE_16:f8E8M0FNU:f6E3M2FN>>", "tensor<2x!quant.uniform<i3:f32, 0.01>>",
    "tensor<2x!quant.uniform<i8:f32:{0:1}, {{0.1:1}, {0.2}}>>",
    "!tf_type.resource<tensor<6x32xf32>>", "tensor<!tf_type.variant<tensor<2x8xf32>>>", "tuple<f32, i32>",
    "vector<4xf32>", "memref<2x?xf32>", "complex<f32>", "tensor<2xcomplex<f32>>", "tensor<2x3xf32, #tf.layout<a>>",
    '!other.string<"a > b", (i32) -> f32>'])
def test_other_types_are_kept_as_text(text: str) -> None:
    found = argument(text)
    assert isinstance(found, OpaqueType)
    assert str(found) == text


def test_an_alias_of_a_type_may_stand_before_or_after_its_use() -> None:
    expected = TensorType((2,), F32)
    assert argument("!row", before="!row = tensor<2xf32>") == expected
    assert argument("!row", after="!row = tensor<2xf32>") == expected
    assert argument("tensor<2x!e>", before="!e = f32") == expected
    assert argument("!a", before="!a = !b\n!b = tensor<2xf32>") == expected


def test_aliases_inside_a_type_that_is_kept_as_text_are_replaced() -> None:
    aliases = '!t = tensor<2xf32>\n!u = !x.y<!t, "!t">\n'
    assert argument("!a.b<!t>", before=aliases) == OpaqueType("!a.b<tensor<2xf32>>")
    assert argument("!u", before=aliases) == OpaqueType('!x.y<tensor<2xf32>, "!t">')
    assert argument("tensor<1x!t>", before=aliases) == OpaqueType("tensor<1xtensor<2xf32>>")


def test_comments_and_line_breaks_may_stand_inside_a_signature() -> None:
    module = read_module("""func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tosa.add %a,  // one
        %a : (tensor<2xf32>, // two
              tensor<2xf32>)  // three
           -> tensor<2xf32>
      return %0 : tensor<2xf32>  // CHECK: return
    }""")
    assert module.functions[0].body.operations[0].results[0].type == TensorType((2,), F32)
