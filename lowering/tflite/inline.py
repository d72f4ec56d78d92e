"""The function that a converter made of a part -> its operations among those of a subgraph, each at the operator of the file
that it comes from: the converter says which tensor an operation stands for.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..flatbuffer.position import FilePosition
from ..graph.graph import Block, Operation, Value
from ..text.attribute_printer import quoted
from .divide import Part
from .records import OperatorRecord, SubgraphRecord
from .write_kernels import unbounded

QUOTED = re.compile(r'"[^"]*"')


def place_of(position: FilePosition, index: int, operator: OperatorRecord) -> FilePosition:
    return position.inside(f"operator {index} {operator.kind}")


@dataclass(slots=True)
class Places:
    """Where the operations of a part come from. `position` is that of the subgraph."""
    graph: SubgraphRecord
    part: Part
    position: FilePosition
    whole: FilePosition = field(init=False)
    by_tensor: dict[str, FilePosition] = field(init=False)

    def __post_init__(self) -> None:
        first, last = self.part.operators[0], self.part.operators[-1]
        kinds = [self.graph.operators[i].kind for i in (first, last)]
        several = f"operators {first} {kinds[0]} to {last} {kinds[1]}"
        self.whole = self.position.inside(f"operator {first} {kinds[0]}" if first == last else several)
        self.by_tensor = {quoted(self.graph.tensors[tensor].name): place_of(self.position, i, self.graph.operators[i])
                          for i in self.part.operators for tensor in self.graph.operators[i].outputs}

    def of(self, operation: Operation) -> FilePosition:
        """The place of an operation's operator; of the whole part where the converter does not say it."""
        for name in QUOTED.findall(operation.location or ""):
            found = self.by_tensor.get(name) or self.by_tensor.get(f'{name.split(";")[0]}"')
            if found is not None:
                return found
        return self.whole


def copies(block: Block, values: dict[Value, Value], places: Places) -> list[Operation]:
    """The operations of a block on other arguments, with results of their own, which `values` gets."""
    found = []
    for operation in block.operations:
        here = places.of(operation)
        operands = tuple(values.get(v, v) for v in operation.operands)
        regions = tuple(region(r, values, places, here) for r in operation.regions)
        results = tuple(replace(v, position=here) for v in operation.results)
        values.update(zip(operation.results, results))
        op = unbounded(operation.op, getattr(results[0].type, "element", None)) if results else operation.op
        found.append(Operation(op, operands, results, regions, operation.attributes, here))
    return found


def region(block: Block, outer: Mapping[Value, Value], places: Places, here: FilePosition) -> Block:
    values = dict(outer)
    arguments = tuple(replace(v, position=here) for v in block.arguments)
    values.update(zip(block.arguments, arguments))
    operations = tuple(copies(block, values, places))
    return replace(block, arguments=arguments, operations=operations, yields=tuple(values.get(v, v) for v in block.yields),
                   position=here, terminator_position=here)
