"""Every rule of the executor's dialect that a text breaks is a problem that names the operation, the rule and the place."""
from __future__ import annotations

import pytest
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .cases import Case, malformed

CASES = malformed()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_broken_rule_is_named_at_its_place(case: Case) -> None:
    with pytest.raises(Problem) as caught:
        verify(read_module(case.text))
    problem = caught.value
    assert problem.message == case.message
    assert problem.position is not None
    assert (problem.position.line, problem.position.column) == (case.line, case.column)


def test_there_are_more_than_sixty_rules_each_once() -> None:
    assert len(CASES) > 60
    assert len({c.name for c in CASES}) == len(CASES)
