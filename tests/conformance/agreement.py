"""`python -m tests.conformance.agreement TEST...` in the environment of Arm's tools: the driver's verdicts against Arm's.

The driver asks the verifier's library, Arm's runner the program `tosa_verify`. Both are asked about the results that the
interpreter gives for each test, which must comply, and about the same results with one element damaged, which must not,
but for results whose errors have a bound: that of a power beyond the type's range is infinite, and everything complies.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .arrays import Array
from .reference import reference
from .system import Subject
from .verdict import Comparison, by_library, by_program, comparisons


def damaged(array: Array) -> Array:
    """The array with its last element changed: all bits of an integer, the number of a float."""
    copy = np.array(array, order="C")
    codes = copy.reshape(-1)[-1:].view(np.uint8)
    codes[-1] ^= 0x7F if array.dtype.kind != "b" else 1
    return copy


def asked(test: Path) -> Iterator[tuple[bool, str]]:
    """Of every result of a test: whether the damage was seen, and what is wrong with the verdicts, or ""."""
    subject = Subject(test)
    results = subject.run("interpreter").results
    with reference(test, subject.desc) as folder:
        for comparison in comparisons(subject.desc, folder):
            array = results[comparison.files[0]]
            whole = verdicts(test, subject, comparison, array)
            broken = verdicts(test, subject, comparison, damaged(array))
            may_comply = bool(comparison.bounds)
            is_right = whole == (True, True) and (broken == (False, False) or (may_comply and broken == (True, True)))
            said = f"{test.name} {comparison.name}: library and program say {whole}, of the damaged result {broken}"
            yield broken == (False, False), "" if is_right else said


def verdicts(test: Path, subject: Subject, comparison: Comparison, array: Array) -> tuple[bool, bool]:
    """True if the library, and the program, call the array compliant."""
    return (by_library(subject.desc["meta"]["compliance"], comparison, array) is None,
            by_program(test, comparison, [array]) is None)


def main(tests: list[str]) -> int:
    found = [answer for test in tests for answer in asked(Path(test))]
    faults = [text for _, text in found if text]
    print("\n".join(faults) or f"library and program agree on {len(found)} results; damage seen: {sum(s for s, _ in found)}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
