"""Loops after fusion: a new value is written over the old one where nothing needs the old one any more, and is right."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = np.array([3, 1, 2, 0], np.int32)


def repeated(step: Callable[..., Any], *state: Any) -> Any:
    """Four iterations of a step: (i, values) -> values."""
    def f(*given: Any) -> Any:
        return tosaic.while_loop(lambda i, *values: i < 4, lambda i, *values: (i + 1, *step(i, *values)), 0, *given)[1:]
    return tosaic.jit(f).trace(*state)


def turned(step: Callable[..., Any], *state: Any) -> list[Any]:
    values = state
    for i in range(4):
        values = step(i, *values)
    return [np.asarray(v) for v in values]


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "each place for itself": (lambda i, x, y: (x * 2 + 1, y - 1), (X, Y), 0),
    "one needs the other's old value": (lambda i, x, y: (x + y, y * 2), (X, X[:1] + 1), 0),
    "a chain of needs": (lambda i, x, y, z: (x + y, y + z, z + 1), (X, X + 1, X + 2), 0),
    "both need each other": (lambda i, x, y: (x + y, x - y), (X, X + 1), 1),
    "exchanged": (lambda i, x, y: (y, x), (X, X + 1), 2),
    "another place": (lambda i, x, y: (x[::-1] + 1, y), (X, Y), 1)}


@pytest.mark.parametrize("name", CASES)
def test_new_values_are_right_and_copied_only_where_they_must_be(name: str) -> None:
    step, state, copies = CASES[name]
    traced = repeated(step, *state)
    found = traced.compile()(*state)
    for mine, right in zip(found, turned(step, *state), strict=True):
        np.testing.assert_array_equal(mine, right)
    kernels = traced.lower().show("kernels")
    assert kernels.count('_next": ') == copies, kernels
