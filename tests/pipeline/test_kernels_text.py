"""The text of kernels reads back: the same text, and the same loops and plan; and any other text ends in a Problem."""
from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import tosaic
from tosaic.lowering import pipeline
from tosaic.lowering.kernels.text import print_kernels
from tosaic.lowering.kernels.text_reader import read_kernels
from tosaic.lowering.loops.text import print_program
from tosaic.runtime.errors import Problem

from ..fuzz.generators.functions import case

DATA = Path(__file__).parents[1] / "data"
OPTIONS = tosaic.CompileOptions(tosaic.target("x86-64-v3"))


def models() -> list[Path]:
    return sorted((DATA / "corpus").glob("*.mlir"))


def holds(module: object, name: str) -> None:
    """What kernels print reads back, and gives the same loops and plan."""
    found = pipeline.run(pipeline.start(module, name, OPTIONS))  # type: ignore[arg-type]
    assert found.kernels is not None
    text = print_kernels(found.kernels, whole=True)
    again = read_kernels(text)
    assert print_kernels(again, whole=True) == text
    state = replace(pipeline.behind_the_graph(again.name, OPTIONS), kernels=again)
    other = pipeline.run(state, pipeline.passes_after("kernels"))
    assert print_program(other.program) == print_program(found.program) and str(other.plan) == str(found.plan)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", models(), ids=lambda p: p.stem)
def test_kernels_of_a_model_read_back(path: Path) -> None:
    for entry in tosaic.load(path):
        if not entry.is_dynamic:
            traced = entry.trace()
            holds(traced.module, traced.name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(60))
def test_kernels_of_a_random_graph_read_back(seed: int) -> None:
    made = case(seed, 4 + seed % 12)
    holds(made.module, "main")


TEXT = """kernels main
  input x: float32[4]
  output result0: float32[4]
  kernel 0: add
    result0: float32[4] at [i0<4] =
      (x[i0] + 1.0)
  steps
    compute 0
"""


@pytest.mark.parametrize(("old", "new", "message"), [
    ("x[i0]", "y[i0]", "there is no buffer y"), ("x[i0]", "x[i1]", "there is no axis i1"),
    ("x[i0]", "x[i0, 0]", "2 indices of x: float32[4]"), ("+ 1.0", "? 1.0", "this is no part of a kernel"),
    ("+ 1.0", "+ 1.0:float33", "there is no dtype float33"), ("compute 0", "compute 1", "there is no kernel 1"),
    ("compute 0", "computes 0", "expected a step, found computes"), ("kernel 0", "kernel 1", "expected kernel 0"),
    ("(x[i0] + 1.0)", "(x[i0] < 1.0)", "the value is bool, and result0 holds float32"),
    ("(x[i0] + 1.0)", "(%0 + 1.0)", "%0 is not there yet"), ("i0<4] =", "i0<-4] =", "an extent is below 0"),
    ("  input x: float32[4]\n", "  input x: float32[4]\n  input x: float32[4]\n", "x is there already"),
    ("(x[i0] + 1.0)", "add over [k<4 of x[k]", "expected ,, found of"), ("  steps\n    compute 0\n", "", "ends too early")])
def test_another_text_is_a_problem_with_its_place(old: str, new: str, message: str) -> None:
    assert print_kernels(read_kernels(TEXT), whole=True) == TEXT and old in TEXT
    with pytest.raises(Problem) as caught:
        read_kernels(TEXT.replace(old, new))
    assert message in caught.value.message and caught.value.position is not None and caught.value.kind == "syntax"


@pytest.mark.parametrize("seed", range(8))
def test_damaged_text_is_read_or_a_problem(seed: int) -> None:
    rng = random.Random(seed)
    made = case(seed, 8)
    found = pipeline.run(pipeline.start(made.module, "main", OPTIONS))
    assert found.kernels is not None
    text = print_kernels(found.kernels, whole=True)
    for _ in range(60):
        at = rng.randrange(len(text))
        damaged = rng.choice([text[:at], text[:at] + rng.choice("()[]<>%,:=#0x ") + text[at + 1:], text[:at] + text[at + 9:]])
        try:
            read_kernels(damaged)
        except Problem as problem:
            assert problem.kind == "syntax"
