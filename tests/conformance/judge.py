"""One test on one engine, judged as Arm's runner judges it (`testResult`): what was expected, what came, the verdict."""
from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from .reference import NoReference, reference
from .rules import is_about, rule_of
from .system import Engine, Outcome, Run
from .verdict import VerifierFailure, faults


class Result(StrEnum):
    """The runner's results, in its order."""
    EXPECTED_PASS = "expected_pass"
    EXPECTED_FAILURE = "expected_failure"
    UNEXPECTED_PASS = "unexpected_pass"
    UNEXPECTED_FAILURE = "unexpected_failure"
    INTERNAL_ERROR = "internal_error"
    SKIPPED = "skipped"

    @property
    def is_right(self) -> bool:
        return self in (Result.EXPECTED_PASS, Result.EXPECTED_FAILURE)


@dataclass(frozen=True, slots=True)
class Record:
    """What a test came to on one engine; seconds to compile, to run, and to have the results verified."""
    test: Path
    engine: Engine
    result: Result
    message: str = ""
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    verify_seconds: float = 0.0


def judge(test: Path, desc: dict[str, Any], engine: Engine, run: Run) -> Record:
    """The record of a run."""
    start = time.perf_counter()
    result, message = verdict(test, desc, run)
    return Record(test, engine, result, message, run.compile_seconds, run.run_seconds, time.perf_counter() - start)


def verdict(test: Path, desc: dict[str, Any], run: Run) -> tuple[Result, str]:
    """The result, and the message of an error or of what is not as expected."""
    negative = desc["expected_failure"]
    match run.outcome:
        case Outcome.VALID if negative:
            return Result.UNEXPECTED_PASS, "an error was expected, the graph has run"
        case Outcome.VALID:
            try:
                with reference(test, desc) as folder:
                    found = faults(test, desc, folder, run.results)
            except (NoReference, VerifierFailure) as failure:
                return Result.INTERNAL_ERROR, str(failure)
            return (Result.UNEXPECTED_FAILURE, "; ".join(found)) if found else (Result.EXPECTED_PASS, "")
        case Outcome.ERROR if negative:
            return refusal(test, run.message)
        case _:
            return Result.UNEXPECTED_FAILURE, run.message


def refusal(test: Path, message: str) -> tuple[Result, str]:
    """The verdict on an error of a negative test: it must be about the rule that the test breaks."""
    rule = rule_of(test.name)
    if rule is None or is_about(rule, message):
        return Result.EXPECTED_FAILURE, message
    return Result.UNEXPECTED_FAILURE, f"refused, but not for {rule} (tests/conformance/rules.py): {message}"
