"""Check for unknown operators when a model is loaded, although its graph is translated only for known shapes."""
from __future__ import annotations

from collections.abc import Iterator

from ....runtime.errors import Problem
from ...dialects.onnx.node import CONSTANT, NO_VALUE, label
from ...dialects.onnx.operators import operator_of
from ...graph.foreign import spelling
from ...graph.graph import Block, Module, Operation
from ...text.printed_position import printed_position
from ..prune import prune


def check_operators(module: Module) -> None:
    """Raise a Problem at the first node that every call needs and whose operator or attribute is unknown."""
    for function in prune(module).functions:
        for operation in needed(function.body):
            try:
                operator_of(operation, module)
            except Problem as problem:
                problem.position = problem.position or operation.position or printed_position(module, operation)
                raise problem.of(label(operation, module)) from None


def needed(block: Block) -> Iterator[Operation]:
    """Yield the nodes of a block and of its loops, not of branches, which may never be taken."""
    for operation in block.operations:
        if spelling(operation) in (CONSTANT, NO_VALUE):
            continue
        yield operation
        for region in operation.regions if not spelling(operation).endswith(".If") else ():
            yield from needed(region)
