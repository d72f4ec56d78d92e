"""A worker process: one peer, one case, one number of threads, in the peer's environment.

It reads a task, loads the model, calls it, writes its results for the comparison, and answers with what that took; then it
answers each number of seconds on its standard input with a batch of calls of about that long. Answers are lines of JSON on
what was its standard output; whatever libraries print goes to standard error.
"""
from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .task import CALLS, Loaded, Refused, Task


def megabytes(entry: str) -> float:
    """A line of this process' memory, such as VmHWM (the most that was resident)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{entry}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def forget_peak() -> None:
    """VmHWM starts again from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def ready(task: Task) -> tuple[Loaded, dict[str, Any]]:
    """Load the model and write its results; what that took."""
    start = time.perf_counter()
    engine = importlib.import_module(f".engines.{task.engine}", __package__)
    getattr(engine, "imports", lambda task: None)(task)
    task.inputs()
    imported, idle = time.perf_counter(), megabytes("VmRSS")
    loaded: Loaded = engine.load(task)
    done = time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    answer = {"imports": imported - start, "load": done - imported, "imports_mb": idle,
              "load_mb": max(megabytes("VmHWM"), children), "work": loaded.work, "unit": loaded.unit}
    for _ in range(CALLS - 1):
        loaded.call()
    np.savez(task.results, **{f"o{i}": array for i, array in enumerate(loaded.outputs())})  # type: ignore[arg-type]
    return loaded, answer


class Batches:
    """Batches of calls of about the same length. One or more calls before each bring back what other processes displaced."""

    def __init__(self, call: Any) -> None:
        self.call, self.each = call, 0.0

    def run(self, seconds: float) -> dict[str, float]:
        if not self.each:
            self.timed(1)
            self.each = self.timed(max(1, min(100, int(seconds / max(self.timed(1), 1e-9) / 4))))
        count = max(1, int(seconds / self.each))
        self.timed(max(1, count // 8))
        self.each = self.timed(count)
        return {"calls": count, "seconds": self.each}

    def timed(self, count: int) -> float:
        """Seconds a call."""
        call, rounds = self.call, range(count)
        start = time.perf_counter()
        for _ in rounds:
            call()
        return (time.perf_counter() - start) / count


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    task = Task.read(sys.stdin.readline())
    try:
        loaded, answer = ready(task)
    except Refused as refusal:
        print(json.dumps({"refused": str(refusal)}), file=answers)
        return
    except Exception as error:  # a peer may fail in any way
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        print(json.dumps({"refused": f"{type(error).__name__}: {lines[-1][:100] if lines else ''}"}), file=answers)
        return
    print(json.dumps(answer), file=answers)
    batches, is_first = Batches(loaded.call), True
    for line in sys.stdin:
        if is_first:
            forget_peak()
        is_first = False
        print(json.dumps({**batches.run(float(line)), "run_mb": megabytes("VmHWM")}), file=answers)
