"""What looking at the interrupt flag costs: nanoseconds of an iteration of small loops, with and without, alternately.

    python tests/bench/interrupts.py [iterations]
"""
from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from tosaic.jit.compiled import Compiled
from tosaic.jit.stages import Traced
from tosaic.lowering.native.process import interrupt_flag
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.variables import Context

TURNS = 15
"""Measurements of each; the least counts."""

COUNT = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
  %r = tosa.while_loop (%i = %zero) : (tensor<i32>) -> tensor<i32> {
    %c = tosa.greater %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %c : tensor<i1>
  } do {
  ^bb0(%i: tensor<i32>):
    %one = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
    %s = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    BODY
    tosa.yield %s : tensor<i32>
  }
  return %r : tensor<i32>
}"""
VARIABLE = "tosa.variable @total = dense<0> : tensor<i32>\n"
WRITE = """%t = tosa.variable_read @total : tensor<i32>
    %u = tosa.add %t, %i : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.variable_write @total, %u : tensor<i32>"""
TEXTS = {"a counter": COUNT.replace("BODY", ""), "a counter and a variable": VARIABLE + COUNT.replace("BODY", WRITE)}


def compiled(text: str, looks: bool) -> Compiled:
    with patch.object(interrupt_flag, "is_supported", lambda: looks):
        return Traced(read_module(text), "main").lower().compile(Context("bench"))


def least(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    for name, text in TEXTS.items():
        runs = [compiled(text, looks) for looks in (False, True)]
        for what, iterations, calls in (("an iteration", count, 1), ("a call of one iteration", 1, 20_000)):
            n = np.array(iterations, np.int32)
            times: list[list[float]] = [[], []]
            for _ in range(TURNS):
                for run, own in zip(runs, times):
                    own.append(least(lambda run=run: [run(n) for _ in range(calls)]) / (iterations * calls))  # type: ignore[misc]
            without, with_flag = (min(own) * 1e9 for own in times)
            spread = statistics.stdev(times[0]) / statistics.mean(times[0])
            print(f"{name}, {what}: {without:.2f} ns without, {with_flag:.2f} ns with ({with_flag / without:.3f}; "
                  f"a measurement varies by {spread:.1%})")


if __name__ == "__main__":
    main()
