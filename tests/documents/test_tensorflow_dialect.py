"""Sentences of the dialects' RFC about the tf dialect, tried one by one: functions without an executor graph."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.dialects.tf.types import TensorFlowTensor, TensorFlowType
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret as interpret_tosa

X = np.array([1.5, -2.0, 0.25], np.float32)
T = "tensor<3xf32>"


def function(body: str, result: str = T, arguments: str = f"%x: {T}", rest: str = "") -> str:
    """A function that gives its value %r."""
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}\n{rest}"


def read(source: str) -> Module:
    module = read_module(source)
    verify(module)
    return module


def both(source: str, *arguments: object) -> list[Array]:
    """The first result in the interpreter, and in that of the TOSA that it becomes."""
    module, given = read(source), [np.asarray(a) for a in arguments]
    tosa = to_tosa(module, "main")
    return [np.asarray(interpret(Environment(module), "main", given)[0]),
            np.asarray(interpret_tosa(tosa, tosa.function("main"), given)[0])]


def refused(source: str) -> str:
    with pytest.raises(Problem) as caught:
        module = read(source)
        to_tosa(module, "main")
    assert caught.value.position is not None
    return caught.value.message


def test_an_operation_that_nobody_has_declared_is_kept() -> None:
    line = f'%r = "tf.Frobnicate"(%x) {{a = 1 : i64}} : ({T}) -> {T}'
    module = read(function(line))
    assert line in print_module(module)
    assert refused(function(line)) == "tf.Frobnicate cannot be compiled"


@pytest.mark.parametrize("name", ["tf.AddV2", "tf.NoOp", "tf.PartitionedCall", "tf.Frobnicate"])
@pytest.mark.parametrize("type", ["!tf_executor.control", "!tf_executor.token"])
def test_an_operation_takes_and_gives_no_control(name: str, type: str) -> None:
    for line in (f'"{name}"(%x, %c) {{f = @main}} : ({T}, {type}) -> ()', f'%d = "{name}"(%x) {{f = @main}} : ({T}) -> {type}'):
        with pytest.raises(Problem, match=f"{name} has no control, %[cd] is a {type}"):
            read(f"func.func @main(%x: {T}, %c: {type}) {{\n{line}\nreturn\n}}")


@pytest.mark.parametrize("operands, results", [(1, 1), (3, 1), (2, 2), (2, 0)])
@pytest.mark.parametrize("name", ["tf.Add", "tf.AddV2"])
def test_an_add_has_two_operands_and_one_result(name: str, operands: int, results: int) -> None:
    named = f"%r:{results} = " if results else ""
    line = f'{named}"{name}"({", ".join(["%x"] * operands)}) : ({", ".join([T] * operands)}) -> ({", ".join([T] * results)})'
    found = refused(f"func.func @main(%x: {T}) {{\n{line}\nreturn\n}}")
    assert found.startswith(f"{name} takes 2 operands" if operands != 2 else f"{name} has 1 result")


def test_reads_and_writes_keep_their_order() -> None:
    handle = f"tensor<!tf_type.resource<{T}>>"
    body = f"""%h = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {handle}
"tf.AssignVariableOp"(%h, %x) : ({handle}, {T}) -> ()
%a = "tf.ReadVariableOp"(%h) : ({handle}) -> {T}
"tf.AssignAddVariableOp"(%h, %x) : ({handle}, {T}) -> ()
%b = "tf.ReadVariableOp"(%h) : ({handle}) -> {T}
%r = "tf.Sub"(%a, %b) : ({T}, {T}) -> {T}"""
    for found in both(function(body), X):
        np.testing.assert_array_equal(found, -X)


@pytest.mark.parametrize("element, dtype", [("f32", np.float32), ("f64", np.float64), ("f16", np.float16), ("i8", np.int8),
                                            ("i16", np.int16), ("i32", np.int32), ("i64", np.int64), ("ui8", np.uint8)])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_operands_are_tensors_and_scalars_of_the_standard_types(element: str, dtype: type, shape: tuple[int, ...]) -> None:
    type = f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"
    x: Array = np.full(shape, 3, dtype)
    for found in both(function(f'%r = "tf.AddV2"(%x, %x) : ({type}, {type}) -> {type}', type, f"%x: {type}"), x):
        assert found.shape == shape and found.dtype == dtype and (found == 6).all()


@pytest.mark.parametrize("prefix", ["!tf_type.", "!tf."])
@pytest.mark.parametrize("name", ["qint8", "qint16", "qint32", "quint8", "quint16", "uint8ref", "f32ref", "stringref", "string",
                                  "resource", "variant"])
def test_quantized_reference_and_other_types_are_tensorflows_own(prefix: str, name: str) -> None:
    module = read(f"func.func @f(%a: tensor<2x?x{prefix}{name}>, %b: {prefix}{name}) {{ return }}")
    tensor, element = (v.type for v in module.functions[0].arguments)
    assert isinstance(tensor, TensorFlowTensor) and (tensor.shape, tensor.element.name) == ((2, None), name)
    assert isinstance(element, TensorFlowType) and element.name == name and element == tensor.element
    assert f"tensor<2x?x!tf_type.{name}>" in print_module(module)


@pytest.mark.parametrize("target, family", [("cortex-m4", "thumbv7em"), ("cortex-a55", "aarch64"), ("rv32imc", "riscv32")])
def test_a_function_lowers_to_several_targets(target: str, family: str) -> None:
    model = tosaic.load(function(f'%r = "tf.Tanh"(%x) : ({T}) -> {T}'))
    np.testing.assert_allclose(model(X), np.tanh(X), rtol=1e-6)
    lowered = model.main.lower(tosaic.CompileOptions(target=tosaic.target(target)))
    assert lowered.target.triple.startswith(family)
    assert lowered.report(code=True)


BRANCHES = """func.func private @then(%a: {0}) -> {1} {{
%r = "tf.Neg"(%a) : ({0}) -> {0}
return %r : {1}
}}
func.func private @else(%a: {0}) -> {1} {{
return %a : {1}
}}
"""
IF = f'%r = "tf.If"(%p, %x) {{then_branch = @then, else_branch = @else, is_stateless = true}} : (tensor<i1>, {T}) -> RESULT'


@pytest.mark.parametrize("p", [True, False])
def test_branches_are_functions_of_the_arguments(p: bool) -> None:
    source = function(IF.replace("RESULT", T), arguments=f"%p: tensor<i1>, %x: {T}", rest=BRANCHES.format(T, T))
    for found in both(source, np.array(p), X):
        np.testing.assert_array_equal(found, -X if p else X)


@pytest.mark.parametrize("parameters", ["", f"%a: {T}, %b: {T}"])
@pytest.mark.parametrize("name", ["then", "else"])
def test_branches_of_other_arguments_are_a_problem(name: str, parameters: str) -> None:
    other = BRANCHES.format(T, T).replace(f"@{name}(%a: {T})", f"@{name}({parameters})")
    if not parameters:
        constant = f'%a = "tf.Const"() {{value = dense<1.0> : {T}}} : () -> {T}'
        other = other.replace(f"@{name}() -> {T} {{", f"@{name}() -> {T} {{\n{constant}")
    source = function(IF.replace("RESULT", T), arguments=f"%p: tensor<i1>, %x: {T}", rest=other)
    assert f"@{name} takes {parameters.count('%')} values, it is given 1" in refused(source)


@pytest.mark.parametrize("result", ["tensor<2xf32>", "tensor<3xi32>", "tensor<f32>"])
def test_an_if_has_the_type_that_its_branches_give(result: str) -> None:
    source = function(IF.replace("RESULT", result), result, f"%p: tensor<i1>, %x: {T}", BRANCHES.format(T, T))
    assert f"%r is declared as {result}" in refused(source)


@pytest.mark.parametrize("line, right", [
    (f"%r = tf.LeakyRelu %x : {T}", np.where(X > 0, X, X * np.float32(0.2))),
    (f'%r = "tf.LeakyRelu"(%x) : ({T}) -> {T}', np.where(X > 0, X, X * np.float32(0.2))),
    (f'%r = "tf.Cumsum"(%x, %axis) : ({T}, tensor<i32>) -> {T}', np.cumsum(X)),
    (f'%r = "tf.Softplus"(%x) : ({T}) -> {T}', np.log1p(np.exp(X)))])
def test_attributes_that_are_not_written_are_tensorflows_defaults(line: str, right: Array) -> None:
    axis = '%axis = "tf.Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>\n'
    for found in both(function((axis if "%axis" in line else "") + line), X):
        np.testing.assert_allclose(found, right, rtol=1e-5)


def test_a_splat_is_a_tensor_of_one_number() -> None:
    source = f"func @main(%x : {T}) -> {T} {{\n%s = constant splat<{T}, 3.0>\n%r = tf.Mul %x, %s : {T}\nreturn %r : {T}\n}}"
    for found in both(source, X):
        np.testing.assert_array_equal(found, X * 3)
