"""Graph -> graph: a sum of two rescaled 8-bit tensors that is rescaled to 8 bits becomes one linear form in float32. Converters
write an addition of quantized tensors as such a sum.

There are only 65,536 pairs of operands. So the pass searches the nearest floats for factors of the form, and takes factors that
give the same results as the four operators for each pair, whether a target rounds after multiplying or not. If there are none,
and in every other case, the operators stay unchanged.
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
"""All values of an int8 element."""
NEAR = 2.0**-12
"""Distance from the middle between two integers within which the sum of a pair decides which factors are right."""
DECISIVE = 512
"""Maximum number of decisive pairs that are tested before all pairs are."""
CHECKED = 4
"""Maximum number of candidate factors that are tested on all pairs."""
FACTOR, ADDEND = (2.0**-8, 2.0**4), (2.0**-16, 2.0**12)
"""Minimum (inclusive) and maximum magnitude of factors and addends. A product with a byte plus another number then has no more
than 53 bits, from 2**13 to 2**-39: it is exact in float64, and rounding it to float32 is what `fma` does."""
FACTORS, ADDENDS = 2, 4
"""Number of neighbouring floats on either side that are tried."""
STEP = 2.0**-18
"""Minimum distance of neighbouring addends: half of the distance that distinguishes sums from 64 on."""
MOST_INTEGER = (1 << 31) - 1


def join_rescales(module: Module) -> Module:
    """Return the module with sums of rescaled bytes in one operator; the operations that these sums replace stay, to be
    pruned."""
    return rewrite_operations(module, rewritten)


def rewritten(operation: Operation, definitions: Definitions) -> Operation:
    found = Sum.of(operation, definitions)
    factors = found.factors() if found else None
    if found is None or factors is None:
        return operation
    return replace(operation, op=RescaledSum(*factors), operands=(found.first.value, found.second.value))


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers of a RESCALE that treats its whole tensor alike, within the range that the specification defines."""
    multiplier: int
    shift: int
    is_double: bool
    before: int
    after: int

    @staticmethod
    def of(op: Rescale, operation: Operation) -> Scale | None:
        """Return the scale of a RESCALE; None if a number is not known, differs between channels, or is beyond the defined
        range, or for unsigned numbers, which cannot be rescaled to 32 bits."""
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
        """Return integers rescaled, exactly, not clipped."""
        x = x - self.before
        nudge = np.where(x < 0, -1 << 30, 1 << 30) if self.is_double and self.shift > 31 else 0
        return (x * self.multiplier + ((1 << self.shift - 1) + nudge) >> self.shift) + self.after


@dataclass(frozen=True, slots=True)
class RescaledTerm:
    """An operand of the sum: an 8-bit tensor and its rescales, at least one."""
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
        """Return all values of its element in the sum; None if one is beyond 32 bits."""
        found = VALUES
        for scale in self.scales:
            found = scale.apply(found)
            if np.abs(found).max() > MOST_INTEGER:
                return None
        return found


@dataclass(frozen=True, slots=True)
class Sum:
    """The rescaled sum first + sign * second of two rescaled terms."""
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
        """Return `first`, `second` and `addend` of a RESCALED_SUM that is right for all pairs; None if none is found."""
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
        """Return the indices of pairs whose sums are nearly in the middle between two integers."""
        real = (rescaled - self.scale.before) * self.scale.real + self.scale.after
        is_inside = (real > I8.minimum - 1) & (real < I8.maximum + 1)
        rows, columns = np.nonzero(is_inside & (np.abs(real - np.floor(real) - 0.5) < NEAR))
        step = max(1, len(rows) // DECISIVE)
        return rows[::step], columns[::step]

    def candidates(self) -> tuple[Array, Array, Array]:
        """Return candidate factors and addends: the nearest first, then their neighbours; none if they are out of range."""
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
    """Return the nearest float32 and its neighbours, at least `least` apart, each with its number of steps from the nearest."""
    nearest = np.float32(x)
    step = max(float(np.spacing(np.abs(nearest))), least)
    return [(abs(n), float(np.float32(nearest + n * step))) for n in range(-most, most + 1)]


def are_right(a: Array, b: Array, c: Array, x: Array, y: Array, expected: Array) -> Array:
    """True where a * x + b * y + c in float32 gives the expected result, with `fma` and without. All arrays are float64."""
    unfused = np.float32(x) * np.float32(a) + (np.float32(y) * np.float32(b) + np.float32(c))
    fused = np.float32(x * a + np.float32(y * b + c))
    return (clipped(np.rint(unfused)) == expected) & (clipped(np.rint(fused)) == expected)
