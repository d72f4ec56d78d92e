"""The doors: MLIR text of TOSA and of TensorFlow, ONNX, Python that is traced, and the `.tflite` files that are shipped; the
fuzz's own generator, which has every operator of TOSA, is one more.
"""
from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tosaic
from tosaic.jit.tools.random_array import random_array
from tosaic.lowering.graph.graph import Module, Value
from tosaic.lowering.graph.types import Array
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module

from ...fuse.graphs import Graph, conv
from .functions import case
from .networks import Dims, Drawn, Pads, network

DATA = Path(__file__).parents[2] / "data" / "corpus"


class TosaDoor:
    """The operators of TOSA by a builder, printed and read again."""

    def __init__(self) -> None:
        self.g = Graph()

    def input(self, dims: Dims, indices_below: int = 0) -> Value:
        return self.g.input(*dims, dtype="int32" if indices_below else "float32")

    def conv(self, x: Value, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> Value:
        return conv(self.g, x, w, b, pad=pad, stride=(stride, stride), dilation=(dilation, dilation))

    def depthwise(self, x: Value, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> Value:
        return conv(self.g, x, w, b, name="depthwise_conv2d", pad=pad, stride=(stride, stride), dilation=(dilation, dilation))

    def max_pool(self, x: Value, kernel: int, stride: int) -> Value:
        return self.g.op("max_pool2d", x, kernel=(kernel, kernel), stride=(stride, stride), pad=(0, 0, 0, 0),
                         nan_mode="PROPAGATE")

    def clamp(self, x: Value, low: float, high: float) -> Value:
        return self.g.op("clamp", x, min_val=low, max_val=high)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        shift = [np.zeros(1, np.int8)] if name == "mul" else []
        return self.g.op(name, x, y, *shift)

    def scaled(self, x: Value, factors: Array) -> Value:
        return self.g.op("mul", x, factors.reshape(1, 1, 1, -1), np.zeros(1, np.int8))

    def concat(self, x: Value, y: Value, axis: int) -> Value:
        return self.g.op("concat", x, y, axis=axis)

    def slice(self, x: Value, start: Dims, size: Dims) -> Value:
        return self.g.op("slice", x, self.g.shape(*start), self.g.shape(*size))

    def pad(self, x: Value, before: Dims, after: Dims) -> Value:
        both = [n for pair in zip(before, after) for n in pair]
        return self.g.op("pad", x, self.g.shape(*both), np.zeros(1, np.float32))

    def turned(self, x: Value) -> Value:
        return self.g.op("transpose", x, perms=(0, 2, 1, 3))

    def rows(self, x: Value, dims: Dims) -> Value:
        return self.g.op("reshape", x, self.g.shape(*dims))

    def product(self, x: Value, w: Array) -> Value:
        zero = np.zeros(1, np.float32)
        made = self.g.op("matmul", self.rows(x, (1, *x.tensor.dims)), w[None], zero, zero)
        return self.rows(made, made.tensor.dims[1:])

    def gathered(self, x: Value, indices: Value, dims: Dims) -> Value:
        return self.g.op("gather", x, indices)

    def reduced(self, name: str, x: Value, axis: int) -> Value:
        return self.g.op(f"reduce_{name}", x, axis=axis)

    def select(self, x: Value, y: Value) -> Value:
        return self.g.op("select", self.g.op("greater", x, y), x, np.zeros((1, 1, 1, 1), np.float32))

    def finish(self, results: Sequence[Value]) -> tuple[Module, str]:
        return read_module(print_module(self.g.module(*results))), "main"


class JitDoor:
    """Python that is traced. Operators are noted while the network is drawn, and called when its inputs are tensors."""

    def __init__(self) -> None:
        self.specs: list[tosaic.TensorSpec] = []
        self.calls: list[Callable[[dict[int, Any]], Any]] = []

    def note(self, call: Callable[..., Any], *operands: int) -> int:
        self.calls.append(lambda known: call(*(known[n] for n in operands)))
        return len(self.calls) - 1

    def input(self, dims: Dims, indices_below: int = 0) -> int:
        place = len(self.specs)
        self.specs.append(tosaic.TensorSpec(dims, "int32" if indices_below else "float32"))
        self.calls.append(lambda known: known[-1 - place])
        return len(self.calls) - 1

    def conv(self, x: int, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> int:
        return self.note(lambda t: tosaic.tosa.conv2d(t, w, b, pad=pad, stride=(stride, stride),
                                                      dilation=(dilation, dilation)), x)

    def depthwise(self, x: int, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> int:
        return self.note(lambda t: tosaic.tosa.depthwise_conv2d(t, w, b, pad=pad, stride=(stride, stride),
                                                                dilation=(dilation, dilation)), x)

    def max_pool(self, x: int, kernel: int, stride: int) -> int:
        return self.note(lambda t: tosaic.tosa.max_pool2d(t, kernel=(kernel, kernel), stride=(stride, stride)), x)

    def clamp(self, x: int, low: float, high: float) -> int:
        return self.note(lambda t: np.clip(t, low, high), x)

    def binary(self, name: str, x: int, y: int) -> int:
        function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum}[name]
        return self.note(function, x, y)

    def scaled(self, x: int, factors: Array) -> int:
        return self.note(lambda t: t * factors, x)

    def concat(self, x: int, y: int, axis: int) -> int:
        return self.note(lambda s, t: np.concatenate([s, t], axis), x, y)

    def slice(self, x: int, start: Dims, size: Dims) -> int:
        return self.note(lambda t: t[tuple(slice(a, a + n) for a, n in zip(start, size))], x)

    def pad(self, x: int, before: Dims, after: Dims) -> int:
        return self.note(lambda t: np.pad(t, list(zip(before, after))), x)

    def turned(self, x: int) -> int:
        return self.note(lambda t: np.transpose(t, (0, 2, 1, 3)), x)

    def rows(self, x: int, dims: Dims) -> int:
        return self.note(lambda t: t.reshape(dims), x)

    def product(self, x: int, w: Array) -> int:
        return self.note(lambda t: t @ w, x)

    def gathered(self, x: int, indices: int, dims: Dims) -> int:
        return self.note(lambda t, i: np.take(t, i[0], 1), x, indices)

    def reduced(self, name: str, x: int, axis: int) -> int:
        return self.note(lambda t: getattr(t, name)(axis=axis, keepdims=True), x)

    def select(self, x: int, y: int) -> int:
        return self.note(lambda s, t: np.where(s > t, s, np.float32(0)), x, y)

    def finish(self, results: Sequence[int]) -> tuple[Module, str]:
        def traced(*inputs: Any) -> Any:
            known: dict[int, Any] = {-1 - i: x for i, x in enumerate(inputs)}
            for number, call in enumerate(self.calls):
                known[number] = call(known)
            return tuple(known[r] for r in results)

        found = tosaic.jit(traced).trace(*self.specs)
        return found.module, found.name


class OnnxDoor:
    """An ONNX file. Images lie as channels, rows, columns there."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[tuple[str, str, Dims]] = []
        self.constants: dict[str, Array] = {}
        self.count = 0

    def constant(self, data: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(data)
        return name

    def node(self, kind: str, *operands: str, **attributes: Any) -> str:
        from onnx import helper
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, operands, [name], **attributes))
        return name

    def input(self, dims: Dims, indices_below: int = 0) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, "int32" if indices_below else "float32", dims))
        return name

    def planes(self, make: Callable[[str], str], x: str) -> str:
        """What is made of an image with its channels first, with its channels last again."""
        return self.node("Transpose", make(self.node("Transpose", x, perm=[0, 3, 1, 2])), perm=[0, 2, 3, 1])

    def conv(self, x: str, w: Array, b: Array, stride: int, pad: Pads, dilation: int, group: int = 1) -> str:
        weight, bias = self.constant(np.ascontiguousarray(w.transpose(0, 3, 1, 2))), self.constant(b)
        return self.planes(lambda t: self.node("Conv", t, weight, bias, strides=[stride] * 2, dilations=[dilation] * 2,
                                               pads=[pad[0], pad[2], pad[1], pad[3]], group=group), x)

    def depthwise(self, x: str, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> str:
        return self.conv(x, w.transpose(2, 0, 1, 3), b, stride, pad, dilation, w.shape[2])

    def max_pool(self, x: str, kernel: int, stride: int) -> str:
        return self.planes(lambda t: self.node("MaxPool", t, kernel_shape=[kernel] * 2, strides=[stride] * 2), x)

    def clamp(self, x: str, low: float, high: float) -> str:
        return self.node("Clip", x, self.constant(np.float32(low)), self.constant(np.float32(high)))

    def binary(self, name: str, x: str, y: str) -> str:
        return self.node({"add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max"}[name], x, y)

    def scaled(self, x: str, factors: Array) -> str:
        return self.node("Mul", x, self.constant(factors))

    def concat(self, x: str, y: str, axis: int) -> str:
        return self.node("Concat", x, y, axis=axis)

    def slice(self, x: str, start: Dims, size: Dims) -> str:
        ends = np.add(start, size)
        return self.node("Slice", x, self.constant(np.asarray(start, np.int64)), self.constant(ends.astype(np.int64)))

    def pad(self, x: str, before: Dims, after: Dims) -> str:
        return self.node("Pad", x, self.constant(np.asarray((*before, *after), np.int64)))

    def turned(self, x: str) -> str:
        return self.node("Transpose", x, perm=[0, 2, 1, 3])

    def rows(self, x: str, dims: Dims) -> str:
        return self.node("Reshape", x, self.constant(np.asarray(dims, np.int64)))

    def product(self, x: str, w: Array) -> str:
        return self.node("MatMul", x, self.constant(w))

    def gathered(self, x: str, indices: str, dims: Dims) -> str:
        return self.rows(self.node("Gather", x, indices, axis=1), dims)

    def reduced(self, name: str, x: str, axis: int) -> str:
        return self.node(f"Reduce{name.capitalize()}", x, self.constant(np.asarray([axis], np.int64)), keepdims=1)

    def select(self, x: str, y: str) -> str:
        return self.node("Where", self.node("Greater", x, y), x, self.constant(np.float32(0)))

    def finish(self, results: Sequence[str]) -> tuple[Module, str]:
        from onnx import helper, numpy_helper
        inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(d)), s) for n, d, s in self.inputs]
        outputs = []
        for number, name in enumerate(results):
            self.nodes.append(helper.make_node("Identity", [name], [f"r{number}"]))
            outputs.append(helper.make_tensor_value_info(f"r{number}", 1, None))
        graph = helper.make_graph(self.nodes, "main", inputs, outputs,
                                  [numpy_helper.from_array(a, n) for n, a in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        return of_entry(tosaic.from_onnx(model.SerializeToString()))


class TensorFlowDoor:
    """Text of the tf dialect, results of unknown shapes."""
    ANY = "tensor<*xf32>"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.types: dict[str, str] = {}

    def name(self, type: str) -> str:
        name = f"%{len(self.types)}"
        self.types[name] = type
        return name

    def constant(self, data: Any) -> str:
        data = np.asarray(data)
        element = {"float32": "f32", "int32": "i32"}[data.dtype.name]
        type = f"tensor<{'x'.join([*map(str, data.shape), element])}>"
        name = self.name(type)
        literal = f'"0x{np.ascontiguousarray(data).tobytes().hex().upper()}"' if data.size > 1 else str(data.reshape(-1)[0])
        self.lines.append(f'{name} = "tf.Const"() {{value = dense<{literal}> : {type}}} : () -> {type}')
        return name

    def op(self, kind: str, *operands: str, result: str = ANY, **attributes: str) -> str:
        name = self.name(result)
        attrs = ", ".join(f"{k} = {v}" for k, v in attributes.items())
        types = ", ".join(self.types[o] for o in operands)
        self.lines.append(f'{name} = "tf.{kind}"({", ".join(operands)}) {{{attrs}}} : ({types}) -> {result}')
        return name

    def input(self, dims: Dims, indices_below: int = 0) -> str:
        name = self.name(f"tensor<{'x'.join([*map(str, dims), 'i32' if indices_below else 'f32'])}>")
        self.arguments.append(name)
        return name

    def window(self, kind: str, x: str, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> str:
        made = self.op(kind, x, self.constant(w), strides=f"[1, {stride}, {stride}, 1]", padding='"EXPLICIT"',
                       data_format='"NHWC"', explicit_paddings=f"[0, 0, {pad[0]}, {pad[1]}, {pad[2]}, {pad[3]}, 0, 0]",
                       dilations=f"[1, {dilation}, {dilation}, 1]")
        return self.op("BiasAdd", made, self.constant(b), data_format='"NHWC"')

    def conv(self, x: str, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> str:
        return self.window("Conv2D", x, w.transpose(1, 2, 3, 0), b, stride, pad, dilation)

    def depthwise(self, x: str, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> str:
        return self.window("DepthwiseConv2dNative", x, w, b, stride, pad, dilation)

    def max_pool(self, x: str, kernel: int, stride: int) -> str:
        return self.op("MaxPool", x, ksize=f"[1, {kernel}, {kernel}, 1]", strides=f"[1, {stride}, {stride}, 1]",
                       padding='"VALID"', data_format='"NHWC"', explicit_paddings="[]")

    def clamp(self, x: str, low: float, high: float) -> str:
        return self.op("Minimum", self.op("Maximum", x, self.constant(np.float32(low))), self.constant(np.float32(high)))

    def binary(self, name: str, x: str, y: str) -> str:
        return self.op({"add": "AddV2", "sub": "Sub", "mul": "Mul", "maximum": "Maximum"}[name], x, y)

    def scaled(self, x: str, factors: Array) -> str:
        return self.op("Mul", x, self.constant(factors))

    def concat(self, x: str, y: str, axis: int) -> str:
        return self.op("ConcatV2", x, y, self.constant(np.int32(axis)))

    def slice(self, x: str, start: Dims, size: Dims) -> str:
        return self.op("Slice", x, self.constant(np.asarray(start, np.int32)), self.constant(np.asarray(size, np.int32)))

    def pad(self, x: str, before: Dims, after: Dims) -> str:
        return self.op("Pad", x, self.constant(np.asarray(list(zip(before, after)), np.int32)))

    def turned(self, x: str) -> str:
        return self.op("Transpose", x, self.constant(np.asarray((0, 2, 1, 3), np.int32)))

    def rows(self, x: str, dims: Dims) -> str:
        return self.op("Reshape", x, self.constant(np.asarray(dims, np.int32)))

    def product(self, x: str, w: Array) -> str:
        return self.op("MatMul", x, self.constant(w), transpose_a="false", transpose_b="false")

    def gathered(self, x: str, indices: str, dims: Dims) -> str:
        return self.rows(self.op("GatherV2", x, indices, self.constant(np.int32(1)), batch_dims="0 : i64"), dims)

    def reduced(self, name: str, x: str, axis: int) -> str:
        return self.op(name.capitalize(), x, self.constant(np.asarray([axis], np.int32)), keep_dims="true")

    def select(self, x: str, y: str) -> str:
        return self.op("SelectV2", self.op("Greater", x, y, result="tensor<*xi1>"), x, self.constant(np.float32(0)))

    def finish(self, results: Sequence[str]) -> tuple[Module, str]:
        inputs = ", ".join(f"{a}: {self.types[a]}" for a in self.arguments)
        outputs = ", ".join(self.types[r] for r in results)
        lines = "\n  ".join([*self.lines, f"return {', '.join(results)} : {outputs}"])
        return of_entry(tosaic.load(f"func.func @main({inputs}) -> ({outputs}) {{\n  {lines}\n}}\n"))


def of_entry(model: tosaic.Model) -> tuple[Module, str]:
    """The graph of a model's only entry."""
    entry, = model
    traced = entry.trace()
    return traced.module, traced.name


# ---- doors that have graphs of their own -----------------------------------------------------------------------------
def any_operator(seed: int, size: int) -> Drawn:
    """The fuzz's generator, for one call of whole numbers; operators of it that round have an oracle with room for that."""
    made = case(seed, 1 + size // 2, mood="whole")
    return Drawn(made.module, "main", made.calls[0])


@functools.cache
def shipped(path: Path) -> tuple[Module, str]:
    traced = next(iter(tosaic.load(path))).trace()
    return traced.module, traced.name


def tflite(seed: int, size: int) -> Drawn:
    """One of the shipped files."""
    rng = random.Random(seed)
    module, name = shipped(rng.choice(FILES))
    function = module.function(name)
    return Drawn(module, name, tuple(random_array(function, v, n, seed) for n, v in enumerate(function.arguments)))


FILES = sorted(DATA.glob("f_*_int8.tflite")) + [DATA / f"f_{n}.tflite" for n in ("mobilenet_block", "gather_embed", "while")]
DOORS: dict[str, Callable[[int, int], Drawn]] = {
    "tosa": lambda seed, size: network(seed, size, TosaDoor()),
    "jit": lambda seed, size: network(seed, size, JitDoor()),
    "onnx": lambda seed, size: network(seed, size, OnnxDoor()),
    "tf": lambda seed, size: network(seed, size, TensorFlowDoor()),
    "any operator": any_operator,
    "tflite": tflite,
}
EXACT = ("tosa", "jit", "onnx", "tf")
"""Doors whose results are the same bits in every order."""
