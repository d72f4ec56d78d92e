"""Stateful operators in fusion: the variables that a function uses, the reads that view a variable's memory instead of copying
it, and the faults of the stateful-operators document that are left for the run.

A read is a view of the variable. Before a write, every value that would still be read through that view is stored.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.errors import Label, Position, Problem
from ..elements.expression import Buffer
from ..graph.graph import Module, Operation, Value
from ..graph.types import TensorType
from ..kernels.kernel import CheckWritten, Fault, MarkWritten, VariableUse
from .values import static

if TYPE_CHECKING:
    from .fuse import Fuser


class FunctionVariables:
    """The variables of one function, by symbol."""

    def __init__(self, fuser: Fuser, module: Module) -> None:
        self.fuser = fuser
        self.declared: dict[str, Operation] = {}
        self.buffers: dict[str, Buffer] = {}
        self.initials: dict[str, Buffer | None] = {}
        self.external: set[str] = set()
        """Variables that this graph reads and another graph declares."""
        self.written: set[Buffer] = set()
        """Variables that are known to be written at the current position of the walk, after a check or a write."""
        for operation in module.declarations:
            if operation.op.variable_effect == "declare":
                self.declare(operation)

    def declare(self, operation: Operation) -> None:
        """Lower VARIABLE: declare the variable (`seen` in TOSA). Raise a Problem if it is declared twice in one run."""
        op = operation.op
        symbol: str = op.symbol  # type: ignore[attr-defined]
        if symbol in self.declared:
            first = self.declared[symbol].position
            raise Problem(f"variable @{symbol} is declared twice in one run", operation.position, kind="variable",
                          help="declare it once, at module level", labels=(Label(first, "declared here first"),))
        self.add(operation)
        type, initial = declared_type(operation), op.initial  # type: ignore[attr-defined]
        self.initials[symbol] = None if initial is None else Buffer(
            f"{symbol}.initial", type.element.storage, type.dims, "constant", initial.reshape(type.dims))

    def add(self, operation: Operation) -> None:
        """Add a variable with the type that this operation gives."""
        symbol: str = operation.op.symbol  # type: ignore[attr-defined]
        type = declared_type(operation)
        self.declared[symbol], self.initials[symbol] = operation, None
        self.buffers[symbol] = Buffer(symbol, type.element.storage, type.dims, "variable")

    def lookup(self, operation: Operation, type: TensorType) -> Buffer:
        """Return the variable of a read or a write. A variable that is only read may be another graph's."""
        symbol: str = operation.op.symbol  # type: ignore[attr-defined]
        if symbol not in self.declared and operation.op.variable_effect == "read":
            self.add(operation)
            self.external.add(symbol)
        if symbol not in self.declared or (symbol in self.external and operation.op.variable_effect == "write"):
            raise Problem(f"variable @{symbol} is not declared", operation.position, kind="variable",
                          help=f"declare it at module level: tosa.variable @{symbol} : {type}")
        declaration = self.declared[symbol]
        if declared_type(declaration) != type:
            raise Problem(f"variable @{symbol} is {declared_type(declaration)}, not {type}", operation.position,
                          kind="variable", labels=(Label(declaration.position, "declared here"),))
        return self.buffers[symbol]

    def read(self, operation: Operation) -> None:
        """Lower VARIABLE_READ: make a view, after a check that the variable has been written."""
        value = operation.results[0]
        buffer = self.lookup(operation, static(value))
        if buffer not in self.written:
            self.fuser.faults.append(unwritten(buffer.name, buffer.name in self.external, operation.position))
            self.fuser.step(CheckWritten(buffer, len(self.fuser.faults) - 1))
            self.written.add(buffer)
        self.fuser.place(value, buffer)
        self.fuser.origins[value] = "variable_read"

    def write(self, operation: Operation) -> None:
        """Lower VARIABLE_WRITE, after storing the values that still read the old value."""
        value = operation.operands[0]
        buffer = self.lookup(operation, value.tensor)
        self.fuser.remaining[value] -= 1
        self.protect(buffer)
        self.fuser.remaining[value] += 1
        self.fuser.refresh(value)
        tensor = self.fuser.tensor(value)
        if self.fuser.homes.get(value) is not buffer:
            origin = self.fuser.origins.get(value, "copy") if value not in self.fuser.homes else "copy"
            self.fuser.emit(buffer, tensor, f"variable_write {origin}", operation.position)
        self.mark(buffer)

    def mark(self, buffer: Buffer) -> None:
        self.fuser.step(MarkWritten(buffer))
        self.written.add(buffer)

    def protect(self, buffer: Buffer) -> None:
        """Store every value whose remaining uses would read `buffer`."""
        for value in list(self.fuser.tensors):  # in order of definition: readers of a stored value are only refreshed
            if self.fuser.remaining.get(value, 0) > 0 and buffer in self.fuser.reads.get(value, ()):
                self.fuser.refresh(value)
                if buffer in self.fuser.reads[value]:
                    self.detach(value)

    def detach(self, value: Value) -> None:
        """Give a value memory of its own."""
        fuser = self.fuser
        home = fuser.results.get(value) or fuser.buffer(value, name=f"{value.name}_old")
        fuser.emit(home, fuser.tensors[value], fuser.origins.get(value, "copy"), value.position)
        fuser.place(value, home)

    def used(self) -> tuple[VariableUse, ...]:
        """Return every declared variable: a declaration allocates it, whether or not it is read."""
        return tuple(VariableUse(self.buffers[s], declared_type(d).element.name, self.initials[s], d.position,
                                 s in self.external) for s, d in self.declared.items())


def unwritten(name: str, external: bool, position: Position | None) -> Fault:
    """Return the fault of a read of a variable that has not been written."""
    if external:
        return Fault(f"variable @{name} is read, but no graph has declared and written it", position,
                     "run the graph that declares it first, in the same context")
    return Fault(f"variable @{name} is read before it was written", position,
                 "give it an initial value, write it first, or set it from Python")


def declared_type(operation: Operation) -> TensorType:
    type: TensorType = operation.op.type  # type: ignore[attr-defined]
    if not type.is_static:
        raise Problem(f"variable @{operation.op.symbol} has the dynamic shape {type}",  # type: ignore[attr-defined]
                      operation.position, kind="unsupported", help="give it a static shape")
    return type

