"""The layers of a .tflite network: one operator each, with its inputs and outputs in a call of the network, as LiteRT's
reference kernels have them. They come as models of their own, for tosaic, and as numbers, for the kernels of CMSIS-NN.

Everything here is read from the file; nothing is taken from what tosaic makes of it.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from tosaic.jit.models.tflite.run_tflite import run
from tosaic.lowering.flatbuffer.bounds_checked import Binary, FlatbufferTable
from tosaic.lowering.graph.types import Array
from tosaic.lowering.tflite.cut import cut, partition_name
from tosaic.lowering.tflite.decode import decode
from tosaic.lowering.tflite.divide import Partition
from tosaic.lowering.tflite.records import ModelRecord, OperatorRecord, TensorRecord
from tosaic.lowering.tflite.schema import OPERATOR

SLOTS: Mapping[str, Mapping[str, tuple[int, str, int]]] = {
    "CONV_2D": {"is_valid": (0, "ubyte", 0), "stride_w": (1, "int32", 0), "stride_h": (2, "int32", 0),
                "activation": (3, "ubyte", 0), "dilation_w": (4, "int32", 1), "dilation_h": (5, "int32", 1)},
    "DEPTHWISE_CONV_2D": {"is_valid": (0, "ubyte", 0), "stride_w": (1, "int32", 0), "stride_h": (2, "int32", 0),
                          "activation": (4, "ubyte", 0), "dilation_w": (5, "int32", 1), "dilation_h": (6, "int32", 1)},
    "AVERAGE_POOL_2D": {"is_valid": (0, "ubyte", 0), "stride_w": (1, "int32", 0), "stride_h": (2, "int32", 0),
                        "window_w": (3, "int32", 0), "window_h": (4, "int32", 0), "activation": (5, "ubyte", 0)},
    "FULLY_CONNECTED": {"activation": (0, "ubyte", 0)},
    "ADD": {"activation": (0, "ubyte", 0)},
    "SOFTMAX": {"beta": (0, "uint32", 0)},
}
"""Options of operators: slot, type and default of each, in TensorFlow Lite's schema. `beta` is the bits of a float32."""
WITHOUT_CODE = ("RESHAPE",)
"""Operators that move nothing: no layers."""
SHORT = {"CONV_2D": "conv", "DEPTHWISE_CONV_2D": "depthwise", "FULLY_CONNECTED": "dense", "AVERAGE_POOL_2D": "pool",
         "SOFTMAX": "softmax", "ADD": "add"}


@dataclass(frozen=True, slots=True)
class Layer:
    """An operator. `inputs` and `output` are its activations, `arrays` and `expected` what they are in the call; weights and
    bias are None where it has none."""
    kind: str
    inputs: tuple[TensorRecord, ...]
    output: TensorRecord
    weights: TensorRecord | None
    bias: TensorRecord | None
    options: Mapping[str, int]
    arrays: tuple[Array, ...]
    expected: Array

    @property
    def name(self) -> str:
        """Kind, window and shapes, without the batch."""
        sides = ["x".join(map(str, t.shape[1:])) for t in (self.inputs[0], self.output)]
        window = f" {self.window[0]}x{self.window[1]}" if self.window else ""
        return f"{SHORT[self.kind]}{window}, {sides[0]} to {sides[1]}"

    @property
    def window(self) -> tuple[int, int] | None:
        """Rows and columns of a convolution or pool."""
        if self.kind == "AVERAGE_POOL_2D":
            return self.options["window_h"], self.options["window_w"]
        if self.weights is None or self.weights.data is None or self.kind == "FULLY_CONNECTED":
            return None
        _, rows, columns, _ = self.weights.shape
        return rows or 1, columns or 1

    @property
    def products(self) -> int:
        """Multiply-adds of a convolution or product."""
        if not self.weights:
            return 0
        each = self.weights.shape[1:3] if self.kind == "DEPTHWISE_CONV_2D" else self.weights.shape[1:]
        return math.prod(n or 1 for n in (*each, *self.output.shape))


@dataclass(frozen=True, slots=True)
class Network:
    """A .tflite with one call: `cut` is the file with a signature for each layer."""
    data: bytes
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    layers: tuple[Layer, ...]
    cut: bytes


def network(data: bytes, seed: int = 5) -> Network:
    """A network with a call whose inputs are noise, by LiteRT's reference kernels."""
    model = decode(data)
    graph = model.subgraphs[0]
    rng = np.random.default_rng(seed)
    shapes = {t: [n or 1 for n in graph.tensors[t].shape] for t in graph.inputs}
    known = {t: rng.integers(-128, 128, shape).astype(np.int8) for t, shape in shapes.items()}
    inputs = tuple(known.values())
    parts = [partition(model, operator, number) for number, operator in enumerate(graph.operators)]
    each = cut(data, model, parts)
    layers = []
    for number, (operator, part) in enumerate(zip(graph.operators, parts)):
        arrays = tuple(known[t] for t in part.inputs)
        results = run(each, partition_name(number))(arrays)
        known.update(zip(part.outputs, results, strict=True))
        if operator.kind not in WITHOUT_CODE:
            layers.append(layer(data, model, operator, part, arrays, results[0]))
    own = [p for p, operator in zip(parts, graph.operators) if operator.kind not in WITHOUT_CODE]
    expected = run(data, "main")(inputs)
    assert all((known[t] == y).all() for t, y in zip(graph.outputs, expected, strict=True)), "layers and network differ"
    return Network(data, inputs, tuple(expected), tuple(layers), cut(data, model, own))


def partition(model: ModelRecord, operator: OperatorRecord, number: int) -> Partition:
    """One operator as a part of its own."""
    tensors = model.subgraphs[0].tensors
    return Partition(0, (number,), tuple(t for t in operator.inputs if t >= 0 and tensors[t].data is None), operator.outputs)


def layer(data: bytes, model: ModelRecord, operator: OperatorRecord, part: Partition, arrays: tuple[Array, ...],
          expected: Array) -> Layer:
    tensors = model.subgraphs[0].tensors
    constants = [tensors[t] for t in operator.inputs if t >= 0 and tensors[t].data is not None]
    weights, bias = (*constants, None, None)[:2]
    return Layer(operator.kind, tuple(tensors[t] for t in part.inputs), tensors[operator.outputs[0]], weights, bias,
                 options(data, operator), arrays, expected)


def options(data: bytes, operator: OperatorRecord) -> Mapping[str, int]:
    """The options of an operator, as numbers."""
    binary, slots = Binary(data), SLOTS[operator.kind]
    start = operator.table
    table = FlatbufferTable(binary, start, binary.vtable(start - int.from_bytes(data[start:start + 4], "little", signed=True)))
    found = table.table(OPERATOR["options"], "the options")
    return {name: found.scalar(slot, type, name, default) if found else default
            for name, (slot, type, default) in slots.items()}


def padding(size: int, window: int, stride: int, dilation: int, is_valid: int) -> int:
    """Elements of padding before the first, as TensorFlow's scheme SAME has them."""
    outside = (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size
    return 0 if is_valid else max(outside, 0) // 2


