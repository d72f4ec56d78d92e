"""Functions that call each other several times: what they expand to is bounded, and a module that goes beyond is a problem with
its place, in seconds."""
from __future__ import annotations

import time

import pytest
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite import branches
from tosaic.lowering.rewrite.tensorflow import Bindings, to_tosa, translate
from tosaic.lowering.text.reader import read_module
from tosaic.runtime import limits
from tosaic.runtime.errors import Problem

T = "tensor<2xf32>"
A = f"({T}, tensor<i1>, tensor<i32>) -> {T}"
IF = f"(tensor<i1>, {T}, tensor<i1>, tensor<i32>) -> {T}"
LOOP = f"{T}, tensor<i1>, tensor<i32>"
TWICE = '%a = "{0}"(%x, %c, %i) <{{f = @CALLEE}}> : {1}\n%r = "{0}"(%a, %c, %i) <{{f = @CALLEE}}> : {1}'
CALLS = {
    "tf.PartitionedCall": TWICE.format("tf.PartitionedCall", A),
    "tf.StatefulPartitionedCall": TWICE.format("tf.StatefulPartitionedCall", A),
    "tf.LegacyCall": TWICE.format("tf.LegacyCall", A),
    "func.call": f"%a = func.call @CALLEE(%x, %c, %i) : {A}\n%r = func.call @CALLEE(%a, %c, %i) : {A}",
    "tf.If": f'%t = "tf.Const"() <{{value = dense<true> : tensor<i1>}}> : () -> tensor<i1>\n'
             f'%a = "tf.If"(%t, %x, %c, %i) <{{else_branch = @CALLEE, is_stateless = true, then_branch = @CALLEE}}> : {IF}\n'
             f'%r = "tf.If"(%t, %a, %c, %i) <{{else_branch = @CALLEE, is_stateless = true, then_branch = @CALLEE}}> : {IF}',
    "tf.Case": f'%t = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>\n'
               f'%a = "tf.Case"(%t, %x, %c, %i) <{{branches = [@CALLEE, @CALLEE], is_stateless = true}}> : '
               f'(tensor<i32>, {T}, tensor<i1>, tensor<i32>) -> {T}\n'
               f'%r = "tf.Case"(%t, %a, %c, %i) <{{branches = [@CALLEE, @CALLEE], is_stateless = true}}> : '
               f'(tensor<i32>, {T}, tensor<i1>, tensor<i32>) -> {T}'}


def text_of(call: str, depth: int) -> str:
    """Functions that call the one before twice; the first one adds."""
    first = f'%r = "tf.AddV2"(%x, %x) : ({T}, {T}) -> {T}'
    bodies = [first, *(call.replace("CALLEE", f"f{n}") for n in range(depth - 1))]
    return "\n".join(f"func.func {'' if n == depth - 1 else 'private '}@{'main' if n == depth - 1 else f'f{n}'}"
                     f"(%x: {T}, %c: tensor<i1>, %i: tensor<i32>) -> {T} {{\n{body}\nreturn %r : {T}\n}}"
                     for n, body in enumerate(bodies))


def graph_of(text: str) -> Module:
    module = read_module(text, "calls.mlir")
    verify(module)
    return to_tosa(module, "main", None, Bindings({}, {}))


@pytest.mark.parametrize("name", CALLS)
def test_functions_that_call_the_one_before_twice_are_a_problem(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EXPANDED", 3000)
    with pytest.raises(Problem, match="calls and loops expand to more than 3,000 operations") as caught:
        graph_of(text_of(CALLS[name], 30))
    assert caught.value.kind == "level" and caught.value.position is not None and caught.value.help == translate.FEWER_CALLS
    verify(graph_of(text_of(CALLS[name], 6)))


def test_the_bound_is_reached_in_seconds() -> None:
    start = time.process_time()
    with pytest.raises(Problem, match="expand to more than 100,000 operations"):
        graph_of(text_of(CALLS["func.call"], 30))
    assert time.process_time() - start < 30


def test_loops_in_loops_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body is translated once more for each value that turns out to change, in each loop around it."""
    monkeypatch.setattr(limits, "EXPANDED", 20)
    count = 6
    names = [f"%x{n}" for n in range(count)]
    types = ", ".join([T] * count)
    arguments = ", ".join(f"{n}: {T}" for n in names)
    parts = [f"func.func private @test({arguments}) -> tensor<i1> {{\n"
             f'%r = "tf.Const"() <{{value = dense<true> : tensor<i1>}}> : () -> tensor<i1>\nreturn %r : tensor<i1>\n}}']
    for depth in range(5):
        inner = f'"tf.AddV2"(%x0, %x0) : ({T}, {T}) -> {T}' if not depth else (
            f'"tf.While"({", ".join(names)}) <{{body = @f{depth - 1}, cond = @test, is_stateless = true}}> : '
            f'({types}) -> ({types})')
        rotated = ", ".join(["%r" if not depth else "%r#0", *names[:-1]])
        parts.append(f"func.func {'private @f' + str(depth) if depth < 4 else '@main'}({arguments}) -> ({types}) {{\n"
                     f"%r{'' if not depth else f':{count}'} = {inner}\nreturn {rotated} : {types}\n}}")
    with pytest.raises(Problem, match="calls and loops expand to more than 20 operations"):
        graph_of("\n".join(parts))


def test_branches_beside_tosa_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EXPANDED", 3000)
    call = CALLS["tf.If"].replace('"tf.Const"() <{value', '"tosa.const"() <{values')
    text = text_of(call, 30).replace('"tf.AddV2"(%x, %x)', "tosa.add %x, %x")
    with pytest.raises(Problem, match="branches expand to more than 3,000 operations") as caught:
        branches.inline_branches(read_module(text, "branches.mlir"))
    assert caught.value.kind == "level" and caught.value.position is not None and caught.value.help
