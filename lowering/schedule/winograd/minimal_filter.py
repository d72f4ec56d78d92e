"""Minimal filters F(m, 3): the matrices by which m outputs of a filter of three taps take m + 2 multiplications instead of 3 m
(Toom, 1963; Cook, 1966), and the error bound of a result.

With A, G and B from `MinimalFilter.of`, outputs of a tile of m x m are A' [sum over channels of (G w G') * (B' x B)] A, where
x is a tile of (m + 2) x (m + 2) inputs, w are the 3 x 3 weights, and * multiplies element by element. With u = 2^-24, K
channels, X the largest magnitude among the inputs of the tile, in all channels, and W the sum of the magnitudes of the
weights of an output,

    F(2, 3):   16 (K + 12) u W X         F(4, 3):  210.25 (K + 20) u W X

bounds the error of an output. Each term of it goes through two roundings for its weight, K for the sum over channels, and one
for each nonzero element of a row of B', twice, and of A', twice; these matrices enlarge magnitudes by at most `gain` squared.
A sum of fused multiply-adds has 9 K u S, with S the sum of |x| |w|, which is W X at most: the bound here is wider, and relative
to the largest input of a tile. Inputs are finite, and below 2^114, so that no intermediate value overflows; an infinity or a
NaN makes all outputs of its tiles NaN.

The points of F(4, 3) are 0, 1/2, -1/2, 2, -2 and infinity: of all choices of pairs of opposite numbers, which share most of
their additions, they have the least gain (14.5; with 1 and 2, as in Lavin and Gray, 29.3).
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ....runtime.records import dataclass
from ...graph.types import Array

TAPS = 3
POINTS = {2: (0, 1, -1), 4: (0, Fraction(1, 2), Fraction(-1, 2), 2, -2)}
"""Points by the number of outputs of a tile along an axis; infinity is one more point."""
UNIT_ROUNDOFF = 2.0**-24
Rows = tuple[tuple[float, ...], ...]
"""A matrix whose elements are exact floats of 24 bits."""


@dataclass(frozen=True, slots=True)
class MinimalFilter:
    """The minimal filter F(size, 3). `inputs` is B', `outputs` A', and `weights` G, whose elements are rounded to 53 bits."""
    size: int
    inputs: Rows
    outputs: Rows
    weights: Rows

    @property
    def width(self) -> int:
        """Number of inputs of a tile along an axis, and of elements of a transformed tile."""
        return self.size + TAPS - 1

    @staticmethod
    @functools.cache
    def of(size: int) -> MinimalFilter:
        points = [Fraction(p) for p in POINTS[size]]
        last = [Fraction(0)] * (TAPS - 1) + [Fraction(1)]
        outputs = [[p**i for p in points] + [Fraction(i == size - 1)] for i in range(size)]
        weights = [[p**j / math.prod(p - q for q in points if q != p) for j in range(TAPS)] for p in points] + [last]
        inputs = [[*polynomial([q for q in points if q != p]), Fraction(0)] for p in points] + [polynomial(points)]
        return MinimalFilter(size, floats(inputs), floats(outputs), floats(weights))

    @property
    def gain(self) -> float:
        """Maximum factor by which the transforms enlarge the magnitudes of an input and a weight along an axis."""
        places = range(self.width)
        return max(sum(abs(row[i]) * abs(self.weights[i][tap]) * sum(map(abs, self.inputs[i])) for i in places)
                   for row in self.outputs for tap in range(TAPS))

    def error_bound(self, channels: int, weights: float, largest: float) -> float:
        """Return the maximum error of an output of `channels` channels, given the sum of the magnitudes of its weights and the
        largest magnitude of an input of its tile."""
        return self.gain**2 * (channels + self.roundings) * UNIT_ROUNDOFF * weights * largest

    @property
    def roundings(self) -> int:
        """Maximum number of roundings of a term, besides the sum over channels: two of its weight, and the transforms'."""
        return 2 + 2 * (terms(self.inputs) + terms(self.outputs))

    def of_weights(self, w: Array) -> Array:
        """Return [..., 3, 3] weights transformed to [width, width, ...], rounded once."""
        g = np.array(self.weights)
        return np.einsum("ik,...kl,jl->ij...", g, w.astype(np.float64), g).astype(np.float32)


def polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """Return the coefficients of the product of (x - root), the constant coefficient first."""
    found = [Fraction(1)]
    for root in roots:
        found = [(found[i - 1] if i else 0) - root * (found[i] if i < len(found) else 0) for i in range(len(found) + 1)]
    return found


def floats(rows: Sequence[Sequence[Fraction]]) -> Rows:
    return tuple(tuple(float(x) for x in row) for row in rows)


def terms(rows: Rows) -> int:
    """Return the maximum number of nonzero elements of a row."""
    return max(sum(x != 0 for x in row) for row in rows)
