"""`python -m tests.conformance.agreement TEST...` in the environment of Arm's tools: the driver's verdicts against Arm's.

The driver asks the verifier's library, Arm's runner the program `tosa_verify`. Both are asked about the results that the
interpreter gives for each test, and about the same results with one element damaged, which must not comply.
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


def disagreements(test: Path) -> Iterator[str]:
    """Where library and program say different things about a test's results, or do not see the damage."""
    subject = Subject(test)
    results = subject.run("interpreter").results
    with reference(test, subject.desc) as folder:
        for comparison in comparisons(subject.desc, folder):
            for array, is_damaged in ((results[comparison.files[0]], False), (damaged(results[comparison.files[0]]), True)):
                said = verdicts(test, subject, comparison, array)
                if said[0] != said[1] or said[0] is is_damaged:
                    yield f"{test.name} {comparison.name}: library {said[0]}, program {said[1]}, damaged: {is_damaged}"


def verdicts(test: Path, subject: Subject, comparison: Comparison, array: Array) -> tuple[bool, bool]:
    """Whether the library, and the program, call the array compliant."""
    return (by_library(subject.desc["meta"]["compliance"], comparison, array) is None,
            by_program(test, comparison, [array]) is None)


def main(tests: list[str]) -> int:
    found = [line for test in tests for line in disagreements(Path(test))]
    print("\n".join(found) or f"library and program agree on {len(tests)} tests")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
