"""The trace of a profile, held against the Trace Event Format: what Perfetto and Chrome's viewer ask of events, one by one."""
from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.tools.profile import Profile
from tosaic.lowering.native.driver.timed_driver import COUNTERS
from tosaic.lowering.native.process.thread_pool import is_supported
from tosaic.lowering.target.presets import host

pytestmark = pytest.mark.skipif(host().architecture not in COUNTERS, reason="this processor's counter is not known")

WIDE = """
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = tosa.exp %x : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = tosa.reduce_sum %0 {axis = 1 : i32} : (tensor<512x512xf32>) -> tensor<512x1xf32>
  %2 = tosa.sub %0, %1 : (tensor<512x512xf32>, tensor<512x1xf32>) -> tensor<512x512xf32>
  %3 = tosa.tanh %2 : (tensor<512x512xf32>) -> tensor<512x512xf32>
  return %3 : tensor<512x512xf32>
}
"""
NEEDED = {"X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}, "C": {"name", "ph", "ts", "pid", "args"},
          "M": {"name", "ph", "pid", "tid", "args"}}
NAMED = {"process_name": str, "thread_name": str, "thread_sort_index": int}
ROUNDING = 1e-6
"""Microseconds that sums of floats may be off."""


def profiled(threads: int, traced: int) -> Profile:
    lowered = tosaic.load(WIDE).main.lower(tosaic.CompileOptions(threads=threads))
    return lowered.profile([np.zeros((512, 512), np.float32)], 3, traced)


def check(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a trace that keeps the format's rules: fields by kind, times in order, slices of a thread one inside the
    other or one behind the other, threads and process with names."""
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace and trace["displayTimeUnit"] in ("ms", "ns")
    events: list[dict[str, Any]] = trace["traceEvents"]
    for event in events:
        assert event.keys() == NEEDED[event["ph"]] and event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0
    names = {(e["pid"], e["tid"], e["name"]): next(iter(e["args"].values())) for e in events if e["ph"] == "M"}
    assert all(isinstance(value, NAMED[name]) for (_, _, name), value in names.items())
    timed = [e for e in events if e["ph"] != "M"]
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(timed))
    for pid, tid in {(e["pid"], e["tid"]) for e in timed if e["ph"] == "X"}:
        assert (pid, tid, "thread_name") in names
        open_until: list[float] = []
        for e in (e for e in timed if e["ph"] == "X" and (e["pid"], e["tid"]) == (pid, tid)):
            while open_until and e["ts"] >= open_until[-1] - ROUNDING:
                open_until.pop()
            assert not open_until or e["ts"] + e["dur"] <= open_until[-1] + ROUNDING
            open_until.append(e["ts"] + e["dur"])
    assert {e["pid"] for e in timed} == {pid for pid, _, name in names if name == "process_name"}
    assert all(type(n) is int and n >= 0 for e in timed if e["ph"] == "C" for n in e["args"].values())
    return events


def of(events: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [e for e in events if e.get("cat") == category]


def test_several_calls_follow_each_other_with_their_steps_inside() -> None:
    profile = profiled(1, 4)
    events = check(profile.trace())
    calls, steps = of(events, "call"), of(events, "kernel")
    assert [c["name"] for c in calls] == [f"call {i}" for i in range(4)]
    assert all(a["ts"] + a["dur"] <= b["ts"] + ROUNDING for a, b in pairwise(calls))
    assert len(steps) == 4 * len(profile.spans) and {s["tid"] for s in steps} == {c["tid"] for c in calls}
    for call in calls:
        inside = [s for s in steps if call["ts"] - ROUNDING <= s["ts"] <= call["ts"] + call["dur"]]
        assert len(inside) == len(profile.spans)
    held = [sum(e["args"].values()) for e in events if e["ph"] == "C"]
    peak = tosaic.load(WIDE).main.lower(tosaic.CompileOptions(threads=1)).report().peak
    assert peak is not None and max(held) == peak.nbytes and held.count(0) >= 4


@pytest.mark.skipif(not is_supported(), reason="there is no pool of threads here")
def test_tasks_are_on_the_threads_that_ran_them() -> None:
    """All rows of a kernel are computed once a call, whoever does it; the caller's track has the calls."""
    profile = profiled(2, 3)
    events = check(profile.trace())
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert threads[of(events, "call")[0]["tid"]] == "caller" and all(
        name == "caller" or re.fullmatch(r"worker [1-9]\d*", name) for name in threads.values())
    for spans in profile.traced:
        for kernel in {s.kernel for s in spans}:
            rows = sorted(s.rows for s in spans if s.kernel == kernel)
            assert rows[0][0] == 0 and all(a[1] == b[0] for a, b in pairwise(rows))
        assert any(len([s for s in spans if s.kernel == kernel]) > 1 for kernel in {s.kernel for s in spans})


@pytest.mark.skipif(not is_supported(), reason="there is no pool of threads here")
def test_steps_at_the_same_time_are_on_threads_of_their_own() -> None:
    """Where a step begins before another has ended, another thread runs it; and some thread of the pool did something. Which
    one it is may differ from step to step."""
    seen: set[int] = set()
    for _ in range(20):  # a busy machine may give the pool's thread no time
        profile = profiled(2, 20)
        for spans in profile.traced:
            assert all(a.thread != b.thread for a, b in pairwise(spans) if b.begin < a.end)
            seen |= {s.thread for s in spans}
        if len(seen) > 1:
            break
    assert {0, 1} <= seen


def test_the_command_writes_as_many_calls_as_it_is_told_to(tmp_path: Path) -> None:
    model, path = tmp_path / "wide.mlir", tmp_path / "trace.json"
    model.write_text(WIDE)
    assert main(["profile", str(model), "--calls", "2", "--trace", str(path), "--traced-calls", "5"]) == 0
    assert len(of(check(json.loads(path.read_text())), "call")) == 5
