"""The contents of a .tosa file, table by table, as immutable records: between its bytes and the tensor graph.

Names are still strings, enumerations still numbers, constants still bytes.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ...runtime.records import dataclass
from ..graph.types import Array
from .schema import OperatorCode


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """A tensor. `data` are packed bytes, None if there are none; `scale` and `block` are for block-scaled types."""
    name: str
    shape: tuple[int, ...]
    element: int
    data: Array | None = None
    variable: bool = False
    variable_name: str = ""
    is_unranked: bool = False
    scale: int = 0
    scale_data: Array | None = None
    block: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ShapeRecord:
    """A list of `rank` extents; `data` has 8 bytes for each."""
    name: str
    rank: int
    data: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OperatorRecord:
    """An operator. `attribute` is the operator whose attribute table it has: itself, or for variables another."""
    code: OperatorCode
    attribute: OperatorCode
    fields: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    location: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class BlockRecord:
    name: str
    operators: tuple[OperatorRecord, ...]
    tensors: tuple[TensorRecord, ...]
    shapes: tuple[ShapeRecord, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RegionRecord:
    name: str
    blocks: tuple[BlockRecord, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FileRecord:
    """A whole file. `version` is that of TOSA: major, minor, patch."""
    version: tuple[int, int, int]
    regions: tuple[RegionRecord, ...]
    features: int = 0
    draft: bool = field(default=True)
