"""Into how many parts a function is divided for so many threads. As many parts as threads leave all waiting for the slowest:
processors do not run alike, and others use them, too. So where it costs little, there are several parts for each thread, and
who is done first takes one more.

A pool's thread begins where its own share begins, and goes on from there; only what is left at the end goes to another one.
"""
from __future__ import annotations

from ...runtime.threads import MOST
from ..loops.cost import cycles
from ..loops.ir import Function
from .parallelize import GRAIN, MEETING, Divider, Division, divide, parts_of

TURNS = (1, 2)
"""Parts for each thread. With four, products of floats whose weights come from memory were 4 % slower."""
UNEVEN = 0.10
"""How much longer a thread takes than others, in relation; what its last part takes is waited for."""
CLAIM = 1_000
"""Cycles to take a part: a word that threads share, and what was at hand of the part before."""
MOST_SCRATCH = 1 << 13
"""Bytes of scratch that each part has for itself, where there are more parts than threads."""


def share(function: Function, threads: int) -> tuple[Function, int] | None:
    """The function in parts, and how many; None where that does not pay."""
    parts, whole = parts_of(function, threads), cycles(function)
    if parts < 2:
        return None
    divider = Divider(function)
    found: list[tuple[float, int, Division]] = []
    for turns in TURNS if parts == threads else TURNS[:1]:
        if turns > 1 and (parts * turns > MOST or whole < parts * turns * GRAIN):
            break
        division = divider.best(parts * turns)
        if division is None or (turns > 1 and own_scratch(function, division) > MOST_SCRATCH):
            break
        found.append((expected(division, turns), turns, division))
    if not found:
        return None
    _, turns, best = min(found, key=lambda f: f[0])
    divided = divide(function, parts * turns, best)
    return None if divided is None else (divided, parts * turns)


def expected(division: Division, turns: int) -> float:
    """Cycles until the last thread is done, each with so many parts."""
    meeting = MEETING * len(division.phases)
    each = division.cycles - meeting
    return meeting + turns * (each + CLAIM * len(division.phases) * (turns > 1)) + UNEVEN * each


def own_scratch(function: Function, division: Division) -> int:
    """Bytes of scratch that a part has for itself."""
    return sum(b.nbytes for b in function.scratch if b not in division.shared)
