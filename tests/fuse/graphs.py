"""Small graphs for the tests of fusion and of the whole compiler, built with `BlockBuilder`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tosaic.lowering.dialects.tosa  # noqa: F401  registers the operators
from tosaic.lowering.graph.graph import Block, BlockBuilder, Function, Module, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import BY_STORAGE, ElementType, TensorType


class Graph(BlockBuilder):
    """A block builder that takes operators by their short names and NumPy arrays as constants."""

    def op(self, name: str, *operands: Value | np.ndarray, regions: Sequence[Block] = (), **attributes: Any) -> Value:
        return self.ops(name, *operands, regions=regions, **attributes)[0]

    def ops(self, name: str, *operands: Value | np.ndarray, regions: Sequence[Block] = (),
            **attributes: Any) -> tuple[Value, ...]:
        values = [v if isinstance(v, Value) else self.constant(v) for v in operands]
        return self.add(OPERATORS[f"tosa.{name}"](**attributes), *values, regions=regions)

    def constant(self, data: np.ndarray, element: ElementType | None = None) -> Value:
        data = np.asarray(data)
        type = TensorType(data.shape, element or BY_STORAGE[data.dtype.name])
        return self.add(OPERATORS["tosa.const"](values=data), types=(type,))[0]

    def shape(self, *extents: int) -> Value:
        return self.add(OPERATORS["tosa.const_shape"](values=np.array(extents, np.int64)))[0]

    def input(self, *shape: int, dtype: str = "float32") -> Value:
        return self.argument(TensorType(shape, BY_STORAGE[dtype]))

    def read(self, symbol: str, type: TensorType) -> Value:
        return self.add(OPERATORS["tosa.variable_read"](symbol=symbol, type=type), types=(type,))[0]

    def write(self, symbol: str, value: Value) -> None:
        self.add(OPERATORS["tosa.variable_write"](symbol=symbol), value, types=())

    def module(self, *results: Value, variables: Sequence[tuple[str, TensorType, np.ndarray | None]] = ()) -> Module:
        return module({"main": self.finish(*results)}, variables)


def module(blocks: dict[str, Block], variables: Sequence[tuple[str, TensorType, np.ndarray | None]] = ()) -> Module:
    declarations = Graph()
    for symbol, type, initial in variables:
        declarations.add(OPERATORS["tosa.variable"](symbol=symbol, type=type, initial=initial), types=())
    functions = tuple(Function(name, block, tuple(v.type for v in block.yields)) for name, block in blocks.items())
    return Module(functions, tuple(declarations.operations))


def zero(dtype: str) -> np.ndarray:
    return np.zeros(1, dtype)


def random(rng: np.random.Generator, value: Value) -> np.ndarray:
    """Data for an argument."""
    type = value.tensor
    if type.element.is_float:
        return rng.standard_normal(type.dims).astype(type.element.storage)
    if type.element.kind == "bool":
        return rng.integers(0, 2, type.dims).astype(bool)
    return rng.integers(type.element.minimum, type.element.maximum + 1, type.dims).astype(type.element.storage)


def conv(g: Graph, x: Value, weight: np.ndarray, bias: np.ndarray, zero_point: int = 0, name: str = "conv2d",
         pad: tuple[int, ...] = (0, 0, 0, 0), stride: tuple[int, ...] = (1, 1), dilation: tuple[int, ...] = (1, 1)) -> Value:
    from tosaic.lowering.graph.types import F32, I32
    integer = weight.dtype == np.int8
    zp = np.array([zero_point], weight.dtype)
    return g.op(name, x, weight, bias, zp, zero(weight.dtype.name), pad=pad, stride=stride, dilation=dilation,
                acc_type=I32 if integer else F32)


def rescale(g: Graph, x: Value, channels: int, rng: np.random.Generator, zero_point: int = -5) -> Value:
    from tosaic.lowering.graph.types import I8
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, channels).astype(np.int32)
    shift = rng.integers(36, 42, channels).astype(np.int8)
    return g.op("rescale", x, multiplier, shift, np.zeros(1, np.int32), np.array([zero_point], np.int8), scale32=True,
                rounding_mode="DOUBLE_ROUND", per_channel=channels > 1, input_unsigned=False, output_unsigned=False, to=I8)

