"""Block-scaled types, constants of them and of `!tosa.mxint8`, and block sizes in MLIR text."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.graph.block_scaled_arrays import joined
from tosaic.lowering.graph.graph import BlockBuilder, Function, Module, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import (
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E5M2,
    MXINT8,
    BlockScaled,
    ElementType,
    TensorType,
    block_scaled,
)
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

VALUES = (F8E4M3, F8E5M2, F6E3M2, F6E2M3, F4E2M1, MXINT8)


def constant_of(text: str, type: str) -> Value:
    """The value that a constant of that text is."""
    module = read_module(f'func.func @f() -> {type} {{\n  %0 = "tosa.const"() <{{values = {text}}}> : () -> {type}\n'
                         f"  return %0 : {type}\n}}")
    return module.function("f").body.yields[0]


def printed(array: np.ndarray, element: ElementType) -> str:
    builder = BlockBuilder()
    value, = builder.add(OPERATORS["tosa.const"](values=array, to=element))
    return print_module(Module((Function("f", builder.finish(value), (value.type,)),)))


def spelled(value: ElementType) -> str:
    return f"!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:{value}>"


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_block_scaled_type_is_read_however_it_is_spaced(value: ElementType) -> None:
    for text in (spelled(value), f"!tosa.block_scaled< BLOCK_SHAPE_32 : f8E8M0FNU:\n {value} >"):
        module = read_module(f"func.func @f(%x: tensor<2x32x{text}>) {{\n  return\n}}")
        assert module.function("f").arguments[0].type == TensorType((2, 32), block_scaled(value))


def test_a_block_scaled_type_that_is_not_known_is_kept_as_text() -> None:
    text = "tensor<2x!tosa.block_scaled<BLOCK_SHAPE_16:f8E8M0FNU:f4E2M1FN>>"
    assert str(read_module(f"func.func @f(%x: {text}) {{\n  return\n}}").function("f").arguments[0].type) == text


@pytest.mark.parametrize("text", ["dense<tensor<2x!tosa.mxint8> : [127 : i8, -128 : i8]>",
                                  'dense<"0x7F80"> : tensor<2x!tosa.mxint8>',
                                  "dense< tensor<2x!tosa.mxint8> : [ 127:i8 , -128 : i8 ] >"])
def test_a_constant_of_mxint8_is_bytes(text: str) -> None:
    found = constant_of(text, "tensor<2x!tosa.mxint8>")
    assert found.type == TensorType((2,), MXINT8) and found.constant is not None
    assert found.constant.dtype == np.int8 and found.constant.tolist() == [127, -128]


def test_a_splat_of_mxint8_has_one_number() -> None:
    found = constant_of("dense<tensor<2x3x!tosa.mxint8> : -5 : i8>", "tensor<2x3x!tosa.mxint8>")
    assert found.constant is not None and found.constant.tolist() == [[-5] * 3] * 2


def test_a_block_scaled_constant_has_its_scales_in_its_type() -> None:
    numbers = ", ".join(f"{x:.6e} : f4E2M1FN" for x in [1.5, -6, 0, 0.5] * 8)
    type = "tensor<2x32x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN, {5.000000e-01, 1.152920e+18}>>"
    found = constant_of(f"dense<{type} : [[{numbers}], [{numbers}]]>", f"tensor<2x32x{spelled(F4E2M1)}>").constant
    assert found is not None and not found.flags.writeable
    assert found["value"].astype(float).tolist() == [[1.5, -6, 0, 0.5] * 8] * 2
    assert found["scale"].astype(float).tolist() == [[0.5] * 32, [2.0 ** 60] * 32]


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("shape", [(32,), (3, 64), (2, 2, 32)])
def test_a_block_scaled_constant_is_printed_as_it_is_read(value: ElementType, shape: tuple[int, ...]) -> None:
    rng, element = np.random.default_rng(0), block_scaled(value)
    scales = rng.integers(0, 256, (*shape[:-1], shape[-1] // 32)).astype(np.uint8)
    array = joined(rng.integers(0, 1 << value.bits, shape).astype(np.uint8), scales, element)
    text = printed(array, element)
    module = read_module(text)
    assert print_module(module) == text
    found = module.function("f").body.yields[0]
    assert found.type == TensorType(shape, element) and found.constant is not None
    assert found.constant.tobytes() == array.tobytes()


def test_one_mxint8_without_axes_is_one_number() -> None:
    one = np.array(-8, np.int8)
    assert "dense<tensor<!tosa.mxint8> : -8 : i8>" in (text := printed(one, MXINT8))
    assert read_module(text).function("f").body.operations[0].results[0].constant == one


def test_every_mxint8_is_printed_as_it_is_read() -> None:
    array = np.arange(-128, 128, dtype=np.int8).reshape(4, 64)
    text = printed(array, MXINT8)
    found = read_module(text).function("f").body.yields[0].constant
    assert found is not None and np.array_equal(found, array) and "tensor<4x64x!tosa.mxint8> : [[-128 : i8" in text


@pytest.mark.parametrize("element", [MXINT8, block_scaled(F6E2M3)], ids=str)
def test_numbers_that_are_all_alike_are_printed_once(element: ElementType) -> None:
    array = np.zeros((2, 64), element.dtype)
    text = printed(array, element)
    found = read_module(text).function("f").body.yields[0].constant
    assert found is not None and found.tobytes() == array.tobytes()
    assert text.count("0 : i8" if element == MXINT8 else "0 : f6E2M3FN") == 1


def test_a_type_behind_a_constant_must_be_the_one_in_it() -> None:
    text, type = "dense<tensor<2x!tosa.mxint8> : 1 : i8>", "tensor<2x!tosa.mxint8>"
    assert constant_of(f"{text} : {type}", type).type == TensorType((2,), MXINT8)
    with pytest.raises(Problem, match="behind it is another type"):
        constant_of(f"{text} : tensor<3x!tosa.mxint8>", type)


@pytest.mark.parametrize("element", [MXINT8, block_scaled(F4E2M1)], ids=str)
def test_a_long_constant_is_elided(element: ElementType) -> None:
    builder = BlockBuilder()
    array = np.zeros((2, 64), element.dtype)
    value, = builder.add(OPERATORS["tosa.const"](values=array, to=element))
    module = Module((Function("f", builder.finish(value), (value.type,)),))
    assert f"dense_resource<__elided__> : tensor<2x64x{element}>" in print_module(module, elide=100)
    assert "elided" not in print_module(module, elide=128)


BLOCKS = f"tensor<32x{spelled(F4E2M1)}>"


def with_scales(scales: str, numbers: str, extent: int = 32) -> str:
    return f"dense<tensor<{extent}x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN{scales}>> : {numbers}>"


@pytest.mark.parametrize(("text", "type", "message"), [
    ("dense<1.0> : " + BLOCKS, BLOCKS, "written with its scales"),
    (with_scales("", "1.0 : f4E2M1FN"), BLOCKS, "needs its scales"),
    (with_scales(", {1.0, 2.0}", "1.0 : f4E2M1FN"), BLOCKS, "more than 1 elements"),
    (with_scales(", {}", "1.0 : f4E2M1FN"), BLOCKS, "expected 1 elements|expected an element"),
    (with_scales(", {1.0}", "1.0 : f32"), BLOCKS, "expected a number of type f4E2M1FN, found one of f32"),
    (with_scales(", {1.0}", "[1.0 : f4E2M1FN]"), BLOCKS, "expected 32 elements"),
    (with_scales(", {1.0}", "1.0 : f4E2M1FN", 40), BLOCKS, "multiple of 32"),
    ("dense<tensor<2x!tosa.mxint8> : [127 : i16, 1 : i8]>", "tensor<2x!tosa.mxint8>", "found one of i16"),
    ("dense<tensor<2x!tosa.mxint8> : [300 : i8, 1 : i8]>", "tensor<2x!tosa.mxint8>", "300 does not fit"),
    ("dense<tensor<?x!tosa.mxint8> : 1 : i8>", "tensor<2x!tosa.mxint8>", "static type"),
    ("dense<tensor<2x!tosa.mxint8>>", "tensor<2x!tosa.mxint8>", "expected"),
])
def test_a_constant_that_does_not_fit_its_type_is_refused(text: str, type: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        constant_of(text, type)


@pytest.mark.parametrize("size", ["BLOCK_SIZE_32", "#tosa.block_size<BLOCK_SIZE_32>",
                                  "#tosa.block_size<BLOCK_SIZE_32> : i32", "BLOCK_SIZE_32 : i32"])
def test_a_block_size_is_read_in_every_spelling(size: str) -> None:
    types = "(tensor<2x64xf32>) -> (tensor<2x64xf6E3M2FN>, tensor<2x2xf8E8M0FNU>)"
    for operation in (f"tosa.cast_to_block_scaled %x {{block_size = {size}}} : {types}",
                      f'"tosa.cast_to_block_scaled"(%x) <{{block_size = {size}}}> : {types}'):
        module = read_module(f"func.func @f(%x: tensor<2x64xf32>) {{\n  %0:2 = {operation}\n  return\n}}")
        op = module.function("f").body.operations[0].op
        assert (op.block_size, op.to, op.name) == (  # type: ignore[attr-defined]
            "BLOCK_SIZE_32", F6E3M2, "tosa.cast_to_block_scaled")


def test_another_block_size_is_refused() -> None:
    with pytest.raises(Problem, match=r"block_size of tosa.cast_to_block_scaled"):
        read_module('func.func @f(%x: tensor<32xf32>) {\n  %0:2 = "tosa.cast_to_block_scaled"(%x) <{block_size = '
                    "#tosa.block_size<BLOCK_SIZE_64>}> : (tensor<32xf32>) -> (tensor<32xf8E5M2>, tensor<1xf8E8M0FNU>)\n"
                    "  return\n}")


def test_a_block_scaled_type_compares_by_its_parts() -> None:
    assert isinstance(block_scaled(F4E2M1), BlockScaled) and block_scaled(F4E2M1) == block_scaled(F4E2M1)
    assert len({block_scaled(v) for v in VALUES}) == len(VALUES)
