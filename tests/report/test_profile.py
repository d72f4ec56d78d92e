"""Profiles: every kernel with its steps and time, on variables of its own; as text, JSON, and a trace."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.stages import Lowered
from tosaic.jit.tools.profile import Profile
from tosaic.lowering.native.driver import timed_driver
from tosaic.lowering.native.driver.timed_driver import COUNTERS
from tosaic.lowering.target.presets import PRESETS, host, target
from tosaic.runtime.errors import Problem

CORPUS = Path(__file__).parents[1] / "data" / "corpus"

pytestmark = pytest.mark.skipif(host().architecture not in COUNTERS, reason="this processor's counter is not known")


def lowered_and_inputs(name: str) -> tuple[Lowered, list[Any]]:
    lowered = tosaic.load(CORPUS / f"{name}.mlir").main.lower()
    rng = np.random.default_rng(0)
    return lowered, [rng.integers(0, 5, b.shape).astype(b.dtype) for b in lowered.kernels.inputs]


def profiled(name: str, calls: int = 5) -> tuple[Lowered, Profile]:
    lowered, inputs = lowered_and_inputs(name)
    return lowered, lowered.profile(inputs, calls)


def test_each_kernel_has_its_steps_and_a_time() -> None:
    lowered, profile = profiled("f_mobilenet_block_int8")
    assert sorted(k.number for k in profile.kernels) == list(range(len(lowered.kernels.kernels)))
    assert [k.least for k in profile.kernels] == sorted((k.least for k in profile.kernels), reverse=True)
    assert all(0 < k.least <= k.median and k.steps >= 1 and k.terms >= 1 for k in profile.kernels)
    assert profile.calls >= 5 and 0 < sum(k.least for k in profile.kernels) <= profile.median
    first = next(k for k in profile.kernels if k.number == 0)
    assert first.origin.endswith("conv2d") and first.result == "int8[1x16x16x8]" and first.position is not None


def test_spans_follow_each_other_and_add_up() -> None:
    _, profile = profiled("f_mobilenet_block_int8")
    assert profile.spans[0].begin == 0
    assert all(a.begin <= a.end <= b.begin for a, b in zip(profile.spans, profile.spans[1:]))
    assert len(profile.spans) == sum(k.steps for k in profile.kernels) and profile.dropped == 0


def test_steps_of_a_loop_are_counted_as_they_run() -> None:
    lowered = tosaic.load("""func.func @main(%n: tensor<i32>) -> tensor<i32> {
      %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %zero = "tosa.const"() <{values = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %r = tosa.while_loop (%i = %n) : (tensor<i32>) -> tensor<i32> {
        %more = tosa.greater %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        tosa.yield %more : tensor<i1>
      } do {
      ^bb0(%i: tensor<i32>):
        %less = tosa.sub %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
        tosa.yield %less : tensor<i32>
      }
      return %r : tensor<i32>
    }""").main.lower()
    for iterations in (0, 7):
        profile = lowered.profile([np.array(iterations, np.int32)], 3)
        test = next(k for k in profile.kernels if "greater" in k.origin)
        assert test.steps == iterations + 1


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_driver, "MAX_NOTES", 4)
    lowered, profile = profiled("f_mobilenet_block_int8")
    steps = len(lowered.kernels.kernels)
    assert len(profile.spans) == 4 and profile.dropped == steps - 4
    assert f"{steps - 4} steps of a call were not noted" in str(profile)


def test_variables_of_the_process_are_left_alone() -> None:
    total = tosaic.Variable("profiled", np.zeros(4, np.float32))

    @tosaic.jit
    def step(x: Any) -> Any:
        total.write(total.read() + x)
        return total.read()

    x = np.ones(4, np.float32)
    step(x)
    profile = step.lower(x).profile([x], 10)
    assert profile.calls >= 10 and step(x)[0] == 2


def test_other_machines_cannot_be_profiled_here() -> None:
    lowered = tosaic.load(CORPUS / "f_mlp.mlir").main.lower(tosaic.CompileOptions(target("cortex-m7")))
    with pytest.raises(Problem, match="cannot be profiled"):
        lowered.profile([np.zeros(b.shape, b.dtype) for b in lowered.kernels.inputs])
    assert {"x86", "aarch64", "riscv"} == set(COUNTERS) and any(t.architecture not in COUNTERS for t in PRESETS.values())


def test_the_command_prints_a_table_and_writes_a_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model, trace = str(CORPUS / "f_mobilenet_block_int8.mlir"), tmp_path / "trace.json"
    assert main(["profile", model, "--calls", "3", "--trace", str(trace)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("main: ") and "us a call" in out[0] and out[1].split() == [
        "us", "median", "share", "steps", "terms/ns", "kernel"]
    events = json.loads(trace.read_text())["traceEvents"]
    assert len(events) == len(out) - 2 and all(e["ph"] == "X" and e["dur"] >= 0 for e in events)
    assert main(["profile", model, "--calls", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {k["kernel"] for k in answer["kernels"]} == set(range(len(events))) and answer["least"] > 0
