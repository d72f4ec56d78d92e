"""The function that a converter made of a partition -> its operations among those of a subgraph, each at the file position of
its operator: the converter names the tensor of each operation.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from ...runtime.records import dataclass
from ..dialects.tosa.data import ConstShape
from ..dialects.tosa.layout import Slice
from ..dialects.tosa.shape import SubShape
from ..dialects.tosa.shape_lists import ConcatShape, Dim
from ..graph.file_position import FilePosition
from ..graph.graph import Block, BlockBuilder, Operation, Value
from ..graph.operator import Op
from ..text.attribute_printer import quoted
from .divide import Partition
from .numbers import quantized_constants, with_constant_type
from .records import OperatorRecord, SubgraphRecord, TensorRecord
from .write_kernels import unbounded

QUOTED = re.compile(r'"[^"]*"')


def tensor_name(tensor: TensorRecord) -> str:
    """Return the model's name of a tensor: converters join the names of fused operators, the last operator first."""
    return tensor.name.split(";")[0]


def place_of(position: FilePosition, index: int, operator: OperatorRecord) -> FilePosition:
    return position.inside(f"operator {index} {operator.kind}")


@dataclass(slots=True)
class OperatorPositions:
    """Positions in the file of the operations of a partition. `position` is that of the subgraph."""
    graph: SubgraphRecord
    partition: Partition
    position: FilePosition
    whole: FilePosition = field(init=False)
    by_tensor: dict[str, FilePosition] = field(init=False)
    by_constant: dict[str, FilePosition] = field(init=False)
    constants: Mapping[str, TensorRecord] = field(init=False)

    def __post_init__(self) -> None:
        self.constants = quantized_constants(self.graph)
        first, last = self.partition.operators[0], self.partition.operators[-1]
        kinds = [self.graph.operators[i].kind for i in (first, last)]
        several = f"operators {first} {kinds[0]} to {last} {kinds[1]}"
        self.whole = self.position.inside(f"operator {first} {kinds[0]}" if first == last else several)
        self.by_tensor = {quoted(self.graph.tensors[tensor].name):
                          place_of(self.position, i, self.graph.operators[i]).called(tensor_name(self.graph.tensors[tensor]))
                          for i in self.partition.operators for tensor in self.graph.operators[i].outputs}
        self.by_constant = {quoted(tensor.name): self.whole.called(tensor_name(tensor))
                            for tensor in self.graph.tensors if tensor.data is not None}

    def of(self, operation: Operation) -> FilePosition:
        """Return the position of an operation's operator; of the whole partition if the converter does not name it."""
        for name in QUOTED.findall(operation.location or ""):
            found = self.by_tensor.get(name) or self.by_tensor.get(f'{name.split(";")[0]}"') or self.by_constant.get(name)
            if found is not None:
                return found
        return self.whole


def copies(block: Block, values: dict[Value, Value], places: OperatorPositions) -> list[Operation]:
    """Return copies of a block's operations on other arguments, with new results, which are added to `values`."""
    found = []
    for operation in block.operations:
        here = places.of(operation)
        operands = tuple(values.get(v, v) for v in operation.operands)
        regions = tuple(region(r, values, places, here) for r in operation.regions)
        located = with_constant_type(operation, QUOTED.findall(operation.location or ""), places.constants)
        results = tuple(replace(v, position=here) for v in located)
        values.update(zip(operation.results, results))
        op = unbounded(operation.op, getattr(operation.results[0].type, "element", None)) if results else operation.op
        if isinstance(op, Slice) and has_open_size(operands):
            x, start, size = operands
            made, computed = open_size(x, start, size, here)
            found += made
            operands = (x, start, computed)
        found.append(Operation(op, operands, results, regions, operation.attributes, here))
    return found


def has_open_size(operands: tuple[Value, ...]) -> bool:
    """True if a slice takes the rest of an axis, which the converter writes as -1 if the extent is unknown."""
    if len(operands) != 3 or operands[1].constant is None or operands[2].constant is None:
        return False
    return -1 in operands[2].constant.reshape(-1).tolist()


def open_size(x: Value, start: Value, size: Value, here: FilePosition) -> tuple[list[Operation], Value]:
    """Return operations that compute the size of a slice from the extents of its operand, and their result."""
    assert start.constant is not None and size.constant is not None, "has_open_size has seen them"
    builder, extents = BlockBuilder(), []
    for axis, (first, count) in enumerate(zip(start.constant.reshape(-1).tolist(), size.constant.reshape(-1).tolist())):
        op: Op = Dim(axis=axis) if count == -1 else ConstShape(np.array([count], np.int64))
        (extent,) = builder.add(op, *([x] if count == -1 else []), position=here)
        if count == -1 and first:
            (before,) = builder.add(ConstShape(np.array([first], np.int64)), position=here)
            (extent,) = builder.add(SubShape(), extent, before, position=here)
        extents.append(extent)
    (whole,) = builder.add(ConcatShape(), *extents, position=here)
    return builder.operations, whole


def region(block: Block, outer: Mapping[Value, Value], places: OperatorPositions, here: FilePosition) -> Block:
    values = dict(outer)
    arguments = tuple(replace(v, position=here) for v in block.arguments)
    values.update(zip(block.arguments, arguments))
    operations = tuple(copies(block, values, places))
    return replace(block, arguments=arguments, operations=operations, yields=tuple(values.get(v, v) for v in block.yields),
                   position=here, terminator_position=here)
