"""Every operator that slides a window, with every combination of element types, extents and channels of 1 and around the length
of a vector, padding up to the kernel and beyond, strides and dilations: many in one module, for each instruction set, with
threads and by rows, against the interpreter.

A longer sweep, of the given number of cases in each way to compile them, and one case alone in all ways, are

    TOSAIC_WINDOW_CASES=2000 TOSAIC_WINDOW_SEED=1 pytest -m long tests/windows
    TOSAIC_WINDOW_CASE='conv2d:f32>f32>f32>f32:17' pytest -m long tests/windows
"""
from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from ..native.machines import missing, runs_here
from ..threads.cases import fine  # noqa: F401  a fixture
from .sweep import CONVOLUTIONS, TARGETS, Case, Sheet, Way, chains, replayed, thin_windows, windows

SHEET = 100
"""Cases that are compiled together."""
OTHERS, FLOATS, THINS = 10, 1, 1
"""Combinations of element types beyond specification 1.0 that are tried in each way; how often more those of convolutions of
floats are, which have the most kinds of code; and how often these are of thin images, which they padded copy."""
CHAINS = 2
"""Of each family that are tried in each way."""
LATER = 1 << 20
"""Seeds of the longer sweep are not those here."""
WHOLE = tuple(Way(name) for name in TARGETS)
BY_ROWS = (Way("host by rows"), Way("host", rows="memory"), Way("host", rows="never"), Way("scalar by rows"),
           Way("16 bytes", rows="memory"))
IN_PARTS = (Way("host", threads=2), Way("32 bytes", threads=2), Way("scalar", threads=3))


def ways(some: Iterable[Way]) -> pytest.MarkDecorator:
    """A test for each; those that this machine lacks instructions for are skipped."""
    return pytest.mark.parametrize("way", [pytest.param(way, id=str(way), marks=pytest.mark.skipif(
        not runs_here(TARGETS[way.target]), reason=f"this machine has no {', '.join(missing(TARGETS[way.target]))}"))
        for way in some])


def check(cases: Sequence[Case], way: Way) -> None:
    """All of them, some together."""
    sheets = [cases[start:start + SHEET] for start in range(0, len(cases), SHEET)]
    failures = [line for some in sheets for line in Sheet.of(some).failures(way)]
    assert not failures, f"{len(failures)} of {len(cases)} are wrong:\n" + "\n".join(failures)


def some_windows(seed: int) -> list[Case]:
    """Each operator with every other combination of specification 1.0, the next seed has those between; and with some others;
    convolutions of floats more often, some of them of thin images."""
    every = windows(seed, ("1.0",))
    first = half(every, seed)
    others = [case for case in windows(seed) if case not in every]
    floats = [replace(case, seed=LATER * (n + 1) + seed) for n in range(FLOATS) for case in first if is_of_floats(case)]
    thins = [case for n in range(THINS) for case in half(thin_windows(LATER * (n + 1) + seed, ("1.0",)), seed)]
    return [*first, *others[:OTHERS], *floats, *thins]


def half(cases: Sequence[Case], seed: int) -> list[Case]:
    """Every other case, by operator and types."""
    return sorted(cases, key=lambda case: (case.name, case.types))[seed % 2::2]


def is_of_floats(case: Case) -> bool:
    return case.name in CONVOLUTIONS and case.types.startswith(("f16", "bf16", "f32"))


def some_chains(seed: int) -> list[Case]:
    return [case for n in range(CHAINS) for case in chains(CHAINS * seed + n)]


@pytest.mark.sampled(2)
@ways(WHOLE)
def test_windows_give_what_the_interpreter_gives(way: Way) -> None:
    check(some_windows(WHOLE.index(way)), way)


@pytest.mark.sampled(4)
@ways(IN_PARTS)
@pytest.mark.usefixtures("fine")
def test_windows_divided_among_threads_give_what_the_interpreter_gives(way: Way) -> None:
    check(some_windows(100 + IN_PARTS.index(way)), way)


@pytest.mark.sampled(2)
@ways(BY_ROWS)
def test_windows_one_behind_the_other_give_what_the_interpreter_gives(way: Way) -> None:
    check(some_chains(BY_ROWS.index(way)), way)


@ways(IN_PARTS)
@pytest.mark.usefixtures("fine")
def test_windows_one_behind_the_other_divided_among_threads_give_what_the_interpreter_gives(way: Way) -> None:
    check(some_chains(100 + IN_PARTS.index(way)), way)


def many(cases: Callable[[int], list[Case]]) -> list[Case]:
    """As many as the environment says, from its seed on; or the one case that it names."""
    if named := os.environ.get("TOSAIC_WINDOW_CASE"):
        return [replayed(named)]
    first = LATER * (10 + int(os.environ.get("TOSAIC_WINDOW_SEED", "0")))
    every = itertools.chain.from_iterable(cases(seed) for seed in itertools.count(first))
    return list(itertools.islice(every, int(os.environ.get("TOSAIC_WINDOW_CASES", "500"))))


def every(seed: int) -> list[Case]:
    """All windows, and those of thin images."""
    return [*windows(seed), *thin_windows(seed)]


@pytest.mark.long
@ways((*WHOLE, *BY_ROWS[1:3], BY_ROWS[4]))
def test_many_windows_give_what_the_interpreter_gives(way: Way) -> None:
    check(many(every), way)


@pytest.mark.long
@ways(IN_PARTS)
@pytest.mark.usefixtures("fine")
def test_many_windows_divided_among_threads_give_what_the_interpreter_gives(way: Way) -> None:
    check(many(every), way)


@pytest.mark.long
@ways((*WHOLE[:1], *BY_ROWS))
def test_many_windows_one_behind_the_other_give_what_the_interpreter_gives(way: Way) -> None:
    check(many(chains), way)


@pytest.mark.long
@ways(IN_PARTS)
@pytest.mark.usefixtures("fine")
def test_many_windows_one_behind_the_other_divided_among_threads_give_what_the_interpreter_gives(way: Way) -> None:
    check(many(chains), way)
