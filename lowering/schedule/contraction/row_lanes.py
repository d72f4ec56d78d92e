"""Factors from a row, for machines whose products take one lane of a vector for all (FMLA and SDOT by element of 64-bit Arm):
the elements of some steps of K are loaded at once, and each step takes its lane. The builder loads a vector once for all its
steps.
"""
from __future__ import annotations

import math

from ...elements.affine import Affine
from ...elements.expression import Buffer
from ...loops.builder import Builder
from ...loops.ir import Operand, Type

ROW_STEPS = 4
"""Steps of K whose factors are loaded at once, at most: they fill a vector of words."""
MAX_RUN_STEPS = 16
"""Steps of an iteration over a run of K whose length is no multiple of that, at most: with more the code is long. Chosen."""


def lanes_of_row(b: Builder, buffer: Buffer, place: Affine, k: Affine, extent: int, size: int,
                 most: int = ROW_STEPS, beyond: bool = False) -> tuple[Operand, int] | None:
    """The vector that has the factors of this step of K, and which lane they are; `place` is where its first one is, `k` the
    step's first element of K, which has `extent` of them and all of whose steps are done, and `size` how many a step
    has; at most `most` steps are loaded at once, and that many where what is `beyond` the last can be read. None where the loop
    over K goes by single steps."""
    stride = math.gcd(*(coefficient for _, coefficient in k.terms)) if k.terms else extent
    steps, step = stride // size, k.const % stride // size
    if steps == 1 or stride % size:
        return None
    first, count = step - step % most, most
    while not beyond and first + count > steps:  # what is left, in ever shorter vectors
        count //= 2
        if step >= first + count:
            first += count
    if count == 1:
        return None
    found: Operand = b.load(buffer, place - (step - first) * size, count * size)
    if size > 1:
        found = b.op("bits", found, type=Type("int32", count))
    return found, step - first


def steps_of_run(steps: int) -> int:
    """Steps of a run that are done in one iteration of the loop over K: equal parts of it, as few as possible."""
    return next(n for n in range(min(steps, MAX_RUN_STEPS), 0, -1) if steps % n == 0)


def in_all_lanes(b: Builder, vector: Operand, lane: int, count: int) -> Operand:
    """A lane of a vector, in `count` lanes."""
    return b.shuffle(vector, vector, (lane,) * count)
