"""Executor graphs as branches and loops: what they become, and that random ones give what the executor's interpreter gives."""
from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.functionalize.decision_diagrams import FALSE, TRUE, Atom, Bit, Bits
from tosaic.lowering.rewrite.functionalize.live_bits import Liveness
from tosaic.lowering.rewrite.tensorflow import Bindings, to_tosa
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import InterpreterVariables
from tosaic.runtime.interpreter import interpret as interpret_tosa
from tosaic.runtime.variables import Context

from .corpus import DATA, Case
from .random_executor import RESOURCE, random_graph
from .ways import FIRST, INPUTS, arrays, in_executor, in_tosa
from .ways import translated as translated_to_tosa

SEEDS, NATIVE = range(20), range(0, 48, 12)


def translated(seed: int, size: int) -> tuple[Module, Module]:
    module = read_module(random_graph(seed, size), f"random graph {seed}")
    verify(module)
    tosa = to_tosa(module, "main", None, Bindings({}, {"v": np.array(FIRST)}))
    verify(tosa)
    return module, tosa


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_mean_the_same(seed: int) -> None:
    module, tosa = translated(seed, 10 + seed % 15)
    for inputs in INPUTS:
        variables = InterpreterVariables()
        found = interpret_tosa(tosa, tosa.function("main"), arrays(inputs), variables=variables)
        value = variables.snapshot().get("v", FIRST)
        assert [*map(int, found), int(value)] == in_executor(module, inputs), f"{inputs}"


@pytest.mark.parametrize("seed", NATIVE)
def test_random_graphs_compiled_mean_the_same(seed: int) -> None:
    module, tosa = translated(seed, 10 + seed % 15)
    for inputs in INPUTS[::3]:
        context = Context(f"random graph {seed}")
        found = Traced(tosa, "main").compile(context=context)(*arrays(inputs))
        results = found if isinstance(found, tuple) else (found,)
        value = context.read("v") if "v" in list(context) else FIRST
        assert [*map(int, results), int(value)] == in_executor(module, inputs), f"{inputs}"


def test_random_graphs_have_branches_and_loops() -> None:
    """The generator makes what it is for."""
    names = [{o.op.name for o in translated(seed, 20)[1].functions[0].body.walk()} for seed in range(30)]
    assert sum("tosa.cond_if" in n for n in names) > 10
    assert sum("tosa.while_loop" in n for n in names) > 10


# ---- what TensorFlow's own patterns become ---------------------------------------------------------------------------
@pytest.mark.parametrize("case", ["w_cond_lib", "w_while_lib", "w_seed_loop", "w_merge_of_merge", "w_switchn",
                                  "w_dead_side_effect"])
def test_the_graph_of_a_case(case: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{case}.functionalized.txt", print_module(to_tosa(Case(case, "executor").module, "main")))


def test_a_condition_of_tensorflow_is_one_branch_and_its_loop_one_loop() -> None:
    for case, name in (("w_cond_lib", "tosa.cond_if"), ("w_while_lib", "tosa.while_loop")):
        module = to_tosa(Case(case, "executor").module, "main")
        found = [o.op.name for o in module.functions[0].body.walk() if o.regions]
        assert found == [name]


@pytest.mark.parametrize("start", [1, 2, 5, 100])
def test_the_documents_loop_compiled_gives_zero(start: int) -> None:
    path = DATA.parent / "tensorflow_document" / "loop.mlir"
    module = to_tosa(read_module(path.read_text(), path.name), "loop")
    assert Traced(module, "loop").compile()(np.int32(start)) == 0


MERGE_AFTER_A_CONTROL = """func.func @main(%x: tensor<i32>, %p: tensor<i1>) -> tensor<i32> {
  %r = tf_executor.graph {
    %f, %t, %c = tf_executor.Switch %x, %p : (tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i32>, !tf_executor.control)
    %a, %dead = tf_executor.island wraps "tf.Neg"(%f) : (tensor<i32>) -> tensor<i32>
    %v, %i, %m = tf_executor.Merge %x, %x, %dead : tensor<i32>
    %w, %d = tf_executor.island(%m) wraps "tf.Neg"(%x) : (tensor<i32>) -> tensor<i32>
    tf_executor.fetch %w : tensor<i32>
  }
  return %r : tensor<i32>
}"""


@pytest.mark.parametrize("rfc_merge", [False, True])
def test_a_merge_with_a_dead_control_input_is_live_as_in_tensorflow_or_dead_as_in_the_document(rfc_merge: bool) -> None:
    """In the document's reading what is fetched is dead where %p is true."""
    module = read_module(MERGE_AFTER_A_CONTROL)
    graph = module.functions[0].body.operations[0]
    bit = Liveness(module, graph, rfc_merge).bit(graph.regions[0].yields[0])
    assert (bit == TRUE) == (not rfc_merge)
    arguments = [np.array(3, np.int32), np.array(False)]
    assert interpret(Environment(module, rfc_merge=rfc_merge), "main", arguments)[0] == -3
    if not rfc_merge:
        assert Traced(to_tosa(module, "main"), "main").compile()(*arguments) == -3


# ---- the bits --------------------------------------------------------------------------------------------------------
def evaluate(bits: Bits, bit: Bit, values: dict[Atom, bool]) -> bool:
    while bit not in (FALSE, TRUE):
        atom, low, high = bits.top(bit)
        bit = high if values[atom] else low
    return bit == TRUE


def test_bits_are_what_they_are_made_of() -> None:
    """Random functions of four atoms against their truth tables; equal functions are the same number."""
    bits, source = Bits(), random.Random(1)
    atoms = [Atom("test", n) for n in range(4)]
    tables = [dict(zip(atoms, values)) for values in itertools.product((False, True), repeat=4)]
    known: dict[tuple[bool, ...], Bit] = {tuple(t[a] for t in tables): bits.atom(a) for a in atoms}
    for _ in range(400):
        (f, a), (g, b), (h, c) = (source.choice(list(known.items())) for _ in range(3))
        made = {tuple(map(all, zip(f, g))): bits.conjunction(a, b), tuple(map(any, zip(f, g))): bits.disjunction(a, b),
                tuple(not x for x in f): bits.negation(a),
                tuple(y if x else z for x, y, z in zip(f, g, h)): bits.choice(a, b, c)}
        for table, bit in made.items():
            assert known.setdefault(table, bit) == bit
            assert tuple(evaluate(bits, bit, t) for t in tables) == table
        simple = bits.restrict(a, b)
        assert all(evaluate(bits, simple, t) == x for t, x, y in zip(tables, f, g) if y)
        assert bits.implies(a, b) == all(y for x, y in zip(f, g) if x)


HANDED_ON = """func.func @main(%n: tensor<i32>, %y: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %r:2 = tf_executor.graph {
    %one, %c = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %en, %cn = tf_executor.Enter %n frame "loop" : tensor<i32>
    %ey, %cy = tf_executor.Enter %y frame "loop" : tensor<i32>
    %eo, %co = tf_executor.Enter %one frame "loop" constant : tensor<i32>
    %sn, %kn, %csn = tf_executor.NextIteration.Source : tensor<i32>
    %sy, %ky, %csy = tf_executor.NextIteration.Source : tensor<i32>
    %mn, %in, %cmn = tf_executor.Merge %en, %sn : tensor<i32>
    %my, %iy, %cmy = tf_executor.Merge %ey, %sy : tensor<i32>
    %less, %cl = tf_executor.island wraps "tf.Sub"(%mn, %eo) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %go, %cgo = tf_executor.island wraps "tf.Greater"(%less, %eo) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %fn, %tn, %csw = tf_executor.Switch %less, %go : tensor<i32>
    %fy, %ty, %csv = tf_executor.Switch %my, %go : tensor<i32>
    %work, %cw = tf_executor.island wraps "tf.Neg"(%tn) : (tensor<i32>) -> tensor<i32>
    %same, %cs = tf_executor.island(%cw) wraps "tf.Identity"(%ty) : (tensor<i32>) -> tensor<i32>
    tf_executor.NextIteration.Sink[%kn] %tn : tensor<i32>
    tf_executor.NextIteration.Sink[%ky] %same : tensor<i32>
    %xn, %cxn = tf_executor.Exit %fn : tensor<i32>
    %xy, %cxy = tf_executor.Exit %fy : tensor<i32>
    tf_executor.fetch %xn, %xy : tensor<i32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}"""


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_a_value_that_goes_round_in_a_loop_is_there_behind_its_last_iteration(n: int) -> None:
    """In that iteration the Identity which hands it on is dead, and stands in a branch that is not taken."""
    module = read_module(HANDED_ON)
    tosa = to_tosa(module, "main")
    arguments = [np.array(n, np.int32), np.array(7, np.int32)]
    expected = list(map(int, interpret(Environment(module), "main", arguments)))  # type: ignore[arg-type]
    assert expected == [min(n - 1, 1), 7]
    assert list(map(int, interpret_tosa(tosa, tosa.function("main"), arguments))) == expected


LAST_ITERATION = """func.func @main(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i1>, %q: tensor<i1>,
    %v: RESOURCE) -> tensor<i32> {
  %0 = tf_executor.graph {
    %e, %ce = tf_executor.Enter %x frame "loop" : tensor<i32>
    %s, %k, %cs = tf_executor.NextIteration.Source : tensor<i32>
    %m, %i, %cm = tf_executor.Merge %e, %s : tensor<i32>
    %limit, %cl = tf_executor.island(%cm) wraps "tf.Const"() <{value = dense<7> : tensor<i32>}> : () -> tensor<i32>
    %less, %ct = tf_executor.island wraps "tf.Less"(%m, %limit) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %go, %cg = tf_executor.LoopCond %less : (tensor<i1>) -> (tensor<i1>, !tf_executor.control)
    %f, %t, %csw = tf_executor.Switch %m, %go : tensor<i32>
    BODY
    %one, %c1 = tf_executor.island(WAITS) wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %n, %cn = tf_executor.island wraps "tf.AddV2"(%t, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tf_executor.NextIteration.Sink[%k] %n : tensor<i32>
    %out, %co = tf_executor.Exit %h : tensor<i32>
    tf_executor.fetch %out : tensor<i32>
  }
  return %0 : tensor<i32>
}""".replace("RESOURCE", RESOURCE)
ADD = f'"tf.AssignAddVariableOp"(%v, VALUE) : ({RESOURCE}, tensor<i32>) -> ()'
IDENTITY = '"tf.Identity"(%f) : (tensor<i32>) -> tensor<i32>'


@pytest.mark.parametrize(("body", "added"), [
    (f'''%a = tf_executor.island wraps {ADD.replace("VALUE", "%f")}
    %h, %ch = tf_executor.island(%a) wraps {IDENTITY}''', lambda x: 7),
    (f'''%h, %ch = tf_executor.island {{
      {ADD.replace("VALUE", "%f")}
      %b = {IDENTITY}
      tf_executor.yield %b : tensor<i32>
    }}''', lambda x: 7),
    (f'''%w = tf_executor.island wraps {ADD.replace("VALUE", "%m")}
    %h, %ch = tf_executor.island wraps {IDENTITY}''', lambda x: sum(range(x, 8))),
    (f'''%w = tf_executor.island wraps {ADD.replace("VALUE", "%t")}
    %h, %ch = tf_executor.island wraps {IDENTITY}''', lambda x: sum(range(x, 7))),
], ids=["before the exit", "in the island of the exit", "in every iteration", "in all but the last"])
def test_a_write_in_the_last_iteration_of_a_loop_is_one(body: str, added: Callable[[int], int]) -> None:
    """A loop that tests first does nothing behind its test: this one writes there."""
    waits = "%csw, %w" if "%w" in body else "%csw"
    module = read_module(LAST_ITERATION.replace("BODY", body).replace("WAITS", waits))
    verify(module)
    tosa = translated_to_tosa(module)
    for inputs in INPUTS:
        assert in_tosa(tosa, inputs) == in_executor(module, inputs) == [7, FIRST + added(inputs[0])]
