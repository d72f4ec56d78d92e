"""COND_IF and WHILE_LOOP in every spelling that tools have printed: read, verified, printed, read again, and run."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tosa.control_flow import CondIf, WhileLoop
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

from .equality import equal_modules

DOUBLED = "%0 = tosa.add %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32> tosa.yield %0 : tensor<f32>"
KEPT = "tosa.yield %x : tensor<f32>"
GENERIC_DOUBLED = ('%0 = "tosa.add"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32> '
                   '"tosa.yield"(%0) : (tensor<f32>) -> ()')
GENERIC_KEPT = '"tosa.yield"(%x) : (tensor<f32>) -> ()'
ARGUMENT = "^bb0(%x: tensor<f32>):"
BOTH = "(tensor<i1>, tensor<f32>) -> tensor<f32>"

CAPTURING = [
    f"tosa.cond_if %c -> (tensor<f32>) {{ {DOUBLED} }} else {{ {KEPT} }}",
    f"tosa.cond_if %c : tensor<i1> -> tensor<f32> {{ {DOUBLED} }} else {{ {KEPT} }}",
    f"tosa.cond_if %c : tensor<i1> -> (tensor<f32>) {{ {DOUBLED} }} else {{ {KEPT} }} {{some.note = 1 : i32}}",
    f"tosa.cond_if %c () : tensor<i1> () -> tensor<f32> {{ {DOUBLED} }} else {{ {KEPT} }} loc(\"f\":1:2)",
    f'"tosa.cond_if"(%c) ({{ {GENERIC_DOUBLED} }}, {{ {GENERIC_KEPT} }}) : (tensor<i1>) -> tensor<f32>',
    f'"tosa.cond_if"(%c) ({{ ^bb0: {GENERIC_DOUBLED} }}, {{ ^bb0: {GENERIC_KEPT} }}) : (tensor<i1>) -> tensor<f32>',
]
CLOSED = [
    f"tosa.cond_if %c (%x = %y) : tensor<i1> (tensor<f32>) -> tensor<f32> {{ {ARGUMENT} {DOUBLED} }} else "
    f"{{ {ARGUMENT} {KEPT} }}",
    f"tosa.cond_if %c (%x = %y) : tensor<i1> (tensor<f32>) -> (tensor<f32>) {{ {DOUBLED} }} else {{ {KEPT} }}",
    f"tosa.cond_if %c (%a = %y) : tensor<i1> (tensor<f32>) -> tensor<f32> {{ {ARGUMENT} {DOUBLED} }} else "
    "{ ^bb0(%z: tensor<f32>): tosa.yield %z : tensor<f32> }",
    f'"tosa.cond_if"(%c, %y) ({{ {ARGUMENT} {GENERIC_DOUBLED} }}, {{ {ARGUMENT} {GENERIC_KEPT} }}) : {BOTH}',
    f'"tosa.cond_if"(%c, %y) ({{ ^then(%x: tensor<f32> loc("a")): {GENERIC_DOUBLED} }}, {{ ^else(%x: tensor<f32>): '
    f'{GENERIC_KEPT} }}) {{some.note}} : {BOTH} loc(unknown)',
]
TEST = "%0 = tosa.greater %y, %x : (tensor<f32>, tensor<f32>) -> tensor<i1> tosa.yield %0 : tensor<i1>"
GENERIC_TEST = '%0 = "tosa.greater"(%y, %x) : (tensor<f32>, tensor<f32>) -> tensor<i1> "tosa.yield"(%0) : (tensor<i1>) -> ()'
LOOPS = [
    f"tosa.while_loop (%x = %one) : (tensor<f32>) -> tensor<f32> {{ {TEST} }} do {{ {ARGUMENT} {DOUBLED} }}",
    f"tosa.while_loop (%x = %one) : (tensor<f32>) -> (tensor<f32>) {{ {TEST} }} do {{ {ARGUMENT} {DOUBLED} }}",
    f"tosa.while_loop (%x = %one) : (tensor<f32>) -> (tensor<f32>) {{ {ARGUMENT} {TEST} }} do {{ {ARGUMENT} {DOUBLED} }}",
    f"tosa.while_loop (%x = %one) : (tensor<f32>) -> (tensor<f32>) {{ {TEST} }} do {{ {DOUBLED} }}",
    f"tosa.while_loop (%x = %one) : (tensor<f32>) -> (tensor<f32>) attributes {{some.note}} {{ {TEST} }} do {{ {ARGUMENT} "
    f"{DOUBLED} }}",
    f'"tosa.while_loop"(%one) ({{ {ARGUMENT} {GENERIC_TEST} }}, {{ {ARGUMENT} {GENERIC_DOUBLED} }}) : '
    "(tensor<f32>) -> tensor<f32>",
]


def conditional(body: str, condition: str = "tensor<i1>", argument: str = "x") -> Module:
    return read_module(f"func.func @main(%c: {condition}, %{argument}: tensor<f32>) -> tensor<f32> {{\n"
                       f"  %r = {body}\n  return %r : tensor<f32>\n}}")


def loop(body: str) -> Module:
    return read_module(f"""func.func @main(%y: tensor<f32>) -> tensor<f32> {{
      %one = "tosa.const"() <{{values = dense<1.0> : tensor<f32>}}> : () -> tensor<f32>
      %r = {body}
      return %r : tensor<f32>
    }}""")


def assert_reads_back(module: Module) -> None:
    verify(module)
    printed = print_module(module)
    again = read_module(printed)
    verify(again)
    assert equal_modules(module, again) and print_module(again) == printed


def assert_runs(module: Module, inputs: list[np.ndarray], expected: float) -> None:
    assert Traced(module, "main").compile()(*inputs) == np.float32(expected)
    assert interpret(module, "main", inputs)[0] == np.float32(expected)


@pytest.mark.parametrize("body", CAPTURING)
def test_a_branch_that_uses_values_around_it(body: str) -> None:
    module = conditional(body)
    assert_reads_back(module)
    operation, = module.function().body.operations
    assert isinstance(operation.op, CondIf) and len(operation.operands) == 1
    for flag, expected in ((True, 6), (False, 3)):
        assert_runs(module, [np.array(flag), np.array(3, np.float32)], expected)


@pytest.mark.parametrize("body", CLOSED)
def test_a_branch_that_binds_its_arguments(body: str) -> None:
    module = conditional(body, argument="y")
    assert_reads_back(module)
    operation, = module.function().body.operations
    assert isinstance(operation.op, CondIf) and len(operation.operands) == 2
    assert all(len(r.arguments) == 1 for r in operation.regions)
    for flag, expected in ((True, 6), (False, 3)):
        assert_runs(module, [np.array(flag), np.array(3, np.float32)], expected)


@pytest.mark.parametrize("body", LOOPS)
def test_a_loop(body: str) -> None:
    module = loop(body)
    assert_reads_back(module)
    assert isinstance(module.function().body.operations[1].op, WhileLoop)
    for bound, expected in ((10, 16), (0.5, 1)):
        assert_runs(module, [np.array(bound, np.float32)], expected)


@pytest.mark.parametrize("rank", range(7))
def test_a_condition_of_one_element_has_any_rank(rank: int) -> None:
    condition = f"tensor<{'1x' * rank}i1>"
    bodies = [f"tosa.cond_if %c : {condition} -> tensor<f32> {{ {DOUBLED} }} else {{ {KEPT} }}",
              f"tosa.cond_if %c -> (tensor<f32>) {{ {DOUBLED} }} else {{ {KEPT} }}",
              f"tosa.cond_if %c (%a = %x) : {condition} (tensor<f32>) -> tensor<f32> {{ ^bb0(%a: tensor<f32>): {DOUBLED} }} "
              f"else {{ ^bb0(%a: tensor<f32>): {KEPT} }}",
              f'"tosa.cond_if"(%c) ({{ {GENERIC_DOUBLED} }}, {{ {GENERIC_KEPT} }}) : ({condition}) -> tensor<f32>']
    for body in bodies:
        module = conditional(body, condition)
        assert_reads_back(module)
        for flag, expected in ((True, 6), (False, 3)):
            assert_runs(module, [np.full((1,) * rank, flag), np.array(3, np.float32)], expected)


@pytest.mark.parametrize("rank", range(7))
def test_the_condition_of_a_loop_has_any_rank(rank: int) -> None:
    t, b = f"tensor<{'1x' * rank}f32>", f"tensor<{'1x' * rank}i1>"
    module = read_module(f"""func.func @main(%y: {t}) -> {t} {{
      %one = "tosa.const"() <{{values = dense<1.0> : {t}}}> : () -> {t}
      %r = tosa.while_loop (%x = %one) : ({t}) -> {t} {{
        %0 = tosa.greater %y, %x : ({t}, {t}) -> {b}
        tosa.yield %0 : {b}
      }} do {{
      ^bb0(%x: {t}):
        %0 = tosa.add %x, %x : ({t}, {t}) -> {t}
        tosa.yield %0 : {t}
      }}
      return %r : {t}
    }}""")
    assert_reads_back(module)
    assert_runs(module, [np.full((1,) * rank, 10, np.float32)], 16)


@pytest.mark.parametrize("body", [
    "tosa.cond_if %c : tensor<i1> -> () { tosa.yield } else { tosa.yield }",
    "tosa.cond_if %c : tensor<i1> -> () {\n tosa.yield  : \n } else {\n tosa.yield  : \n }",
    "tosa.cond_if %c : tensor<i1> { tosa.yield } else { tosa.yield }",
    "tosa.cond_if %c -> () { tosa.yield } else { tosa.yield }",
    '"tosa.cond_if"(%c) ({ "tosa.yield"() : () -> () }, { "tosa.yield"() : () -> () }) : (tensor<i1>) -> ()',
    "tosa.while_loop : () -> () { tosa.yield %c : tensor<i1> } do { tosa.yield  :  }",
    "tosa.while_loop () : () -> () { tosa.yield %c : tensor<i1> } do { tosa.yield }",
    '"tosa.while_loop"() ({ "tosa.yield"(%c) : (tensor<i1>) -> () }, { "tosa.yield"() : () -> () }) : () -> ()',
])
def test_control_flow_without_values_is_read(body: str) -> None:
    module = read_module(f"func.func @main(%c: tensor<i1>) {{\n  {body}\n  return\n}}")
    assert_reads_back(module)
    assert module.function().body.operations[0].results == ()


def test_several_values_go_round_a_loop_and_through_a_branch() -> None:
    t = "tensor<f32>"
    module = read_module(f"""func.func @main(%c: tensor<i1>, %y: {t}, %z: {t}) -> ({t}, {t}) {{
      %r:2 = tosa.while_loop (%a = %y, %b = %z) : ({t}, {t}) -> ({t}, {t}) {{
        %0 = tosa.greater %a, %b : ({t}, {t}) -> tensor<i1>
        tosa.yield %0 : tensor<i1>
      }} do {{
      ^bb0(%a: {t}, %b: {t}):
        tosa.yield %b, %a : {t}, {t}
      }}
      %s, %u = tosa.cond_if %c (%a = %r#1, %b = %r#0) : tensor<i1> ({t}, {t}) -> ({t}, {t}) {{
      ^bb0(%a: {t}, %b: {t}):
        tosa.yield %a, %b : {t}, {t}
      }} else {{
      ^bb0(%d: {t}, %e: {t}):
        tosa.yield %e, %d : {t}, {t}
      }}
      return %s, %u : {t}, {t}
    }}""")
    assert_reads_back(module)
    inputs = [np.array(x, np.float32) for x in (5, 2)]
    for flag, expected in ((True, (5, 2)), (False, (2, 5))):
        assert Traced(module, "main").compile()(np.array(flag), *inputs) == expected
        assert interpret(module, "main", [np.array(flag), *inputs]) == expected


@pytest.mark.parametrize("body, message", [
    (f"tosa.cond_if %c : tensor<i1> -> tensor<f32> {{ {DOUBLED} }}", "else"),
    (f"tosa.cond_if %c : tensor<i1> -> tensor<f32> {{ {DOUBLED} }} else {{ }}", "expected tosa.yield"),
    (f"tosa.cond_if %c : tensor<i1> -> tensor<f32> {{ {DOUBLED} }} else {{ tosa.yield }}", "yields"),
    (f"tosa.cond_if %c : tensor<i1> -> (tensor<f32>, tensor<f32>) {{ {DOUBLED} }} else {{ {KEPT} }}", "1 results?|named"),
    (f"tosa.cond_if %x : tensor<f32> -> tensor<f32> {{ {DOUBLED} }} else {{ {KEPT} }}", "i1"),
    (f"tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<f32>) -> tensor<f32> {{ ^bb0(%b: tensor<i1>): {DOUBLED} }} else "
     f"{{ {KEPT} }}", "arguments"),
    (f'"tosa.cond_if"(%c) ({{ {GENERIC_DOUBLED} }}) : (tensor<i1>) -> tensor<f32>', "regions"),
])
def test_what_is_no_branch_is_a_problem_at_its_place(body: str, message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        verify(conditional(body))
    assert caught.value.position
