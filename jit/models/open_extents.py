"""A model with open extents whose converter needs known ones: the converter makes its graph for each set of shapes. Until then
one operation is its placeholder."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...lowering.graph.graph import BlockBuilder, Function, Module
from ...lowering.graph.operator import UnknownOp
from ...lowering.graph.types import TensorType
from ...lowering.graph.verify import verify
from ...lowering.rewrite.specialize import check_inputs
from ..cache.models import Outline
from ..source import ImportedSource
from ..stages import Traced
from .dynamic_shapes import input_types
from .entry import Entry
from .entry_graphs import Shapes
from .model import Model

Make = Callable[[Mapping[str, tuple[int, ...]]], Module]
"""Returns the verified module, with a function `main`, for inputs of these shapes, by name."""
Attributes = tuple[Mapping[str, Any], ...]
"""Attributes of the inputs: bounds of their extents."""


def open_model(inputs: Mapping[str, TensorType], results: Sequence[TensorType], spelling: str, make: Make,
               imported: ImportedSource | None = None, attributes: Attributes = ()) -> Model:
    """Return a model with the entry `main`, whose placeholder is one operation named `spelling`."""
    module = stand_in(inputs, results, spelling, attributes)
    function = module.functions[0]

    def graph(shapes: Shapes) -> Traced:
        if not shapes:
            return Traced(module, "main")
        types = input_types(function, dict(shapes))
        check_inputs(function, types)
        return Traced(make({name: type.dims for name, type in zip(inputs, types)}), "main", imported=imported)

    return Model.of_entries({"main": Entry(Outline("main", True, tuple(inputs)), graph, None)}, module)


def stand_in(inputs: Mapping[str, TensorType], results: Sequence[TensorType], spelling: str, attributes: Attributes) -> Module:
    builder = BlockBuilder()
    arguments = [builder.argument(type, name) for name, type in inputs.items()]
    values = builder.add(UnknownOp(spelling=spelling), *arguments, types=tuple(results))
    module = Module((Function("main", builder.finish(*values), tuple(results), argument_attributes=attributes),))
    verify(module)
    return module
