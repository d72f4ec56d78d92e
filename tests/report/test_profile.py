"""Profiles: every kernel with its steps and time, on variables of its own; as text, JSON, and a trace."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.stages import Lowered
from tosaic.jit.tools import profile as profiles
from tosaic.jit.tools.profile import Profile, timed
from tosaic.lowering.kernels.kernel import Compute
from tosaic.lowering.memory.plan import Plan
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
    assert profile.calls >= 5 and profile.least <= profile.median
    first = next(k for k in profile.kernels if k.number == 0)
    assert first.origin.endswith("conv2d") and first.result == "int8[1x16x16x8]" and first.position is not None


def test_spans_follow_each_other_and_add_up() -> None:
    _, profile = profiled("f_mobilenet_block_int8")
    assert profile.spans[0].begin == 0
    assert all(a.begin <= a.end <= b.begin for a, b in zip(profile.spans, profile.spans[1:]))
    assert len(profile.spans) == sum(k.steps for k in profile.kernels) and profile.dropped == 0


COUNTDOWN = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
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
    }"""


def test_steps_of_a_loop_are_counted_as_they_run() -> None:
    lowered = tosaic.load(COUNTDOWN).main.lower()
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


TINY = """
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0 = tosa.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = tosa.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  %2 = tosa.abs %x : (tensor<64xf32>) -> tensor<64xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
"""
COARSE_BITS = 13
"""Of a counter that advances by 8192 ticks: some microseconds, as that of a board with a slow clock does."""


def test_a_kernel_shorter_than_the_counter_tells_is_repeated_until_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter whose steps are longer than each kernel gives the times that a fine one gives."""
    lowered, x = tosaic.load(TINY).main.lower(), np.ones(64, np.float32)
    fine = {k.number: k for k in lowered.profile([x], 30).kernels}
    architecture = host().architecture
    read = COUNTERS[architecture]

    def coarse(w: Any) -> Any:
        return w.op("shl", w.op("lshr", read(w), COARSE_BITS), COARSE_BITS)

    monkeypatch.setitem(COUNTERS, architecture, coarse)
    found = lowered.profile([x], 30)
    for kernel in found.kernels:
        assert kernel.repeats > fine[kernel.number].repeats >= 10 and kernel.is_told
        assert fine[kernel.number].median / 4 < kernel.median < 4 * fine[kernel.number].median < 4 * found.resolution


@pytest.mark.parametrize("name", ["f_mobilenet_block_int8", "f_mlp", "v_counter", "f_while"])
def test_repeated_kernels_compute_what_they_compute_once(name: str) -> None:
    """Those that write what they read are given its contents back."""
    lowered, inputs = lowered_and_inputs(name)
    events = timed_driver.new_events(len(lowered.kernels.kernels))
    timed_driver.repeats_of(events)[:] = 7
    run, compiled = timed(lowered, events), lowered.compile(tosaic.Context("once"))
    for _ in range(3):
        for got, expected in zip(run(inputs), compiled.executable(*inputs), strict=True):
            np.testing.assert_array_equal(got, expected)


TOTAL = """
    tosa.variable @total = dense<0.0> : tensor<4xf32>
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tosa.variable_read @total : tensor<4xf32>
      %1 = tosa.add %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      tosa.variable_write @total, %1 : tensor<4xf32>
      %2 = tosa.variable_read @total : tensor<4xf32>
      %3 = tosa.abs %2 : (tensor<4xf32>) -> tensor<4xf32>
      return %3 : tensor<4xf32>
    }"""


def test_a_short_kernel_that_writes_what_it_reads_is_repeated_on_the_same_contents() -> None:
    profile = tosaic.load(TOTAL).main.lower().profile([np.ones(4, np.float32)], 10)
    kernel = next(k for k in profile.kernels if "variable_write" in k.origin)
    assert kernel.repeats > 1 and kernel.is_told and kernel.least > 0 and profile.as_json()["resolution"] > 0
    assert [k["repeats"] for k in profile.as_json()["kernels"]] == [k.repeats for k in profile.kernels]


def test_a_kernel_whose_buffers_take_too_long_to_restore_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MOST_RESTORED", 1)
    profile = tosaic.load(TOTAL).main.lower().profile([np.ones(4, np.float32)], 10)
    kernel = next(k for k in profile.kernels if "variable_write" in k.origin)
    assert kernel.repeats == 1 and not kernel.is_told and kernel.least > 0
    assert "shorter than the counter tells" in str(profile)


SOMETIMES = """
    tosa.variable @turn = dense<0> : tensor<i32>
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %0 = tosa.variable_read @turn : tensor<i32>
      %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = tosa.bitwise_xor %0, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
      tosa.variable_write @turn, %1 : tensor<i32>
      %c = tosa.equal %1, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %r = tosa.cond_if %c : tensor<i1> -> tensor<64xf32> {
        %2 = tosa.exp %x : (tensor<64xf32>) -> tensor<64xf32>
        tosa.yield %2 : tensor<64xf32>
      } else {
        %3 = tosa.abs %x : (tensor<64xf32>) -> tensor<64xf32>
        tosa.yield %3 : tensor<64xf32>
      }
      return %r : tensor<64xf32>
    }"""


def test_kernels_of_a_branch_have_the_times_of_the_calls_in_which_they_run() -> None:
    profile = tosaic.load(SOMETIMES).main.lower().profile([np.ones(64, np.float32)], 10)
    shares = {name: k.share for name in ("exp", "abs") for k in profile.kernels if name in k.origin}
    assert shares == {"exp": pytest.approx(0.5, abs=0.1), "abs": pytest.approx(0.5, abs=0.1)}
    assert all(k.least > 0 and k.steps == 1 for k in profile.kernels) and "% of calls" in str(profile)


# ---- a simulated processor ---------------------------------------------------------------------------------------------------
TOLERANCE = 0.1
"""Of the sum of the kernels' times, as a part of the whole call's, by a counter of 1 to 1000 nanoseconds."""


class Processor:
    """Runs kernels of known nanoseconds, of which the last runs in every second call, and notes them as compiled code does."""

    def __init__(self, kernels: Sequence[float], tick: float, events: Any) -> None:
        self.kernels, self.tick, self.events, self.now, self.calls = kernels, tick, events, 0.0, 0

    def clock(self) -> int:
        return int(self.now)

    def read(self) -> int:
        self.now += 3.7
        return int(self.now // self.tick)

    def run(self) -> None:
        self.calls += 1
        self.now += 1234.5  # Python's
        ran = [k for k in range(len(self.kernels)) if k < len(self.kernels) - 1 or self.calls % 2]
        for number, kernel in enumerate(ran):
            times = int(timed_driver.repeats_of(self.events)[kernel])
            begin = self.read()
            self.now += self.kernels[kernel] * times
            self.events[2 + number] = kernel, 0, 1, begin, self.read(), 0
        self.events[0, 0] = len(ran)

    def whole(self) -> float:
        """Nanoseconds of a call on average."""
        return sum(self.kernels[:-1]) + self.kernels[-1] / 2


@pytest.mark.parametrize("tick", [0.3, 40.0, 1000.0])
@pytest.mark.parametrize("kernels", [(5.0, 7.0), (0.5, 80.0, 40.0), (900.0, 30_000.0, 12.0, 700.0)])
def test_every_kernel_has_a_positive_time_and_their_sum_is_the_whole(kernels: tuple[float, ...], tick: float,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "LEAST_SECONDS", 0.0005)
    events = timed_driver.new_events(len(kernels))
    processor = Processor(kernels, tick, events)
    _, times = profiles.step_times(processor.run, events, [1 << 14] * len(kernels), 40, processor.clock)
    assert all(t.least > 0 and t.is_told for t in times) and times[-1].share == pytest.approx(0.5, abs=0.05)
    for t, nanoseconds in zip(times, kernels):
        assert t.median == pytest.approx(nanoseconds, rel=TOLERANCE, abs=0.1)
    assert sum(t.median * t.share for t in times) == pytest.approx(processor.whole(), rel=TOLERANCE)


def test_a_kernel_that_no_reading_tells_has_a_part_of_a_tick() -> None:
    for tick in (1e6, 1e12):
        processor = Processor((0.0, 0.0), tick, timed_driver.new_events(2))
        _, times = profiles.step_times(processor.run, processor.events, [1, 1], 3, processor.clock)
        assert all(0 < t.least <= tick / 10 and not t.is_told for t in times)


def painted(plan: Plan, pool: str, tick: int) -> int:
    """Bytes of a pool in which some buffer is live, byte by byte."""
    held = np.zeros(plan.pool(pool).size_bytes, bool)
    for b in plan.buffers:
        if b.pool == pool and any(first <= tick <= last for first, last in b.live):
            held[b.byte_offset:b.end] = True
    return int(held.sum())


def test_the_trace_has_the_live_bytes_of_each_pool_at_each_step() -> None:
    text = (CORPUS / "f_mobilenet_block_int8.mlir").read_text()
    fast, slow = tosaic.Pool("fast", 2048), tosaic.Pool("slow")
    lowered = tosaic.load(text).main.lower(tosaic.CompileOptions(memory=tosaic.Memory(pools=(fast, slow))))
    profile = lowered.profile([np.zeros(b.shape, b.dtype) for b in lowered.kernels.inputs], 3)
    events = profile.trace()["traceEvents"]
    counters, spans = [e for e in events if e["ph"] == "C"], [e for e in events if e.get("cat") == "kernel"]
    assert [c["ts"] for c in counters] == pytest.approx([*(s["ts"] for s in spans), spans[-1]["ts"] + spans[-1]["dur"]])
    ticks = [n for n, s in enumerate(lowered.program.steps) if isinstance(s, Compute)]
    assert len(ticks) == len(spans) > 1
    for tick, counter in zip(ticks, counters):
        assert counter["name"] == "live bytes" and counter["args"] == {
            p.name: painted(lowered.plan, p.name, tick) for p in lowered.plan.workspace_pools}
    assert set(counters[-1]["args"].values()) == {0} and any(c["args"]["slow"] for c in counters)


def test_live_bytes_in_a_loop_are_those_of_its_steps() -> None:
    """As many times as they run; the test of a loop is a step of its own."""
    lowered = tosaic.load(COUNTDOWN).main.lower()
    profile = lowered.profile([np.array(5, np.int32)], 3)
    seen = {s.kernel: s.live for s in profile.spans}
    assert len(profile.spans) > len(seen) and all(s.live == seen[s.kernel] for s in profile.spans)
    report = lowered.report()
    steps = {s.kernel: tick for tick, s in enumerate(report.timeline) if s.kind == "compute"}
    assert {k: painted(lowered.plan, profile.pools[0], steps[k]) for k in seen} == {k: v[0] for k, v in seen.items()}


def test_the_command_prints_a_table_and_writes_a_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model, trace = str(CORPUS / "f_mobilenet_block_int8.mlir"), tmp_path / "trace.json"
    assert main(["profile", model, "--calls", "3", "--trace", str(trace)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("main: ") and "us a call" in out[0] and "us of a call" in out[1] and out[2].split() == [
        "us", "median", "share", "steps", "terms/ns", "kernel"]
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "kernel"]
    rows = [line for line in out[3:] if not line.startswith("  *")]
    assert len(events) == 3 * len(rows) and all(e["ph"] == "X" and e["dur"] >= 0 for e in events)
    assert main(["profile", model, "--calls", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {k["kernel"] for k in answer["kernels"]} == set(range(len(rows))) and answer["least"] > 0
