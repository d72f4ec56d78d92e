"""Faults planted into the product are found by `check` and named by the operator of the source; their models agree without:
`python tests/crosscheck/planted` prints the table."""
from __future__ import annotations

from collections import Counter

import pytest

from .planted.fault import Fault
from .planted.table import FAULTS


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.where}: {fault.name}")
def test_a_planted_fault_is_found_and_named(fault: Fault) -> None:
    assert fault.alarm() is None
    assert fault.verdict() is None


def test_each_fault_is_one_of_its_own() -> None:
    assert max(Counter((f.where, f.name) for f in FAULTS).values()) == 1
    assert Counter(f.where for f in FAULTS)["legalization"] >= 40
