"""Operators that move the elements of block-scaled tensors: composite types through the plain operators, and
RESHAPE_BLOCK_SCALED and ROW_GATHER_BLOCK_SCALED. Compiled code gives the interpreter's bits."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tosaic.lowering.graph.block_scaled_arrays import split
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import F8E8M0, F32, I1, I8, I32, I64, BlockScaled, ElementType, block_scaled

from .block_scaled import COMPOSITES, VALUES, Array, Graph, assert_same_bits, one_operator, records

Build = Callable[[Graph, Value], Value]
MOVES: dict[str, tuple[tuple[int, ...], Build, Callable[[Array], Array]]] = {
    "identity": ((3, 64), lambda g, x: g.op("identity", x), lambda x: x),
    "concat along the last axis": ((2, 3, 32), lambda g, x: g.op("concat", x, x, axis=2),
                                   lambda x: np.concatenate([x, x], axis=2)),
    "concat along another axis": ((2, 3, 32), lambda g, x: g.op("concat", x, x, x, axis=0),
                                  lambda x: np.concatenate([x, x, x])),
    "reshape": ((4, 3, 64), lambda g, x: g.op("reshape", x, g.shape(2, 384)), lambda x: x.reshape(2, 384)),
    "reshape that splits blocks from a row": ((4, 3, 64), lambda g, x: g.op("reshape", x, g.shape(3, 4, -1, 32)),
                                              lambda x: x.reshape(3, 4, 2, 32)),
    "reverse along the last axis": ((2, 96), lambda g, x: g.op("reverse", x, axis=1), lambda x: x[:, ::-1]),
    "reverse along another axis": ((2, 96), lambda g, x: g.op("reverse", x, axis=0), lambda x: x[::-1]),
    "slice": ((5, 128), lambda g, x: g.op("slice", x, g.shape(1, 32), g.shape(3, 64)), lambda x: x[1:4, 32:96]),
    "tile": ((2, 64), lambda g, x: g.op("tile", x, g.shape(3, 2)), lambda x: np.tile(x, (3, 2))),
    "transpose": ((2, 5, 3, 32), lambda g, x: g.op("transpose", x, perms=(2, 0, 1, 3)),
                  lambda x: x.transpose(2, 0, 1, 3)),
    "resize": ((1, 3, 4, 32), lambda g, x: g.op("resize", x, g.shape(2, 1, 2, 1), g.shape(0, 0), g.shape(1, 1),
                                                mode="NEAREST_NEIGHBOR"),
               lambda x: x[:, [0, 1, 1, 2, 2, 2]][:, :, [0, 1, 1, 2, 2, 3, 3, 3]]),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("composite", COMPOSITES, ids=str)
def test_an_element_moves_with_its_scale(name: str, composite: BlockScaled) -> None:
    shape, build, expected = MOVES[name]
    x = records(np.random.default_rng(0), composite, *shape, low=0, high=256)
    graph = Graph()
    module = graph.module(build(graph, graph.input(composite, *shape)))
    found, = assert_same_bits(module, x)
    assert found.tobytes() == np.ascontiguousarray(expected(x)).tobytes()


@pytest.mark.parametrize("composite", COMPOSITES, ids=str)
@pytest.mark.parametrize("index", [I32, I64], ids=str)
def test_row_gather_takes_rows_with_their_scales(composite: BlockScaled, index: ElementType) -> None:
    x = records(np.random.default_rng(1), composite, 2, 6, 64)
    places = np.array([[4, 0, 1], [2, 2, 3]], index.dtype)
    graph = Graph()
    operands = graph.input(composite, *x.shape), graph.input(index, *places.shape)
    module = graph.module(graph.op("row_gather", *operands, graph.constant(np.array([2], np.int32), I32)))
    found, = assert_same_bits(module, x, places)
    rows = (places[:, :, None] + np.arange(2)).reshape(2, -1)
    assert found.tobytes() == x[np.arange(2)[:, None], rows].tobytes()


@pytest.mark.parametrize("composite", COMPOSITES, ids=str)
def test_a_constant_of_a_composite_type_is_a_result_and_an_operand(composite: BlockScaled) -> None:
    x = records(np.random.default_rng(2), composite, 3, 64)
    graph = Graph()
    constant = graph.constant(x, composite)
    module = graph.module(constant, graph.op("reverse", constant, axis=0))
    found = assert_same_bits(module)
    assert found[0].tobytes() == x.tobytes() and found[1].tobytes() == x[::-1].tobytes()


@pytest.mark.parametrize("shape", [(5, 64), (64, 32)])
def test_the_extents_of_a_block_scaled_tensor_are_those_of_its_values(shape: tuple[int, ...]) -> None:
    x = records(np.random.default_rng(3), COMPOSITES[0], *shape)
    graph = Graph()
    operand = graph.input(COMPOSITES[0], *shape)
    extents = graph.op("concat_shape", graph.op("dim", operand, axis=0), graph.op("dim", operand, axis=1))
    found, = assert_same_bits(graph.module(graph.op("reshape", operand, extents)), x)
    assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_reshape_block_scaled_reshapes_values_and_scales(value: ElementType) -> None:
    x = records(np.random.default_rng(4), block_scaled(value), 4, 6, 32)
    data, scale = split(x, block_scaled(value))
    module = one_operator("reshape_block_scaled", [(value, (4, 6, 32)), (F8E8M0, (4, 6, 1))],
                          lambda g: [g.shape(2, 384)], block_size="BLOCK_SIZE_32")
    found = assert_same_bits(module, data, scale)
    assert found[0].tobytes() == data.tobytes() and found[0].shape == (2, 384)
    assert found[1].tobytes() == scale.tobytes() and found[1].shape == (2, 12)


@pytest.mark.parametrize("element", [I1, I8, I64, F32], ids=str)
@pytest.mark.parametrize(("shape", "result"), [((4, 6), (3, 8)), ((), (1, 1)), ((1,), ())])
def test_reshape_block_scaled_takes_a_tensor_alone(element: ElementType, shape: tuple[int, ...], result: tuple[int, ...]
                                                   ) -> None:
    x = np.random.default_rng(5).integers(0, 2, shape).astype(element.dtype)
    module = one_operator("reshape_block_scaled", [(element, shape)], lambda g: [g.shape(*result)],
                          block_size="BLOCK_SIZE_1")
    found, = assert_same_bits(module, np.asarray(x))
    assert found.shape == result and found.tobytes() == np.asarray(x).tobytes()


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_row_gather_block_scaled_takes_rows_and_their_scales(value: ElementType) -> None:
    x = records(np.random.default_rng(6), block_scaled(value), 2, 5, 64)
    data, scale = split(x, block_scaled(value))
    places = np.array([[3, 0], [1, 1]], np.int32)
    module = one_operator("row_gather_block_scaled", [(value, data.shape), (F8E8M0, scale.shape), (I32, places.shape)],
                          lambda g: [g.constant(np.array([2], np.int32), I32)], block_size="BLOCK_SIZE_32")
    found = assert_same_bits(module, data, scale, places)
    rows = (places[:, :, None] + np.arange(2)).reshape(2, -1)
    for part, source in zip(found, (data, scale)):
        assert part.tobytes() == source[np.arange(2)[:, None], rows].tobytes()


@pytest.mark.parametrize("element", [I1, I8, F32], ids=str)
def test_row_gather_block_scaled_takes_a_tensor_alone(element: ElementType) -> None:
    x = np.random.default_rng(7).integers(0, 2, (2, 5, 3)).astype(element.dtype)
    places = np.array([[3, 0], [1, 1]], np.int64)
    module = one_operator("row_gather_block_scaled", [(element, x.shape), (I64, places.shape)],
                          lambda g: [g.constant(np.array([1], np.int32), I32)], block_size="BLOCK_SIZE_1")
    found, = assert_same_bits(module, x, places)
    assert found.tobytes() == x[np.arange(2)[:, None], places].tobytes()
