"""Graphs of one operator as MLIR text: every operator, element type and kind of shape that compile times are measured over."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

Dims = tuple[int, ...]
SHAPES: dict[str, Dims] = {"one": (1,), "row": (37,), "image": (1, 8, 9, 16), "rank 6": (2, 1, 3, 4, 5, 7),
                           "large": (4, 256, 256, 16)}
FLOATS, INTEGERS = ("f32", "f16", "bf16"), ("i8", "i16", "i32")
SUMS = {"i8": ("i8", "i32", "i32"), "i16": ("i8", "i48", "i48"), "f32": ("f32", "f32", "f32"), "f16": ("f16", "f16", "f32"),
        "bf16": ("bf16", "bf16", "f32"), "f8E4M3FN": ("f8E4M3FN", "f16", "f16"), "f8E5M2": ("f8E5M2", "f16", "f16")}
"""Element types of the weights, the result and the accumulator of a convolution, by that of its input."""
ELEMENTWISE: dict[str, tuple[int, tuple[str, ...], str]] = {
    **dict.fromkeys(("add", "sub", "maximum", "minimum"), (2, ("i32", *FLOATS), "")),
    "pow": (2, FLOATS, ""), "intdiv": (2, ("i32",), ""),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (2, INTEGERS, "")),
    **dict.fromkeys(("logical_left_shift", "logical_right_shift"), (2, INTEGERS, "")),
    "arithmetic_right_shift": (2, INTEGERS, "round = true"),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (2, ("i1",), "")), "logical_not": (1, ("i1",), ""),
    **dict.fromkeys(("equal", "greater", "greater_equal"), (2, ("i32", *FLOATS), "")),
    **dict.fromkeys(("erf", "sigmoid", "tanh", "ceil", "floor", "exp", "log", "sin", "cos", "reciprocal", "rsqrt"),
                    (1, FLOATS, "")),
    "abs": (1, ("i32", *FLOATS), ""), "bitwise_not": (1, INTEGERS, ""), "clz": (1, ("i32",), ""),
    "identity": (1, ("i1", *INTEGERS, *FLOATS), "")}
"""Operands, element types and attributes of the operators that need no constants."""
CASTS = (("i8", "f32"), ("i32", "f16"), ("i16", "bf16"), ("f32", "i8"), ("f16", "i32"), ("f32", "f16"), ("bf16", "f32"),
         ("f16", "f8E4M3FN"), ("f8E5M2", "f32"), ("i1", "i32"), ("i8", "i1"))


def tensor(dims: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in dims)}{element}>"


class Graph:
    """Text of one function, operand by operand."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.operands: list[tuple[str, str]] = []

    def input(self, dims: Sequence[int], element: str) -> Graph:
        name, type = f"%x{len(self.operands)}", tensor(dims, element)
        self.arguments.append(f"{name}: {type}")
        self.operands.append((name, type))
        return self

    def constant(self, dims: Sequence[int], element: str, value: str = "") -> Graph:
        """A constant of one value, or of values inside brackets."""
        value = value or ("0.0" if "f" in element else "0")
        return self.defined(f'"tosa.const"() <{{values = dense<{value}> : {tensor(dims, element)}}}>', tensor(dims, element))

    def shape(self, *values: int) -> Graph:
        attribute = f"dense<{list(values)}> : tensor<{len(values)}xindex>"
        return self.defined(f'"tosa.const_shape"() <{{values = {attribute}}}>', f"!tosa.shape<{len(values)}>")

    def defined(self, made: str, type: str) -> Graph:
        name = f"%x{len(self.operands)}"
        self.lines.append(f"  {name} = {made} : () -> {type}")
        self.operands.append((name, type))
        return self

    def text(self, name: str, attributes: str, dims: Sequence[int], element: str) -> str:
        """The graph whose only operator besides constants is `name`."""
        result, names, types = tensor(dims, element), ", ".join(n for n, _ in self.operands), ", ".join(
            t for _, t in self.operands)
        made = f'  %r = "tosa.{name}"({names}) <{{{attributes}}}> : ({types}) -> {result}'
        return "\n".join([f"func.func @main({', '.join(self.arguments)}) -> {result} {{", *self.lines, made,
                          f"  return %r : {result}", "}"])


Case = tuple[str, str]
"""What a graph is, and its text."""


def elementwise(shapes: dict[str, Dims]) -> Iterator[Case]:
    for (name, (count, elements, attributes)), (shape, dims) in product(ELEMENTWISE.items(), shapes.items()):
        for element in elements:
            graph = Graph()
            for _ in range(count):
                graph.input(dims, element)
            result = "i1" if name in ("equal", "greater", "greater_equal") else element
            yield f"{name} {element} {shape}", graph.text(name, attributes, dims, result)


def other_elementwise(shapes: dict[str, Dims]) -> Iterator[Case]:
    """Those that take constants, or whose operands differ in type."""
    for shape, dims in shapes.items():
        for element in ("i8", "i16", "i32", *FLOATS):
            graph = Graph().input(dims, element).input(dims, element).constant((1,), "i8", "3" if element == "i32" else "0")
            yield f"mul {element} {shape}", graph.text("mul", "", dims, "i32" if element[0] == "i" else element)
            graph = Graph().input(dims, "i1").input(dims, element).input(dims, element)
            yield f"select {element} {shape}", graph.text("select", "", dims, element)
            graph = Graph().input(dims, element).constant((1,), element).constant((1,), element)
            yield f"negate {element} {shape}", graph.text("negate", "", dims, element)
            low, high = ("0.0", "6.0") if "f" in element else ("0", "6")
            bounds = f"min_val = {low} : {element}, max_val = {high} : {element}"
            if element != "i32":
                yield f"clamp {element} {shape}", Graph().input(dims, element).text("clamp", bounds, dims, element)
        for source, to in CASTS:
            yield f"cast {source} {to} {shape}", Graph().input(dims, source).text("cast", "", dims, to)
        for element, count, to in (("i8", 256, "i8"), ("i16", 513, "i32")):
            graph = Graph().input(dims, element).constant((count,), "i8" if to == "i8" else "i16", "7")
            yield f"table {element} {shape}", graph.text("table", "", dims, to)
        yield from broadcasting(shape, dims)
        yield from rescales(shape, dims)


def broadcasting(shape: str, dims: Dims) -> Iterator[Case]:
    column = (*dims[:-1], 1)
    yield f"add f32 {shape}, a column", Graph().input(dims, "f32").input(column, "f32").text("add", "", dims, "f32")
    row = (*(1,) * (len(dims) - 1), dims[-1])
    yield f"add f32 {shape}, a row", Graph().input(dims, "f32").input(row, "f32").text("add", "", dims, "f32")
    if len(dims) > 2:
        mixed = tuple(n if d % 2 else 1 for d, n in enumerate(dims))
        graph = Graph().input(dims, "i32").input(mixed, "i32")
        yield f"add i32 {shape}, every other axis", graph.text("add", "", dims, "i32")


def rescales(shape: str, dims: Dims) -> Iterator[Case]:
    kinds = (("i8", "i32", True), ("i32", "i8", True), ("i8", "i8", True), ("i48", "i16", False), ("i32", "i32", True))
    for (source, to, wide), rounding, channels in product(kinds, ("SINGLE_ROUND", "DOUBLE_ROUND"), (False, True)):
        if rounding == "DOUBLE_ROUND" and not wide:
            continue
        count = dims[-1] if channels else 1
        graph = Graph().input(dims, source).constant((count,), "i32" if wide else "i16", "1234567890" if wide else "12345")
        graph.constant((count,), "i8", "37" if wide else "20").constant((1,), source).constant((1,), to)
        flags = f"scale32 = {str(wide).lower()}, rounding_mode = #tosa.rounding_mode<{rounding}>, " \
                f"per_channel = {str(channels).lower()}, input_unsigned = false, output_unsigned = false"
        name = f"rescale {source} {to} {rounding.lower()}{' per channel' if channels else ''} {shape}"
        yield name, graph.text("rescale", flags, dims, to)


def layout(shapes: dict[str, Dims]) -> Iterator[Case]:
    for (shape, dims), element in product(shapes.items(), ("i8", "i16", "f32", "i1")):
        rank, total = len(dims), prod(dims)
        graph = Graph().input(dims, element).input(dims, element)
        yield f"concat {element} {shape}", graph.text("concat", "axis = 0 : i32", (2 * dims[0], *dims[1:]), element)
        graph = Graph().input(dims, element).input(dims, element)
        wide = (*dims[:-1], 2 * dims[-1])
        yield f"concat last {element} {shape}", graph.text("concat", f"axis = {rank - 1} : i32", wide, element)
        value = {"i1": "true", "f32": "0.0"}.get(element, "0")
        graph = Graph().input(dims, element).shape(*(1, 2) * rank).constant((1,), element, value)
        yield f"pad {element} {shape}", graph.text("pad", "", tuple(n + 3 for n in dims), element)
        yield f"reshape {element} {shape}", Graph().input(dims, element).shape(total).text("reshape", "", (total,), element)
        for axis in {0, rank - 1}:
            graph, at = Graph().input(dims, element), f"axis = {axis} : i32"
            yield f"reverse {axis} {element} {shape}", graph.text("reverse", at, dims, element)
        size = tuple(max(1, n - 2) for n in dims)
        graph = Graph().input(dims, element).shape(*(min(1, n - s) for n, s in zip(dims, size))).shape(*size)
        yield f"slice {element} {shape}", graph.text("slice", "", size, element)
        graph = Graph().input(dims, element).shape(*(2,) * rank)
        yield f"tile {element} {shape}", graph.text("tile", "", tuple(2 * n for n in dims), element)
        for label, perms in (("reversed", tuple(range(rank))[::-1]), ("rotated", (*range(1, rank), 0))):
            graph, listed = Graph().input(dims, element), ", ".join(map(str, perms))
            out = tuple(dims[p] for p in perms)
            yield f"transpose {label} {element} {shape}", graph.text("transpose", f"perms = array<i32: {listed}>", out, element)


def reductions(shapes: dict[str, Dims]) -> Iterator[Case]:
    kinds = {"reduce_sum": ("i32", *FLOATS), "reduce_product": FLOATS, "reduce_max": (*INTEGERS, *FLOATS),
             "reduce_min": ("i8", "f32"), "reduce_all": ("i1",), "reduce_any": ("i1",), "argmax": ("i8", "i16", *FLOATS)}
    for (name, elements), (shape, dims) in product(kinds.items(), shapes.items()):
        for element, axis in product(elements, {0, len(dims) // 2, len(dims) - 1}):
            left = dims[:axis] + (() if name == "argmax" else (1,)) + dims[axis + 1:]
            to = "i32" if name == "argmax" else element
            yield f"{name} {axis} {element} {shape}", Graph().input(dims, element).text(name, f"axis = {axis} : i32", left, to)


CONVOLUTIONS = (((1, 4, 4, 1), 1, (1, 1), 1, 0), ((1, 9, 11, 3), 17, (3, 3), 1, 1), ((2, 16, 16, 32), 48, (5, 3), 2, 2),
                ((1, 33, 1, 8), 8, (7, 1), 1, 3), ((1, 128, 128, 64), 128, (3, 3), 1, 1), ((1, 1, 1, 600), 1000, (1, 1), 1, 0))
"""Input, filters, kernel, stride, padding on each side."""


def convolutions() -> Iterator[Case]:
    for (dims, filters, kernel, stride, pad), (element, (weight, out, acc)), constant in product(
            CONVOLUTIONS, SUMS.items(), (False, True)):
        pads = tuple(min(pad, k - 1) for k in kernel)
        extents = (n + (stride - (n + 2 * p - k) % stride) % stride for n, k, p in zip(dims[1:3], kernel, pads))
        dims = (dims[0], *extents, dims[3])
        places = tuple((n + 2 * p - k) // stride + 1 for n, k, p in zip(dims[1:3], kernel, pads))
        listed = ", ".join(f"{p}, {p}" for p in pads)
        attributes = f"pad = array<i64: {listed}>, stride = array<i64: {stride}, {stride}>, dilation = array<i64: 1, 1>, " \
                     f"acc_type = {acc}, local_bound = false"
        label = f"{element} {'x'.join(map(str, dims))}, {filters} filters of {kernel[0]}x{kernel[1]}" \
                f"{', constant' if constant else ''}"
        for name in ("conv2d", "depthwise_conv2d", "transpose_conv2d"):
            if prod(dims) * filters * prod(kernel) > 1 << 31 and name != "conv2d":
                continue
            multiplier = 2 if name == "depthwise_conv2d" else 0
            count = dims[3] * multiplier or filters
            shape = (*kernel, dims[3], multiplier) if multiplier else (count, *kernel, dims[3])
            graph = weighted(Graph().input(dims, element), shape, weight, count, out, constant)
            graph.constant((1,), element).constant((1,), weight)
            if name != "transpose_conv2d":
                yield f"{name} {label}", graph.text(name, attributes, (dims[0], *places, count), out)
                continue
            grown = tuple((n - 1) * stride + k for n, k in zip(dims[1:3], kernel))
            attributes_of = f"out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: {stride}, {stride}>, acc_type = {acc}, " \
                            "local_bound = false"
            yield f"{name} {label}", graph.text(name, attributes_of, (dims[0], *grown, count), out)


def weighted(graph: Graph, shape: Dims, weight: str, count: int, out: str, constant: bool) -> Graph:
    if constant:
        value = "0.5" if "f" in weight else "3"
        return graph.constant(shape, weight, value).constant((count,), out, "0.25" if "f" in out else "11")
    return graph.input(shape, weight).input((count,), out)


def volumes() -> Iterator[Case]:
    for element, (weight, out, acc) in SUMS.items():
        graph = Graph().input((1, 5, 6, 7, 4), element).input((8, 3, 3, 3, 4), weight).input((8,), out)
        graph.constant((1,), element).constant((1,), weight)
        attributes = "pad = array<i64: 1, 1, 1, 1, 1, 1>, stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, " \
                     f"acc_type = {acc}, local_bound = false"
        yield f"conv3d {element}", graph.text("conv3d", attributes, (1, 5, 6, 7, 8), out)


def products() -> Iterator[Case]:
    sizes = ((1, 1, 1, 1), (1, 4, 5, 6), (3, 33, 17, 65), (1, 1, 512, 512), (1, 256, 256, 256), (2, 64, 64, 1))
    for (batch, rows, inner, columns), (element, (_, out, _)) in product(sizes, SUMS.items()):
        graph = Graph().input((batch, rows, inner), element).input((batch, inner, columns), element)
        graph.constant((1,), element).constant((1,), element)
        to = "f32" if element == "bf16" else out
        yield f"matmul {element} {batch}x{rows}x{inner}x{columns}", graph.text("matmul", "", (batch, rows, columns), to)


def pools() -> Iterator[Case]:
    sizes = (((1, 4, 4, 1), 2, 1), ((2, 16, 17, 24), 3, 1), ((1, 128, 128, 32), 2, 2), ((1, 64, 64, 3), 8, 8))
    for (dims, kernel, stride), element in product(sizes, ("i8", "i16", *FLOATS, "f8E4M3FN")):
        places = tuple((n - kernel) // stride + 1 for n in dims[1:3])
        dims = (dims[0], *((p - 1) * stride + kernel for p in places), dims[3])
        window = f"kernel = array<i64: {kernel}, {kernel}>, stride = array<i64: {stride}, {stride}>, " \
                 "pad = array<i64: 0, 0, 0, 0>"
        out, label = (dims[0], *places, dims[3]), f"{element} {'x'.join(map(str, dims))} by {kernel}"
        yield f"max_pool2d {label}", Graph().input(dims, element).text("max_pool2d", window, out, element)
        acc = "i32" if element[0] == "i" else "f16" if element[:2] == "f8" else "f32"
        graph = Graph().input(dims, element).constant((1,), element).constant((1,), element)
        yield f"avg_pool2d {label}", graph.text("avg_pool2d", f"{window}, acc_type = {acc}", out, element)


def images() -> Iterator[Case]:
    sizes = (((1, 4, 4, 1), (2, 1)), ((1, 17, 19, 8), (16, 7)), ((1, 64, 64, 16), (4, 2)))
    for (dims, (n, d)), element, mode in product(sizes, ("i8", "i16", *FLOATS), ("NEAREST_NEIGHBOR", "BILINEAR")):
        spare = [(extent - 1) * n % d for extent in dims[1:3]]
        out = tuple(((extent - 1) * n - s) // d + 1 for extent, s in zip(dims[1:3], spare))
        to = element if mode[0] == "N" or element[0] != "i" else "i32" if element == "i8" else "i48"
        graph = Graph().input(dims, element).shape(n, d, n, d).shape(0, 0).shape(*(-s for s in spare))
        label = f"resize {mode.lower()} {element} {'x'.join(map(str, dims))} {n}/{d}"
        yield label, graph.text("resize", f"mode = #tosa.resize_mode<{mode}>", (dims[0], *out, dims[3]), to)


def gathers() -> Iterator[Case]:
    sizes = ((1, 4, 3, 1), (2, 33, 17, 24), (1, 1000, 400, 64))
    for (batch, count, wanted, channels), element in product(sizes, ("i8", "i16", "i32", *FLOATS)):
        label = f"{element} {batch}x{count}x{wanted}x{channels}"
        graph = Graph().input((batch, count, channels), element).input((batch, wanted), "i32")
        yield f"gather {label}", graph.text("gather", "", (batch, wanted, channels), element)
        graph = Graph().input((batch, count, channels), element).input((batch, wanted), "i32")
        graph.input((batch, wanted, channels), element)
        yield f"scatter {label}", graph.text("scatter", "", (batch, count, channels), element)


def every() -> Iterator[Case]:
    """All graphs; the first word of a name is the operator."""
    yield from elementwise(SHAPES)
    yield from other_elementwise(SHAPES)
    yield from layout(SHAPES)
    yield from reductions(SHAPES)
    for cases in (convolutions, volumes, products, pools, images, gathers):
        yield from cases()
