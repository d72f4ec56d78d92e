"""Operations of MLIR's own dialects beside TOSA's and TensorFlow's: compiled, interpreted, and by hand."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.graph.types import Array
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem


def both(text: str, *inputs: object, entry: str | None = None) -> list[Array]:
    """What compiled code gives, which the interpreter gives as well; the text that is printed gives it, too."""
    arrays = [np.asarray(x) for x in inputs]
    module = read_module(text)
    verify(module)
    name = entry or module.function().name
    expected = interpret(Environment(module), name, arrays)
    for each in (text, print_module(module)):
        found = tosaic.load(each)[name](*arrays)
        results = found if isinstance(found, tuple) else (found,)
        for mine, right in zip(results, expected, strict=True):
            np.testing.assert_array_equal(mine, right)
    return [np.asarray(x) for x in expected]


def function(body: str, arguments: str = "%x: tensor<4xf32>", result: str = "tensor<4xf32>") -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n  return %r : {result}\n}}"


X = np.array([-1.5, 0.25, 1.0, 100.0], np.float32)


@pytest.mark.parametrize("value, type, right", [
    ("dense<[1.5, 2.0]> : tensor<2xf32>", "tensor<2xf32>", [1.5, 2.0]), ("dense<3> : tensor<2xi32>", "tensor<2xi32>", [3, 3]),
    ("true", "i1", True), ("7 : i32", "i32", 7), ("-2.5 : f32", "f32", -2.5), ("3 : index", "index", 3),
    ("dense<true> : tensor<i1>", "tensor<i1>", True)])
def test_a_constant_is_its_value(value: str, type: str, right: object) -> None:
    found, = both(function(f"  %r = arith.constant {value}", result=type), X)
    assert found.tolist() == right


def test_a_scalar_is_an_argument_and_a_result() -> None:
    text = ("func.func @main(%p: i1, %n: i32) -> (i32, i1, f32) {\n  %c = arith.constant 1.5 : f32\n"
            "  return %n, %p, %c : i32, i1, f32\n}")
    assert [x.tolist() for x in both(text, np.array(True), np.int32(5))] == [5, True, 1.5]


def test_a_cast_of_types_keeps_the_numbers() -> None:
    text = function("  %0 = tensor.cast %x : tensor<4xf32> to tensor<?xf32>\n"
                    "  %1 = tosa.abs %0 : (tensor<?xf32>) -> tensor<?xf32>\n"
                    "  %r = tensor.cast %1 : tensor<?xf32> to tensor<4xf32>")
    assert both(text, X)[0].tolist() == [1.5, 0.25, 1.0, 100.0]


@pytest.mark.parametrize("i, j", [(0, 0), (1, 2)])
def test_an_element_is_that_of_its_indices(i: int, j: int) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = (f"func.func @main(%x: tensor<2x3xf32>, %i: index) -> (f32, f32) {{\n  %j = arith.constant {j} : index\n"
            f"  %k = arith.constant {i} : index\n  %0 = tensor.extract %x[%i, %j] : tensor<2x3xf32>\n"
            "  %1 = tensor.extract %x[%k, %j] : tensor<2x3xf32>\n  return %0, %1 : f32, f32\n}")
    assert [v.item() for v in both(text, x, np.int64(i))] == [x[i, j], x[i, j]]


def test_an_index_outside_ends_the_run() -> None:
    text = ("func.func @main(%x: tensor<3xf32>, %i: index) -> f32 {\n  %0 = tensor.extract %x[%i] : tensor<3xf32>\n"
            "  return %0 : f32\n}")
    with pytest.raises(Problem):
        tosaic.load(text)(np.zeros(3, np.float32), np.int64(3))


def test_a_call_is_inlined_where_it_is() -> None:
    text = ("func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %0 = tosa.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n")
    text += function("  %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
                     "  %r = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>")
    assert both(text, X)[0].tolist() == [-6.0, 1.0, 4.0, 400.0]


def test_variables_of_tosa_are_written_in_order() -> None:
    text = """tosa.variable @n = dense<1> : tensor<i32>
func.func private @step() {
  %0 = tosa.variable_read @n : tensor<i32>
  %1 = tosa.add %0, %0 : (tensor<i32>, tensor<i32>) -> tensor<i32>
  tosa.variable_write @n, %1 : tensor<i32>
  return
}
func.func @main() -> tensor<i32> {
  func.call @step() : () -> ()
  %0 = tosa.variable_read @n : tensor<i32>
  func.call @step() : () -> ()
  return %0 : tensor<i32>
}"""
    model = tosaic.load(text, context=tosaic.Context("variables of tosa"))
    environment = Environment(read_module(text))
    for right in (2, 8, 32):
        assert model().item() == right and interpret(environment, "main", [])[0].item() == right


@pytest.mark.parametrize("p, right", [(True, [3.0, -0.5, -2.0, -200.0]), (False, [-1.5, 0.25, 1.0, 100.0])])
def test_scf_if_takes_a_branch(p: bool, right: list[float]) -> None:
    body = """  %r = scf.if %p -> (tensor<4xf32>) {
    %c = arith.constant dense<-2.0> : tensor<4xf32>
    %z = arith.constant dense<0> : tensor<1xi8>
    %0 = tosa.mul %x, %c, %z : (tensor<4xf32>, tensor<4xf32>, tensor<1xi8>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }"""
    assert both(function(body, "%p: i1, %x: tensor<4xf32>"), np.array(p), X)[0].tolist() == right


def test_scf_if_without_results_writes() -> None:
    text = """tosa.variable @n = dense<1> : tensor<i32>
func.func @main(%p: i1) -> tensor<i32> {
  scf.if %p {
    %c = arith.constant dense<9> : tensor<i32>
    tosa.variable_write @n, %c : tensor<i32>
  }
  %0 = tosa.variable_read @n : tensor<i32>
  return %0 : tensor<i32>
}"""
    model = tosaic.load(text, context=tosaic.Context("scf.if"))
    assert [model(np.array(p)).item() for p in (False, True, False)] == [1, 9, 9]


WHILE = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %limit = arith.constant dense<100> : tensor<i32>
  %r = scf.while (%a = %n) : (tensor<i32>) -> tensor<i32> {
    %0 = tosa.greater %limit, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = tensor.extract %0[] : tensor<i1>
    scf.condition(%1) %a : tensor<i32>
  } do {
  ^bb0(%b: tensor<i32>):
    %0 = tosa.add %b, %b : (tensor<i32>, tensor<i32>) -> tensor<i32>
    scf.yield %0 : tensor<i32>
  }
  return %r : tensor<i32>
}"""
DO_WHILE = """func.func @main(%n: tensor<i32>) -> (tensor<2xi32>) {
  %limit = arith.constant dense<100> : tensor<i32>
  %s = tosa.const_shape {values = dense<1> : tensor<1xindex>} : () -> !tosa.shape<1>
  %r = scf.while (%a = %n) : (tensor<i32>) -> tensor<2xi32> {
    %twice = tosa.add %a, %a : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %0 = tosa.greater %limit, %twice : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = tensor.extract %0[] : tensor<i1>
    %2 = tosa.reshape %twice, %s : (tensor<i32>, !tosa.shape<1>) -> tensor<1xi32>
    %3 = tosa.reshape %a, %s : (tensor<i32>, !tosa.shape<1>) -> tensor<1xi32>
    %4 = tosa.concat %2, %3 {axis = 0 : i32} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    scf.condition(%1) %4 : tensor<2xi32>
  } do {
  ^bb0(%b: tensor<2xi32>):
    %0 = tosa.reduce_max %b {axis = 0 : i32} : (tensor<2xi32>) -> tensor<1xi32>
    %e = tosa.const_shape {values = dense<> : tensor<0xindex>} : () -> !tosa.shape<0>
    %1 = tosa.reshape %0, %e : (tensor<1xi32>, !tosa.shape<0>) -> tensor<i32>
    scf.yield %1 : tensor<i32>
  }
  return %r : tensor<2xi32>
}"""


@pytest.mark.parametrize("n, right", [(3, 192), (100, 100), (500, 500)])
def test_scf_while_tests_first(n: int, right: int) -> None:
    assert both(WHILE, np.int32(n))[0].item() == right


@pytest.mark.parametrize("n, right", [(3, [192, 96]), (100, [200, 100]), (50, [100, 50])])
def test_scf_while_hands_on_what_its_first_region_computes(n: int, right: list[int]) -> None:
    assert both(DO_WHILE, np.int32(n))[0].tolist() == right


@pytest.mark.parametrize("storage, right", [
    ("i8:f32, 0.5:3", [0, 3, 5, 127]), ("i8<-127:127>:f32, 0.5:-1", [-4, -1, 1, 127]),
    ("u8:f32, 0.25:128", [122, 129, 132, 255]),
    ("i16:f32, 0.1", [-15, 2, 10, 1000]), ("i8:f32:0, {0.5,0.25:1,1.0,10.0:-2}", [-3, 2, 1, 8])])
def test_numbers_are_quantized_to_the_nearest_step(storage: str, right: list[int]) -> None:
    """Half a step goes to the even one: 0.25 of steps of 0.5 is 0."""
    type = f"tensor<4x!quant.uniform<{storage}>>"
    text = (f"func.func @main(%x: tensor<4xf32>) -> ({type}, tensor<4xf32>) {{\n"
            f"  %q = quant.qcast %x : tensor<4xf32> to {type}\n"
            f"  %r = quant.dcast %q : {type} to tensor<4xf32>\n  return %q, %r : {type}, tensor<4xf32>\n}}")
    stored, real = both(text, X)
    assert stored.tolist() == right
    assert real.dtype == np.float32


def test_storage_is_cast_as_it_is() -> None:
    type = "tensor<4x!quant.uniform<i8:f32, 0.5:3>>"
    text = (f"func.func @main(%x: tensor<4xi8>) -> tensor<4xf32> {{\n  %q = quant.scast %x : tensor<4xi8> to {type}\n"
            f"  %r = quant.dcast %q : {type} to tensor<4xf32>\n  return %r : tensor<4xf32>\n}}")
    assert both(text, np.array([3, 5, -1, 127], np.int8))[0].tolist() == [0.0, 1.0, -2.0, 62.0]


# ---- what an entry does not need ---------------------------------------------------------------------------------------
GOOD = ("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %r = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %r : tensor<4xf32>\n}\n")
UNKNOWN = ("func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> attributes {a = {b = 1 : i32}} {\n"
           "  %0 = linalg.fill ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n"
           "} loc(\"f\":1:2)\n")
FAR = "func.func private @far(tensor<4xf32>) -> tensor<4xf32>\n"
CALLS = ("func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
         "  %0 = func.call @far(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
         "  return %0 : tensor<4xf32>\n}\n")


@pytest.mark.parametrize("order", [GOOD + UNKNOWN, UNKNOWN + GOOD, UNKNOWN + GOOD + UNKNOWN.replace("@other", "@third")])
def test_a_form_that_is_not_known_refuses_its_function_alone(order: str) -> None:
    model = tosaic.load(order)
    assert model(X).tolist() == [1.5, 0.25, 1.0, 100.0]
    with pytest.raises(Problem) as caught:
        model.other(X)
    assert caught.value.message == "the form of linalg.fill is not known"
    line = order[:order.index("linalg.fill")].count("\n") + 1
    assert caught.value.position is not None and (caught.value.position.line, caught.value.position.column) == (line, 8)


def test_a_declaration_refuses_who_calls_it() -> None:
    model = tosaic.load(GOOD + FAR + CALLS)
    assert model(X).tolist() == [1.5, 0.25, 1.0, 100.0]
    with pytest.raises(Problem) as caught:
        model.calls(X)
    assert "@far has no body" in caught.value.message and caught.value.position is not None
    assert "func.func private @far(tensor<4xf32>) -> (tensor<4xf32>)" in str(model)


@pytest.mark.parametrize("text, message", [
    (UNKNOWN, "the form of linalg.fill is not known"), (GOOD + CALLS, "names @far as its callee"),
    (GOOD + FAR + FAR, "@far is defined twice"), (GOOD + UNKNOWN.replace("@other", "@main"), "@main is defined twice"),
    (GOOD + "func.func @far(tensor<4xf32>)", "has no body"), (GOOD + UNKNOWN.removesuffix('} loc("f":1:2)\n'), "linalg.fill")])
def test_what_is_wrong_refuses_the_file(text: str, message: str) -> None:
    with pytest.raises(Problem) as caught:
        tosaic.load(text)
    assert message in caught.value.message


def test_arguments_may_be_named_by_the_first_block() -> None:
    text = "func.func @main(tensor<4xf32>) -> tensor<4xf32> {\n^bb0(%x: tensor<4xf32>):\n  return %x : tensor<4xf32>\n}"
    assert tosaic.load(text)(X).tolist() == X.tolist()


@pytest.mark.parametrize("attribute", ["#map", "affine_map<(d0) -> (d0)>",
                                       "#sparse_tensor.encoding<{map = (d0) -> (d0 : compressed)}>"])
def test_an_encoding_that_an_entry_does_not_need_does_not_refuse_it(attribute: str) -> None:
    text = (f"#map = affine_map<(d0) -> (d0)>\nfunc.func private @encoded(tensor<4xf32, {attribute}>)\n{GOOD}"
            f"func.func private @kept(%x: tensor<4xf32, {attribute}>) -> tensor<4xf32, {attribute}> {{\n"
            f"  return %x : tensor<4xf32, {attribute}>\n}}\n")
    assert tosaic.load(text)(X).tolist() == [1.5, 0.25, 1.0, 100.0]


def test_a_result_without_a_known_rank_follows_from_its_operands() -> None:
    text = GOOD.replace("-> tensor<4xf32>", "-> tensor<*xf32>").replace("%r : tensor<4xf32>", "%r : tensor<*xf32>")
    assert tosaic.load(text)(X).tolist() == [1.5, 0.25, 1.0, 100.0]


@pytest.mark.parametrize("call", ['"func.call"(%x) <{callee = @g}>', '"tf.PartitionedCall"(%x) {f = @g}',
                                  '"tf.StatefulPartitionedCall"(%x) {f = @g}'])
@pytest.mark.parametrize("callee", ["func.func private @g(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
                                    "func.func private @g(tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)",
                                    "func.func private @g() -> tensor<4xf32> {\n"
                                    "  %c = arith.constant dense<1.0> : tensor<4xf32>\n  return %c : tensor<4xf32>\n}"])
def test_a_call_has_the_operands_and_results_of_its_function(call: str, callee: str) -> None:
    with pytest.raises(Problem) as caught:
        tosaic.load(function(f"  %r = {call} : (tensor<4xf32>) -> tensor<4xf32>") + "\n" + callee)
    assert "@g needs" in caught.value.message
