"""What the rules of block-scaled tensors refuse: every ERROR_IF, and types that do not go together."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F8E8M0, F16, F32, I8, I32, MXINT8, ElementType, block_scaled

from .block_scaled import COMPOSITES, Graph

COMPOSITE = COMPOSITES[2]
Input = tuple[ElementType, tuple[int, ...]]
S32 = {"block_size": "BLOCK_SIZE_32"}


def refused(name: str, inputs: list[Input | tuple[int, ...]], attributes: dict[str, Any], message: str) -> None:
    """The module of one operator is refused; a tuple of numbers alone is a constant shape."""
    graph = Graph()
    with pytest.raises(tosaic.Problem, match=message) as found:
        operands = [graph.input(i[0], *i[1]) if i and isinstance(i[0], ElementType)
                    else graph.shape(*i) for i in inputs]  # type: ignore[arg-type, misc]
        graph.module(*graph.add(OPERATORS[f"tosa.{name}"](**attributes), *operands))
    assert not found.value.unsupported


FROM: dict[str, Any] = S32 | {"to": F32}
TO: dict[str, Any] = S32 | {"to": F8E4M3}


@pytest.mark.parametrize(("inputs", "attributes", "message"), [
    ([(F8E4M3, ()), (F8E8M0, ())], FROM, "the input has rank 0"),
    ([(F8E4M3, (2, 40)), (F8E8M0, (2, 1))], FROM, "2x40, is no multiple of 32"),
    ([(F8E4M3, (2, 64)), (F8E8M0, (2, 1))], FROM, "has scales of 2x2"),
    ([(F8E4M3, (2, 64)), (F8E8M0, (3, 2))], FROM, "has scales of 2x2"),
    ([(F8E4M3, (2, 64)), (F8E8M0, (2,))], FROM, "has scales of 2x2"),
    ([(F8E4M3, (2, 64)), (F8E4M3, (2, 2))], FROM, "the scale of the input may not be f8E4M3FN"),
    ([(F32, (2, 64)), (F8E8M0, (2, 2))], FROM, "the input may not be f32"),
    ([(F8E4M3, (2, 64)), (F8E8M0, (2, 2))], FROM | {"to": F16}, "the result may not be f16"),
    ([(F8E4M3, (2, 64)), (F8E8M0, (2, 2))], FROM | {"block_size": "BLOCK_SIZE_1"}, "more than one value"),
    ([(F8E4M3, (2, 64)), (F8E8M0, (2, 2))], FROM | {"block_size": "BLOCK_SIZE_16"}, "BLOCK_SIZE_16 is no block size"),
    ([(F8E4M3, (2, 64))], FROM, "does not take 1 operands"),
])
def test_cast_from_block_scaled_refuses(inputs: Any, attributes: dict[str, Any], message: str) -> None:
    refused("cast_from_block_scaled", inputs, attributes, message)


@pytest.mark.parametrize("text", ["", ", stochastic_round = false", ", stochastic_round = true"])
def test_a_cast_to_block_scaled_may_say_that_it_does_not_round_at_random(text: str) -> None:
    module = f"""func.func @f(%a: tensor<32xf32>) -> (tensor<32xf8E4M3FN>, tensor<1xf8E8M0FNU>) {{
        %0:2 = tosa.cast_to_block_scaled %a {{block_size = #tosa.block_size<BLOCK_SIZE_32> : i32{text}}} :
            (tensor<32xf32>) -> (tensor<32xf8E4M3FN>, tensor<1xf8E8M0FNU>)
        return %0#0, %0#1 : tensor<32xf8E4M3FN>, tensor<1xf8E8M0FNU> }}"""
    if "true" in text:
        with pytest.raises(tosaic.Problem, match="stochastic rounding is not supported") as found:
            tosaic.load(module)
        assert found.value.unsupported
        return
    values, scales = tosaic.load(module)(np.full(32, 3.0, np.float32))
    assert (values.astype(np.float32) * scales.astype(np.float32)).tolist() == [3.0] * 32


@pytest.mark.parametrize(("inputs", "attributes", "message"), [
    ([(F32, ())], TO, "the input has rank 0"),
    ([(F32, (33,))], TO, "33, is no multiple of 32"),
    ([(F16, (32,))], TO, "the input may not be f16"),
    ([(F32, (32,))], TO | {"to": I8}, "the first result may not be i8"),
    ([(F32, (32,))], TO | {"block_size": "BLOCK_SIZE_1"}, "more than one value"),
    ([(F32, (32,))], TO | {"block_size": "UNKNOWN"}, "UNKNOWN is no block size"),
])
def test_cast_to_block_scaled_refuses(inputs: Any, attributes: dict[str, Any], message: str) -> None:
    refused("cast_to_block_scaled", inputs, attributes, message)


def product(first: Any = (F8E5M2, (2, 3, 64)), scale: Any = (F8E8M0, (2, 3, 2)), second: Any = (F8E5M2, (2, 5, 64)),
            other: Any = (F8E8M0, (2, 5, 2))) -> list[Any]:
    return [first, scale, second, other]


@pytest.mark.parametrize(("inputs", "attributes", "message"), [
    (product(first=(F8E5M2, (2, 3, 33))), S32, "no multiple of 32"),
    (product(second=(F8E5M2, (3, 5, 64)), other=(F8E8M0, (3, 5, 2))), S32, "neither 1 nor"),
    (product(second=(F8E5M2, (2, 5, 32)), other=(F8E8M0, (2, 5, 1))), S32, "the last extents"),
    (product(second=(F8E4M3, (2, 5, 64))), S32, "values of one type"),
    (product(first=(F8E5M2, (3, 64)), scale=(F8E8M0, (3, 2))), S32, "must have rank 3"),
    (product(other=(F8E8M0, (1, 5, 2))), S32, "has scales of 2x5x2"),
    (product(), {"block_size": "BLOCK_SIZE_1"}, "more than one value"),
    (product()[:3], S32, "does not take 3 operands"),
])
def test_matmul_t_block_scaled_refuses(inputs: Any, attributes: dict[str, Any], message: str) -> None:
    refused("matmul_t_block_scaled", inputs, attributes, message)


IMAGE: list[Any] = [(F8E5M2, (1, 4, 4, 32)), (F8E8M0, (1, 4, 4, 1)), (F8E5M2, (2, 2, 2, 32)), (F8E8M0, (2, 2, 2, 1)),
                    (F32, (2,)), (0, 0, 0, 0), (1, 1), (1, 1)]


@pytest.mark.parametrize(("changes", "message"), [
    ({5: (0, -1, 0, 0)}, "pad must not be below 0"), ({6: (0, 1)}, "stride must not be below 1"),
    ({7: (1, 0)}, "dilation must not be below 1"), ({6: (3, 1)}, "does not divide"),
    ({4: (F32, (3,))}, "the bias has 3 numbers"), ({4: (F16, (2,))}, "the bias may not be f16"),
    ({0: (F8E5M2, (1, 4, 4, 48))}, "no multiple of 32"), ({2: (F8E4M3, (2, 2, 2, 32))}, "values of one type"),
    ({0: (F8E5M2, (1, 4, 4, 64)), 1: (F8E8M0, (1, 4, 4, 2))}, "the input has 64 channels, the weight 32"),
    ({0: (MXINT8, (1, 4, 4, 32))}, "the input may not be !tosa.mxint8"), ({5: (0, 0)}, "the pad must be"),
    ({0: (F8E5M2, (4, 4, 32)), 1: (F8E8M0, (4, 4, 1))}, "must have rank 4"),
    ({1: (F8E8M0, (1, 4, 4, 2))}, "the scale of the input"), ({3: (F8E8M0, (1, 2, 2, 1))}, "the scale of the weight"),
])
def test_conv2d_block_scaled_refuses(changes: dict[int, Any], message: str) -> None:
    refused("conv2d_block_scaled", [changes.get(i, x) for i, x in enumerate(IMAGE)], S32, message)


@pytest.mark.parametrize(("inputs", "size", "message"), [
    ([(F32, (4, 4)), (2, 8)], "BLOCK_SIZE_32", "do not go with blocks of 32"),
    ([(F8E4M3, (2, 32)), (F8E8M0, (2, 1)), (64,)], "BLOCK_SIZE_1", "do not go with blocks of 1"),
    ([(F8E4M3, (2, 32)), (F8E8M0, (2, 1)), (F8E8M0, (2, 1)), (64,)], "BLOCK_SIZE_32", "the list has 3 tensors"),
    ([(4, 4)], "BLOCK_SIZE_1", "the list has 0 tensors"),
    ([(F32, (4, 4)), (3, 5)], "BLOCK_SIZE_1", "has 16 elements"),
    ([(F32, (4, 4)), (-1, 4)], "BLOCK_SIZE_1", "is not a shape"),
    ([(F8E4M3, (3, 32)), (F8E8M0, (3, 1)), (2, 48)], "BLOCK_SIZE_32", "no multiple of 32"),
    ([(F8E4M3, (1, 33)), (F8E8M0, (1, 1)), (33,)], "BLOCK_SIZE_32", "no multiple of 32"),
    ([(F8E4M3, (2, 32)), (F8E8M0, (2,)), (64,)], "BLOCK_SIZE_32", "the scale of the input"),
    ([(F8E4M3, (32,)), (F8E8M0, (1,)), ()], "BLOCK_SIZE_32", "rank 0"),
    ([(F32, (4, 4)), (F32, (4, 4))], "BLOCK_SIZE_1", "needs a shape as its last operand"),
])
def test_reshape_block_scaled_refuses(inputs: Any, size: str, message: str) -> None:
    refused("reshape_block_scaled", inputs, {"block_size": size}, message)


@pytest.mark.parametrize(("inputs", "size", "message"), [
    ([(F8E4M3, (1, 4, 40)), (F8E8M0, (1, 4, 1))], "BLOCK_SIZE_32", "no multiple of 32"),
    ([(F8E4M3, (1, 4, 32)), (F8E8M0, (1, 4, 1))], "BLOCK_SIZE_1", "do not go with blocks of 1"),
    ([(F32, (1, 4, 32))], "BLOCK_SIZE_32", "do not go with blocks of 32"),
    ([(F32, (1, 4, 32)), (F32, (1, 4, 32)), (F32, (1, 4, 32))], "BLOCK_SIZE_32", "does not take 5 operands"),
    ([(F32, (4, 32))], "BLOCK_SIZE_1", "must have rank 3"),
])
def test_row_gather_block_scaled_refuses(inputs: list[Input], size: str, message: str) -> None:
    graph = Graph()
    operands = [graph.input(element, *shape) for element, shape in inputs]
    more = graph.input(I32, 1, 2), graph.constant(np.ones(1, np.int32), I32)
    with pytest.raises(tosaic.Problem, match=message):
        graph.module(*graph.add(OPERATORS["tosa.row_gather_block_scaled"](block_size=size), *operands, *more))


def test_row_gather_block_scaled_takes_one_row_or_more() -> None:
    graph = Graph()
    operands = graph.input(F32, 1, 4, 32), graph.input(I32, 1, 2), graph.constant(np.zeros(1, np.int32), I32)
    with pytest.raises(tosaic.Problem, match="the row count must be positive"):
        graph.add(OPERATORS["tosa.row_gather_block_scaled"](block_size="BLOCK_SIZE_1"), *operands)


@pytest.mark.parametrize("shape", [(), (33,), (32, 5)])
def test_a_composite_tensor_has_whole_blocks(shape: tuple[int, ...]) -> None:
    graph = Graph()
    with pytest.raises(tosaic.Problem, match="its last extent must be a multiple of 32"):
        graph.module(graph.op("identity", graph.input(COMPOSITE, *shape)))


MOVES: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("transpose", [(COMPOSITE, (32, 64))], {"perms": (1, 0)}, "must stay the last"),
    ("slice", [(COMPOSITE, (2, 96)), (0, 16), (2, 32)], {}, "inside a block"),
    ("slice", [(COMPOSITE, (2, 96)), (0, 32), (2, 16)], {}, "multiple of 32"),
    ("reshape", [(COMPOSITE, (4, 32)), (8, 16)], {}, "multiple of 32"),
    ("reshape", [(COMPOSITE, (32,)), (32, 1)], {}, "multiple of 32"),
    ("resize", [(COMPOSITE, (1, 2, 2, 32)), (2, 1, 2, 1), (0, 0), (0, 0)], {"mode": "BILINEAR"}, "may not be"),
    ("cast", [(F32, (40,))], {"to": COMPOSITE}, "multiple of 32"),
    ("cast", [(I32, (32,))], {"to": COMPOSITE}, "does not make"),
    ("cast", [(COMPOSITE, (32,))], {"to": I8}, "does not make"),
    ("cast", [(COMPOSITE, (32,))], {"to": COMPOSITES[0]}, "does not make"),
    ("dim", [(COMPOSITE, (2, 32))], {"axis": 2}, "axis 2"),
]


@pytest.mark.parametrize(("name", "inputs", "attributes", "message"), MOVES)
def test_an_operator_refuses_what_blocks_do_not_allow(name: str, inputs: Any, attributes: dict[str, Any], message: str
                                                      ) -> None:
    refused(name, inputs, attributes, message)


def test_zero_points_of_composite_operands_are_f32_and_0() -> None:
    for zero, message in ((np.zeros(1, BF16.dtype), "must be f32"), (np.ones(1, np.float32), "must be 0")):
        graph = Graph()
        x, y = graph.input(COMPOSITE, 1, 2, 32), graph.input(COMPOSITE, 1, 2, 32)
        element = F32 if zero.dtype == np.float32 else BF16
        with pytest.raises(tosaic.Problem, match=message):
            graph.op("matmul_t", x, y, graph.constant(zero, element), graph.zero(F32), to=F32)


@pytest.mark.parametrize("to", [F16, I32, COMPOSITE], ids=str)
def test_a_product_of_composite_operands_is_f32_or_bf16(to: ElementType) -> None:
    graph = Graph()
    x, y = graph.input(COMPOSITE, 1, 2, 32), graph.input(COMPOSITE, 1, 2, 32)
    with pytest.raises(tosaic.Problem, match="a product of"):
        graph.op("matmul_t", x, y, graph.zero(F32), graph.zero(F32), to=to)


@pytest.mark.parametrize("name", ["exp", "abs", "rsqrt"])
def test_arithmetic_on_composite_types_is_refused(name: str) -> None:
    refused(name, [(block_scaled(F8E4M3), (2, 32))], {}, re.escape("!tosa.block_scaled"))
