"""CUSTOM: kept without an implementation, run with one that a user registers."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tosa.custom import IMPLEMENTATIONS, Custom
from tosaic.lowering.elements.expression import apply, select
from tosaic.lowering.flatbuffer.reader import read_module as read_file
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F32, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

ATTRIBUTES = 'operator_name = "leaky_relu", domain_name = "my.domain", implementation_attrs = "0.25"'
T = "tensor<2x3xf32>"
FORMS = [
    f"tosa.custom %x {{{ATTRIBUTES}}} : ({T}) -> {T}",
    f'"tosa.custom"(%x) <{{{ATTRIBUTES}}}> : ({T}) -> {T}',
    f'"tosa.custom"(%x) {{{ATTRIBUTES}}} : ({T}) -> {T}',
    f'tosa.custom %x operator_name("leaky_relu") domain_name("my.domain") implementation_attrs("0.25") : ({T}) -> {T}',
]
X = np.array([[-4, 0, 4], [-1, 1, 2]], np.float32)


@pytest.fixture(autouse=True)
def _only_what_a_test_registers() -> Iterator[None]:
    before = dict(IMPLEMENTATIONS)
    yield
    IMPLEMENTATIONS.clear()
    IMPLEMENTATIONS.update(before)


def graph(line: str = FORMS[0], results: str = T) -> Module:
    return read_module(f"func.func @main(%x: {T}) -> {results} {{\n  %r = {line}\n  return %r : {results}\n}}")


def register_leaky_relu() -> type[Custom]:
    @tosaic.custom("my.domain", "leaky_relu")
    class LeakyRelu(tosaic.Op):
        """x, or a small part of it where it is negative."""

        def infer(self, x: Any) -> TensorType:
            result: TensorType = x.type
            return result

        def reference(self, x: Any) -> Any:
            return np.where(x < 0, x * np.float32(self.implementation_attrs), x)  # type: ignore[attr-defined]

        def element(self, out: TensorType, x: Any) -> Callable[..., Any]:
            slope = float(self.implementation_attrs)  # type: ignore[attr-defined]
            return lambda *index: select(x[index] < 0.0, x[index] * slope, x[index])

    return LeakyRelu


# ---- without an implementation -----------------------------------------------------------------------------------
@pytest.mark.parametrize("line", FORMS)
def test_every_form_is_read_verified_printed_and_reads_back(line: str) -> None:
    module = graph(line)
    for found in (module, read_module(print_module(module))):
        verify(found)
        op = found.function().body.operations[0].op
        assert type(op) is Custom
        assert (op.operator_name, op.domain_name, op.implementation_attrs) == ("leaky_relu", "my.domain", "0.25")


def test_any_number_of_operands_and_results_of_any_type_is_kept() -> None:
    module = read_module("""func.func @main(%a: tensor<?x3xi8>, %b: tensor<f16>) -> (tensor<*xi1>, tensor<4xi48>) {
      tosa.custom %a {operator_name = "sink", domain_name = "d", implementation_attrs = ""} : (tensor<?x3xi8>) -> ()
      %s, %t = tosa.custom %a, %b, %b {operator_name = "o", domain_name = "d", implementation_attrs = "a\\00b"} :
        (tensor<?x3xi8>, tensor<f16>, tensor<f16>) -> (tensor<2xi1>, tensor<4xi48>)
      %u = tosa.custom {operator_name = "source", domain_name = "d", implementation_attrs = ""} : () -> tensor<2x?xi4>
      return %s, %t : tensor<2xi1>, tensor<4xi48> }""".replace("tensor<*xi1>", "tensor<2xi1>"))
    verify(module)
    again = read_module(print_module(module))
    verify(again)
    types = [[str(v.type) for v in o.results] for o in again.function().body.operations]
    assert types == [[], ["tensor<2xi1>", "tensor<4xi48>"], ["tensor<2x?xi4>"]]
    assert again.function().body.operations[1].op.implementation_attrs == "a\0b"  # type: ignore[attr-defined]


@pytest.mark.parametrize("missing", ["operator_name", "domain_name"])
def test_a_custom_operator_needs_its_names(missing: str) -> None:
    with pytest.raises(Problem, match=missing) as caught:
        graph(FORMS[0].replace(f"{missing} = ", "some.other = "))
    assert caught.value.position and not caught.value.unsupported


@pytest.mark.parametrize("run", [lambda m: tosaic.load(print_module(m)).main.compile(),
                                 lambda m: interpret(m, "main", [X])], ids=["compiled", "interpreted"])
def test_without_an_implementation_it_is_refused_by_name_with_what_to_do(run: Callable[[Module], Any]) -> None:
    with pytest.raises(Problem) as caught:
        run(graph())
    problem = caught.value
    assert problem.unsupported and problem.position
    assert "leaky_relu" in problem.message and "my.domain" in problem.message
    assert problem.help and '@tosaic.custom("my.domain", "leaky_relu")' in problem.help


def test_it_goes_into_a_flatbuffer_and_comes_back() -> None:
    text = FORMS[0].replace('"0.25"', '"\\80a\\00"')
    module = read_file(write_module(graph(text)), "a.tosa")
    verify(module)
    op = module.function().body.operations[0].op
    assert isinstance(op, Custom)
    assert (op.operator_name, op.domain_name, op.implementation_attrs) == ("leaky_relu", "my.domain", "\udc80a\0")
    assert str(module.function().body.yields[0].type) == T


# ---- with one ----------------------------------------------------------------------------------------------------
def test_a_registered_class_is_what_the_reader_makes_and_prints_as_before() -> None:
    text = print_module(graph())
    implementation = register_leaky_relu()
    module = read_module(text)
    verify(module)
    assert type(module.function().body.operations[0].op) is implementation
    assert print_module(module) == text
    assert OPERATORS["tosa.custom"] is Custom


def test_a_registered_class_runs_natively_and_in_the_interpreter() -> None:
    register_leaky_relu()
    expected = np.where(X < 0, X / 4, X)
    module = graph()
    assert np.array_equal(interpret(module, "main", [X])[0], expected)
    model = tosaic.load(print_module(module))
    assert np.array_equal(model(X), expected)
    assert model.main.check([[X]]).agrees


def test_it_is_fused_like_any_other_operator() -> None:
    register_leaky_relu()
    module = read_module(f"""func.func @main(%x: {T}) -> {T} {{
      %0 = tosa.add %x, %x : ({T}, {T}) -> {T}
      %1 = tosa.custom %0 {{{ATTRIBUTES}}} : ({T}) -> {T}
      %2 = tosa.abs %1 : ({T}) -> {T}
      return %2 : {T} }}""")
    lowered = tosaic.load(print_module(module)).main.lower()
    assert [k.origin for k in lowered.kernels.kernels] in (["abs custom add"], ["custom add", "abs"], ["add", "abs custom"])
    assert np.array_equal(lowered.compile()(X), np.abs(np.where(X < 0, X / 2, 2 * X)))


def test_declared_types_that_its_rule_does_not_give_are_refused() -> None:
    register_leaky_relu()
    module = graph(FORMS[0].replace(f"-> {T}", "-> tensor<3x2xf32>"), "tensor<3x2xf32>")
    with pytest.raises(Problem, match="custom"):
        verify(module)


def test_the_wrong_number_of_operands_is_refused() -> None:
    register_leaky_relu()
    with pytest.raises(Problem, match="2 operands"):
        verify(graph(f"tosa.custom %x, %x {{{ATTRIBUTES}}} : ({T}, {T}) -> {T}"))


def test_an_implementation_may_have_several_results() -> None:
    @tosaic.custom("my.domain", "extremes")
    class Extremes(tosaic.Op):
        def infer(self, a: Any, b: Any) -> tuple[TensorType, TensorType]:
            return a.type, a.type

        def reference(self, a: Any, b: Any) -> tuple[Any, Any]:
            return np.minimum(a, b), np.maximum(a, b)

        def result_elements(self, outs: Any, a: Any, b: Any) -> tuple[Any, Any]:
            return (lambda *i: apply("min", a[i], b[i])), (lambda *i: apply("max", a[i], b[i]))

    module = read_module(f"""func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) {{
      %0, %1 = tosa.custom %x, %y {{operator_name = "extremes", domain_name = "my.domain", implementation_attrs = ""}} :
        ({T}, {T}) -> ({T}, {T})
      return %0, %1 : {T}, {T} }}""")
    verify(module)
    expected = np.minimum(X, 1), np.maximum(X, 1)
    for found in (interpret(module, "main", [X, np.ones_like(X)]), tosaic.load(print_module(module))(X, np.ones_like(X))):
        assert all(map(np.array_equal, found, expected))


def test_what_an_implementation_lacks_is_said_when_it_is_needed() -> None:
    @tosaic.custom("my.domain", "leaky_relu")
    class OnlyReference(tosaic.Op):
        def reference(self, x: Any) -> Any:
            return x

    module = graph()
    verify(module)  # without a type rule of its own, types are those that are declared
    assert np.array_equal(interpret(module, "main", [X])[0], X)
    with pytest.raises(Problem, match=r"leaky_relu of domain my\.domain has no element") as caught:
        tosaic.load(print_module(module)).main.compile()
    assert caught.value.unsupported and "OnlyReference" in (caught.value.help or "")


def test_one_class_may_have_two_names_and_a_name_may_change_its_class() -> None:
    first = register_leaky_relu()
    tosaic.custom("other", "relu")(first)
    text = FORMS[0].replace("leaky_relu", "relu").replace("my.domain", "other")
    assert type(graph(text).function().body.operations[0].op) is first
    second = register_leaky_relu()
    assert second is not first and type(graph().function().body.operations[0].op) is second


def test_a_python_function_may_use_it() -> None:
    register_leaky_relu()

    @tosaic.jit
    def f(x: Any) -> Any:
        return tosaic.tosa.custom(x + 1, operator_name="leaky_relu", domain_name="my.domain", implementation_attrs="0.5")

    assert np.array_equal(f(X), np.where(X < -1, (X + 1) / 2, X + 1))
    with pytest.raises(Problem, match=r"no implementation of custom operator elu of domain my\.domain"):
        tosaic.jit(lambda x: tosaic.tosa.custom(x, operator_name="elu", domain_name="my.domain"))(X)


def test_what_is_no_operator_cannot_be_registered() -> None:
    with pytest.raises(Problem, match=r"tosaic\.Op"):
        tosaic.custom("d", "o")(int)  # type: ignore[arg-type]
    with pytest.raises(Problem, match=r"tosa\.add already"):
        tosaic.custom("d", "o")(OPERATORS["tosa.add"])

    class WithAttribute(tosaic.Op):
        slope: float = 0.5

    with pytest.raises(Problem, match="attribute slope"):
        tosaic.custom("d", "o")(WithAttribute)
    assert ("d", "o") not in IMPLEMENTATIONS


# ---- IDENTITYN ---------------------------------------------------------------------------------------------------
SPLIT = """func.func @main(%x: tensor<2x6xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %size = tosa.const_shape {values = dense<2> : tensor<2xindex>} : () -> !tosa.shape<2>
  %s0 = tosa.const_shape {values = dense<0> : tensor<2xindex>} : () -> !tosa.shape<2>
  %s1 = tosa.const_shape {values = dense<[0, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %s2 = tosa.const_shape {values = dense<[0, 4]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = tosa.slice %x, %s0, %size : (tensor<2x6xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x2xf32>
  %1 = tosa.slice %x, %s1, %size : (tensor<2x6xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x2xf32>
  %2 = tosa.slice %x, %s2, %size : (tensor<2x6xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x2xf32>
  %parts:3 = "tosa.identityn"(%0, %1, %2) : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) ->
    (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  return %parts#0, %parts#1, %parts#2 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}"""


def test_a_split_as_slices_and_identityn_gives_the_parts() -> None:
    module = read_module(SPLIT)
    verify(module)
    assert "identityn" in print_module(read_module(print_module(module)))
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    expected = np.split(x, 3, axis=1)
    model = tosaic.load(SPLIT)
    for found in (interpret(module, "main", [x]), model(x)):
        assert all(map(np.array_equal, found, expected))
    assert len(model.main.lower().kernels.kernels) == 3  # one for each result: the list itself costs nothing
    assert model.main.check([[x]]).agrees


def test_identityn_gives_tensors_of_different_types_and_parts_of_its_list_may_be_unused() -> None:
    text = """func.func @main(%a: tensor<2xi8>, %b: tensor<3xf32>, %c: tensor<i1>) -> (tensor<i1>, tensor<2xi8>) {
      %r:3 = tosa.identityn %a, %b, %c : (tensor<2xi8>, tensor<3xf32>, tensor<i1>) -> (tensor<2xi8>, tensor<3xf32>, tensor<i1>)
      %n = tosa.abs %r#1 : (tensor<3xf32>) -> tensor<3xf32>
      return %r#2, %r#0 : tensor<i1>, tensor<2xi8> }"""
    inputs = np.array([-1, 2], np.int8), np.zeros(3, np.float32), np.array(True)
    for found in (interpret(read_module(text), "main", inputs), tosaic.load(text)(*inputs)):
        assert found[0] and np.array_equal(found[1], inputs[0])


@pytest.mark.parametrize("line, message", [
    ('"tosa.identityn"() : () -> ()', "at least one"),
    ('%r = "tosa.identityn"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>', "2 results"),
    ('%r:2 = "tosa.identityn"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<3xf32>)', "result 1"),
])
def test_lists_that_do_not_fit_are_refused(line: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        verify(read_module(f"func.func @main(%x: tensor<2xf32>) {{\n  {line}\n  return }}"))


def test_types_of_a_custom_result_may_be_scalars_of_the_right_kind() -> None:
    assert Custom("o", "d", "", (TensorType((), F32),)).infer() == (TensorType((), F32),)
