"""A .tflite file as records: the contents that `decode` reads, each with its position, unchanged."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from ...runtime.records import dataclass
from ..graph.file_position import FilePosition
from ..graph.types import Array

Options = Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor of a subgraph. An extent is None if it is not known; `data` are the bytes of a constant. `scale` is set if all
    elements are quantized alike. `scales`, `zero_points` and `axis` are the file's, not checked."""
    name: str
    shape: tuple[int | None, ...]
    type: int
    data: Array | None = None
    is_state: bool = False
    scale: np.float32 | None = None
    zero_point: int = 0
    scales: Array | None = None
    zero_points: Array | None = None
    axis: int = 0
    stated: tuple[int, ...] = ()
    """The shape that the file states besides a shape of which only the first extent is dynamic; empty for any other."""


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """An operator: its kind, the numbers of its tensors (-1 for an omitted one), the subgraphs that it runs, and the offset of
    its table in bytes."""
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: int
    callees: tuple[int, ...] = ()
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubgraphRecord:
    """A subgraph; `tensor_vector` is the offset of the vector of its tensors, in bytes."""
    name: str
    tensors: tuple[TensorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[OperatorRecord, ...]
    tensor_vector: int
    position: FilePosition

    def place(self, number: int) -> FilePosition:
        """Return the position of operator `number`."""
        return self.position.inside(f"operator {number} {self.operators[number].kind}")


@dataclass(frozen=True, slots=True)
class SignatureRecord:
    """A name for a subgraph and names for its inputs and outputs, by the numbers of their tensors."""
    key: str
    subgraph: int
    inputs: Mapping[int, str]
    outputs: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A file: its subgraphs and signatures, and the offsets of the vectors that other files may share with it."""
    subgraphs: tuple[SubgraphRecord, ...]
    signatures: tuple[SignatureRecord, ...]
    version: int
    code_vector: int
    buffer_vector: int
    outside: tuple[tuple[int, int, int], ...]
    """Buffers whose bytes are stored after the flatbuffer: number, offset, number of bytes."""
    buffer_tables: tuple[int, ...]
    position: FilePosition
