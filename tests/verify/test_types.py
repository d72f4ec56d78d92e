"""Every combination of element types that the specification has is taken, and every one beside it is refused."""
from __future__ import annotations

import pytest

from .graphs import assert_refused, verified
from .types_table import BEYOND, TABLE, TEMPLATES, graph, neighbours


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_combination_of_types_in_the_table_is_taken(name: str) -> None:
    for types in sorted(TABLE[name] | BEYOND.get(name, set())):
        verified(graph(name, types))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_combination_of_types_beside_the_table_is_refused(name: str) -> None:
    others = neighbours(name) - TABLE[name] - BEYOND.get(name, set())
    assert others
    for types in sorted(others):
        assert_refused(graph(name, types), "")


def test_what_is_taken_beyond_the_table_is_not_in_it() -> None:
    assert not {name for name, types in BEYOND.items() if types & TABLE[name]}
