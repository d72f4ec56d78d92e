"""Checks put into a module that is there already, behind any of its operations, in branches and loops too: so that the modules
that seeds give stay as they are.

Their conditions are bools of one element that the module has, or compare one integer of it with another; a bool that is made of
floats may be another where operators err.
"""
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tosaic.lowering.dialects.tosa.control_flow import CondIf
from tosaic.lowering.dialects.tosaic.assertion import Assert
from tosaic.lowering.graph.graph import Block, BlockBuilder, Operation, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import I1, I32, TensorType

from .functions import Case


def with_checks(made: Case, seed: int, chance: float = 0.3) -> Case:
    """The case with checks behind some of its operations."""
    return Case(replace(made.module, functions=tuple(
        replace(f, body=Checks(random.Random(seed), chance).block(f.body, ())) for f in made.module.functions)), made.calls)


class Checks:
    """The choices for one function."""

    def __init__(self, rng: random.Random, chance: float) -> None:
        self.rng, self.chance, self.count = rng, chance, 0

    def block(self, block: Block, outer: Sequence[Value]) -> Block:
        """The block with checks; `outer` are the values around it."""
        visible, operations = [*outer, *block.arguments], []
        for operation in block.operations:
            if operation.regions:
                operation = replace(operation, regions=tuple(self.block(r, visible) for r in operation.regions))
            operations.append(operation)
            visible += operation.results
            if self.rng.random() < (0.9 if operation.op.variable_effect == "write" else self.chance):
                operations += self.check(visible)
        return replace(block, operations=tuple(operations))

    def check(self, visible: Sequence[Value]) -> list[Operation]:
        tensors = [v for v in visible if isinstance(v.type, TensorType) and v.constant is None]
        self.count += 1
        builder = BlockBuilder(f"check{self.count}.")
        condition, taken = (self.condition(builder, tensors) for _ in range(2))
        if condition is None or taken is None:
            return []
        if self.rng.random() < 0.5:
            builder.add(Assert(message=f"check {self.count}"), condition)
        else:  # no write moves behind it
            inside = BlockBuilder()
            inside.add(Assert(message=f"check {self.count}"), condition)
            builder.add(CondIf(), taken, regions=(inside.finish(), BlockBuilder().finish()))
        return builder.operations

    def condition(self, builder: BlockBuilder, tensors: Sequence[Value]) -> Value | None:
        bools = [v for v in tensors if v.tensor.element == I1 and v.tensor.size == 1]
        numbers = [v for v in tensors if v.tensor.element == I32]
        if bools and self.rng.random() < 0.5:
            return self.rng.choice(bools)
        return self.compared(builder, self.rng.choice(numbers)) if numbers else None

    def compared(self, builder: BlockBuilder, x: Value) -> Value:
        """True if an element is at least as large as a number, mostly a small one."""
        def shape(*extents: int) -> Value:
            return builder.add(OPERATORS["tosa.const_shape"](values=np.array(extents, np.int64)))[0]

        rank = x.tensor.rank
        start = [self.rng.randrange(n) for n in x.tensor.dims]
        one = builder.add(OPERATORS["tosa.slice"](), x, shape(*start), shape(*[1] * rank))[0] if rank else x
        least = self.rng.choice((-(1 << 31), -1000, -1, 0))
        bound = builder.add(OPERATORS["tosa.const"](values=np.full((1,) * rank, least, np.int32), to=I32))[0]
        return builder.add(OPERATORS["tosa.greater_equal"](), one, bound)[0]
