"""Bombs: small files that ask for much. `python tests/limits` runs each in a process of its own and
prints what it came to, its seconds and its memory."""
from __future__ import annotations

from collections.abc import Callable

from tosaic.runtime.limits import Limits

LIMITS = Limits(nodes=20_000, bytes=64 << 20, seconds=20)
"""Of the tests and the table: what a small service would allow."""
Bomb = Callable[[], bytes]
T = "tensor<4xf32>"


def function(body: str, arguments: str = f"%x: {T}", result: str = T) -> bytes:
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n}}\n".encode()


def splat() -> bytes:
    """A constant of a gigabyte in one line."""
    t = "tensor<268435456xf32>"
    return function(f'%c = "tosa.const"() <{{values = dense<1.0> : {t}}}> : () -> {t}\nreturn %c : {t}', "", t)


def many_splats() -> bytes:
    """A hundred constants, each of which is small enough."""
    t = "tensor<4194304xf32>"
    lines = [f'%c{n} = "tosa.const"() <{{values = dense<{n}.0> : {t}}}> : () -> {t}' for n in range(100)]
    sums = [f"%s{n} = tosa.add %{'c0' if n == 1 else f's{n - 1}'}, %c{n} : ({t}, {t}) -> {t}" for n in range(1, 100)]
    return function("\n".join([*lines, *sums, f"return %s99 : {t}"]), "", t)


def many_operators() -> bytes:
    """A million operators."""
    lines = [f"%0 = tosa.abs %x : ({T}) -> {T}"]
    lines += [f"%{n} = tosa.abs %{n - 1} : ({T}) -> {T}" for n in range(1, 1_000_000)]
    return function("\n".join([*lines, f"return %999999 : {T}"]))


def deep_brackets() -> bytes:
    """A hundred thousand brackets."""
    return b"module attributes {a = " + b"[" * 100_000


def deep_branches() -> bytes:
    """Branches in branches, sixty deep."""
    text = f"tosa.yield %x : {T}"
    for n in range(60):
        text = (f"%r{n} = tosa.cond_if %c : tensor<1xi1> -> {T} {{\n{text}\n}} else {{\ntosa.yield %x : {T}\n}}\n"
                f"tosa.yield %r{n} : {T}")
    return function(text.removesuffix(f"tosa.yield %r59 : {T}") + f"return %r59 : {T}", f"%x: {T}, %c: tensor<1xi1>")


def exponential_calls() -> bytes:
    """Thirty functions, each of which calls the next twice."""
    bodies = [f'%r = "tf.AddV2"(%x, %x) : ({T}, {T}) -> {T}']
    bodies += [f"%a = func.call @f{n}(%x) : ({T}) -> {T}\n%r = func.call @f{n}(%a) : ({T}) -> {T}" for n in range(30)]
    return "\n".join(f"func.func {'private @f' + str(n) if n < 30 else '@main'}(%x: {T}) -> {T} {{\n{body}\nreturn %r : {T}\n}}"
                     for n, body in enumerate(bodies)).encode()


def exponential_branches() -> bytes:
    """Thirty functions, each of which branches to the next twice."""
    types = f"(tensor<i1>, {T}, tensor<i1>) -> {T}"
    call = ('%a = "tf.If"(%c, %x, %c) <{{else_branch = @f{0}, is_stateless = true, then_branch = @f{0}}}> : {1}\n'
            '%r = "tf.If"(%c, %a, %c) <{{else_branch = @f{0}, is_stateless = true, then_branch = @f{0}}}> : {1}')
    bodies = [f'%r = "tf.AddV2"(%x, %x) : ({T}, {T}) -> {T}', *(call.format(n, types) for n in range(30))]
    return "\n".join(f"func.func {'private @f' + str(n) if n < 30 else '@main'}(%x: {T}, %c: tensor<i1>) -> {T} {{\n{body}\n"
                     f"return %r : {T}\n}}" for n, body in enumerate(bodies)).encode()


def nested_aliases() -> bytes:
    """Aliases of attributes, each of which has the one before twice."""
    lines = ["#a0 = [1, 1]", *(f"#a{n} = [#a{n - 1}, #a{n - 1}]" for n in range(1, 60))]
    return "\n".join([*lines, "module attributes {x.y = #a59} {}"]).encode()


def long_line() -> bytes:
    """One line of twenty million characters."""
    return function(f"// {'x' * 20_000_000}\nreturn %x : {T}")


def long_list() -> bytes:
    """A constant of ten million numbers in one line."""
    t = "tensor<10000000xf32>"
    return function(f'%c = "tosa.const"() <{{values = dense<[{"1.0, " * 9_999_999}1.0]> : {t}}}> : () -> {t}\nreturn %c : {t}',
                    "", t)


def wide_tile() -> bytes:
    """A tensor of four numbers, tiled to a gigabyte."""
    t = "tensor<268435456xf32>"
    return function(f'%m = "tosa.const_shape"() <{{values = dense<67108864> : tensor<1xindex>}}> : () -> !tosa.shape<1>\n'
                    f"%r = tosa.tile %x, %m : ({T}, !tosa.shape<1>) -> {t}\nreturn %r : {t}", result=t)


def huge_arguments() -> bytes:
    """An argument of nearly two gigabytes, which is legal by itself."""
    t = "tensor<1x500000000xf32>"
    return function(f"%r = tosa.abs %x : ({t}) -> {t}\nreturn %r : {t}", f"%x: {t}", t)


def large_arena() -> bytes:
    """Tensors that are each within the limit, of which many are live at once."""
    t, u = "tensor<1x2048x2048xf32>", "tensor<1xf32>"
    product = f"%x, %z, %z : ({t}, {t}, {u}, {u}) -> {t}"
    lines = [f'%z = "tosa.const"() <{{values = dense<0.0> : {u}}}> : () -> {u}',
             *(f"%m{n} = tosa.matmul %{'x' if n == 0 else f'm{n - 1}'}, {product}" for n in range(6)),
             f"%s5 = tosa.abs %m5 : ({t}) -> {t}"]
    lines += [f"%s{n} = tosa.matmul %m{n}, %s{n + 1}, %z, %z : ({t}, {t}, {u}, {u}) -> {t}" for n in reversed(range(5))]
    return function("\n".join([*lines, f"return %s0 : {t}"]), f"%x: {t}", t)


def slow_compile() -> bytes:
    """Operators within the count, each of another shape, so that each is code of its own: LLVM's minutes."""
    lines, at = [], "x"
    for n in range(3_000):
        u = f"tensor<{n + 5}xf32>"
        before = f"tensor<{n + 4}xf32>"
        lines += [f'%p{n} = "tosa.const_shape"() <{{values = dense<[0, 1]> : tensor<2xindex>}}> : () -> !tosa.shape<2>',
                  f'%k{n} = "tosa.const"() <{{values = dense<{n}.5> : tensor<1xf32>}}> : () -> tensor<1xf32>',
                  f"%q{n} = tosa.pad %{at}, %p{n}, %k{n} : ({before}, !tosa.shape<2>, tensor<1xf32>) -> {u}",
                  f"%r{n} = tosa.reduce_sum %q{n} {{axis = 0 : i32}} : ({u}) -> tensor<1xf32>",
                  f"%s{n} = tosa.add %q{n}, %r{n} : ({u}, tensor<1xf32>) -> {u}"]
        at = f"s{n}"
    return function("\n".join([*lines, f"return %{at} : tensor<3004xf32>"]), result="tensor<3004xf32>")


TEXTS: dict[str, Bomb] = {each.__name__: each for each in (
    splat, many_splats, many_operators, deep_brackets, deep_branches, exponential_calls, exponential_branches, nested_aliases,
    long_line, long_list, wide_tile, huge_arguments, large_arena, slow_compile)}


# ---- ONNX ------------------------------------------------------------------------------------------------------------
def onnx_model(nodes: list, inputs: list | None = None, functions: list | None = None, output: list | None = None,
               imports: tuple[str, ...] = ()) -> bytes:
    import onnx
    from onnx import TensorProto, helper
    x = inputs if inputs is not None else [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, output)
    graph = helper.make_graph(nodes, "bomb", x, [y])
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(i, 1) for i in imports)]
    model = helper.make_model(graph, opset_imports=opsets, functions=functions or [], ir_version=9)
    data: bytes = onnx.ModelProto.SerializeToString(model)
    return data


def constant(name: str, values: list[int], dtype: int = 7) -> object:
    from onnx import helper
    return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, dtype, [len(values)], values))


def onnx_nested_functions() -> bytes:
    """Functions of the model, each of which calls the next twice."""
    from onnx import helper
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    found = [helper.make_function("f", "F0", ["x"], ["y"], [helper.make_node("Abs", ["x"], ["y"])], opset)]
    for n in range(1, 31):
        nodes = [helper.make_node(f"F{n - 1}", [x], [y], domain="f") for x, y in ("xt", "ty")]
        found.append(helper.make_function("f", f"F{n}", ["x"], ["y"], nodes, opset))
    return onnx_model([helper.make_node("F30", ["x"], ["y"], domain="f")], functions=found, imports=("f",))


def onnx_constant_of_shape() -> bytes:
    """A shape of a gigabyte, filled."""
    from onnx import helper
    return onnx_model([constant("s", [1 << 14, 1 << 14]), helper.make_node("ConstantOfShape", ["s"], ["c"]),
                       helper.make_node("ReduceSum", ["c"], ["r"], keepdims=0), helper.make_node("Add", ["x", "r"], ["y"])])


def onnx_range() -> bytes:
    """A range of a thousand million numbers."""
    from onnx import TensorProto, helper

    def scalar(name: str, value: int) -> object:
        return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [], [value]))
    return onnx_model([scalar("a", 0), scalar("b", 10 ** 9), scalar("d", 1), helper.make_node("Range", ["a", "b", "d"], ["r"]),
                       helper.make_node("Cast", ["r"], ["f"], to=1), helper.make_node("ReduceMax", ["f"], ["m"], keepdims=0),
                       helper.make_node("Add", ["x", "m"], ["y"])])


def onnx_tile() -> bytes:
    """Tiled again and again."""
    from onnx import helper
    nodes = [constant("n", [1000]), helper.make_node("Tile", ["x", "n"], ["a"]), helper.make_node("Tile", ["a", "n"], ["b"]),
             helper.make_node("Tile", ["b", "n"], ["c"]), helper.make_node("Tile", ["c", "n"], ["y"])]
    return onnx_model(nodes)


def onnx_pad() -> bytes:
    """A pad of two thousand million."""
    from onnx import helper
    return onnx_model([constant("p", [0, 2 * 10 ** 9]), helper.make_node("Pad", ["x", "p"], ["y"])])


def onnx_huge_input() -> bytes:
    """An input whose shape overflows."""
    from onnx import TensorProto, helper
    return onnx_model([helper.make_node("Abs", ["x"], ["y"])],
                      [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1 << 40, 1 << 40])])


def onnx_huge_weight() -> bytes:
    """A weight that says it has a thousand million numbers, and has none."""
    import onnx
    from onnx import TensorProto, helper
    model = onnx.ModelProto.FromString(onnx_model([helper.make_node("Add", ["x", "w"], ["y"])]))
    model.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[1 << 30]))
    data: bytes = model.SerializeToString()
    return data


def onnx_loops() -> bytes:
    """Loops in loops, twelve deep."""
    from onnx import TensorProto, helper
    value = lambda name, type, shape=(): helper.make_tensor_value_info(name, type, shape)  # noqa: E731
    nodes = [helper.make_node("Abs", ["v0"], ["o0"])]
    for n in range(12):
        body = helper.make_graph(
            [*nodes, helper.make_node("Identity", [f"c{n}"], [f"d{n}"])], f"b{n}",
            [value(f"i{n}", 7), value(f"c{n}", 9), value(f"v{n}", TensorProto.FLOAT, (4,))],
            [value(f"d{n}", 9), value(f"o{n}", TensorProto.FLOAT, (4,))])
        nodes = [helper.make_node("Loop", ["count", "go", f"v{n + 1}" if n < 11 else "x"], [f"o{n + 1}" if n < 11 else "y"],
                                  body=body)]
    count = helper.make_tensor("count", TensorProto.INT64, [], [100])
    go = helper.make_tensor("go", TensorProto.BOOL, [], [True])
    return onnx_model([helper.make_node("Constant", [], ["count"], value=count),
                       helper.make_node("Constant", [], ["go"], value=go), *nodes])


ONNX: dict[str, Bomb] = {each.__name__: each for each in (
    onnx_nested_functions, onnx_constant_of_shape, onnx_range, onnx_tile, onnx_pad, onnx_huge_input, onnx_huge_weight,
    onnx_loops)}


# ---- flatbuffers -----------------------------------------------------------------------------------------------------
def tflite_huge_shapes() -> bytes:
    """A .tflite whose tensors say that they have 2^31 - 1 elements along each axis."""
    from pathlib import Path
    data = bytearray((Path(__file__).parents[1] / "data" / "corpus" / "f_mlp.tflite").read_bytes())
    for old, new in ((4, 0x7FFFFFFF), (16, 0x7FFFFFFF)):  # extents of its input, wherever they stand in a vector of two
        pattern = (2).to_bytes(4, "little") + (4).to_bytes(4, "little") + (16).to_bytes(4, "little")
        at = data.find(pattern)
        if at >= 0:
            data[at + 4 + 4 * (old == 16):at + 8 + 4 * (old == 16)] = new.to_bytes(4, "little")
    return bytes(data)


FLATBUFFERS: dict[str, Bomb] = {"tflite_huge_shapes": tflite_huge_shapes}
BOMBS: dict[str, Bomb] = TEXTS | ONNX | FLATBUFFERS
