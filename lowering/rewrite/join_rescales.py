"""Graph -> graph: a sum of two rescaled tensors of 8 bits that is rescaled to 8 bits, which is how converters write an addition
of quantized tensors, becomes one linear form in float32.

There are only 65,536 pairs of operands. So the factors of the form are looked for among the nearest floats, and taken where
they give what the four operators give for each pair, whether a target rounds after multiplying or not; where none do, and in
every other case, the operators stay as they are.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ...runtime.records import dataclass
from ..dialects.tosa.binary import Add, Sub
from ..dialects.tosa.rescale import Rescale, limits
from ..dialects.tosaic.rescaled_sum import RescaledSum
from ..graph.graph import Block, Module, Operation, Value
from ..graph.types import I32, Array

Definitions = Mapping[Value, Operation]

NEAR = 2.0**-12
"""Pairs whose sum is so near to the middle between two integers decide which factors are right."""
DECISIVE = 512
"""As many of them are looked at before all pairs are."""
CHECKED = 4
"""As many factors are tried on all pairs."""
LEAST, MOST = 2.0**-16, 32.0
"""Sizes of factors: between these, a product with a byte plus another float32 is exact in float64, so that rounding it gives
what `fma` gives."""
MOST_INTEGER = (1 << 31) - 1
MIDDLE = (0.0, *(s * 2.0**-e for e in (18, 17, 16, 15, 14) for s in (1, -1)))
"""What is added to a sum, so that those in the middle go where the operators send them."""


def join_rescales(module: Module) -> Module:
    """The module with sums of rescaled bytes in one operator; what they were made of stays, to be pruned."""
    return replace(module, functions=tuple(replace(f, body=in_block(f.body, {})) for f in module.functions))


def in_block(block: Block, outer: Definitions) -> Block:
    definitions = {**outer, **{r: o for o in block.operations for r in o.results}}
    return replace(block, operations=tuple(rewritten(o, definitions) for o in block.operations))


def rewritten(operation: Operation, definitions: Definitions) -> Operation:
    if operation.regions:
        return replace(operation, regions=tuple(in_block(r, definitions) for r in operation.regions))
    found = Sum.of(operation, definitions)
    factors = found.factors() if found else None
    if found is None or factors is None:
        return operation
    last = found.last
    op = RescaledSum(*factors, found.first.unsigned, found.second.unsigned, last.output_unsigned, last.to)
    return replace(operation, op=op, operands=(found.first.value, found.second.value))


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
        """None where a number is not known, differs from channel to channel, or is beyond what is defined."""
        constants = [v.constant for v in operation.operands[1:]]
        if any(c is None or not c.size or (c != c.flat[0]).any() for c in constants):
            return None
        multiplier, shift, before, after = (int(c.flat[0]) for c in constants if c is not None)
        before, after = (n % 256 if unsigned else n for n, unsigned in ((before, op.input_unsigned), (after, op.output_unsigned)))
        is_defined = multiplier > 0 and 2 <= shift <= 62
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
class Term:
    """An operand of the sum: a tensor of 8 bits, and how it is rescaled, at least once."""
    value: Value
    scales: tuple[Scale, ...]
    unsigned: bool

    @staticmethod
    def of(value: Value, definitions: Definitions) -> Term | None:
        scales: list[Scale] = []
        while (operation := definitions.get(value)) is not None and isinstance(op := operation.op, Rescale) and op.to == I32:
            scale, value = Scale.of(op, operation), operation.operands[0]
            if scale is None:
                return None
            scales.insert(0, scale)
            if value.tensor.element.bits == 8:
                return Term(value, tuple(scales), op.input_unsigned)
        return None

    @property
    def values(self) -> Array:
        """All that an element can be."""
        return np.arange(256) if self.unsigned else np.arange(-128, 128)

    @property
    def real(self) -> float:
        return math.prod(scale.real for scale in self.scales)

    def rescaled(self) -> Array | None:
        """All that its element can be in the sum; None where one is beyond 32 bits."""
        found = self.values
        for scale in self.scales:
            found = scale.apply(found)
            if np.abs(found).max() > MOST_INTEGER:
                return None
        return found


@dataclass(frozen=True, slots=True)
class Sum:
    """first + sign * second, both rescaled, and rescaled by `scale` for the type of `last`."""
    first: Term
    second: Term
    sign: int
    scale: Scale
    last: Rescale

    @staticmethod
    def of(operation: Operation, definitions: Definitions) -> Sum | None:
        last = operation.op
        if not isinstance(last, Rescale) or last.to is None or last.to.bits != 8:
            return None
        added = definitions.get(operation.operands[0])
        if added is None or not isinstance(added.op, Add | Sub):
            return None
        scale = Scale.of(last, operation)
        first, second = (Term.of(v, definitions) for v in added.operands)
        if scale is None or first is None or second is None:
            return None
        return Sum(first, second, 1 if isinstance(added.op, Add) else -1, scale, last)

    def factors(self) -> tuple[float, float, float] | None:
        """`first`, `second` and `addend` of a RESCALED_SUM that is right for all pairs; None where none is found."""
        first, second = self.first.rescaled(), self.second.rescaled()
        if first is None or second is None:
            return None
        rescaled = first[:, None] + self.sign * second
        if np.abs(rescaled).max() > MOST_INTEGER:
            return None
        assert self.last.to is not None
        bounds = limits(self.last.to, self.last.output_unsigned)
        expected = np.clip(self.scale.apply(rescaled), *bounds)
        x, y = (np.broadcast_to(v, rescaled.shape) for v in (self.first.values[:, None], self.second.values))
        decisive = self.decisive(rescaled, bounds)
        checks = 0
        for some in self.candidates():
            if checks < CHECKED and is_right(some, x[decisive], y[decisive], expected[decisive], bounds):
                checks += 1
                if is_right(some, x, y, expected, bounds):
                    return some
        return None

    def decisive(self, rescaled: Array, bounds: tuple[int, int]) -> tuple[Array, Array]:
        """The places of pairs whose sums are nearly in the middle between two integers."""
        real = (rescaled - self.scale.before) * self.scale.real + self.scale.after
        is_inside = (real > bounds[0] - 1) & (real < bounds[1] + 1)
        rows, columns = np.nonzero(is_inside & (np.abs(real - np.floor(real) - 0.5) < NEAR))
        step = max(1, len(rows) // DECISIVE)
        return rows[::step], columns[::step]

    def candidates(self) -> Iterator[tuple[float, float, float]]:
        """The nearest factors, then their neighbours; none where they are out of range."""
        first = self.first.real * self.scale.real
        second = self.sign * self.second.real * self.scale.real
        if not all(LEAST <= abs(f) < MOST for f in (first, second)):
            return
        zero = self.scale.after - first * self.first.scales[0].before - second * self.second.scales[0].before
        for a, b in itertools.product(neighbours(first), neighbours(second)):
            for middle in MIDDLE:
                addend = float(np.float32(zero + middle))
                if not addend or abs(addend) >= LEAST:
                    yield a, b, addend


def neighbours(x: float) -> list[float]:
    """The nearest float32, and those beside it."""
    nearest = np.float32(x)
    return [float(nearest), *(float(np.nextafter(nearest, np.float32(s * np.inf))) for s in (1, -1))]


def is_right(factors: tuple[float, float, float], x: Array, y: Array, expected: Array, bounds: tuple[int, int]) -> bool:
    """Whether the linear form in float32 gives what is expected of all these pairs, with `fma` and without."""
    a, b, c = map(np.float32, factors)
    inner = np.float32(y) * b + c, np.float32(y * np.float64(b) + np.float64(c))
    total = np.float32(x) * a + inner[0], np.float32(x * np.float64(a) + inner[1].astype(np.float64))
    return all(bool((np.clip(np.rint(t), *bounds) == expected).all()) for t in total)
