"""Small graphs for the interpreter's tests, built without text."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tosaic.lowering.dialects.tosa.binary import Add
from tosaic.lowering.dialects.tosa.comparison import Greater
from tosaic.lowering.dialects.tosa.control_flow import CondIf, WhileLoop
from tosaic.lowering.dialects.tosa.data import Const
from tosaic.lowering.dialects.tosa.variable import Variable, VariableRead, VariableWrite
from tosaic.lowering.graph.graph import Block, BlockBuilder, Function, Module, Operation, Value
from tosaic.lowering.graph.types import I1, I32, TensorType, Type
from tosaic.runtime.errors import Position, Source

NUMBER, TRUTH = TensorType((), I32), TensorType((), I1)
SOURCE = Source("program.mlir", "\n".join(f"line {n}" for n in range(1, 100)))


def at(line: int) -> Position:
    return Position(SOURCE, line, 1)


def module(block: Block, *declarations: Operation, name: str = "main") -> Module:
    return Module((Function(name, block, tuple(v.type for v in block.yields)),), declarations)


def declaration(symbol: str, type: TensorType, initial: Any = None, line: int = 1) -> Operation:
    """A tosa.variable at module level."""
    data = None if initial is None else np.array(initial, type.element.dtype)
    return Operation(Variable(symbol, type, data), (), (), position=at(line))


class Graph(BlockBuilder):
    """A block builder with the operators that these tests use, for i32 tensors of rank 0."""

    def number(self, value: int) -> Value:
        return self.add(Const(np.array(value, np.int32)))[0]

    def truth(self, value: bool) -> Value:
        return self.add(Const(np.array(value)))[0]

    def plus(self, a: Value, b: Value) -> Value:
        return self.add(Add(), a, b)[0]

    def greater(self, a: Value, b: Value) -> Value:
        return self.add(Greater(), a, b)[0]

    def declare(self, symbol: str, type: TensorType = NUMBER, initial: Any = None, line: int = 1) -> None:
        data = None if initial is None else np.array(initial, type.element.dtype)
        self.add(Variable(symbol, type, data), position=at(line))

    def read(self, symbol: str, type: TensorType = NUMBER, line: int = 2) -> Value:
        return self.add(VariableRead(symbol, type), position=at(line))[0]

    def write(self, symbol: str, value: Value, line: int = 3) -> None:
        self.add(VariableWrite(symbol), value, position=at(line))

    def cond_if(self, condition: Value, then: Block, otherwise: Block, *operands: Value) -> tuple[Value, ...]:
        return self.add(CondIf(), condition, *operands, regions=(then, otherwise))

    def while_loop(self, test: Block, body: Block, *operands: Value) -> tuple[Value, ...]:
        return self.add(WhileLoop(), *operands, regions=(test, body))

    def take(self, types: Sequence[Type]) -> list[Value]:
        return [self.argument(t) for t in types]


def returning(*values: Value) -> Block:
    """A region without arguments that yields values of the block around it."""
    return Graph().finish(*values)


def below(limit: int | Value, arguments: int = 1) -> Block:
    """The condition of a loop: its first argument is less than `limit`."""
    graph = Graph()
    first = graph.take([NUMBER] * arguments)[0]
    return graph.finish(graph.greater(graph.number(limit) if isinstance(limit, int) else limit, first))


def number(value: int) -> np.ndarray:
    return np.array(value, np.int32)
