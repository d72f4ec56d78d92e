"""The processes of the conformance driver, with tests that crash and hang: nothing of Arm's is needed."""
from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from . import workers
from .judge import Record, Result, verdict
from .report import failures, operator_of, totals
from .system import Engine, Machine, Outcome, Run
from .workers import Task, records


class Subject:
    """A test that does what its name says when the native engine runs it."""

    def __init__(self, folder: Path, machine: Machine) -> None:
        self.folder, self.desc = folder, {"expected_failure": True}

    def run(self, engine: Engine) -> Run:
        if engine == "native" and "crash" in self.folder.name:
            os.kill(os.getpid(), signal.SIGKILL)
        if engine == "native" and "hang" in self.folder.name:
            time.sleep(60)
        return Run(Outcome.ERROR, "a fault of the graph")


def outcomes(names: list[str], monkeypatch: pytest.MonkeyPatch, jobs: int = 2) -> dict[tuple[str, str], Record]:
    monkeypatch.setattr(workers, "Subject", Subject)
    tasks = [Task(Path("operators/ew_unary/abs", name), ("native", "interpreter")) for name in names]
    found = list(records(tasks, jobs, timeout=2))
    assert len(found) == 2 * len(names)
    return {(record.test.name, record.engine): record for record in found}


def test_a_crash_is_a_failed_test_with_its_name_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"right{n}" for n in range(5)]
    found = outcomes(["crash", *names], monkeypatch)
    crash = found.pop(("crash", "native"))
    assert crash.result is Result.UNEXPECTED_FAILURE and "SIGKILL" in crash.message
    assert {record.result for record in found.values()} == {Result.EXPECTED_FAILURE}
    assert "crash (native): run: the process has died" in failures([crash])


def test_a_test_that_takes_too_long_is_ended_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcomes(["right", "hang"], monkeypatch, jobs=1)
    assert "takes more than 2 s" in found["hang", "native"].message
    assert found["hang", "interpreter"].result is Result.EXPECTED_FAILURE


def test_a_worker_is_replaced_after_some_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TASKS", 2)
    assert len(outcomes([f"right{n}" for n in range(7)], monkeypatch)) == 14


@pytest.mark.parametrize("outcome, expected_failure, result", [
    (Outcome.VALID, True, Result.UNEXPECTED_PASS), (Outcome.ERROR, True, Result.EXPECTED_FAILURE),
    (Outcome.OTHER, True, Result.UNEXPECTED_FAILURE), (Outcome.ERROR, False, Result.UNEXPECTED_FAILURE),
    (Outcome.OTHER, False, Result.UNEXPECTED_FAILURE)])
def test_only_an_error_about_the_graph_passes_a_negative_test(outcome: Outcome, expected_failure: bool, result: Result) -> None:
    desc: dict[str, Any] = {"expected_failure": expected_failure}
    assert verdict(Path("test"), desc, Run(outcome, "message"))[0] is result


NEGATIVE = {
    "pad_ERRORIF_PadSmallerZero_3x4_f32": ("error[shape]: tosa.pad: padding must not be negative, it is [-1, -1]",
                                           "error[level]: %x has rank 7, level 8K allows 6"),
    "add_ERRORIF_RankMismatch_3x4_f32": ("error[shape]: tosa.add: operands of shapes 3 and 3x4 have ranks 1 and 2", "no"),
    "add_ERRORIF_NewRule_3x4_f32": (None, "error[shape]: no rule of the table")}


@pytest.mark.parametrize("name", NEGATIVE)
def test_a_negative_test_passes_for_its_own_rule_alone(name: str) -> None:
    about, other = NEGATIVE[name]
    desc: dict[str, Any] = {"expected_failure": True}
    if about is not None:
        assert verdict(Path(name), desc, Run(Outcome.ERROR, about)) == (Result.EXPECTED_FAILURE, about)
    found, message = verdict(Path(name), desc, Run(Outcome.ERROR, other))
    assert found is Result.UNEXPECTED_FAILURE and "rules.py" in message


def test_totals_are_in_the_form_of_arms_runner() -> None:
    folder = Path("operators/tensor/conv2d_1x3")
    found = [Record(folder / "a", "native", Result.EXPECTED_PASS), Record(folder / "b", "native", Result.EXPECTED_FAILURE),
             Record(folder / "a", "interpreter", Result.INTERNAL_ERROR)]
    assert totals(found, "native") == ("Totals (tosaic native): 1 expected_pass, 1 expected_failure, 0 unexpected_pass, "
                                       "0 unexpected_failure, 0 internal_error, 0 skipped")
    assert operator_of(folder / "a") == "conv2d"
