"""`python tests/conformance --arm`: Arm's own runner over a suite, with tosaic as the system under test.

`tosa_verif_run_tests` loads the modules in `systems/` and judges them; nothing of this project's own driver takes
part. It is run on `CHUNK` tests at a time, as it keeps every result (tens of gigabytes for a whole suite): here they
are deleted after each chunk. Its exit status says nothing, so its lines of totals are read, and added up. If native
code takes the runner down, the chunk is halved until the test is found that does so; that test counts as an internal
error.
"""
from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from pathlib import Path

from .judge import Result
from .reference import KEEP, RUNNER

CHUNK = 60
"""Tests that one run of the runner is given."""

TOTALS = re.compile(r"^Totals \(([\w.]+)\): (.*)$", re.MULTILINE)
NOT_EXPECTED = re.compile(r"^(UNEXPECTED_PASS|UNEXPECTED_FAILURE|INTERNAL_ERROR) (\S+) \(([\w.]+)\)$", re.MULTILINE)


@dataclass(slots=True)
class Totals:
    """The runner's totals by system under test, and its lines on tests that did not come to what was expected."""
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Totals) -> None:
        for system, counts in other.counts.items():
            self.counts.setdefault(system, Counter()).update(counts)
        self.failures += other.failures

    def lines(self) -> list[str]:
        """The runner's line of totals for each system."""
        return [f"Totals ({system}): " + ", ".join(f"{counts[result]} {result}" for result in Result)
                for system, counts in sorted(self.counts.items())]


def run_tests(tests: Sequence[Path], systems: Sequence[str]) -> Totals:
    """The runner on some tests."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "runner.tosa_verif_run_tests", "--sut-module", *systems, "-j", "1", "--no-color",
                   "--xunit-file", str(Path(scratch, "result.xml")), "-t", *map(str, tests)]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=scratch)
    for test in tests:
        clean(test, systems)
    totals = parse(result.stdout)
    if all(system in totals.counts for system in systems):
        return totals
    if len(tests) > 1:
        middle = len(tests) // 2
        totals = run_tests(tests[:middle], systems)
        totals.add(run_tests(tests[middle:], systems))
        return totals
    why = f"the runner ends with status {result.returncode}: {' '.join(result.stderr.split())[-300:]}"
    return Totals({system: Counter({str(Result.INTERNAL_ERROR): 1}) for system in systems}, [f"{tests[0]}: {why}"])


def parse(text: str) -> Totals:
    """What the runner printed."""
    totals = Totals()
    for system, numbers in TOTALS.findall(text):
        pairs = (part.split() for part in numbers.split(","))
        totals.counts[system] = Counter({name: int(count) for count, name in pairs})
    totals.failures = [" ".join(groups) for groups in NOT_EXPECTED.findall(text)]
    return totals


def clean(test: Path, systems: Sequence[str]) -> None:
    """Delete the results in a test's folder, and a large reference."""
    for system in systems:
        for path in test.glob(f"*.{system}.npy"):
            path.unlink()
    references = list(test.glob(f"*.{RUNNER}.npy"))
    if sum(path.stat().st_size for path in references) > KEEP:
        for path in references:
            path.unlink()


def run_all(tests: Sequence[Path], systems: Sequence[str], jobs: int) -> int:
    """The runner on all tests, `jobs` of them at a time; 0 if each came to what was expected on each system."""
    chunks = [tests[i:i + CHUNK] for i in range(0, len(tests), CHUNK)]
    totals, start = Totals(), time.monotonic()
    with ThreadPool(jobs) as pool:
        for number, part in enumerate(pool.imap_unordered(lambda chunk: run_tests(chunk, systems), chunks), start=1):
            totals.add(part)
            for line in part.failures:
                print(line, flush=True)
            print(f"{number} of {len(chunks)} parts, {time.monotonic() - start:.0f} s, so far: "
                  + "; ".join(totals.lines()), file=sys.stderr, flush=True)
    print("\n".join(totals.lines()))
    right = (Result.EXPECTED_PASS, Result.EXPECTED_FAILURE)
    return 0 if all(sum(totals.counts[system][r] for r in right) == len(tests) for system in systems) else 1
