"""Graph -> graph: operators of other dialects that converters leave behind, written as TOSA.

Arm's converter leaves `tfl.slice` with sizes that are unknown at compile time, in the form that TensorFlow's TensorListSetItem
takes in TFLite: concat(x[0:i], row, x[i+1:]) along the first axis. This is x with row i replaced: select(iota == i, row, x).
Any other leftover stays unchanged, and is refused when something needs it.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..dialects.tosa.ternary import Select
from ..formulas.tosa_builder import PlacedBuilder
from ..graph.graph import Block, BlockBuilder, Module, Operation, Value
from ..graph.operator import UnknownOp
from ..graph.types import TensorType

Definitions = Mapping[Value, Operation]


def legalize(module: Module) -> Module:
    """The module with the patterns above replaced; unchanged (the same object) if it has none."""
    if not any(is_slice(o) for f in module.functions for o in f.body.walk()):
        return module
    return replace(module, functions=tuple(replace(f, body=legalize_block(f.body, {})) for f in module.functions))


def is_slice(operation: Operation) -> bool:
    return isinstance(operation.op, UnknownOp) and operation.op.spelling == "tfl.slice"


def legalize_block(block: Block, outer: Definitions) -> Block:
    definitions = dict(outer)
    replaced: dict[Value, Value] = {}
    operations: list[Operation] = []
    for operation in block.operations:
        definitions.update((r, operation) for r in operation.results)
        operation = renamed(operation, replaced, definitions)
        if operation.op.name == "tosa.concat" and (row := row_update(operation, definitions)):
            builder = BlockBuilder(f"{operation.results[0].name}_")
            result = update_row(builder, *row, operation)
            operations += builder.operations
            replaced[operation.results[0]] = result
        else:
            operations.append(operation)
    return replace(block, operations=tuple(operations), yields=tuple(replaced.get(v, v) for v in block.yields))


def renamed(operation: Operation, replaced: Mapping[Value, Value], definitions: Definitions) -> Operation:
    """Return the operation on replaced values, with its regions legalised."""
    operands = tuple(replaced.get(v, v) for v in operation.operands)
    regions = tuple(rename_block(legalize_block(r, definitions), replaced) for r in operation.regions)
    if operands == operation.operands and not regions:
        return operation
    return replace(operation, operands=operands, regions=regions)


def rename_block(block: Block, replaced: Mapping[Value, Value]) -> Block:
    if not replaced:
        return block
    operations = tuple(replace(o, operands=tuple(replaced.get(v, v) for v in o.operands),
                               regions=tuple(rename_block(r, replaced) for r in o.regions)) for o in block.operations)
    return replace(block, operations=operations, yields=tuple(replaced.get(v, v) for v in block.yields))


def row_update(concat: Operation, definitions: Definitions) -> tuple[Value, Value, Value] | None:
    """Return (x, i, row) if the concat is x[0:i], row, x[i+1:] along axis 0."""
    if len(concat.operands) != 3 or concat.op.axis != 0:  # type: ignore[attr-defined]
        return None
    before, row, after = concat.operands
    first, last = definitions.get(before), definitions.get(after)
    if first is None or last is None or not (is_slice(first) and is_slice(last)):
        return None
    x, begin, size = first.operands
    y, start, rest = last.operands
    index, following = leading(size, definitions), leading(start, definitions)
    if not (x is y and zeros(begin) and rest.constant is not None and (rest.constant == -1).all()):
        return None
    if index is None or following is None or not is_successor(following, index, definitions):
        return None
    return (x, index, row) if isinstance(row.type, TensorType) and row.type.dims[0] == 1 else None


def zeros(value: Value) -> bool:
    return value.constant is not None and not value.constant.any()


def leading(vector: Value, definitions: Definitions) -> Value | None:
    """Return i if the vector is concat([i], a constant)."""
    operation = definitions.get(vector)
    if operation is None or operation.op.name != "tosa.concat":
        return None
    first, *rest = operation.operands
    return through_reshape(first, definitions) if all(v.constant is not None for v in rest) else None


def through_reshape(value: Value, definitions: Definitions) -> Value:
    operation = definitions.get(value)
    return operation.operands[0] if operation and operation.op.name == "tosa.reshape" else value


def is_successor(value: Value, of: Value, definitions: Definitions) -> bool:
    """True if value = of + 1."""
    operation = definitions.get(value)
    if operation is None or operation.op.name != "tosa.add":
        return False
    constants = [v.constant for v in operation.operands if v.constant is not None]
    return of in operation.operands and len(constants) == 1 and constants[0].size == 1 and constants[0].reshape(-1)[0] == 1


def update_row(builder: BlockBuilder, x: Value, index: Value, row: Value, concat: Operation) -> Value:
    """Return x with row `index` replaced: select(iota == index, row, x)."""
    position, rank = concat.position, x.tensor.rank
    add = PlacedBuilder(builder, position)
    iota = add.constant(np.arange(x.tensor.dims[0], dtype=np.int32).reshape(-1, *(1,) * (rank - 1)))
    here = add("equal", iota, add.reshape(index, (1,) * rank))
    result = Value(concat.results[0].name, x.type, position)
    builder.operations.append(Operation(Select(), (here, row, x), (result,), position=position))
    return result
