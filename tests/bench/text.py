"""Seconds to read MLIR text of 30 MB: one constant, a hundred constants, 20,000 small operators.

    python tests/bench/text.py
"""
from __future__ import annotations

import statistics
import time

from tosaic.lowering.text.reader import read_module

SIZE = 15_000_000  # bytes of data: two characters each


def constants(count: int) -> str:
    """A module with `count` constants of SIZE bytes together, as hex."""
    each = SIZE // count // 4 * 4
    blob = "0x" + "A1B2C33F" * (each // 4)
    type = f"tensor<{each // 4}xf32>"
    lines = [f'    %{i} = "tosa.const"() <{{values = dense<"{blob}"> : {type}}}> : () -> {type}' for i in range(count)]
    return "\n".join(["module {", f"  func.func @main() -> {type} {{", *lines, f"    return %0 : {type}", "  }", "}"])


def operators(count: int) -> str:
    lines = [f"    %{i + 1} = tosa.add %{i}, %{i} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>" for i in range(count)]
    return "\n".join(["func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {", *lines,
                      f"    return %{count} : tensor<4xf32>", "}"])


def main() -> None:
    read_module("module {}")  # the grammar is built once
    cases = {"1 constant": constants(1), "100 constants": constants(100), "20,000 operators": operators(20_000)}
    for name, text in cases.items():
        times = []
        for _ in range(5):
            start = time.perf_counter()
            read_module(text)
            times.append(time.perf_counter() - start)
        print(f"{name:18} {len(text) / 1e6:6.1f} MB  {statistics.median(times):.3f} s")


if __name__ == "__main__":
    main()
