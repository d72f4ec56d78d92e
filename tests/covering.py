"""A covering part of a grid of cases: every model, machine and form occurs, and not each with each."""
from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def covering(one_in: int, *axes: Iterable[Any]) -> list[Any]:
    """Parameters of a test: the cases of a grid whose places on the axes add up to a multiple of `one_in`. Each value of an
    axis is in one of them at least, or that is an AssertionError; one may be a `pytest.param` of its own."""
    sides = [[value if hasattr(value, "marks") else pytest.param(value, id=str(value)) for value in axis] for axis in axes]
    chosen = [places for places in itertools.product(*(range(len(side)) for side in sides)) if sum(places) % one_in == 0]
    for number, side in enumerate(sides):
        assert {places[number] for places in chosen} == set(range(len(side)))
    return [together([side[place] for side, place in zip(sides, places)]) for places in chosen]


def together(parts: list[Any]) -> Any:
    """One parameter of several."""
    marks = [mark for part in parts for mark in part.marks]
    names = [part.id or "-".join(map(str, part.values)) for part in parts]
    return pytest.param(*(value for part in parts for value in part.values), marks=marks, id="-".join(names))
