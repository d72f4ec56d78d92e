"""TensorFlow's own types, constants of strings, attributes and properties."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tf.operator import TensorFlowOp
from tosaic.lowering.dialects.tf.saved_model import bound_inputs, exported_names, global_tensors, is_initializer
from tosaic.lowering.dialects.tf.types import (
    TensorFlowTensor,
    TensorFlowType,
    can_be_equal,
    is_resource,
    is_string,
    is_tensor,
    tensorflow_tensor,
    tensorflow_type,
    variable_type,
)
from tosaic.lowering.dialects.tf_executor.types import CONTROL, TOKEN
from tosaic.lowering.graph.foreign import callees, find, flag, number, required, string
from tosaic.lowering.graph.graph import Operation
from tosaic.lowering.graph.types import F32, I32, OpaqueType, TensorType, Type
from tosaic.lowering.text.attributes import Strings, Symbol, Text, Unit
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter

from .cases import DATA

ROW = TensorType((1, 8), F32)
RESOURCE, STRING = tensorflow_type("resource"), tensorflow_type("string")


def argument(text: str) -> Type:
    return read_module(f"func.func @f(%a: {text}) {{ return }}").functions[0].arguments[0].type


def operation(text: str) -> Operation:
    return read_module(f"func.func @f(%a: tensor<f32>) {{\n{text}\nreturn\n}}").functions[0].body.operations[-1]


@pytest.mark.parametrize(("text", "expected"), [
    ("tensor<!tf_type.string>", tensorflow_tensor((), STRING)),
    ("tensor<2x?x!tf_type.string>", tensorflow_tensor((2, None), STRING)),
    ("tensor<*x!tf_type.resource>", tensorflow_tensor(None, RESOURCE)),
    ("tensor<*x!tf_type.resource<tensor<1x8xf32>>>", tensorflow_tensor(None, tensorflow_type("resource", ROW))),
    ("tensor< !tf_type.resource< tensor<1x8xf32> > >", tensorflow_tensor((), tensorflow_type("resource", ROW))),
    ("tensor<!tf_type.variant<tensor<*xf32>, tensor<i32>>>",
     tensorflow_tensor((), tensorflow_type("variant", TensorType(None, F32), TensorType((), I32)))),
    ("tensor<3x!tf_type.qint8>", tensorflow_tensor((3,), tensorflow_type("qint8"))),
    ("tensor<3x!tf.string>", tensorflow_tensor((3,), STRING)),
    ("!tf_type.resource<tensor<1x8xf32>>", tensorflow_type("resource", ROW)),
    ("!tf_executor.control", CONTROL), ('!tf_executor<"control">', CONTROL), ("!_tf_executor.control", CONTROL),
    ("!tf_executor.token", TOKEN), ("!tf_executor.loop_token", TOKEN)])
def test_a_type_says_its_shape_and_what_it_stands_for(text: str, expected: Type) -> None:
    found = argument(text)
    assert found == expected
    assert argument(str(found)) == expected


@pytest.mark.parametrize("text", ["tensor<!tf_type.resource<>>", "tensor<!tf_type.resource<tensor<f32>>",
                                  "!tf_type.variant<f33>", "tensor<2x!tf_type.resource<tensor<f32> tensor<f32>>>"])
def test_a_type_that_is_not_well_formed_is_a_problem(text: str) -> None:
    with pytest.raises(Problem) as caught:
        argument(text)
    assert caught.value.position is not None


def test_questions_about_types() -> None:
    handle = tensorflow_tensor(None, tensorflow_type("resource", ROW))
    assert is_resource(handle) and not is_string(handle) and is_tensor(handle)
    assert variable_type(handle) == ROW
    assert variable_type(tensorflow_tensor((), RESOURCE)) is None
    assert is_string(tensorflow_tensor((2,), STRING)) and not is_string(ROW)
    assert not is_tensor(CONTROL) and is_tensor(ROW)


@pytest.mark.parametrize(("a", "b", "expected"), [
    (ROW, TensorType(None, F32), True), (ROW, TensorType((1, None), F32), True), (ROW, TensorType((2, 8), F32), False),
    (ROW, TensorType((1, 8), I32), False), (ROW, TensorType((8,), F32), False),
    (tensorflow_tensor(None, RESOURCE), tensorflow_tensor((), tensorflow_type("resource", ROW)), True),
    (tensorflow_tensor((), tensorflow_type("resource", ROW)),
     tensorflow_tensor((), tensorflow_type("resource", TensorType((3,), F32))), False),
    (tensorflow_tensor((), RESOURCE), tensorflow_tensor((), STRING), False), (CONTROL, CONTROL, True), (CONTROL, TOKEN, False)])
def test_types_that_may_be_one(a: Type, b: Type, expected: bool) -> None:
    assert can_be_equal(a, b) is can_be_equal(b, a) is expected


@pytest.mark.parametrize(("text", "values"), [
    ('dense<"a"> : tensor<!tf_type.string>', (b"a",)),
    ('dense<"a"> : tensor<2x2x!tf_type.string>', (b"a",) * 4),
    ('dense<["a", "b\\0A\\FF"]> : tensor<2x!tf_type.string>', (b"a", b"b\n\xff")),
    ('dense<[["a", "]"], ["> ,", ""]]> : tensor<2x2x!tf_type.string>', (b"a", b"]", b"> ,", b"")),
    ("dense<> : tensor<0x!tf_type.string>", ())])
def test_a_constant_of_strings_is_kept(text: str, values: tuple[bytes, ...]) -> None:
    constant = operation(f'%0 = "tf.Const"() <{{value = {text}}}> : () -> {text.partition(" : ")[2]}')
    value = find(constant, "value")
    assert isinstance(value, Strings) and value.values == values
    assert isinstance(value.type, TensorFlowTensor)
    assert constant.results[0].constant is None
    printed = print_module(read_module(f"module attributes {{x.y = {text}}} {{}}"))
    assert read_module(printed).attributes["x.y"] == value


@pytest.mark.parametrize(("text", "column", "message"), [
    ('dense<["a", "b"]> : tensor<3x!tf_type.string>', 30,
     "the strings do not have the shape of tensor<3x!tf_type.string>, which has 3"),
    ('dense<["a" "b"]> : tensor<2x!tf_type.string>', 30,
     "the strings do not have the shape of tensor<2x!tf_type.string>, which has 2"),
    ('dense<"a"> : tensor<?x!tf_type.string>', 24, "a constant needs a static type, not tensor<?x!tf_type.string>"),
    ('dense<["a", b]> : tensor<2x!tf_type.string>', 35, "expected a string"),
    ('dense<["a", "\\g"]> : tensor<2x!tf_type.string>', 37, 'expected \\n, \\t, \\", \\\\ or two hexadecimal digits'),
    ('dense<"a"> : tensor<99999999x!tf_type.string>', 24,
     "tensor<99999999x!tf_type.string> has 99999999 strings, more than 1048576")])
def test_a_constant_of_strings_that_is_wrong_is_a_problem(text: str, column: int, message: str) -> None:
    with pytest.raises(Problem) as caught:
        read_module(f"module attributes {{a = {text}}} {{}}")
    assert (caught.value.message, caught.value.position and caught.value.position.column) == (message, column)


def test_properties_and_attributes_stay_apart() -> None:
    found = operation('%0 = "tf.Future"(%a) <{T = f32, Tin = [f32, i1], shape_invariant, f = @"a/b", n = 3 : i64, '
                      'shapes = [#tf_type.shape<2x?>, #tf_type.shape<*>], branches = [@x, @y]}> '
                      '{device = "", _class = ["loc:@v"], is_stateless = true} : (tensor<f32>) -> tensor<*xf32>')
    assert isinstance(found.op, TensorFlowOp) and found.op.spelling == "tf.Future"
    assert list(found.op.properties) == ["T", "Tin", "shape_invariant", "f", "n", "shapes", "branches"]
    assert list(found.attributes) == ["device", "_class", "is_stateless"]
    assert found.op.properties["T"] == F32 and found.op.properties["shape_invariant"] is Unit.UNIT
    assert found.op.properties["shapes"] == (Text("#tf_type.shape<2x?>"), Text("#tf_type.shape<*>"))
    assert found.op.properties["f"] == Symbol(("a/b",))
    assert callees(found) == {"branches": ("x", "y"), "f": ("a/b",)}
    assert (number(found, "n"), string(found, "device")) == (3, "")
    assert (flag(found, "shape_invariant"), flag(found, "other")) == (True, False)


@pytest.mark.parametrize(("ask", "message"), [
    (lambda o: required(o, "axis"), "tf.X has no axis"), (lambda o: number(o, "s"), "s of tf.X must be a number"),
    (lambda o: string(o, "n"), "n of tf.X must be a string")])
def test_an_attribute_that_is_not_there_is_a_problem(ask: object, message: str) -> None:
    found = operation('"tf.X"(%a) {n = 1 : i64, s = "s"} : (tensor<f32>) -> ()')
    with pytest.raises(Problem) as caught:
        ask(found)  # type: ignore[operator]
    assert caught.value.message == message
    assert caught.value.position is found.position


def test_a_constant_of_numbers_is_known() -> None:
    found = operation('%0 = "tf.Const"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>')
    assert found.results[0].constant is not None
    assert np.array_equal(found.results[0].constant, [1, 2])
    assert np.array_equal(found.op.reference(), [1, 2])


def test_a_constant_of_tensorflow_may_stand_beside_operators_of_tosa() -> None:
    text = ('func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {\n'
            '%0 = "tf.Const"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>\n'
            "%1 = tosa.add %x, %0 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>\nreturn %1 : tensor<2xi32>\n}")
    x = np.array([10, 20], np.int32)
    assert np.array_equal(tosaic.compile(text)(x), [11, 22])
    assert np.array_equal(Interpreter(read_module(text))(x)[0], [11, 22])


def test_regions_end_in_what_they_yield() -> None:
    module = read_module((DATA / "tensorflow" / "f_while" / "regions.mlir").read_text())
    loop = next(o for o in module.functions[0].body.operations if o.op.spelling == "tf.WhileRegion")  # type: ignore[attr-defined]
    condition, body = loop.regions
    assert len(condition.yields) == 1 and len(body.yields) == len(loop.results) == len(body.arguments)


def test_attributes_of_a_yield_are_kept() -> None:
    text = 'func.func @f(%a: tensor<i1>) {\n"tf.IfRegion"(%a) ({\n"tf.Yield"() {device = "x"} : () -> ()\n}, {\n' \
           '"tf.Yield"() : () -> ()\n}) : (tensor<i1>) -> ()\nreturn\n}'
    module = read_module(text)
    first, second = module.functions[0].body.operations[0].regions
    assert (first.terminator_attributes, second.terminator_attributes) == ({"device": "x"}, {})
    assert '"tf.Yield"() {device = "x"} : () -> ()' in print_module(module)


def test_the_variables_of_a_saved_model() -> None:
    module = read_module((DATA / "tensorflow" / "v_counter" / "saved_model.mlir").read_text())
    (variable,) = global_tensors(module).values()
    assert (variable.name, variable.type, variable.is_mutable) == ("__sm_node1__n", TensorType((), I32), True)
    assert variable.value is not None and variable.value == 0
    (function,) = module.functions
    assert bound_inputs(function) == {1: "__sm_node1__n"}
    assert exported_names(function) == ("step",)
    assert not is_initializer(function)


def test_a_restoring_function_is_known_as_such() -> None:
    module = read_module((DATA / "tensorflow" / "w_counter_v1" / "functional.mlir").read_text())
    assert [is_initializer(f) for f in module.functions] == [True, False]


def test_unlike_types_have_unlike_texts() -> None:
    types = [OpaqueType("none"), STRING, RESOURCE, tensorflow_type("resource", ROW), tensorflow_tensor((), STRING)]
    assert len({str(t) for t in types}) == len(set(types)) == len(types)
    assert isinstance(STRING, TensorFlowType)
