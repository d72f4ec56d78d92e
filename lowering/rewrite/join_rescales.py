"""Graph -> graph: a sum of two rescaled tensors of 8 bits that is rescaled to 8 bits, which is how converters write an addition
of quantized tensors, becomes one linear form in float32.

There are only 65,536 pairs of operands. So the factors of the form are looked for among the nearest floats, and taken where
they give what the four operators give for each pair, whether a target rounds after multiplying or not; where none do, and in
every other case, the operators stay as they are.
"""
from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from ...runtime.records import dataclass
from ..dialects.tosa.binary import Add, Sub
from ..dialects.tosa.rescale import Rescale
from ..dialects.tosaic.rescaled_sum import RescaledSum
from ..graph.graph import Module, Operation, Value
from ..graph.types import I8, I32, Array
from .rewrite_operations import Definitions, rewrite_operations

VALUES = np.arange(I8.minimum, I8.maximum + 1)
"""All that an element can be."""
NEAR = 2.0**-12
"""Pairs whose sum is so near to the middle between two integers decide which factors are right."""
DECISIVE = 512
"""As many of them are looked at before all pairs are."""
CHECKED = 4
"""As many factors are tried on all pairs."""
FACTOR, ADDEND = (2.0**-8, 2.0**4), (2.0**-16, 2.0**12)
"""Sizes, from and below. A product with a byte plus another number then has no more than 53 bits, from 2**13 to 2**-39: it is
exact in float64, and rounding it to float32 is what `fma` does."""
FACTORS, ADDENDS = 2, 4
"""Neighbouring floats on either side that are tried."""
STEP = 2.0**-18
"""Neighbours of the addend lie as far apart at least: half of what tells sums from 64 on apart."""
MOST_INTEGER = (1 << 31) - 1


def join_rescales(module: Module) -> Module:
    """The module with sums of rescaled bytes in one operator; what they were made of stays, to be pruned."""
    return rewrite_operations(module, rewritten)


def rewritten(operation: Operation, definitions: Definitions) -> Operation:
    found = Sum.of(operation, definitions)
    factors = found.factors() if found else None
    if found is None or factors is None:
        return operation
    return replace(operation, op=RescaledSum(*factors), operands=(found.first.value, found.second.value))


@dataclass(frozen=True, slots=True)
class Scale:
    """What a RESCALE does to all of its tensor: its numbers, of which the specification defines what they do."""
    multiplier: int
    shift: int
    is_double: bool
    before: int
    after: int

    @staticmethod
    def of(op: Rescale, operation: Operation) -> Scale | None:
        """None where a number is not known, differs from channel to channel, or is beyond what is defined; for unsigned numbers
        there is no way to 32 bits."""
        constants = [v.constant for v in operation.operands[1:]]
        if any(c is None or not c.size or (c != c.flat[0]).any() for c in constants):
            return None
        multiplier, shift, before, after = (int(c.flat[0]) for c in constants if c is not None)
        is_defined = multiplier > 0 and 2 <= shift <= 62 and not (op.input_unsigned or op.output_unsigned)
        return Scale(multiplier, shift, op.rounding_mode == "DOUBLE_ROUND", before, after) if is_defined else None

    @property
    def real(self) -> float:
        return self.multiplier * 2.0**-self.shift

    def apply(self, x: Array) -> Array:
        """Integers rescaled, exactly, not clipped."""
        x = x - self.before
        nudge = np.where(x < 0, -1 << 30, 1 << 30) if self.is_double and self.shift > 31 else 0
        return (x * self.multiplier + ((1 << self.shift - 1) + nudge) >> self.shift) + self.after


@dataclass(frozen=True, slots=True)
class RescaledTerm:
    """An operand of the sum: a tensor of 8 bits, and how it is rescaled, at least once."""
    value: Value
    scales: tuple[Scale, ...]

    @staticmethod
    def of(value: Value, definitions: Definitions) -> RescaledTerm | None:
        scales: list[Scale] = []
        while (operation := definitions.get(value)) is not None and isinstance(op := operation.op, Rescale) and op.to == I32:
            scale, value = Scale.of(op, operation), operation.operands[0]
            if scale is None:
                return None
            scales.insert(0, scale)
            if value.tensor.element == I8:
                return RescaledTerm(value, tuple(scales))
        return None

    @property
    def real(self) -> float:
        return math.prod(scale.real for scale in self.scales)

    def rescaled(self) -> Array | None:
        """All that its element can be in the sum; None where one is beyond 32 bits."""
        found = VALUES
        for scale in self.scales:
            found = scale.apply(found)
            if np.abs(found).max() > MOST_INTEGER:
                return None
        return found


@dataclass(frozen=True, slots=True)
class Sum:
    """first + sign * second, both rescaled, and the sum rescaled."""
    first: RescaledTerm
    second: RescaledTerm
    sign: int
    scale: Scale

    @staticmethod
    def of(operation: Operation, definitions: Definitions) -> Sum | None:
        last = operation.op
        if not isinstance(last, Rescale) or last.to != I8:
            return None
        added = definitions.get(operation.operands[0])
        if added is None or not isinstance(added.op, Add | Sub):
            return None
        scale = Scale.of(last, operation)
        first, second = (RescaledTerm.of(v, definitions) for v in added.operands)
        if scale is None or first is None or second is None:
            return None
        return Sum(first, second, 1 if isinstance(added.op, Add) else -1, scale)

    def factors(self) -> tuple[float, float, float] | None:
        """`first`, `second` and `addend` of a RESCALED_SUM that is right for all pairs; None where none is found."""
        first, second = self.first.rescaled(), self.second.rescaled()
        if first is None or second is None:
            return None
        rescaled = first[:, None] + self.sign * second
        if np.abs(rescaled).max() > MOST_INTEGER:
            return None
        expected = clipped(self.scale.apply(rescaled))
        x, y = (np.broadcast_to(v, rescaled.shape) for v in (VALUES[:, None], VALUES))
        decisive = self.decisive(rescaled)
        a, b, c = self.candidates()
        right = are_right(a[:, None], b[:, None], c[:, None], x[decisive], y[decisive], expected[decisive]).all(1)
        for number in np.flatnonzero(right)[:CHECKED]:
            if are_right(a[number], b[number], c[number], x, y, expected).all():
                return float(a[number]), float(b[number]), float(c[number])
        return None

    def decisive(self, rescaled: Array) -> tuple[Array, Array]:
        """The places of pairs whose sums are nearly in the middle between two integers."""
        real = (rescaled - self.scale.before) * self.scale.real + self.scale.after
        is_inside = (real > I8.minimum - 1) & (real < I8.maximum + 1)
        rows, columns = np.nonzero(is_inside & (np.abs(real - np.floor(real) - 0.5) < NEAR))
        step = max(1, len(rows) // DECISIVE)
        return rows[::step], columns[::step]

    def candidates(self) -> tuple[Array, Array, Array]:
        """Factors and addends: the nearest first, then their neighbours; none where they are out of range."""
        first, second = self.first.real * self.scale.real, self.sign * self.second.real * self.scale.real
        zero = self.scale.after - first * self.first.scales[0].before - second * self.second.scales[0].before
        choices = itertools.product(neighbours(first, FACTORS), neighbours(second, FACTORS), neighbours(zero, ADDENDS, STEP))
        a, b, c = np.array(sorted(choices, key=lambda choice: sum(n for n, _ in choice)), np.float64)[:, :, 1].T
        inside = is_within(a, FACTOR) & is_within(b, FACTOR) & ((c == 0) | is_within(c, ADDEND))
        return a[inside], b[inside], c[inside]


def is_within(x: Array, sizes: tuple[float, float]) -> Array:
    return (np.abs(x) >= sizes[0]) & (np.abs(x) < sizes[1])


def clipped(x: Array) -> Array:
    return np.clip(x, I8.minimum, I8.maximum)


def neighbours(x: float, most: int, least: float = 0.0) -> list[tuple[int, float]]:
    """The nearest float32 and those around it, `least` apart at least, each with how many there are between."""
    nearest = np.float32(x)
    step = max(float(np.spacing(np.abs(nearest))), least)
    return [(abs(n), float(np.float32(nearest + n * step))) for n in range(-most, most + 1)]


def are_right(a: Array, b: Array, c: Array, x: Array, y: Array, expected: Array) -> Array:
    """True if a * x + b * y + c in float32 gives what is expected, with `fma` and without. All are in float64."""
    unfused = np.float32(x) * np.float32(a) + (np.float32(y) * np.float32(b) + np.float32(c))
    fused = np.float32(x * a + np.float32(y * b + c))
    return (clipped(np.rint(unfused)) == expected) & (clipped(np.rint(fused)) == expected)
