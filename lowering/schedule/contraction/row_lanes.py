"""Factors from a row, for machines whose products multiply by one lane of a vector (FMLA and SDOT by element of 64-bit Arm):
the elements of several steps of K are loaded at once, and each step takes its lane. The builder loads a vector once for all its
steps.
"""
from __future__ import annotations

import math

from ...elements.affine import Affine
from ...elements.expression import Buffer
from ...loops.builder import Builder
from ...loops.ir import Operand, Type

ROW_STEPS = 4
"""Maximum steps of K whose factors are loaded at once: these fill a vector of words."""
MAX_RUN_STEPS = 16
"""Maximum steps of an iteration over a run of K: with more, the code is long. Chosen."""


def lanes_of_row(b: Builder, buffer: Buffer, place: Affine, k: Affine, extent: int, size: int,
                 most: int = ROW_STEPS, beyond: bool = False) -> tuple[Operand, int] | None:
    """Return the vector that contains the factors of this step of K, and their lane. `place` is the offset of the step's first
    factor, `k` the step's first element of K. K has `extent` elements, all steps of which are computed; a step has `size`
    elements. At most `most` steps are loaded at once; exactly that many if memory `beyond` the last step can be read. Return
    None if the loop over K goes by single steps."""
    stride = math.gcd(*(coefficient for _, coefficient in k.terms)) if k.terms else extent
    steps, step = stride // size, k.const % stride // size
    if steps == 1 or stride % size:
        return None
    first, count = step - step % most, most
    while not beyond and first + count > steps:  # the remainder, in ever shorter vectors
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
    """Return the steps of a run in one iteration of the loop over K: equal parts of the run, as few as possible."""
    return next(n for n in range(min(steps, MAX_RUN_STEPS), 0, -1) if steps % n == 0)


def in_all_lanes(b: Builder, vector: Operand, lane: int, count: int) -> Operand:
    """Return a lane of a vector, broadcast to `count` lanes."""
    return b.shuffle(vector, vector, (lane,) * count)
