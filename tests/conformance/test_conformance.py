"""Arm's conformance suite: a selection of the tests of each version of the specification, on both engines.

The first run makes an environment with Arm's tools and writes the tests into the cache folder (`environment.py`); later
ones find them there. Each part is a process of its own in that environment.
"""
from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from . import environment
from .suite import place

pytestmark = pytest.mark.timeout(3000)
"""Seconds: the first test of each version writes the suite, and all wait for it."""
PARTS, SEED = 4, 42
TESTS = {"1.0": 1100, "1.1": 650}
"""Tests of each selection at least: so that a suite that is not there, or a filter gone wrong, cannot pass. A part has at least
half of its share: operators have different numbers of tests."""


def tools() -> Path:
    """Python with Arm's tools; the test is skipped where they cannot be had."""
    try:
        return environment.ensure()
    except environment.Unavailable as reason:
        pytest.skip(str(reason))


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The driver's run."""
    command = [sys.executable, str(environment.ROOT / "tests" / "conformance"), "--quiet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(1, PARTS + 1))
@pytest.mark.parametrize("version", TESTS)
def test_what_the_suite_expects_comes(version: str, part: int, tmp_path: Path) -> None:
    """1.0 is written whole, because other tests here need it; of 1.1, the operators of the part alone are written."""
    tools()
    outcomes, kind = tmp_path / "outcomes.json", "--shard" if version == "1.0" else "--rotation"
    result = conformance("--version", version, "--selection", "ci", "--seed", str(SEED), kind, f"{part}/{PARTS}", "--jobs", "1",
                         "--json", str(outcomes))
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr[-2000:]}"
    records = [json.loads(line) for line in outcomes.read_text().splitlines()]
    count = Counter(record["engine"] for record in records)
    assert count["native"] == count["interpreter"] >= TESTS[version] // PARTS // 2
    assert {record["result"] for record in records} == {"expected_pass", "expected_failure"}


DAYS = 24
"""The operators are gone through in as many days; each day's tests have shapes and data of their own."""
ANOTHER_DAY = 30
"""Tests of a day's selection at least, of both versions."""


def test_what_the_suite_expects_comes_for_another_seed_each_day(tmp_path: Path) -> None:
    tools()
    day = datetime.date.today().toordinal()
    remove_other_days(day)
    count = 0
    for version in TESTS:
        outcomes = tmp_path / f"{version}.json"
        result = conformance("--version", version, "--selection", "ci", "--seed", str(day), "--rotation",
                             f"{day % DAYS + 1}/{DAYS}", "--jobs", "1", "--json", str(outcomes))
        assert result.returncode == 0, f"seed {day}\n{result.stdout}\n{result.stderr[-2000:]}"
        count += len(outcomes.read_text().splitlines())
    assert count >= 2 * ANOTHER_DAY


def remove_other_days(day: int) -> None:
    """The tests of days before are not wanted again."""
    for old in (environment.cache() / "tests").glob("*-ci-*-*of*"):
        if f"-{day}-" not in old.name and f"-{SEED}-" not in old.name and old.is_dir():
            shutil.rmtree(old, ignore_errors=True)


SHARE = 12
"""C source is asked for as many parts of the tests of 1.0, another one each day: each test is a run of gcc."""


@pytest.mark.sampled(4)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_what_the_suite_expects_comes_from_c_source(tmp_path: Path) -> None:
    tools()
    outcomes, part = tmp_path / "outcomes.json", datetime.date.today().toordinal() % SHARE + 1
    result = conformance("--selection", "ci", "--shard", f"{part}/{SHARE}", "--jobs", "1", "--c", "--json", str(outcomes))
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr[-2000:]}"
    records = [json.loads(line) for line in outcomes.read_text().splitlines()]
    assert len(records) >= TESTS["1.0"] // SHARE and {record["engine"] for record in records} == {"c"}
    assert {record["result"] for record in records} == {"expected_pass", "expected_failure"}


def test_a_folder_of_tests_is_run_whole() -> None:
    tools()
    assert conformance("--selection", "ci", "--operators", "abs").returncode == 0
    folder = place("1.0", "ci", 42) / "operators" / "ew_unary" / "abs"
    result = conformance("--suite", str(folder), "--native")
    number = len(list(folder.glob("*/desc.json")))
    assert result.returncode == 0 and number > 10
    counts = [int(count) for count in re.findall(r"(\d+) expected_(?:pass|failure)", result.stdout)]
    assert sum(counts) == number


def test_arms_runner_comes_to_the_same() -> None:
    tools()
    result = conformance("--selection", "ci", "--operators", "abs", "cast", "cond_if", "exp", "--filter", "f32|ERRORIF",
                         "--arm")
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr[-2000:]}"
    assert {"Totals (tosaic_native)", "Totals (tosaic_interpreter)"} <= set(line.split(":")[0] for line in
                                                                           result.stdout.splitlines())


def test_the_verifiers_library_and_its_program_give_the_same_verdicts() -> None:
    python = tools()
    assert conformance("--selection", "ci", "--operators", "abs").returncode == 0
    folders = [f for f in sorted(place("1.0", "ci", 42).glob("operators/*/*/*")) if "ERRORIF" not in f.name][::45]
    command = [str(python), "-m", "tests.conformance.agreement", *map(str, folders)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment.variables())
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(result.stdout.split()[-1]) > 0.8 * len(folders) > 20, "too few results that damage can spoil"
