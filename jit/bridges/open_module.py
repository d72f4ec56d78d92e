"""A model with open extents whose converter needs them known: its graph is made by the converter, for each set of shapes.

`jit.dynamic` asks an `OpenModule` where it would rewrite another graph. Until then it stands there as one operation.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...lowering.graph.graph import BlockBuilder, Function, Module
from ...lowering.graph.operator import UnknownOp
from ...lowering.graph.types import TensorType
from ...lowering.graph.verify import verify
from ...lowering.rewrite.specialize import check_inputs

Make = Callable[[Mapping[str, tuple[int, ...]]], Module]


def unmade(shapes: Mapping[str, tuple[int, ...]]) -> Module:
    raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class OpenModule(Module):
    """`make` gives the verified module for inputs of these shapes, by name."""
    make: Make = unmade

    def specialized(self, types: Sequence[TensorType]) -> Module:
        """The module for inputs of these types; a Problem where they do not fit."""
        function = self.functions[0]
        check_inputs(function, types)
        return self.make({v.name: t.dims for v, t in zip(function.arguments, types)})


def open_module(inputs: Mapping[str, TensorType], results: Sequence[TensorType], spelling: str, make: Make) -> OpenModule:
    """A module with the function `main`, which one operation of that name stands for."""
    builder = BlockBuilder()
    arguments = [builder.argument(type, name) for name, type in inputs.items()]
    values = builder.add(UnknownOp(spelling=spelling), *arguments, types=tuple(results))
    module = OpenModule((Function("main", builder.finish(*values), tuple(results)),), make=make)
    verify(module)
    return module
