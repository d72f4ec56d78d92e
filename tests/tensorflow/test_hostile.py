"""Whatever a text of TensorFlow's dialects holds, it ends in a module or in a Problem with a position, soon."""
from __future__ import annotations

import random

import pytest
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.prune import prune
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from ..text.effort import calls_made
from .cases import DATA, DOCUMENT, in_graph

TEXTS = {"loop": DATA / "tensorflow" / "w_while_lib" / "executor.mlir",
         "switch": DATA / "tensorflow" / "w_switchn" / "coarse.mlir",
         "saved": DATA / "tensorflow" / "w_counter_v1" / "functional.mlir",
         "regions": DATA / "tensorflow" / "v_assign_in_cond" / "regions.mlir",
         **{p.stem: p for p in DOCUMENT.glob("*.mlir")}}
TOKENS = ("{", "}", "(", ")", "[", "]", "<", ">", ",", ":", "=", "%x", "%c#1", "@f", "wraps", "of 3",
          'frame "f"', "constant", "-1",
          "tf.Add", "tf_executor.graph", "tf_executor.island", "tf_executor.Merge", "tf_executor.fetch", "tf_executor.yield",
          "“", "”",
          "!tf_executor.control", "tensor<*x!tf_type.resource<", "dense<[\"", "->", "cond: @f", "constant splat<", "func f(",
          "")


def outcome(text: str) -> Module | Problem:
    """What reading, verifying, pruning and printing end in; anything but a Problem is raised."""
    try:
        module = read_module(text)
    except Problem as problem:
        assert problem.position is not None
        assert str(problem)
        return problem
    try:
        verify(module)
    except Problem as problem:
        assert str(problem)
        return problem
    verify(prune(module))
    assert print_module(read_module(print_module(module))) == print_module(module)
    return module


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_may_end_anywhere(name: str) -> None:
    text = TEXTS[name].read_text("utf-8")
    for end in range(0, len(text), max(1, len(text) // 60)):
        outcome(text[:end])


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_text_may_hold_anything(name: str, seed: int) -> None:
    random_ = random.Random(f"{name}{seed}")
    text = TEXTS[name].read_text("utf-8")
    for _ in range(20):
        changed = text
        for _ in range(random_.randint(1, 3)):
            at = random_.randrange(len(changed))
            changed = changed[:at] + random_.choice(TOKENS) + changed[at + random_.choice((0, 0, 1, 5, 40)):]
        outcome(changed)


@pytest.mark.parametrize("seed", range(3))
def test_lines_may_stand_in_any_order(seed: int) -> None:
    random_ = random.Random(seed)
    for path in TEXTS.values():
        lines = path.read_text("utf-8").splitlines()
        for _ in range(4):
            i, j = random_.randrange(len(lines)), random_.randrange(len(lines))
            changed = [*lines]
            changed[i], changed[j] = changed[j], changed[i]
            outcome("\n".join(changed))


def nested(depth: int) -> str:
    """Graphs in islands in graphs."""
    text = "tf_executor.fetch"
    for _ in range(depth):
        text = f"%c = tf_executor.island {{\ntf_executor.graph {{\n{text}\n}}\ntf_executor.yield\n}}\ntf_executor.fetch"
    return f"func.func @f() {{\ntf_executor.graph {{\n{text}\n}}\nreturn\n}}"


@pytest.mark.parametrize("depth", [1, 20])
def test_graphs_may_be_nested(depth: int) -> None:
    assert isinstance(outcome(nested(depth)), Module)


@pytest.mark.parametrize("depth", [40, 90, 1000])
def test_graphs_that_are_nested_too_deeply_are_a_problem(depth: int) -> None:
    found = outcome(nested(depth))
    assert isinstance(found, Problem) and found.kind == "nesting"


@pytest.mark.parametrize("text", [
    "tensor<" + "!tf_type.resource<tensor<" * 50 + "f32" + ">>" * 50 + ">", "!tf_type.variant<" * 3000, "!tf_executor<" * 100,
    "tensor<!tf_type.resource<" + "tensor<f32>, " * 5000 + "tensor<f32>>>"])
def test_types_may_be_anything(text: str) -> None:
    outcome(f"func.func @f(%a: {text}) {{ return }}")


@pytest.mark.parametrize("text", [
    "%a:99999999999, %c = tf_executor._SwitchN %x, %i of 99999999999 : tensor<3xf32>",
    "%a:9999999, %c = tf_executor._SwitchN %x, %i of 9999999 : tensor<3xf32>",
    "%a, %c = tf_executor._SwitchN %x, %i of -1 : tensor<3xf32>", "%m:2147483648 = tf_executor.Merge %x, %x : tensor<3xf32>",
    '%r, %c = tf_executor.island wraps tf.Add %x, 1 : tensor<3000000000xf32>',
    '%r, %c = tf_executor.island wraps tf.Add %x, 0x : tensor<3xf32>',
    "%r, %c = tf_executor.island wraps constant splat<f32, 1>"])
def test_numbers_may_be_anything(text: str) -> None:
    assert isinstance(outcome(in_graph(text)), Problem)


def chain(count: int) -> str:
    """Islands that read each other, with control."""
    lines = ['%v0, %c0 = tf_executor.island wraps "tf.Neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>']
    lines += [f'%v{i}, %c{i} = tf_executor.island(%c{i - 1}) wraps "tf.Neg"(%v{i - 1}) : (tensor<3xf32>) -> tensor<3xf32>'
              for i in range(1, count)]
    return in_graph("\n".join(lines))


def test_the_work_grows_with_the_graph() -> None:
    small, large = (calls_made(lambda text=chain(n): outcome(text)) for n in (50, 200))  # type: ignore[misc]
    assert large < 6 * small
