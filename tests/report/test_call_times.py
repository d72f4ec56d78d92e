"""Times of calls: the least and the median after a warm-up, of compiled code alone. A clock that is a list of events stands in
for the processor's, so that nothing here depends on how fast this machine is."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.tools.call_times import CallTimes, call_times, timers

TOLERANCE = 0.03
"""Of a measured time, as a part of it: what the corrections for the counter and its readings leave."""


@dataclass
class Machine:
    """A processor whose time is a number: calls take nanoseconds in turns, the first of all `cold` more; Python takes
    microseconds around each batch; a counter of `tick` nanoseconds is read in `reading` of them."""
    cycle: tuple[float, ...]
    cold: float = 0.0
    tick: float = 0.3
    reading: float = 9.0
    python: float = 40_000.0
    now: float = 0.0
    made: int = 0

    def clock(self) -> int:
        return int(self.now)

    def read(self) -> int:
        self.now += self.reading
        return int(self.now // self.tick)

    def timer(self, calls: int, passes: int) -> Any:
        return self.batch(calls, passes, lambda i: self.cycle[i % len(self.cycle)] + (self.cold if not self.made else 0))

    def nothing(self, calls: int, passes: int) -> Any:
        return self.batch(calls, passes, lambda i: 0.0)

    def batch(self, calls: int, passes: int, taken: Any) -> Any:
        self.now += self.python
        start, ticks = self.read(), []
        for _ in range(passes):
            for i in range(calls):
                begin = self.read()
                self.now += taken(i)
                self.made += 1
                ticks.append(self.read() - begin)
        found = np.array([*ticks, self.read() - start], np.int64)
        self.now += self.python
        return found

    def times(self, calls: int) -> CallTimes:
        return call_times(self.timer, self.nothing, calls, self.clock)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated calls cost Python some microseconds each."""
    from tosaic.jit.tools import call_times as module
    monkeypatch.setattr(module, "LEAST_SECONDS", 0.004)
    monkeypatch.setattr(module, "MOST_SECONDS", 0.008)


@pytest.mark.parametrize("calls", [1, 3, 1000])
@pytest.mark.parametrize("nanoseconds", [50.0, 500.0, 30_000.0, 5e7])
def test_neither_python_nor_the_first_call_is_in_the_time(nanoseconds: float, calls: int) -> None:
    found = Machine((nanoseconds,), cold=100_000.0).times(calls)
    assert found.least == pytest.approx(nanoseconds, rel=TOLERANCE)
    assert found.median == pytest.approx(nanoseconds, rel=TOLERANCE)


def test_a_counter_coarser_than_a_call_tells_its_mean() -> None:
    found = Machine((73.0,), tick=1000.0).times(1)
    assert 0 < found.least <= 1.3 * 73 and 0 < found.median <= 1.3 * 73
    assert found.median == pytest.approx(73, rel=0.3)


def test_a_call_that_takes_no_time_has_a_positive_one() -> None:
    assert Machine((0.0,), tick=40.0).times(1).least > 0


def test_calls_of_a_state_with_phases_are_told_by_their_least_and_median() -> None:
    found = Machine((500.0, 520.0, 90_000.0)).times(3)
    assert found.least == pytest.approx(500, rel=TOLERANCE) and found.median == pytest.approx(520, rel=TOLERANCE)


# ---- compiled code -----------------------------------------------------------------------------------------------------------
COUNTER = """tosa.variable @n = dense<0> : tensor<i32>
func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %0 = tosa.variable_read @n : tensor<i32>
  %1 = tosa.add %0, %x : (tensor<i32>, tensor<i32>) -> tensor<i32>
  tosa.variable_write @n, %1 : tensor<i32>
  return %1 : tensor<i32>
}"""


def test_every_pass_begins_with_the_same_variables() -> None:
    executable = tosaic.load(COUNTER).main.compile(context=tosaic.Context("passes")).executable
    executable(np.array(5, np.int32))
    with timers(executable, [np.array(1, np.int32)]) as (timer, nothing):
        assert len(timer(3, 7)) == 22 and len(nothing(3, 7)) == 22
    assert executable(np.array(1, np.int32))[0] == 6


def test_a_call_that_fails_is_a_problem() -> None:
    entry = tosaic.jit(lambda x: [tosaic.check(x > 0, "not positive"), x][1]).trace(np.array(1, np.int32))
    executable = entry.compile(context=tosaic.Context("fails")).executable
    with timers(executable, [np.array(-1, np.int32)]) as (timer, _), pytest.raises(tosaic.Problem, match="not positive"):
        timer(1, 1)


@pytest.mark.parametrize("calls", [1, 4])
def test_measuring_leaves_outputs_and_state_as_the_calls_make_them(calls: int, tmp_path: Path,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(COUNTER)
    np.save(tmp_path / "x.npy", np.array(2, np.int32))
    command = ["run", str(tmp_path / "m.mlir"), "--input", f"x={tmp_path}/x.npy", "--calls", str(calls), "--json"]
    for run in (1, 2):
        assert main([*command, "--state", str(tmp_path / "state.npz")]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["outputs"][0]["values"] == 2 * calls * run
        assert 0 < answer["least_microseconds"] <= answer["microseconds"]
