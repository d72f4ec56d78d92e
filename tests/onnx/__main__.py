"""`python tests/onnx`: ONNX's node tests on both engines. What is right, wrong and refused, by operator, with the reasons.

    python tests/onnx [PATTERN ...] [--step N] [--engine interpreted|compiled|onnxruntime] [--jobs N] [--all]

PATTERN is a regular expression for a test's or an operator's name. Tests run in processes of their own, so that one that ends
its process counts as wrong. The exit status is 1 where one is wrong.
"""
from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("TOSAIC_CACHE", "off")

from node_tests import ENGINES, Verdict, judge, node_tests, operator_of

CHUNK = 16
"""Tests that a process is given at once."""


def judged(names: list[str], engines: list[str]) -> list[Verdict]:
    tests = {test.name: test for test in node_tests()}
    return [verdict for name in names for verdict in judge(tests[name], engines)]  # type: ignore[arg-type]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/onnx", description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="*")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--engine", choices=(*ENGINES, "onnxruntime"), action="append")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="print the tests that are right, too")
    options = parser.parse_args()
    engines, patterns = options.engine or list(ENGINES), [re.compile(p) for p in options.pattern]
    names = [t.name for t in node_tests()
             if not patterns or any(p.search(t.name) or p.fullmatch(operator_of(t)) for p in patterns)]
    verdicts = run(names[::options.step], engines, options.jobs)
    for verdict in verdicts:
        if options.all or verdict.verdict != "right":
            print(verdict)
    print_table(verdicts, engines)
    if "onnxruntime" in engines:
        print_missing(verdicts)
    return int(any(v.verdict == "wrong" for v in verdicts if v.engine in ENGINES))


def run(names: list[str], engines: list[str], jobs: int) -> list[Verdict]:
    """The verdicts of tests in processes; a chunk whose process ends is run again one by one."""
    found: list[Verdict] = []
    chunks = [names[i:i + CHUNK] for i in range(0, len(names), CHUNK)]
    while chunks:
        retry: list[list[str]] = []
        with ProcessPoolExecutor(jobs) as pool:
            for chunk, future in [(chunk, pool.submit(judged, chunk, engines)) for chunk in chunks]:
                try:
                    found += future.result()
                except BrokenProcessPool:
                    retry.append(chunk)
        single = [c[0] for c in retry if len(c) == 1]
        if single and len(retry) == len(chunks) == len(single):
            found += [Verdict(n, "?", "compiled", "wrong", "it ends its process") for n in single]
            break
        chunks = [[name] for chunk in retry for name in chunk] if any(len(c) > 1 for c in retry) else retry[1:]
        found += [] if any(len(c) > 1 for c in retry) or not retry else [
            Verdict(retry[0][0], "?", "compiled", "wrong", "it ends its process")]
    return sorted(found, key=lambda v: (v.operator, v.name, v.engine))


def print_table(verdicts: list[Verdict], engines: list[str]) -> None:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for v in verdicts:
        table[v.operator][f"{v.engine} {v.verdict}"] += 1
    columns = [f"{e} {v}" for e in engines for v in ("right", "wrong", "refused")]
    print(f"\n{'operator':40}" + "".join(f"{c:>22}" for c in columns))
    for operator, counts in sorted(table.items()):
        print(f"{operator:40}" + "".join(f"{counts[c]:>22}" for c in columns))
    total = sum(table.values(), Counter())
    print(f"{'all':40}" + "".join(f"{total[c]:>22}" for c in columns))


def print_missing(verdicts: list[Verdict]) -> None:
    """What ONNX Runtime has right and our compiler refuses, with the reasons."""
    right = {v.name for v in verdicts if (v.engine, v.verdict) == ("onnxruntime", "right")}
    missing = [v for v in verdicts if v.engine == "compiled" and v.verdict != "right" and v.name in right]
    print(f"\n{len(missing)} that ONNX Runtime has right and the compiler has not", *missing, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
