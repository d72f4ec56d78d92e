"""A .tflite file as records: what `decode` finds in it, each with its place, nothing changed."""
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
    """A tensor of a subgraph. An extent is None where it is not known; `data` are the bytes of a constant. `scale` is there
    where all elements are quantized alike. `scales`, `zero_points` and `axis` are as the file has them, not checked."""
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
    """The shape that the file states beside one whose first extent alone is open; empty for any other."""


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """An operator: its kind, the numbers of its tensors (-1 for one that is left out), the subgraphs that it runs, and the
    byte at which its table begins."""
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: int
    callees: tuple[int, ...] = ()
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubgraphRecord:
    """A subgraph; `tensor_vector` is the byte at which the vector of its tensors begins."""
    name: str
    tensors: tuple[TensorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[OperatorRecord, ...]
    tensor_vector: int
    position: FilePosition

    def place(self, number: int) -> FilePosition:
        """Where operator `number` is."""
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
    """A file: its subgraphs and signatures, and where the vectors are that other files may have in common with it."""
    subgraphs: tuple[SubgraphRecord, ...]
    signatures: tuple[SignatureRecord, ...]
    version: int
    code_vector: int
    buffer_vector: int
    outside: tuple[tuple[int, int, int], ...]
    """Buffers whose bytes lie behind the flatbuffer: number, first byte, bytes."""
    buffer_tables: tuple[int, ...]
    position: FilePosition
