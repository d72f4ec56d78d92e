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


def lanes_of_row(b: Builder, buffer: Buffer, place: Affine, k: Affine, extent: int, size: int,
                 most: int = ROW_STEPS) -> tuple[Operand, int] | None:
    """The vector that has the factors of this step of K, and which lane they are; `place` is where its first one is, `k` the
    step's first element of K, which has `extent` of them and all of whose steps are done, and `size` how many a step
    has; `most` steps are loaded at once. None where the loop over K goes by single steps."""
    stride = math.gcd(*(coefficient for _, coefficient in k.terms)) if k.terms else extent
    steps = next((n for n in (2 * ROW_STEPS, ROW_STEPS, ROW_STEPS // 2) if n <= most and stride % (n * size) == 0), 1)
    if steps == 1:
        return None
    lane = k.const // size % steps
    found: Operand = b.load(buffer, place - lane * size, steps * size)
    if size > 1:
        found = b.op("bits", found, type=Type("int32", steps))
    return found, lane


def in_all_lanes(b: Builder, vector: Operand, lane: int, count: int) -> Operand:
    """A lane of a vector, in `count` lanes."""
    return b.shuffle(vector, vector, (lane,) * count)
