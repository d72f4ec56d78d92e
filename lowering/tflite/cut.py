"""Parts of a .tflite file -> a new .tflite file, with a subgraph and a signature for each part.

Only the tables that list the operators are written anew. They precede the bytes of the whole old file and refer into it for
operators, tensors and constants: flatbuffer references point forward, and the old bytes are unchanged.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from ...runtime.records import dataclass
from ..flatbuffer.table_builder import Data, FlatbufferBuilder, Node, Scalar, TableNode, TableReference
from .divide import Partition
from .records import ModelRecord
from .schema import BUFFER, IDENTIFIER, MODEL, SIGNATURE, SUBGRAPH

ALIGNMENT = 64
"""Alignment, in bytes, of the old file in the new one."""


@dataclass(frozen=True, slots=True, eq=False)
class Old(TableNode):
    """A table or vector of the old file, by its offset there."""
    start: int = 0


@dataclass(slots=True)
class Prefix(FlatbufferBuilder):
    """The tables before the old file; references into it are filled in when its offset is known."""
    old: list[tuple[TableReference, int]] = field(default_factory=list)

    def refer(self, reference: TableReference, node: Node) -> None:
        if isinstance(node, Old):
            self.old.append((reference, node.start))
        else:
            FlatbufferBuilder.refer(self, reference, node)


def partition_name(number: int) -> str:
    return f"part_{number}"


def cut(data: bytes, model: ModelRecord, partitions: Sequence[Partition]) -> bytes:
    """Return the file of these partitions."""
    return b"".join(parts(data, model, partitions))


def parts(data: bytes, model: ModelRecord, partitions: Sequence[Partition]) -> tuple[bytes, bytes]:
    """Return the file in two parts to be written in order: the new tables, and the old file, which is not copied."""
    prefix = chunks(model, partitions, 0)[1]  # the size does not depend on the offset of the old file
    return chunks(model, partitions, len(prefix))[1], data


def chunks(model: ModelRecord, partitions: Sequence[Partition], start: int) -> tuple[Prefix, bytes]:
    """Return the tables before the old file, which begins at byte `start`."""
    builder = Prefix()
    builder.file(root(model, partitions, start), IDENTIFIER)
    builder.put(b"", ALIGNMENT)
    for reference, place in builder.old:
        reference.to(builder.size + place)
    return builder, b"".join(builder.chunks)


def root(model: ModelRecord, partitions: Sequence[Partition], start: int) -> TableNode:
    return table({MODEL["version"]: Scalar("I", model.version), MODEL["operator_codes"]: Old((), model.code_vector),
                  MODEL["subgraphs"]: tuple(subgraph(model, partition, i) for i, partition in enumerate(partitions)),
                  MODEL["buffers"]: buffers(model, start),
                  MODEL["signature_defs"]: tuple(signature(partition, i) for i, partition in enumerate(partitions))})


def table(slots: dict[int, object]) -> TableNode:
    return TableNode(tuple(slots.get(i) for i in range(max(slots) + 1)))  # type: ignore[misc]


def subgraph(model: ModelRecord, partition: Partition, number: int) -> TableNode:
    graph = model.subgraphs[partition.subgraph]
    return table({SUBGRAPH["tensors"]: Old((), graph.tensor_vector), SUBGRAPH["inputs"]: numbers(partition.inputs),
                  SUBGRAPH["outputs"]: numbers(partition.outputs),
                  SUBGRAPH["operators"]: tuple(Old((), graph.operators[i].table) for i in partition.operators),
                  SUBGRAPH["name"]: partition_name(number)})


def numbers(values: Sequence[int]) -> Data:
    return Data(np.array(values, "<i4"))


def buffers(model: ModelRecord, start: int) -> Old | tuple[TableNode, ...]:
    """Return the constants. The offset of the old file is added to the offsets of those stored after the flatbuffer."""
    if not model.outside:
        return Old((), model.buffer_vector)
    moved = {number: table({BUFFER["offset"]: Scalar("Q", start + first), BUFFER["size"]: Scalar("Q", size)})
             for number, first, size in model.outside}
    return tuple(moved.get(i) or Old((), place) for i, place in enumerate(model.buffer_tables))


def signature(partition: Partition, number: int) -> TableNode:
    sides = [tuple(table({0: f"{what}{i}", 1: Scalar("I", tensor)}) for i, tensor in enumerate(tensors))
             for what, tensors in (("in", partition.inputs), ("out", partition.outputs))]
    return table({SIGNATURE["inputs"]: sides[0], SIGNATURE["outputs"]: sides[1], SIGNATURE["key"]: partition_name(number),
                  SIGNATURE["subgraph"]: Scalar("I", number)})
