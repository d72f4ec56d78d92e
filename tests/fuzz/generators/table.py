"""Recipes made of the generators of single operators (`tests/table`): Fourier transforms, values with scales, CUSTOM."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tosaic.lowering.graph.graph import Block, Value
from tosaic.lowering.graph.types import Array, ElementType, TensorType

from ...table.draft import Draft
from ...table.signatures import GENERATORS, TABLE
from .maker import Maker, Recipe

NAMES = ("fft2d", "rfft2d", "cast_from_block_scaled", "cast_to_block_scaled", "matmul_t_block_scaled", "conv2d_block_scaled",
         "reshape_block_scaled", "row_gather_block_scaled", "custom", "identityn")


class Adopted(Draft):
    """A draft whose operands are those of a maker, and whose results join its pool."""

    def __init__(self, maker: Maker) -> None:
        super().__init__(maker.rng, min(maker.program.most, 3000))
        self.maker, self.mood = maker, maker.program.mood

    def ops(self, name: str, *operands: Value | np.ndarray, regions: Sequence[Block] = (), **attributes: Any
            ) -> tuple[Value, ...]:
        return self.maker.ops(name, *operands, regions=regions, **attributes)

    def shape(self, *extents: int) -> Value:
        return self.maker.shape(*extents)

    def tensor(self, element: ElementType, dims: Sequence[int], span: tuple[int, int] | None = None,
               constant: float = 0.15) -> Value:
        return self.maker.exactly(TensorType(tuple(dims), element), span, constant)

    def given(self, data: Array, element: ElementType | None = None, constant: float = 0.15) -> Value:
        return self.maker.constant(data, element)

    def constant(self, data: Array, element: ElementType | None = None) -> Value:
        return self.maker.constant(data, element)


def adopted(name: str) -> Recipe:
    combinations = TABLE[name].combinations("1.0", "1.1") or TABLE["add"].combinations("1.0")

    def recipe(m: Maker) -> None:
        if m.affordable(60_000):
            GENERATORS[name](Adopted(m), m.rng.choice(combinations))

    return recipe


RECIPES: dict[str, Recipe] = {name: adopted(name) for name in NAMES}
