"""Compile time of the graphs of Arm's conformance suite: which of them, of one operator each, take longer than they may.

    python tests/bench/compile_small.py SUITE                    the compact selection of a folder of tests (1.0)
    python tests/bench/compile_small.py SUITE --only conv2d      these operators alone
    python tests/bench/compile_small.py SUITE --no-times         lines of LLVM's text alone, on a machine that is busy
    python tests/bench/compile_small.py SUITE --json FILE        and every graph's figures

Lines are the same on every machine with the same vectors, and what a compile takes for the most part. A time is from file to a
callable, in seconds of the processor: the least of several, of which there is more than one where the first is too long. A
machine whose cores are shared changes its speed by half for minutes. So beside each time another is taken, of one graph that is
always the same, and the time counts as if the machine had been as fast throughout as it was for the fastest of those.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import tosaic

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from conformance.report import operator_of
from conformance.selection import NEGATIVE
from conformance.suite import choose

LIMIT = 0.030
"""Seconds that a graph of one operator may take."""
WARM = 20
LINES = 400, 500
"""As many lines take about that, and are surely too many."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What compiling a test's graph takes; `lines` are those of its LLVM module, `seconds` 0 where none were taken."""
    operator: str
    name: str
    lines: int
    functions: int
    seconds: float = 0.0


def graphs(suite: pathlib.Path, version: str, operators: Sequence[str], pattern: str) -> list[pathlib.Path]:
    """Folders of the positive tests that are chosen, by operator."""
    every = (path.parent for path in suite.absolute().rglob("desc.json") if NEGATIVE not in path.parent.name)
    found = [test for test in choose(every, version, "compact") if re.search(pattern, test.name)]
    return sorted((t for t in found if not operators or operator_of(t) in operators), key=lambda t: (operator_of(t), t.name))


def file_of(test: pathlib.Path) -> pathlib.Path:
    name: str = json.loads((test / "desc.json").read_text())["tosa_file"]
    return test / name


def compiled(file: pathlib.Path) -> float:
    """Seconds that one compile takes."""
    start = time.process_time()
    function = tosaic.load(file).entry().trace().lower().compile(tosaic.Context("bench"))
    seconds = time.process_time() - start
    function.close()
    return seconds


@dataclass(slots=True)
class Clock:
    """Times of compiles beside those of one graph that is always compiled, too; `fastest` is the least of its times."""
    always: pathlib.Path
    fastest: float = float("inf")

    def seconds(self, file: pathlib.Path, repeats: int) -> float:
        """The least of several, each as if the machine were at its fastest; the first is enough where it is short enough."""
        least = float("inf")
        for _ in range(repeats):
            before, taken, after = compiled(self.always), compiled(file), compiled(self.always)
            self.fastest = min(self.fastest, before, after)
            least = min(least, taken * min(1.0, self.fastest / min(before, after)))
            if least < LIMIT:
                break
        return least


def figures(test: pathlib.Path, clock: Clock, repeats: int) -> Figures:
    file = file_of(test)
    text = tosaic.load(file).entry().trace().lower().show("llvm")
    seconds = clock.seconds(file, repeats) if repeats else 0.0
    return Figures(operator_of(test), test.name, text.count("\n"), text.count("\ndefine "), seconds)


def over(found: Sequence[Figures]) -> str:
    """How many are over the bounds."""
    counts = [f"{sum(f.lines > bound for f in found):>6}" for bound in LINES]
    return " ".join([f"{len(found):>7}", *counts, f"{sum(f.seconds > LIMIT for f in found):>7}"])


def table(found: Sequence[Figures]) -> str:
    """Counts of each operator that has a graph over a bound, and of all."""
    groups: dict[str, list[Figures]] = defaultdict(list)
    for f in found:
        groups[f.operator].append(f)
    head = f"{'operator':26} {'graphs':>7} {f'>{LINES[0]}':>6} {f'>{LINES[1]}':>6} {f'>{LIMIT * 1e3:.0f} ms':>7}"
    rows = [f"{name:26} {over(group)}" for name, group in sorted(groups.items())
            if any(f.lines > min(LINES) or f.seconds > LIMIT for f in group)]
    return "\n".join([head, *rows, f"{'all':26} {over(found)}"])


def worst(found: Sequence[Figures], count: int) -> str:
    """Those with the most lines, then those that took longest."""
    long = sorted(found, key=lambda f: -f.lines)[:count]
    slow = sorted((f for f in found if f.seconds > LIMIT), key=lambda f: -f.seconds)[:count]
    return "\n".join([f"{f.lines:6} lines {f.seconds * 1e3:7.1f} ms  {f.operator} {f.name}" for f in long]
                     + ["the slowest:"] * bool(slow)
                     + [f"{f.lines:6} lines {f.seconds * 1e3:7.1f} ms  {f.operator} {f.name}" for f in slow])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=pathlib.Path, help="folder of Arm's tests (tests/conformance/generate.py writes them)")
    parser.add_argument("--version", choices=("1.0", "1.1"), default="1.0", help="of the suite (default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=[], metavar="OPERATOR", help="these operators alone")
    parser.add_argument("--filter", default="", help="only tests whose name has this regular expression")
    parser.add_argument("--repeats", type=int, default=5, help="of a compile that is too long (default: %(default)s)")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--worst", type=int, default=20, help="how many graphs are shown (default: %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures of all graphs to this file")
    options = parser.parse_args()
    tests = graphs(options.suite, options.version, options.only, options.filter)
    if not tests:
        sys.exit(f"{options.suite} has no such test")
    repeats = 0 if options.no_times else options.repeats
    clock = Clock(file_of(tests[0]))
    for _ in range(WARM * bool(repeats)):  # what the first compiles take longer belongs to no graph
        clock.seconds(clock.always, 1)
    found = [figures(test, clock, repeats) for test in tests]
    if options.json:
        options.json.write_text(json.dumps([asdict(f) for f in found], indent=0))
    print(table(found))
    print(worst(found, options.worst))
    if repeats:
        print(f"the graph beside the others: {clock.fastest * 1e3:.1f} ms  {file_of(tests[0]).parent.name}")


if __name__ == "__main__":
    main()
