"""Random graphs of ONNX's operators, of a seed: operators, opsets, element types, attributes and shapes by lot, each node on
what the nodes before it give. What they must give is ONNX Runtime's answer, or that of `onnx.reference` where it takes no such
operator.

    python tests/onnx/random_graphs.py [FIRST] [COUNT]

prints what differs, with the seed that makes it again.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import tosaic
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSETS = (7, 9, 11, 13, 15, 17, 18, 20, 21, 22, 23, 24)
FLOATS, INTEGERS = ("float32", "float64"), ("int32", "int64", "int8", "uint8")
PART = 2e-4
"""Of the greatest magnitude of a result: what rounding may make of it along a chain of operators."""
LEAST = 2 * float(np.finfo(np.float32).eps)
"""Allowed of any result: a logarithm of a sum that is one is nothing, and an ulp of one to either side."""
FIRST_OF_REFERENCE = 13
"""onnx.reference computes Softmax and others of before by the rules of later versions."""
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the graph."""
    name: str
    dtype: str
    shape: Shape

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


@dataclass(slots=True)
class Graph:
    """A graph that is being made."""
    g: np.random.Generator
    opset: int
    values: list[Tensor] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)

    def pick(self, accept: Callable[[Tensor], bool] = lambda t: True) -> Tensor | None:
        fitting = [v for v in self.values if accept(v)]
        return fitting[int(self.g.integers(len(fitting)))] if fitting else None

    def array(self, dtype: str, shape: Shape) -> np.ndarray:
        if dtype == "bool":
            return self.g.integers(0, 2, shape).astype(bool)
        if dtype in FLOATS:
            return np.asarray(self.g.standard_normal(shape), dtype)
        return self.g.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)

    def constant(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def another(self, dtype: str, shape: Shape) -> str:
        """A tensor of that type: one that is there, an input, or a weight."""
        there = self.pick(lambda t: (t.dtype, t.shape) == (dtype, shape))
        if there is not None and self.g.random() < 0.5:
            return there.name
        if self.g.random() < 0.3:
            name = f"x{len(self.inputs)}"
            self.inputs[name] = self.array(dtype, shape)
            return name
        return self.constant(self.array(dtype, shape))

    def add(self, op: str, operands: Sequence[str], dtype: str, shape: Shape, **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(operands), [name], name=f"n{len(self.nodes)}", **attributes))
        self.values.append(Tensor(name, dtype, shape))

    def numbers(self, values: Sequence[int]) -> str:
        return self.constant(np.array(values, np.int64))

    def model(self) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                  for n, a in self.inputs.items()]
        outputs = [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), None)
                   for v in self.values if v.name.startswith("v")]
        tensors = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


# ---- one node ------------------------------------------------------------------------------------------------------------
Make = Callable[[Graph], bool]
"""Adds a node; False where nothing fits."""
MAKERS: list[Make] = []


def maker(weight: int = 1) -> Callable[[Make], Make]:
    def add(function: Make) -> Make:
        MAKERS.extend([function] * weight)
        return function
    return add


def chance(g: Graph, *items: Any) -> Any:
    return items[int(g.g.integers(len(items)))]


@maker(4)
def unary(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float)
    if x is None:
        return False
    op = chance(g, "Abs", "Neg", "Exp", "Tanh", "Sigmoid", "Erf", "Relu", "Floor", "Ceil", "Sin", "Cos", "Softplus", "Softsign",
                "Round")
    if op in ("Round", "Erf") and g.opset < 11:
        return False
    if op == "Exp":
        g.add("Tanh", [x.name], x.dtype, x.shape)
        x = g.values[-1]
    g.add(op, [x.name], x.dtype, x.shape)
    return True


@maker(2)
def with_number(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float)
    if x is None:
        return False
    op, attributes = chance(g, ("LeakyRelu", {"alpha": 0.2}), ("Elu", {"alpha": 1.5}), ("Selu", {}), ("HardSigmoid", {}),
                            ("ThresholdedRelu", {"alpha": 0.3}), ("Celu", {"alpha": 2.0}))
    if op == "Celu" and (g.opset < 12 or x.dtype != "float32"):
        return False
    if op == "ThresholdedRelu" and g.opset < 10:
        return False
    g.add(op, [x.name], x.dtype, x.shape, **attributes)
    return True


@maker(3)
def binary(g: Graph) -> bool:
    x = g.pick(lambda t: t.dtype != "bool" and t.dtype in (*FLOATS, "int32", "int64"))
    if x is None:
        return False
    op = chance(g, "Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Equal", "Greater")
    kept = tuple(n if g.g.random() < 0.7 else 1 for n in x.shape)
    other = g.another(x.dtype, kept[int(g.g.integers(len(kept) + 1)):] if kept and g.g.random() < 0.4 else kept)
    if op == "Div":
        small = np.asarray(g.g.integers(1, 5, ()), x.dtype)
        other = g.constant(small)
    if op == "Equal" and x.is_float and g.opset < 11:
        return False
    if op in ("Max", "Min") and not x.is_float and g.opset < 12:
        return False
    if op in ("Less", "Greater") and g.opset < 9:
        return False
    g.add(op, [x.name, other], "bool" if op in ("Less", "Equal", "Greater") else x.dtype, x.shape)
    return True


@maker()
def logic(g: Graph) -> bool:
    x = g.pick(lambda t: t.dtype == "bool")
    if x is None:
        return False
    if g.g.random() < 0.3:
        g.add("Not", [x.name], "bool", x.shape)
    else:
        g.add(chance(g, "And", "Or", "Xor"), [x.name, g.another("bool", x.shape)], "bool", x.shape)
    return True


@maker()
def where(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float or t.dtype in ("int32", "int64"))
    if x is None or g.opset < 9:
        return False
    g.add("Where", [g.another("bool", x.shape), x.name, g.another(x.dtype, x.shape)], x.dtype, x.shape)
    return True


@maker()
def cast(g: Graph) -> bool:
    x = g.pick(lambda t: not t.is_float)
    to = chance(g, "float32", "int32", "int64", "float64")
    if x is None:
        return False
    g.add("Cast", [x.name], to, x.shape, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    return True


@maker()
def transpose(g: Graph) -> bool:
    x = g.pick(lambda t: len(t.shape) > 1)
    if x is None:
        return False
    perm = [int(n) for n in g.g.permutation(len(x.shape))]
    g.add("Transpose", [x.name], x.dtype, tuple(x.shape[p] for p in perm), perm=perm)
    return True


@maker()
def reshape(g: Graph) -> bool:
    x = g.pick()
    if x is None:
        return False
    size = int(np.prod(x.shape, dtype=int))
    parts, rest = [], size
    while rest > 1 and len(parts) < 3:
        divisors = [d for d in range(2, rest + 1) if rest % d == 0]
        parts.append(chance(g, *divisors))
        rest //= parts[-1]
    shape = (*parts, rest) if rest > 1 or not parts else tuple(parts)
    written = list(shape)
    if g.g.random() < 0.5:
        written[int(g.g.integers(len(written)))] = -1
    g.add("Reshape", [x.name, g.numbers(written)], x.dtype, shape)
    return True


@maker()
def concat(g: Graph) -> bool:
    x = g.pick(lambda t: len(t.shape) > 0)
    if x is None:
        return False
    axis = int(g.g.integers(len(x.shape)))
    other = (*x.shape[:axis], int(g.g.integers(1, 4)), *x.shape[axis + 1:])
    written = axis - len(x.shape) if g.opset >= 11 and g.g.random() < 0.5 else axis
    g.add("Concat", [x.name, g.another(x.dtype, other)], x.dtype,
          (*x.shape[:axis], x.shape[axis] + other[axis], *x.shape[axis + 1:]), axis=written)
    return True


@maker()
def slice_(g: Graph) -> bool:
    x = g.pick(lambda t: len(t.shape) > 0)
    if x is None or g.opset < 10:
        return False
    axis = int(g.g.integers(len(x.shape)))
    n, step = x.shape[axis], int(chance(g, 1, 1, 2, -1, -2))
    start, end = sorted(int(k) for k in g.g.integers(0, n + 1, 2))
    if start == end:
        return False
    first, last = (start, end) if step > 0 else (end - 1, start - 1 - (n if start == 0 else 0))
    count = len(range(*slice(first, last, step).indices(n)))
    if not count:
        return False
    operands = [x.name, g.numbers([first]), g.numbers([last]), g.numbers([axis]), g.numbers([step])]
    g.add("Slice", operands, x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1:]))
    return True


@maker()
def gather(g: Graph) -> bool:
    x = g.pick(lambda t: len(t.shape) > 0)
    if x is None:
        return False
    axis = int(g.g.integers(len(x.shape)))
    low = -x.shape[axis] if g.opset >= 11 else 0
    indices = g.g.integers(low, x.shape[axis], tuple(int(n) for n in g.g.integers(1, 4, int(g.g.integers(0, 3)))))
    if g.g.random() < 0.3:
        name = f"x{len(g.inputs)}"
        g.inputs[name] = np.asarray(indices, np.int64)
    else:
        name = g.constant(np.asarray(indices, np.int64))
    shape = (*x.shape[:axis], *np.shape(indices), *x.shape[axis + 1:])
    if len(shape) > 5:
        return False
    g.add("Gather", [x.name, name], x.dtype, shape, axis=axis)
    return True


@maker()
def pad(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float and len(t.shape) > 0)
    if x is None or g.opset < 11:
        return False
    mode = chance(g, "constant", "reflect", "edge")
    before, after = (tuple(int(k) for k in g.g.integers(0, 3, len(x.shape))) for _ in range(2))
    if mode == "reflect":
        before, after = (tuple(min(b, n - 1) for b, n in zip(side, x.shape)) for side in (before, after))
    g.add("Pad", [x.name, g.numbers([*before, *after])], x.dtype, tuple(map(sum, zip(before, x.shape, after))), mode=mode)
    return True


@maker(2)
def reduce(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float and len(t.shape) > 0)
    if x is None:
        return False
    op = chance(g, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
    axes = sorted({int(n) for n in g.g.integers(0, len(x.shape), int(g.g.integers(1, 3)))})
    keep = int(g.g.integers(2))
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keep or a not in axes)
    as_input = g.opset >= (13 if op == "ReduceSum" else 18)
    written = [a - len(x.shape) for a in axes] if g.opset >= 11 and g.g.random() < 0.3 else axes
    if as_input:
        g.add(op, [x.name, g.numbers(written)], x.dtype, shape, keepdims=keep)
    else:
        g.add(op, [x.name], x.dtype, shape, keepdims=keep, axes=written)
    return True


@maker()
def arg(g: Graph) -> bool:
    x = g.pick(lambda t: t.dtype == "float32" and len(t.shape) > 0)
    if x is None:
        return False
    axis, keep = int(g.g.integers(len(x.shape))), int(g.g.integers(2))
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape) if keep or a != axis)
    g.add(chance(g, "ArgMax", "ArgMin"), [x.name], "int64", shape, axis=axis, keepdims=keep)
    return True


@maker()
def softmax(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float and len(t.shape) > 0)
    if x is None:
        return False
    axis = int(g.g.integers(len(x.shape)))
    g.add(chance(g, "Softmax", "LogSoftmax"), [x.name], x.dtype, x.shape, axis=axis)
    return True


@maker()
def matmul(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float and len(t.shape) >= 2)
    if x is None:
        return False
    width = int(g.g.integers(1, 6))
    batch = x.shape[:-2] if g.g.random() < 0.5 else ()
    g.add("MatMul", [x.name, g.another(x.dtype, (*batch, x.shape[-1], width))], x.dtype, (*x.shape[:-1], width))
    return True


@maker()
def gemm(g: Graph) -> bool:
    x = g.pick(lambda t: t.is_float and len(t.shape) == 2)
    if x is None:
        return False
    width, swap = int(g.g.integers(1, 6)), int(g.g.integers(2))
    second = g.another(x.dtype, (width, x.shape[1]) if swap else (x.shape[1], width))
    operands = [x.name, second] + ([g.another(x.dtype, chance(g, (width,), (1, width), (x.shape[0], 1)))]
                                   if g.opset < 11 or g.g.random() < 0.7 else [])
    g.add("Gemm", operands, x.dtype, (x.shape[0], width), transB=swap, alpha=0.5)
    return True


@maker()
def conv(g: Graph) -> bool:
    x = g.pick(lambda t: t.dtype == "float32" and len(t.shape) in (3, 4) and min(t.shape) > 0)
    if x is None:
        return False
    spatial = len(x.shape) - 2
    kernel = [int(k) for k in g.g.integers(1, 4, spatial)]
    strides, dilations = ([int(k) for k in g.g.integers(1, 3, spatial)] for _ in range(2))
    pads = [int(k) for k in g.g.integers(0, 3, 2 * spatial)]
    groups = x.shape[1] if g.g.random() < 0.3 else 1
    outputs = groups * int(g.g.integers(1, 4))
    sizes = [(n + pads[d] + pads[d + spatial] - (kernel[d] - 1) * dilations[d] - 1) // strides[d] + 1
             for d, n in enumerate(x.shape[2:])]
    if min(sizes) < 1:
        return False
    weight = g.constant(0.5 * g.array("float32", (outputs, x.shape[1] // groups, *kernel)))
    g.add("Conv", [x.name, weight, g.constant(g.array("float32", (outputs,)))], x.dtype, (x.shape[0], outputs, *sizes),
          strides=strides, dilations=dilations, pads=pads, group=groups)
    return True


@maker()
def pool(g: Graph) -> bool:
    x = g.pick(lambda t: t.dtype == "float32" and len(t.shape) in (3, 4))
    if x is None:
        return False
    spatial, op = len(x.shape) - 2, chance(g, "MaxPool", "AveragePool")
    kernel = [int(k) for k in g.g.integers(1, 4, spatial)]
    strides = [int(k) for k in g.g.integers(1, 3, spatial)]
    pads = [int(g.g.integers(0, k)) for k in (*kernel, *kernel)]
    sizes = [(n + pads[d] + pads[d + spatial] - kernel[d]) // strides[d] + 1 for d, n in enumerate(x.shape[2:])]
    if min(sizes) < 1:
        return False
    extra = {"count_include_pad": int(g.g.integers(2))} if op == "AveragePool" else {}
    g.add(op, [x.name], x.dtype, (*x.shape[:2], *sizes), kernel_shape=kernel, strides=strides, pads=pads, **extra)
    return True


@maker()
def squeeze(g: Graph) -> bool:
    x = g.pick(lambda t: len(t.shape) < 5)
    if x is None:
        return False
    ones = [a for a, n in enumerate(x.shape) if n == 1]
    if ones and g.g.random() < 0.5:
        op, axes, shape = "Squeeze", [ones[0]], tuple(n for a, n in enumerate(x.shape) if a != ones[0])
    else:
        at = int(g.g.integers(len(x.shape) + 1))
        op, axes, shape = "Unsqueeze", [at], (*x.shape[:at], 1, *x.shape[at:])
    if g.opset >= 13:
        g.add(op, [x.name, g.numbers(axes)], x.dtype, shape)
    else:
        g.add(op, [x.name], x.dtype, shape, axes=axes)
    return True


@maker()
def tile(g: Graph) -> bool:
    x = g.pick(lambda t: 0 < len(t.shape) < 5 and int(np.prod(t.shape)) < 200)
    if x is None:
        return False
    times = [int(n) for n in g.g.integers(1, 3, len(x.shape))]
    g.add("Tile", [x.name, g.numbers(times)], x.dtype, tuple(n * m for n, m in zip(x.shape, times)))
    return True


@maker()
def cumsum(g: Graph) -> bool:
    x = g.pick(lambda t: t.dtype in ("float32", "int32", "int64", "float64") and len(t.shape) > 0)
    if x is None or g.opset < 11:
        return False
    axis = int(g.g.integers(-len(x.shape), len(x.shape)))
    g.add("CumSum", [x.name, g.constant(np.array(axis, np.int64))], x.dtype, x.shape,
          exclusive=int(g.g.integers(2)), reverse=int(g.g.integers(2)))
    return True


def graph(seed: int, nodes: int = 10) -> Graph:
    """The graph of a seed."""
    g = np.random.default_rng([22, seed])
    found = Graph(g, int(g.choice(OPSETS)))
    for number in range(int(g.integers(1, 4))):
        shape = tuple(int(n) for n in g.integers(1, 6, int(g.integers(1, 5))))
        dtype = str(g.choice([*FLOATS, "float32", "float32", *INTEGERS, "bool"]))
        found.inputs[f"x{number}"] = found.array(dtype, shape)
        found.values.append(Tensor(f"x{number}", dtype, shape))
    tries = 0
    while len(found.nodes) < nodes and tries < 20 * nodes:
        MAKERS[int(g.integers(len(MAKERS)))](found)
        tries += 1
    return found


# ---- judgement -----------------------------------------------------------------------------------------------------------
def answers(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> tuple[list[np.ndarray], str]:
    """What somebody else gives, and who."""
    try:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, inputs), "ONNX Runtime"
    except Exception:
        if model.opset_import[0].version < FIRST_OF_REFERENCE:
            raise
        return ReferenceEvaluator(model).run(None, inputs), "onnx.reference"


def judged(seed: int) -> str:
    """`right`, or what is wrong, or refused."""
    made = graph(seed)
    if not made.nodes:
        return "right"
    model = made.model()
    try:
        right, who = answers(model, made.inputs)
    except Exception as error:
        return f"nobody: {str(error)[:200]}"
    from tosaic.lowering.dialects.onnx.interpret import interpret
    try:
        found = tosaic.from_onnx(model)
        names = [v.name for v in found.module.function("main").arguments]
        compiled = found(made.inputs) if names else found()
        interpreted = interpret(found.module, "main", [made.inputs[n] for n in names])
    except tosaic.Problem as problem:
        return f"refused: {problem.message}"
    engines = {"compiled": compiled if isinstance(compiled, tuple) else (compiled,), "interpreted": interpreted}
    for engine, results in engines.items():
        for node, a, b in zip(made.nodes, results, right, strict=True):
            if wrong := difference(np.asarray(a), np.asarray(b)):
                return f"wrong, {engine}: {node.op_type} of opset {made.opset}, {node.output[0]}, beside {who}: {wrong}"
    return "right"


def difference(a: np.ndarray, b: np.ndarray) -> str:
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
    if b.dtype.kind != "f":
        # a comparison or a conversion of what is rounded otherwise may fall to the other side: few may
        count = int((a != b).sum())
        return f"{count} of {b.size} differ" if count > b.size // 16 else ""
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)):
        return "other elements are infinite"
    largest = float(np.abs(b[finite]).max(initial=0))
    gap = float(np.abs(a[finite].astype(np.float64) - b[finite]).max(initial=0))
    return f"{gap:.2e} of {largest:.2e}" if gap > max(PART * largest, LEAST) else ""


def main() -> int:
    first, count = (int(n) for n in (*sys.argv[1:], *("0", "1000")[len(sys.argv) - 1:]))
    counts: dict[str, int] = {}
    for seed in range(first, first + count):
        verdict = judged(seed)
        counts[verdict.split(":")[0].split(",")[0]] = counts.get(verdict.split(":")[0].split(",")[0], 0) + 1
        if verdict != "right":
            print(seed, verdict, flush=True)
    print(counts)
    return int("wrong" in counts)


if __name__ == "__main__":
    sys.exit(main())
