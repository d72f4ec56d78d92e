"""One generator for each operator of the table: it draws a legal graph of that operator alone, from a combination of
element types and a seed. `case` names one, so that it can be drawn again.
"""
from __future__ import annotations

import random
from dataclasses import dataclass

from tosaic.lowering.graph.graph import Function, Module, Operation
from tosaic.lowering.graph.types import Array, TensorType

from . import block_scaled, contractions, control, elementwise, layout, shapes
from .combinations import TABLE, Types, expanded, written
from .draft import Draft
from .elementwise import Generator

GENERATORS: dict[str, Generator] = {**elementwise.GENERATORS, **contractions.GENERATORS, **layout.GENERATORS,
                                    **control.GENERATORS, **block_scaled.GENERATORS, **shapes.GENERATORS}
SEQUELS = {"variable", "variable_read", "variable_write"}
"""Operators of which several calls are made, one after the other."""


@dataclass(frozen=True, slots=True)
class Case:
    """A graph of one operator and the inputs of its calls."""
    name: str
    types: Types
    seed: int
    module: Module
    calls: tuple[tuple[Array, ...], ...]

    def __str__(self) -> str:
        return f"{self.name}:{written(self.types)}:{self.seed}"

    @property
    def function(self) -> Function:
        return self.module.function("main")

    @property
    def operations(self) -> tuple[Operation, ...]:
        return self.function.body.operations

    @property
    def operation(self) -> Operation | None:
        """The operator's own operation; those of variables that stand at module level have none here."""
        return next((o for o in reversed(self.operations) if o.op.name == f"tosa.{self.name}"), None)

    @property
    def operands(self) -> list[Array]:
        """The data of the operation's operands in the first call."""
        assert self.operation is not None
        inputs = dict(zip(self.function.arguments, self.calls[0]))
        return [inputs[v] if v.constant is None else v.constant for v in self.operation.operands]

    @property
    def work(self) -> int:
        """About how many elements are read and products made."""
        if self.operation is None:
            return 0
        sizes = [v.type.size for v in (*self.operation.operands, *self.operation.results) if isinstance(v.type, TensorType)]
        products = sum(v.type.size for v in self.operation.results[:1] if isinstance(v.type, TensorType))
        match self.name:
            case "conv2d" | "conv3d" | "depthwise_conv2d" | "transpose_conv2d":
                products *= self.operation.operands[1].tensor.size // self.operation.results[0].tensor.dims[-1]
            case "conv2d_block_scaled":
                products *= self.operation.operands[2].tensor.size // self.operation.results[0].tensor.dims[-1]
            case "matmul" | "matmul_t" | "matmul_t_block_scaled" | "fft2d" | "rfft2d":
                products *= self.operation.operands[0].tensor.dims[-1]
            case "avg_pool2d" | "max_pool2d" | "scatter":
                products *= 10
        return sum(sizes) + products


def case(name: str, types: Types, seed: int, most: int = 3000, hostile: bool = False, kind: type[Draft] = Draft) -> Case:
    """The case of that seed; `hostile` data may be what the specification leaves open; `kind` says how operands are drawn."""
    rng = random.Random(f"{name} {written(types)} {seed} {hostile}")
    draft = kind(rng, most, hostile)
    module = draft.module(*GENERATORS[name](draft, types), variables=draft.variables)
    calls = (tuple(draft.data),) * (3 if name in SEQUELS else 1)
    return Case(name, types, seed, module, calls)


def replayed(text: str) -> Case:
    """The case that a report names: operator:types:seed."""
    name, types, seed = text.split(":")
    return case(name, next(expanded(types)), int(seed))


__all__ = ["GENERATORS", "TABLE", "Case", "case", "replayed"]
