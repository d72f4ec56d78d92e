"""The digest of a graph: SHA-256 of its structure, attributes, names and constants, the same in every process.

Positions in the source count only for operators on variables and checks: their errors occur when the code runs, and name the
position.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from ...lowering.graph.graph import Block, Function, Module, Operation, Value
from ...lowering.graph.operator import Op
from ...lowering.graph.types import Array, ElementType, OpaqueType, ShapeType, TensorType
from ...runtime.errors import Position
from .keys import NotKept, digest, is_own
from .sha256 import sha256


def graph_digest(module: Module) -> str:
    """Return the digest of a module. Raises NotKept if it has an operator that is not tosaic's."""
    return digest(ModuleWalk().module(module)).hex()


class ModuleWalk:
    """A conversion of a module to nested tuples; values become the numbers of their definitions."""

    def __init__(self) -> None:
        self.numbers: dict[Value, int] = {}
        self.arrays: dict[int, tuple[Any, Array]] = {}

    def module(self, module: Module) -> Any:
        return (module.name, self.plain(module.attributes), tuple(map(self.operation, module.declarations)),
                tuple(map(self.function, module.functions)))

    def function(self, function: Function) -> Any:
        return (function.name, function.is_private, tuple(map(type_text, function.result_types)),
                self.plain(function.attributes), self.plain(function.argument_attributes),
                self.plain(function.result_attributes), self.block(function.body))

    def block(self, block: Block) -> Any:
        return (tuple(map(self.defined, block.arguments)), tuple(map(self.operation, block.operations)),
                tuple(map(self.used, block.yields)))

    def operation(self, operation: Operation) -> Any:
        op = operation.op
        place = place_of(operation.position) if op.variable_effect or op.is_check else None
        return (self.operator(op), tuple(map(self.used, operation.operands)), tuple(map(self.defined, operation.results)),
                tuple(map(self.block, operation.regions)), self.plain(operation.attributes), place)

    def operator(self, op: Op) -> Any:
        if not is_own(type(op)) or not op.name:
            raise NotKept(op.name)
        return type(op).__qualname__, op.name, self.fields(op)

    def defined(self, value: Value) -> Any:
        self.numbers[value] = len(self.numbers)
        constant = None if value.constant is None else self.array(value.constant)
        return value.name, type_text(value.type), constant

    def used(self, value: Value) -> int:
        return self.numbers[value]

    def fields(self, value: Any) -> Any:
        return tuple((f.name, self.plain(getattr(value, f.name))) for f in dataclasses.fields(value))

    def plain(self, value: Any) -> Any:
        """Return an attribute as nested tuples."""
        match value:
            case Enum() if is_own(type(value)):
                return type(value).__qualname__, value.name
            case None | bool() | int() | float() | str() | bytes():
                return type(value).__name__, value
            case tuple() | list():
                return "list", tuple(map(self.plain, value))
            case Mapping():
                return "map", tuple((self.plain(k), self.plain(v)) for k, v in value.items())
            case np.ndarray() | np.generic():
                return self.array(np.asarray(value))
            case ElementType() | TensorType() | ShapeType() | OpaqueType():
                return type(value).__name__, type_text(value)
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type) and is_own(type(value)):
                return type(value).__qualname__, self.fields(value)
        raise NotKept(type(value).__name__)

    def array(self, array: Array) -> Any:
        """Return type, shape and digest of an array's elements; elements that share memory count only once."""
        if id(array) not in self.arrays:
            if array.dtype.hasobject:
                raise NotKept("object")
            once = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
            data = np.ascontiguousarray(once).reshape(-1).view(np.uint8).data
            found = "array", str(array.dtype), array.shape, once.shape, sha256(data).hexdigest()
            self.arrays[id(array)] = found, array
        return self.arrays[id(array)][0]


def type_text(type: Any) -> str:
    """Return a type in MLIR's spelling, which distinguishes all types."""
    return str(type)


def place_of(position: Position | None) -> Any:
    """Return a position in its own text, or in a Python file."""
    if position is None:
        return None
    name = position.source.name if position.source.text is None else None
    return name, position.line, position.column, position.width, tuple(getattr(position, "path", ()))

