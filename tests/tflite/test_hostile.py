"""Files that are damaged: a Problem, or a model, and never another exception; the reader and what writes files of parts look at
each byte before they follow it."""
from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
import tosaic
from tosaic.lowering.tflite.cut import cut
from tosaic.lowering.tflite.decode import decode
from tosaic.lowering.tflite.import_plan import plan_of

from .files import Graph, Operator, Signature, Tensor, constant, file, ints

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
NAMES = sorted(p.stem for p in CORPUS.glob("*.tflite"))


def damaged(name: str, seed: int) -> bytes:
    """The file with one to eight bytes changed, most of them where its tables are."""
    rng, data = random.Random(f"{name} {seed}"), bytearray((CORPUS / f"{name}.tflite").read_bytes())
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        place = rng.randrange(len(data) if rng.random() < 0.5 else min(len(data), 2500))
        data[place] = rng.choice((0, 1, 0x7F, 0xFF, data[place] ^ 1 << rng.randrange(8), rng.randrange(256)))
    return bytes(data)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_a_problem_or_a_plan(name: str) -> None:
    for seed in range(60):
        data = damaged(name, seed)
        with suppress(tosaic.Problem):
            plan = plan_of(decode(data, name))
            assert plan_of(decode(cut(data, plan.model, plan.partitions), name)).partitions or not plan.partitions


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_cut_off_is_a_problem_or_a_plan(name: str) -> None:
    data = (CORPUS / f"{name}.tflite").read_bytes()
    for end in range(0, len(data), len(data) // 40):
        with suppress(tosaic.Problem):
            plan_of(decode(data[:end], name))


@pytest.mark.parametrize("name", ["v_counter_three_functions", "v_assign_in_cond", "f_while_in_cond", "f_strided_slice"])
def test_a_damaged_file_is_a_problem_or_a_model(name: str) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    for seed in range(8):
        with suppress(tosaic.Problem):
            str(tosaic.from_tflite(damaged(name, 1000 + seed), name))


@pytest.mark.parametrize("name", ["set", "loop", "branch", "slice"])
def test_a_damaged_file_without_parts_is_a_problem_or_a_model(name: str) -> None:
    """What is put together here needs no converter, so that there is time for many."""
    data = WITHOUT_PARTITIONS[name]
    tosaic.from_tflite(data)
    rng = random.Random(name)
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2))):
            changed[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 0xFF, rng.randrange(256)))
        with suppress(tosaic.Problem):
            plan = plan_of(decode(bytes(changed), name))
            if not plan.partitions:
                tosaic.from_tflite(bytes(changed), name)


V, X, Y, P = Tensor("v", (), "resource"), Tensor("x", (2,)), Tensor("y", (2,)), Tensor("p", (), "i1")
HANDLE = Operator("VAR_HANDLE", "", "v", ("box", "n"))
WITHOUT_PARTITIONS = {
    "set": file(Graph("x", "y", [V, X, Y], [Operator("CALL_ONCE", options=ints(1)), HANDLE, Operator("ASSIGN_VARIABLE", "v x"),
                                            Operator("READ_VARIABLE", "v", "y")]),
                Graph("", "", [V, constant("c", [1, 2])], [HANDLE, Operator("ASSIGN_VARIABLE", "v c")]),
                signatures=[Signature("f", 0, {"x": "x"}, {"y": "y"})]),
    "loop": file(Graph("x p", "y q", [X, P, Y, Tensor("q", (), "i1")], [Operator("WHILE", "x p", "y q", ints(1, 2))]),
                 Graph("x p", "p", [X, P]), Graph("x p", "x c", [X, P, constant("c", False, "i1")])),
    "branch": file(Graph("p x", "y", [V, P, X, Y], [HANDLE, Operator("IF", "p v x", "y", ints(1, 2))]),
                   Graph("v x", "x", [V, X], [Operator("ASSIGN_VARIABLE", "v x")]),
                   Graph("v x", "y", [V, X, Y], [Operator("READ_VARIABLE", "v", "y")])),
    "slice": file(Graph("x", "y", [Tensor("x", (4, 5)), *(constant(n, c, "i32") for n, c in (("b", [3, 0]), ("e", [0, 5]),
                                                                                               ("s", [-2, 2]))),
                                   Tensor("y", (2, 3))], [Operator("STRIDED_SLICE", "x b e s", "y", ints(0, 0, 0, 0, 0))])),
}


def test_subgraphs_that_share_subgraphs_do_not_take_forever() -> None:
    """Each of 40 subgraphs runs the next one twice."""
    graphs = [Graph("p x", "y", [P, X, Y], [Operator("IF", "p p x", "y", ints(i + 1, i + 1))], f"g{i}") for i in range(40)]
    with pytest.raises(tosaic.Problem, match=r"expand to more than|nested"):
        tosaic.from_tflite(file(*graphs, Graph("p x", "x", [P, X])))


def test_a_long_chain_of_subgraphs_is_a_problem() -> None:
    graphs = [Graph("x", "y", [X, Y], [Operator("CALL", "x", "y", ints(i + 1))], f"g{i}") for i in range(2000)]
    with pytest.raises(tosaic.Problem, match="deeper than 64"):
        tosaic.from_tflite(file(*graphs, Graph("x", "x", [X])))
