"""A block builder that makes random choices: which value an operator takes, which shape, which attribute.

Recipes (in the modules beside this one) add operators to a `Maker`; every value that they make joins its pool, from
which later ones take their operands, the newest ones most often.
"""
from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tosaic.lowering.graph.graph import Block, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import BF16, BY_STORAGE, F16, F32, I1, I8, I16, I32, I64, Array, ElementType, TensorType

from ...fuse.graphs import Graph
from .data import array

EXTENTS = (1, 1, 2, 2, 3, 3, 5, 7, 16, 17, 33)
LARGE = (1, 2, 3, 8, 16, 33, 48, 64, 70, 100)
"""Extents where a program is one of the few with large tensors."""
COMMON = (I8, I32, F32, F32, I1, I16, F16, BF16, I64)
FLOATS = (F32, F16, BF16)


@dataclass(slots=True)
class Program:
    """What the blocks of one module share: the mood of its data, spans of arguments, variables."""
    rng: random.Random
    mood: str = "plain"
    spans: dict[Value, tuple[int, int]] = field(default_factory=dict)
    variables: list[tuple[str, TensorType, Array | None]] = field(default_factory=list)
    counter: int = 0
    most: int = 3000
    """Elements of a tensor, at most."""
    budget: int = 4_000_000
    """Multiplications that contractions and reductions may still add."""

    @property
    def extents(self) -> tuple[int, ...]:
        return EXTENTS if self.most < 10_000 else LARGE


class Maker(Graph):
    """One block being built. `pool` holds the values to choose from; in a region those of the blocks around it, too."""

    def __init__(self, program: Program, outer: Sequence[Value] = (), depth: int = 0) -> None:
        program.counter += 1
        super().__init__(f"b{program.counter}_" if depth else "")
        self.program, self.rng, self.depth = program, program.rng, depth
        self.pool: list[Value] = list(outer)

    # ---- adding operators --------------------------------------------------------------------------------------------
    def ops(self, name: str, *operands: Value | np.ndarray, regions: Sequence[Block] = (), **attributes: Any
            ) -> tuple[Value, ...]:
        results = super().ops(name, *operands, regions=regions, **attributes)
        self.pool += [v for v in results if isinstance(v.type, TensorType)]
        return results

    def constant(self, data: np.ndarray, element: ElementType | None = None) -> Value:
        """A constant; `element` where the dtype does not say which type it is (i4, i48)."""
        data = np.asarray(data)
        return self.add(OPERATORS["tosa.const"](values=data, to=element or BY_STORAGE[data.dtype.name]))[0]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def affordable(self, products: int) -> bool:
        """Take `products` multiplications from the budget, if they are left."""
        if products > self.program.budget:
            return False
        self.program.budget -= products
        return True

    # ---- shapes ------------------------------------------------------------------------------------------------------
    def dims(self, rank: int | None = None, most: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6)) if rank is None else rank
        dims = [self.rng.choice(self.program.extents) for _ in range(rank)]
        while math.prod(dims) > (most or self.program.most):
            dims[max(range(rank), key=lambda d: dims[d])] //= 2
        return tuple(dims)

    def regrouped(self, dims: Sequence[int], rank: int) -> tuple[int, ...]:
        """A shape of that rank with as many elements: neighbours merged, factors split off, units put in."""
        result = list(dims)
        while len(result) > max(rank, 0):
            at = self.rng.randrange(len(result))
            n = result.pop(at)
            if result:
                result[min(at, len(result) - 1)] *= n
            elif n != 1:
                return (n,)
        while len(result) < rank:
            at = self.rng.randrange(len(result) + 1)
            factors = [f for f in range(1, 18) if at < len(result) and result[at] % f == 0] or [1]
            factor = self.rng.choice(factors)
            if factor != 1:
                result[at] //= factor
            result.insert(at, factor)
        return tuple(result)

    # ---- operands ----------------------------------------------------------------------------------------------------
    def fresh(self, type: TensorType, span: tuple[int, int] | None = None, constant: float = 0.3) -> Value:
        """A new argument, or (with that probability, and always inside a region) a constant."""
        if self.depth or len(self.arguments) >= 9 or self.chance(constant):
            value = self.constant(array(self.rng, type, self.program.mood, span), type.element)
        else:
            value = self.argument(type)
            if span is not None:
                self.program.spans[value] = span
        self.pool.append(value)
        return value

    def pick(self, elements: Collection[ElementType], rank: int | None = None,
             fits: Callable[[TensorType], bool] = lambda t: True, most: int | None = None) -> Value:
        """A value of one of these element types: from the pool, brought to the rank or type, or new."""
        def good(v: Value) -> bool:
            return v.tensor.element in elements and rank in (None, v.tensor.rank) and fits(v.tensor) and v.tensor.size <= (
                most or self.program.most)

        found = [v for v in self.pool if good(v)]
        if found and self.chance(0.9):
            return self.newest(found)
        if self.pool and self.chance(0.7):
            adapted = self.adapted(elements, rank)
            if adapted is not None and good(adapted):
                return adapted
        wanted = [e for e in COMMON if e in elements] or list(elements)
        for _ in range(20):
            type = TensorType(self.dims(rank, most), self.rng.choice(wanted))
            if fits(type):
                break
        else:
            if found:
                return self.newest(found)
        return self.fresh(type)

    def newest(self, values: Sequence[Value]) -> Value:
        """One of them, the last ones most often."""
        place = min(int(self.rng.expovariate(0.4)), len(values) - 1) if self.chance(0.75) else self.rng.randrange(len(values))
        return values[len(values) - 1 - place]

    def adapted(self, elements: Collection[ElementType], rank: int | None) -> Value | None:
        """Some value of the pool, cast and reshaped."""
        from tosaic.lowering.dialects.tosa.conversion import TARGETS
        value = self.newest(self.pool)
        if value.tensor.element not in elements:
            targets = [e for e in TARGETS.get(value.tensor.element, ()) if e in elements]
            if not targets:
                return None
            value = self.op("cast", value, to=self.rng.choice(targets))
        if rank is not None and value.tensor.rank != rank:
            dims = self.regrouped(value.tensor.dims, rank)
            if len(dims) != rank:
                return None
            value = self.op("reshape", value, self.shape(*dims))
        return value

    def exactly(self, type: TensorType, span: tuple[int, int] | None = None, constant: float = 0.5) -> Value:
        """A value of just this type: from the pool, laid out anew from another shape, or new."""
        found = [v for v in self.pool if v.type == type]
        if found and span is None and self.chance(0.5):
            return self.newest(found)
        if self.chance(0.25) and type.rank:
            match self.rng.choice(("reshape", "transpose", "reverse")):
                case "reshape":
                    source = self.fresh(type.with_shape(self.regrouped(type.dims, self.rng.randint(1, 4))), span, constant)
                    return self.op("reshape", source, self.shape(*type.dims))
                case "transpose":
                    perms = self.rng.sample(range(type.rank), type.rank)
                    dims = [0] * type.rank
                    for place, p in enumerate(perms):
                        dims[p] = type.dims[place]
                    return self.op("transpose", self.fresh(type.with_shape(tuple(dims)), span, constant),
                                   perms=tuple(perms))
                case "reverse":
                    return self.op("reverse", self.fresh(type, span, constant), axis=self.rng.randrange(type.rank))
        return self.fresh(type, span, constant)

    def mate(self, value: Value, element: ElementType | None = None) -> Value:
        """A second operand for an elementwise operator: it broadcasts with the first."""
        type = value.tensor if element is None else value.tensor.with_element(element)
        most = self.program.most
        found = [v for v in self.pool if v.tensor.element == type.element and broadcasts(v.tensor.dims, type.dims, most)]
        if found and self.chance(0.65):
            return self.newest(found)
        dims = list(type.dims)
        for d in range(len(dims)):
            if dims[d] == 1 and self.chance(0.4):
                dims[d] = self.rng.choice((2, 3, 7))
                if math.prod(dims) > most:
                    dims[d] = 1
            elif self.chance(0.3):
                dims[d] = 1
        if not broadcasts(dims, type.dims, most):
            dims = list(type.dims)
        return self.exactly(type.with_shape(tuple(dims)))

    def zero_point(self, element: ElementType, zero: bool = False) -> Value:
        """One number; other than 0 for bytes only."""
        if element == I8 and not zero and self.chance(0.6):
            return self.fresh(TensorType((1,), I8), (-128, 127), constant=0.8)
        if self.chance(0.1) and element.kind == "signed":
            return self.fresh(TensorType((1,), element), (0, 0), constant=0.0)
        return self.constant(np.zeros(1, element.dtype), element)


def broadcasts(a: Sequence[int], b: Sequence[int], most: int) -> bool:
    """True if two shapes go together, and give no tensor that is too large."""
    return (len(a) == len(b) and all(m == n or 1 in (m, n) for m, n in zip(a, b))
            and math.prod(map(max, a, b)) <= most)


Recipe = Callable[[Maker], None]
