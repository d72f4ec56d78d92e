"""The ladder: its rungs against counts made by hand, and that each is what it says."""
from __future__ import annotations

import pytest
from tosaic.jit.tools.report import report
from tosaic.jit.tools.report.ladder import RUNGS
from tosaic.jit.tools.report.unfused import Unfused
from tosaic.lowering.kernels.kernel import Branch, Loop, walk
from tosaic.lowering.memory.planner import Memory

from .subjects import MODELS, by_rows, in_pools, lowered

CHAIN = """
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = tosa.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = tosa.exp %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = tosa.reduce_sum %1 {axis = 0 : i32} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %3 = tosa.add %1, %2 : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  %4 = tosa.abs %3 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
"""

CHOICE = """
func.func @main(%p: tensor<i1>, %x: tensor<16xi32>) -> tensor<16xi32> {
  %0 = tosa.cond_if %p (%arg = %x) : tensor<i1> (tensor<16xi32>) -> tensor<16xi32> {
  ^bb0(%arg: tensor<16xi32>):
    %1 = tosa.add %arg, %arg : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %2 = tosa.add %1, %arg : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    tosa.yield %2 : tensor<16xi32>
  } else {
  ^bb0(%arg: tensor<16xi32>):
    tosa.yield %arg : tensor<16xi32>
  }
  %3 = tosa.add %0, %x : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
  return %3 : tensor<16xi32>
}
"""


def rungs(text: str, options: Memory | None = None) -> dict[str, tuple[int, int]]:
    found = lowered(text) if options is None else in_pools(lowered(text), options)
    return {r.name: (r.nbytes, r.live_bytes) for r in report(found, ladder=True).ladder}


def test_a_chain_of_operators_by_hand() -> None:
    found = rungs(CHAIN)
    assert found["every value"] == (256 + 256 + 32 + 256, 256 + 256 + 32 + 256)
    assert found["reuse"] == (256 + 32 + 256, 256 + 32 + 256)  # %1, %2, %3
    assert found["fusion"][0] <= 256 + 32
    assert found["plan"] == (lowered(CHAIN).plan.size_bytes, lowered(CHAIN).plan.live_bytes)


def test_inputs_and_outputs_count_where_the_plan_holds_them() -> None:
    assert rungs(CHAIN, Memory(workspace_io=True))["every value"][0] == rungs(CHAIN)["every value"][0] + 2 * 256


@pytest.mark.parametrize("model", MODELS)
def test_reuse_needs_no_more_than_every_value_and_bounds_hold(model: str) -> None:
    found = report(lowered(model), ladder=True).ladder
    assert [r.name for r in found] == [name for name, _, _ in RUNGS]
    assert all(r.nbytes >= r.live_bytes >= 0 for r in found)
    sizes = {r.name: r.nbytes for r in found}
    assert sizes["every value"] >= sizes["reuse"] and sizes["fusion"] <= sizes["scratch"]


def test_branches_and_loops_are_branches_and_loops() -> None:
    steps = list(walk(Unfused(lowered(CHOICE).traced.function).steps))
    assert sum(isinstance(s, Branch) for s in steps) == 1
    assert rungs(CHOICE)["every value"][0] == 3 * 64  # %1, %2 and %0
    inner = list(walk(Unfused(lowered("corpus/f_while").traced.function).steps))
    assert any(isinstance(s, Loop) for s in inner)


def test_rows_kept_in_rings_are_a_rung() -> None:
    found = rungs(by_rows(64, 4))
    assert found["rows"][0] < found["scratch"][0] / 4
