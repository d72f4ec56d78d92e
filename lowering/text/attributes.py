"""Attribute values: the Python values of MLIR's attributes.

A string is a `str`, true and false are `bool`, a list is a tuple, a dictionary a dict, a type a type of the graph. The classes
here are for the rest. Bytes of a string that are not UTF-8 are surrogates, as in file names.
"""
from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias, Union

from ...runtime.records import dataclass
from ..dialects.tf.types import TensorFlowTensor
from ..graph.types import Array, ElementType, TensorType, Type


class Unit(Enum):
    """The value of an attribute that is only a name."""
    UNIT = "unit"


@dataclass(frozen=True, slots=True)
class Number:
    """`1 : i32`; floats are rounded to their type."""
    value: int | float
    type: ElementType


@dataclass(frozen=True, slots=True)
class Numbers:
    """`array<i64: 1, 1>`"""
    values: tuple[int | float | bool, ...]
    type: ElementType


@dataclass(frozen=True, slots=True)
class Symbol:
    """`@name` or `@outer::@name`"""
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """An attribute that is kept as it is written: a keyword, an affine map, another dialect's attribute."""
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A constant."""
    array: Array
    type: TensorType


@dataclass(frozen=True, slots=True)
class Strings:
    """A constant of strings: its elements in row-major order."""
    values: tuple[bytes, ...]
    type: TensorFlowTensor


@dataclass(frozen=True, slots=True)
class FunctionType:
    operands: tuple[Type, ...]
    results: tuple[Type, ...]


Attribute: TypeAlias = Union[str, bool, Unit, Number, Numbers, Symbol, Text, Dense, Strings, FunctionType,
                             Type, ElementType,
                             "tuple[Attribute, ...]", "Mapping[str, Attribute]"]
Dictionary: TypeAlias = dict[str, Attribute]
