"""Draws a graph of one operator: its operands, each an input or a constant, with extents where vectors end and data of
every kind. Everything follows from the random numbers of `rng`.
"""
from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import ml_dtypes
import numpy as np
from tosaic.lowering.dialects.tosa.data import Const
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import BY_STORAGE, F32, I8, Array, BlockScaled, ElementType, TensorType

from ..fuse.graphs import Graph
from .data import MOODS, array

EXTENTS = (1, 1, 2, 3, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65)
"""Around the lengths of vectors, and the extent that broadcasts."""
LONG = (8191, 8192, 65535, 65536, 65537, 70_001)
"""Around the numbers of 16 bits, and level 8K's largest kernel."""
NAN_MODES = ("PROPAGATE", "IGNORE")
Dims = tuple[int, ...]
Option = TypeVar("Option")


class Draft(Graph):
    """A function that is being drawn. `data` is what its inputs get in the first call; `hostile` data may be what the
    specification leaves open."""

    def __init__(self, rng: random.Random, most: int = 3000, hostile: bool = False) -> None:
        super().__init__()
        self.rng, self.most, self.hostile = rng, most, hostile
        self.mood = rng.choice(MOODS)
        self.known = rng.choice((None,) * 8 + (0.0, 0.0 if hostile else 1.0))  # all operands inputs, or constants
        self.data: list[Array] = []
        self.variables: list[tuple[str, TensorType, Array | None]] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def choice(self, *options: Option) -> Option:
        return self.rng.choice(options)

    # ---- shapes ------------------------------------------------------------------------------------------------------
    def dims(self, low: int = 0, high: int = 6, most: int = 0) -> Dims:
        """Extents of a rank in between, with no more elements than `most`; where that is not given, a long axis at times."""
        if not most and self.chance(0.02):
            dims = [1] * self.rng.randint(max(low, 1), high)
            dims[self.rng.randrange(len(dims))] = self.choice(2, 3)
            dims[self.rng.randrange(len(dims))] = self.choice(*LONG)
            return tuple(dims)
        return self.shrunk([self.rng.choice(EXTENTS) for _ in range(self.rng.randint(low, high))], most)

    def dims_of(self, element: ElementType, low: int = 0, high: int = 6, most: int = 0) -> Dims:
        """Extents for that type: a block-scaled one has whole blocks along its last axis."""
        if not isinstance(element, BlockScaled):
            return self.dims(low, high, most)
        block = element.block
        return (*self.dims(max(low, 1) - 1, high - 1, max(1, (most or self.most) // (3 * block))),
                block * self.rng.randint(1, 3))

    def shrunk(self, dims: Sequence[int], most: int = 0) -> Dims:
        """The largest extents made smaller until there are no more elements than `most`."""
        found = list(dims)
        while math.prod(found) > (most or self.most):
            place = max(range(len(found)), key=found.__getitem__)
            found[place] = self.rng.choice([n for n in (1, *EXTENTS) if n < found[place]])
        return tuple(found)

    def unit(self, dims: Sequence[int], probability: float = 0.25) -> Dims:
        """Some extents made 1, so that they broadcast."""
        return tuple(1 if self.chance(probability) else n for n in dims)

    def together(self, count: int) -> list[Dims]:
        """Shapes that broadcast with one another: of each axis at least one has the whole extent."""
        whole = self.dims()
        keep = [self.rng.randrange(count) for _ in whole]
        probability = self.choice(0.0, 0.0, 0.3, 0.7)
        return [tuple(n if keep[d] == i or not self.chance(probability) else 1 for d, n in enumerate(whole))
                for i in range(count)]

    # ---- operands ----------------------------------------------------------------------------------------------------
    def tensor(self, element: ElementType, dims: Sequence[int], span: tuple[int, int] | None = None,
               constant: float = 0.15) -> Value:
        """A tensor of random data; `span` bounds its integers unless the data are hostile."""
        data = array(self.rng, TensorType(tuple(dims), element), self.mood, None if self.hostile else span)
        return self.given(data, element, constant)

    def given(self, data: Array, element: ElementType | None = None, constant: float = 0.15) -> Value:
        """These data as a constant, with that probability, or as an input."""
        element = element or BY_STORAGE[data.dtype.name]
        if self.chance(constant if self.known is None else self.known):
            return self.constant(data, element)
        self.data.append(data)
        return self.argument(TensorType(data.shape, element))

    def constant(self, data: Array, element: ElementType | None = None) -> Value:
        data = np.asarray(data)
        return self.add(Const(data, element or BY_STORAGE[data.dtype.name]))[0]

    def change(self, value: Value, changed: Callable[[Array], Array]) -> None:
        """Give an operand other data, made of those that it has."""
        data = self.data[self.arguments.index(value)] if value.constant is None else value.constant
        data[...] = changed(data)

    def like(self, x: Value, dims: Sequence[int]) -> Value:
        """A second operand of the same type: now and then the same tensor."""
        return x if x.tensor.dims == tuple(dims) and self.chance(0.2) else self.tensor(x.tensor.element, dims)

    def zero_point(self, element: ElementType, has_one: bool | None = None) -> Value:
        """One number, which is 0 for types that have no zero point; its borders often."""
        if isinstance(element, BlockScaled):
            element = F32
        if self.hostile and element.is_integer and self.chance(0.5):
            return self.tensor(element, (1,), constant=0.0)
        if element != I8 if has_one is None else not has_one:
            return self.given(np.zeros(1, element.dtype), element, 0.8)
        number = self.choice(element.minimum, element.maximum, 0, self.rng.randint(element.minimum, element.maximum))
        return self.given(np.array([number], element.dtype), element, 0.7)

    def integer(self, low: int, high: int) -> int:
        """A number in between, its borders often."""
        return self.choice(low, high, self.rng.randint(low, high), self.rng.randint(low, high))

    def number(self, element: ElementType) -> float:
        """A number of the type for an attribute, its borders often."""
        if not element.is_float:
            return self.integer(element.minimum, element.maximum)
        info = ml_dtypes.finfo(element.dtype)
        number = self.choice(0.0, -0.0, 1.0, -1.0, 6.0, self.rng.uniform(-2, 2), self.rng.uniform(-2, 2), math.inf, -math.inf,
                             float(info.max), float(info.min), float(info.tiny), float(info.smallest_subnormal))
        return float(np.asarray(number).astype(element.dtype))

    def index(self, element: ElementType, dims: Dims, extent: int) -> Value:
        """Numbers below `extent`, unless the data are hostile."""
        return self.tensor(element, dims, (0, extent - 1), 0.3)


__all__ = ["EXTENTS", "NAN_MODES", "Dims", "Draft"]
