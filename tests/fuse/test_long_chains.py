"""Very many operators, one after the other: of every class they compile, in bounded expressions, and mean what the interpreter
says; from graphs, text, Python and TensorFlow's dialects. No walk has a depth that grows with them."""
from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Traced, prepared
from tosaic.lowering.elements.traverse import children, nodes, post_order
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.fuse.inline import MOST_LEVELS, MOST_NODES
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.stage_text import STAGES
from tosaic.lowering.text.printer import print_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

from ..fuzz.generators.chains import CHAINS, chain
from ..fuzz.generators.functions import Case
from .graphs import Graph

SHORT = 90
"""Operators of each class in every run: more than Python's stack holds of any walk that takes 7 frames for each."""
LONG = int(os.environ.get("TOSAIC_CHAIN", "10000"))
"""Operators of each class in a long run."""
FRAMES = 480
"""Of Python's stack, above the caller's: a little less than half of what there is."""


def agree(made: Case) -> Any:
    """The lowered function; what it computes is what the interpreter does."""
    lowered = Traced(made.module, "main").lower()
    results = lowered.compile(tosaic.Context("a chain"))(*made.calls[0])
    expected = interpret(made.module, "main", made.calls[0])
    for actual, right in zip(results if isinstance(results, tuple) else (results,), expected, strict=True):
        np.testing.assert_allclose(actual.astype(np.float64), right.astype(np.float64), rtol=1e-4, atol=1e-4)
    return lowered


def with_little_stack(call: Callable[[], Any]) -> Any:
    """A call with a recursion limit of few frames beside those in use."""
    depth, frame = 0, sys._getframe()
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        depth += 1
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + FRAMES)
    try:
        return call()
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_of_any_class_compiles_and_runs_with_little_stack(name: str) -> None:
    agree(chain(name, 2))  # imports take frames of their own
    lowered = with_little_stack(lambda: agree(chain(name, SHORT)))
    for stage in STAGES[:5]:
        assert with_little_stack(lambda: lowered.show(stage))
    assert str(with_little_stack(lowered.report))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CHAINS)
def test_expressions_of_a_chain_have_a_bounded_size_and_depth(name: str) -> None:
    few, many = (fused(chain(name, count)) for count in (100, 200))
    sizes = [max(len(nodes(k.value)) for k in kernels) for kernels in (few, many)]
    assert max(sizes) <= 4 * MOST_NODES
    assert sizes[1] <= 1.1 * sizes[0], "it grows with the chain"
    assert max(levels(k.value) for k in many) <= 40 * MOST_LEVELS


def fused(made: Case) -> tuple[Kernel, ...]:
    module = prepared(made.module)
    return fuse(module, module.function("main")).kernels


def levels(value: Any) -> int:
    depth: dict[Any, int] = {}
    for node in post_order((value,), children):
        depth[node] = 1 + max([depth[x] for x in children(node)], default=0)
    return depth[value]


@pytest.mark.long
@pytest.mark.parametrize("name", CHAINS)
def test_ten_thousand_operators_of_any_class_compile(name: str) -> None:
    """Prints seconds; memory is that of the process: `TOSAIC_CHAIN` is another number."""
    start = time.monotonic()
    lowered = agree(chain(name, LONG))
    print(f"{name}: {LONG} operators, {len(lowered.kernels.kernels)} kernels, {time.monotonic() - start:.1f} s")


@pytest.mark.sampled(4)
def test_ten_thousand_operators_pass_from_text_to_every_answer() -> None:
    made = chain("abs", 10_000)
    model = tosaic.load(print_module(made.module).encode())
    entry = model.main
    np.testing.assert_array_equal(entry(*made.calls[0]), interpret(made.module, "main", made.calls[0])[0])
    lowered = entry.lower()
    assert all(lowered.show(stage) for stage in STAGES)
    assert str(lowered.report())


def test_a_chain_is_checked_operator_by_operator() -> None:
    made = chain("x * a + b * x", 1000)
    assert Traced(made.module, "main").check(made.calls).agrees


@pytest.mark.sampled(4)
@pytest.mark.parametrize("operands", [64, 65, 1000])
def test_very_many_tensors_are_concatenated(operands: int) -> None:
    g = Graph()
    inputs = [g.input(1, 3) for _ in range(3)]
    result = g.op("concat", *(g.op("reverse", inputs[i % 3], axis=1) for i in range(operands)), axis=0)
    arrays = tuple(np.arange(3, dtype=np.float32).reshape(1, 3) + 10 * i for i in range(3))
    agree(Case(g.module(result), (arrays,)))


def test_a_traced_function_may_have_very_many_operators() -> None:
    def f(x: Any) -> Any:
        for i in range(2000):
            x = x + 1.5 if i % 2 else x * 0.5
        return x

    x = np.arange(4, dtype=np.float32)
    expected = x
    for i in range(2000):
        expected = expected + np.float32(1.5) if i % 2 else expected * np.float32(0.5)
    np.testing.assert_allclose(tosaic.jit(f)(x), expected, rtol=1e-5)


T = "tensor<4xf32>"
CALLED = f'func.func private @g(%0: {T}) -> {T} {{ %1 = "tf.Neg"(%0) : ({T}) -> {T} return %1 : {T} }}'


def tf_chain(operation: str, count: int) -> str:
    body = "\n".join(f"%{i + 1} = {operation.format(i)} : ({T}) -> {T}" for i in range(count))
    return f"func.func @main(%0: {T}) -> {T} {{ {body} return %{count} : {T} }} {CALLED}"


def executor_chain(count: int) -> str:
    body = "\n".join(f'%o{i + 1}, %c{i + 1} = tf_executor.island wraps "tf.Neg"(%{f"o{i}" if i else "x"}) : ({T}) -> {T}'
                     for i in range(count))
    return (f"func.func @main(%x: {T}) -> {T} attributes {{tf.entry_function = {{inputs = \"x\", outputs = \"y\"}}}} {{"
            f"%0 = tf_executor.graph {{ {body} tf_executor.fetch %o{count} : {T} }} return %0 : {T} }}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", [tf_chain('"tf.Neg"(%{})', 1500),
                                  tf_chain('"tf.PartitionedCall"(%{}) {{f = @g}}', 1500), executor_chain(1500)],
                         ids=["operations", "calls", "islands"])
def test_a_tensorflow_graph_may_have_very_many_operations(text: str) -> None:
    x = np.array([1, -2, 3, -4], np.float32)
    entry = tosaic.load(text.encode()).main
    np.testing.assert_array_equal(entry(x), x)
    assert entry.trace().check([[x]]).agrees


def cases(count: int) -> str:
    names = ", ".join(f"@g{i}" for i in range(count))
    functions = "\n".join(
        f'func.func private @g{i}(%0: {T}) -> {T} {{ '
        f'%1 = "tf.Const"() {{value = dense<{i}.0> : tensor<f32>}} : () -> tensor<f32> '
        f'%2 = "tf.Add"(%0, %1) : ({T}, tensor<f32>) -> {T} return %2 : {T} }}' for i in range(count))
    return (f'func.func @main(%0: {T}, %i: tensor<i32>) -> {T} {{ %1 = "tf.Case"(%i, %0) {{branches = [{names}]}} : '
            f"(tensor<i32>, {T}) -> {T} return %1 : {T} }} {functions}")


@pytest.mark.parametrize("count", [2, 7, 8, 33, 64])
def test_a_case_of_many_branches_takes_the_right_one(count: int) -> None:
    x, entry = np.zeros(4, np.float32), tosaic.load(cases(count).encode()).main
    for index in (-1 << 31, -1, *range(0, count, max(1, count // 9)), count - 1, count, (1 << 31) - 1):
        expected = index if 0 <= index < count else count - 1
        assert entry(x, np.array(index, np.int32))[0] == expected


def switches(depth: int) -> str:
    """A Switch on the true side of the one before, again and again, each by a predicate of its own."""
    bools = "tensor<4xi1>"
    lines = ['%a, %ka = tf_executor.island wraps "tf.Const"() {value = dense<[0]> : tensor<1xi32>} : () -> tensor<1xi32>',
             f'%t0, %k0 = tf_executor.island wraps "tf.Abs"(%x) : ({T}) -> {T}']
    for i in range(depth):
        lines += [f'%l{i}, %m{i} = tf_executor.island wraps "tf.Less"(%x, %t{i}) : ({T}, {T}) -> {bools}',
                  f'%p{i}, %n{i} = tf_executor.island wraps "tf.All"(%l{i}, %a) : ({bools}, tensor<1xi32>) -> tensor<i1>',
                  f"%f{i}, %t{i + 1}, %s{i} = tf_executor.Switch %t{i}, %p{i} : {T}"]
    for i in reversed(range(depth)):
        other = f"%r{i + 1}" if i < depth - 1 else f"%t{depth}"
        lines.append(f"%r{i}, %i{i}, %w{i} = tf_executor.Merge %f{i}, {other} : {T}")
    body = "\n".join(lines)
    return (f"func.func @main(%x: {T}) -> {T} attributes {{tf.entry_function = {{inputs = \"x\", outputs = \"y\"}}}} {{"
            f"%0 = tf_executor.graph {{ {body} tf_executor.fetch %r0 : {T} }} return %0 : {T} }}")


def calls(depth: int) -> str:
    """Functions that call each other."""
    names = [*(f"f{i}" for i in range(depth)), "g"]
    functions = [f"func.func private @{name}(%0: {T}) -> {T} {{ "
                 f'%1 = "tf.PartitionedCall"(%0) {{f = @{following}}} : ({T}) -> {T} return %1 : {T} }}'
                 for name, following in itertools.pairwise(names)]
    return "\n".join((tf_chain('"tf.PartitionedCall"(%{}) {{f = @f0}}', 1), *functions))


TOO_DEEP = {"branches of a Case": lambda: cases(1000), "Switches": lambda: switches(60), "calls": lambda: calls(1000)}


@pytest.mark.parametrize("what", TOO_DEEP)
def test_what_is_nested_too_deep_is_a_problem_with_a_place(what: str) -> None:
    with pytest.raises(Problem) as found:
        with_little_stack(lambda: tosaic.load(TOO_DEEP[what]().encode()).main.lower())
    assert found.value.position is not None and " deep" in found.value.message
