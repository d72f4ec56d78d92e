"""Islands of several operations, any of which may take a dead value: what is compiled, what the executor's interpreter gives,
what the same graph gives with islands of one operation, and what TensorFlow gave are the same, the variable included."""
from __future__ import annotations

import json
import pathlib
from collections.abc import Callable

import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf_executor.frames import inputs_of
from tosaic.lowering.dialects.tf_executor.operators import Graph, Island, wrapped
from tosaic.lowering.graph.graph import Module, Operation
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.prune import prune
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.variables import Context

from .corpus import Case
from .random_islands import random_islands
from .split_islands import split
from .ways import FIRST, INPUTS, arrays, in_executor, in_tosa, translated

SEEDS = range(16)
ANSWERS = pathlib.Path(__file__).parent / "islands.json"
"""Graphs, and what TensorFlow 2.21 gave for each of INPUTS (`against_tensorflow.py` writes it)."""


def graph_of(seed: int, predicates: bool = False) -> Module:
    module = read_module(random_islands(seed, 8 + seed % 12, predicates=predicates), f"random islands {seed}")
    verify(module)
    return module


def check(seed: int, predicates: bool = False) -> int:
    """How many runs of a random graph were the same in all ways."""
    module = graph_of(seed, predicates)
    separate = split(module)
    verify(separate)
    tosa, other = translated(module), translated(separate)
    for inputs in INPUTS:
        expected = in_executor(module, inputs)
        assert in_executor(separate, inputs) == expected, f"one operation an island, {inputs}"
        assert in_tosa(tosa, inputs) == expected, f"as branches and loops, {inputs}"
        assert in_tosa(other, inputs) == expected, f"one operation an island, as branches and loops, {inputs}"
    return len(INPUTS)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_islands_mean_the_same_in_all_ways(seed: int) -> None:
    assert check(seed) == len(INPUTS)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_islands_that_give_predicates_several_times_mean_the_same_in_all_ways(seed: int) -> None:
    assert check(seed, predicates=True) == len(INPUTS)


def test_tensorflow_gives_the_same() -> None:
    """Random graphs with what TensorFlow 2.21 gave for them, as GraphDefs of the same meaning."""
    known = json.loads(ANSWERS.read_text())
    for graph in known:
        module = read_module(graph["text"])
        tosa = translated(module)
        for inputs, expected in zip(INPUTS, graph["answers"], strict=True):
            assert in_executor(module, inputs) == expected
            assert in_tosa(tosa, inputs) == expected
    assert len(known) == 12


@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_compiled_islands_give_the_same(seed: int) -> None:
    module = graph_of(seed)
    compiled = Traced(translated(module), "main").compile
    for inputs in INPUTS[::3]:
        context = Context(f"random islands {seed}")
        found = compiled(context=context)(*arrays(inputs))
        value = context.read("v") if "v" in list(context) else FIRST
        assert [*map(int, found if isinstance(found, tuple) else (found,)), int(value)] == in_executor(module, inputs)


def islands(module: Module) -> list[Operation]:
    """Those of the outermost graph of @main."""
    graph = next(o for o in module.function("main").body.operations if isinstance(o.op, Graph))
    return [o for o in graph.regions[0].operations if isinstance(o.op, Island)]


def test_a_pruned_island_waits_for_all_that_it_waited_for() -> None:
    """And what is pruned is less: else the random islands would test nothing."""
    shorter = unread = 0
    for seed in range(50):
        module = graph_of(seed)
        before = {o.results: o for o in islands(module)}
        own = {v for results in before for v in results}
        after = islands(prune(module))
        for island in after:
            kept, old = set(inputs_of(island)), before[island.results]
            assert kept >= {v for v in inputs_of(old) if v in own}
            bodies = [len(o.regions[0].operations) for o in (old, island)]
            shorter += bodies[1] < bodies[0]
            unread += [o.results for o in island.regions[0].operations][:1] not in [
                [o.results] for o in old.regions[0].operations] and wrapped(old) is None
    assert shorter > 25 and unread > 25


DEAD = """func.func @main(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i1>, %q: tensor<i1>, %v: RESOURCE) -> tensor<i32> {
  %0 = tf_executor.graph {
    %f, %t, %c = tf_executor.Switch %x, %p : (tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i32>, !tf_executor.control)
    %isl, %c0 = tf_executor.island {
      BODY
      %cst = "tf.Const"() {value = dense<7> : tensor<i32>} : () -> tensor<i32>
      tf_executor.yield %cst : tensor<i32>
    }
    %m, %i, %c1 = tf_executor.Merge %isl, %f : tensor<i32>
    tf_executor.fetch %m : tensor<i32>
  }
  return %0 : tensor<i32>
}""".replace("RESOURCE", "tensor<!tf_type.resource<tensor<i32>>>")
WRITE = '"tf.AssignVariableOp"(%v, %y) : (tensor<!tf_type.resource<tensor<i32>>>, tensor<i32>) -> ()'


@pytest.mark.parametrize("body", [
    '%a = "tf.Identity"(%t) : (tensor<i32>) -> tensor<i32>',
    f'%a = "tf.Neg"(%t) : (tensor<i32>) -> tensor<i32>\n{WRITE}',
    f'{WRITE}\n%a = "tf.Neg"(%t) : (tensor<i32>) -> tensor<i32>',
    '%b = "tf.Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>\n'
    f'%a = "tf.AddV2"(%b, %t) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n{WRITE}',
    '%a = "tf.SomethingUnknown"(%t) : (tensor<i32>) -> tensor<i32>',
    '%a = "tf.IfRegion"(%q) ({\n "tf.Yield"(%t) : (tensor<i32>) -> ()\n}, {\n "tf.Yield"(%y) : (tensor<i32>) -> ()\n})'
    f' {{is_stateless = true}} : (tensor<i1>) -> tensor<i32>\n{WRITE}',
], ids=["an identity", "before a write", "behind a write", "two operands", "unknown", "in a branch"])
def test_an_island_with_a_dead_operand_is_dead_though_nothing_reads_what_takes_it(body: str) -> None:
    module = read_module(DEAD.replace("BODY", body))
    verify(module)
    tosa = translated(module)
    for inputs in INPUTS:
        x, y, p, _ = inputs
        expected = [7, y if "Assign" in body else FIRST] if p else [x, FIRST]
        assert in_tosa(tosa, inputs) == expected
        if "Unknown" not in body:
            assert in_executor(module, inputs) == expected


SAME = """func.func @main(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i1>, %q: tensor<i1>, %v: RESOURCE) -> tensor<i32> {
  %0 = tf_executor.graph {
    %o:3, %c = tf_executor.island {
      BODY
    }
    %f, %t, %c0 = tf_executor.Switch %x, %o#FIRST : tensor<i32>
    %g, %u, %c1 = tf_executor.Switch %y, %o#SECOND : tensor<i32>
    %isl, %c2 = tf_executor.island {
      %a = "tf.Sub"(%t, %u) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      tf_executor.yield %a : tensor<i32>
    }
    %m, %i, %c3 = tf_executor.Merge %isl, %f : tensor<i32>
    tf_executor.fetch %m : tensor<i32>
  }
  return %0 : tensor<i32>
}""".replace("RESOURCE", "tensor<!tf_type.resource<tensor<i32>>>")
YIELD = ": tensor<i1>, tensor<i1>, tensor<i1>"


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (1, 2)])
@pytest.mark.parametrize(("body", "holds"), [
    (f'''%a = "tf.Less"(%x, %y) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %b = "tf.Identity"(%a) : (tensor<i1>) -> tensor<i1>
      %c4 = "tf.Identity"(%b) : (tensor<i1>) -> tensor<i1>
      tf_executor.yield %a, %b, %c4 {YIELD}''', lambda x, y, p: x < y),
    (f'''%a = "tf.Less"(%x, %y) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tf_executor.yield %a, %a, %a {YIELD}''', lambda x, y, p: x < y),
    (f'''%a = "tf.Identity"(%p) : (tensor<i1>) -> tensor<i1>
      %n = "tf.Neg"(%x) : (tensor<i32>) -> tensor<i32>
      %b = "tf.Identity"(%a) : (tensor<i1>) -> tensor<i1>
      tf_executor.yield %p, %a, %b {YIELD}''', lambda x, y, p: p),
], ids=["copied", "the same value", "of the graph around"])
def test_a_predicate_that_an_island_gives_several_times_is_one_condition(
        body: str, holds: Callable[[int, int, bool], bool], first: int, second: int) -> None:
    module = read_module(SAME.replace("BODY", body).replace("FIRST", str(first)).replace("SECOND", str(second)))
    verify(module)
    tosa = translated(module)
    names = [o.op.name for o in tosa.function("main").body.walk()]
    assert names.count("tosa.cond_if") == 1 and "tosaic.assert" not in names
    for x, y, p, q in INPUTS:
        expected = [x - y if holds(x, y, p) else x, FIRST]
        assert in_tosa(tosa, (x, y, p, q)) == in_executor(module, (x, y, p, q)) == expected


def test_a_case_whose_islands_hold_several_operations_needs_no_more_memory_than_with_one_each() -> None:
    modules = [to_tosa(Case("w_case_lib", form).module, "main") for form in ("coarse", "executor")]
    several, single = (Traced(module, "main").lower() for module in modules)
    assert several.plan.size_bytes == single.plan.size_bytes
    assert len(several.program.kernels) == len(single.program.kernels)


def test_what_no_fetch_reaches_runs_nowhere() -> None:
    """As in TensorFlow, whose sessions prune: also in the interpreter, which did run it."""
    unfetched = f"%w = tf_executor.island wraps {WRITE}\ntf_executor.fetch %f"
    text = DEAD.replace("BODY", "").replace("tf_executor.fetch %m", unfetched)
    module = read_module(text)
    inputs = (3, 1, False, False)
    assert in_tosa(translated(module), inputs) == in_executor(module, inputs) == [3, FIRST]


@pytest.mark.long
@pytest.mark.parametrize("predicates", [False, True])
def test_five_hundred_random_islands_mean_the_same_in_all_ways(predicates: bool) -> None:
    assert sum(check(seed, predicates) for seed in range(1000, 1500)) == 500 * len(INPUTS)
