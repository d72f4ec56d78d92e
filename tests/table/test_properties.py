"""Every operator with every combination of types, on random legal shapes, attributes and data: reference, kernels, loops and
native code agree, and the text reads back (`property`).

A case is named operator:types:seed. A longer sweep, and one case alone on all targets, are

    TOSAIC_FUZZ_SECONDS=1200 TOSAIC_FUZZ_SEED=1 pytest -m long tests/table
    TOSAIC_TABLE_CASE='conv2d:i8>i4>i32>i32:17' pytest -m long tests/table
"""
from __future__ import annotations

import itertools
import os
import random
import time
import traceback
from collections.abc import Iterator

import pytest
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import Array, ElementType

from ..fuzz.oracles.native import USABLE
from .combinations import TABLE, Types
from .draft import Draft
from .property import check
from .signatures import Case, case, replayed

MANY = 5
"""Combinations of one operator beyond specification 1.0 of which one seed is tried here; of more, every so manieth."""


FEW = 2
"""Combinations of which operators of constants are tried."""


def targets(made: Case, count: int = 1) -> list[str]:
    return random.Random(str(made)).sample(sorted(USABLE), min(count, len(USABLE)))


def chosen(name: str) -> Iterator[tuple[Types, int]]:
    """Combinations and seeds of the ordinary sweep."""
    first = TABLE[name].combinations("1.0")
    yield from ((types, seed) for number, types in enumerate(first) for seed in range(1 + number % 2))
    others = [types for types in TABLE[name].combinations("1.1", "more") if types not in first]
    step = max(1, len(others) // MANY)
    yield from ((types, 0) for types in others[len(others) // 2 % step::step])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TABLE)
def test_an_operator_means_the_same_at_every_stage(name: str) -> None:
    for types, seed in chosen(name):
        made = case(name, types, seed)
        try:
            check(made, targets(made))
        except Exception as error:
            raise AssertionError(f"TOSAIC_TABLE_CASE='{made}': {error}") from error


class Known(Draft):
    """A draft whose operands are constants."""

    def given(self, data: Array, element: ElementType | None = None, constant: float = 0.15) -> Value:
        return self.constant(data, element)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", sorted(set(TABLE) - {"while_loop"}))
def test_an_operator_of_constants_is_what_it_is_of_inputs(name: str) -> None:
    """A loop may need an input to end."""
    combinations = TABLE[name].combinations("1.0") or TABLE[name].combinations("1.1", "more")
    for types in combinations[:: max(1, len(combinations) // FEW)]:
        made = case(name, types, 0, kind=Known)
        try:
            check(made, targets(made))
        except Exception as error:
            raise AssertionError(f"TOSAIC_TABLE_CASE='{made}', of constants: {error}") from error


def everything() -> Iterator[tuple[str, Types]]:
    """Each operator with each combination."""
    for name, signature in TABLE.items():
        yield from ((name, types) for types in signature.combinations("1.0", "1.1", "more"))


@pytest.mark.long
def test_many_cases_of_every_operator_mean_the_same_at_every_stage() -> None:
    named = os.environ.get("TOSAIC_TABLE_CASE")
    if named:
        check(replayed(named), tuple(USABLE))
        return
    end = time.monotonic() + float(os.environ.get("TOSAIC_FUZZ_SECONDS", "60"))
    first = int(os.environ.get("TOSAIC_FUZZ_SEED", "0")) << 20
    failures: list[str] = []
    pairs = list(everything())
    for seed in itertools.count(first):
        random.Random(seed).shuffle(pairs)  # so that a short sweep has some of each
        for name, types in pairs:
            if time.monotonic() >= end:
                assert not failures, "\n".join(failures)
                return
            made = case(name, types, seed)
            try:
                check(made, targets(made, 2))
            except Exception:  # any exception is a fault of the compiler
                failures.append(f"TOSAIC_TABLE_CASE='{made}': {traceback.format_exc().splitlines()[-1]}")
