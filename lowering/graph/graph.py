"""The tensor graph: values, operations, blocks, functions, modules. Immutable; every node has its source position.

A region of TOSA is one block. A block may use values of the enclosing blocks (they dominate it), whether or not these are
among its arguments. The order of operations in a block is the order of effects on variables.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from ...runtime.errors import KeyProblem, Position, Problem, printable
from ...runtime.limits import check_nodes
from ...runtime.records import dataclass, set_constant_state
from .operator import Op
from .types import Array, TensorType, Type

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One tensor (or shape) of a graph. `constant` is its data if known when compiling (read-only)."""
    name: str
    type: Type
    position: Position | None = None
    constant: Array | None = field(default=None, repr=False)

    __setstate__ = set_constant_state

    def __repr__(self) -> str:
        return printable(f"<Value %{self.name}: {self.type}>")

    @property
    def tensor(self) -> TensorType:
        """Type of the value, which must be a tensor."""
        if not isinstance(self.type, TensorType):
            raise Problem(f"%{self.name} is a {self.type}, not a tensor", self.position, kind="type")
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One use of an operator. `attributes` are the discardable ones (kept and printed, without meaning here)."""
    op: Op
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    regions: tuple[Block, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    position: Position | None = None
    location: str | None = None
    """MLIR's own `loc(...)`, as text."""

    def __repr__(self) -> str:
        of = ", ".join(f"%{v.name}" for v in self.operands[:8]) + ", ..." * (len(self.operands) > 8)
        return printable(f"<Operation {self} of ({of}), {len(self.regions)} regions>")

    def __str__(self) -> str:
        results = ", ".join(f"%{r.name}" for r in self.results)
        results = ", ".join(f"%{r.name}" for r in self.results)
        name = self.op.name or getattr(self.op, "spelling", "")
        return f"{results} = {name}" if results else name


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Arguments, operations, and the values that its terminator (return, yield, fetch) gives back."""
    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]
    yields: tuple[Value, ...]
    position: Position | None = None
    terminator_position: Position | None = None
    terminator_attributes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Block of {len(self.operations)} operations>"

    def walk(self) -> Iterator[Operation]:
        """Yield every operation in the block and in its regions, in order."""
        for operation in self.operations:
            yield operation
            for region in operation.regions:
                yield from region.walk()


STATED_SHAPE = "tosaic.stated_shape"
"""Attribute of an argument with open extents: the shape that its file suggests for it, as integers of i64."""

EXTENT_BOUNDS = "tosaic.extent_bounds"
"""Attribute of an argument: the least and the greatest value of each extent, in pairs of i64; -1 for no greatest value."""


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the module. `result_types` are the declared ones."""
    name: str
    body: Block
    result_types: tuple[Type, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    argument_attributes: tuple[Mapping[str, Any], ...] = ()
    result_attributes: tuple[Mapping[str, Any], ...] = ()
    is_private: bool = False
    position: Position | None = None

    def __repr__(self) -> str:
        given, made = (", ".join(map(str, types)) for types in ([v.type for v in self.arguments], self.result_types))
        return printable(f"<Function {self.name}({given}) -> ({made})>")

    @property
    def arguments(self) -> tuple[Value, ...]:
        return self.body.arguments


@dataclass(frozen=True, slots=True, eq=False)
class AbsentFunction:
    """A function that a module names without having its graph: it is declared only, or its body is not understood. `problem`
    is the error of any use of it; a declaration has its types."""
    name: str
    problem: Problem
    is_private: bool = False
    types: tuple[tuple[Type, ...], tuple[Type, ...]] | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module:
    """Functions, and the operations at module level (declarations of variables)."""
    functions: tuple[Function, ...]
    declarations: tuple[Operation, ...] = ()
    name: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    position: Position | None = None
    absent: tuple[AbsentFunction, ...] = ()

    def __repr__(self) -> str:
        return printable(f"<Module with {', '.join(f.name for f in self.functions[:8]) or 'no functions'}"
                         f"{', ...' * (len(self.functions) > 8)}>")

    def function(self, name: str | None = None) -> Function:
        """Return the function called `name`; without a name the only public one, or `main`."""
        public = [f for f in self.functions if not f.is_private]
        if name is None:
            main = [f for f in public if f.name == "main"] or public
            if len(main) == 1:
                return main[0]
            raise Problem(f"the module has {len(public)} entry functions: {', '.join(f.name for f in public)}",
                          kind="argument", help="name one of them")
        for f in self.functions:
            if f.name == name:
                return f
        self.check_absent(name)
        raise KeyProblem(f"the module has no function {name}", kind="argument",
                         help=f"it has {', '.join(f.name for f in self.functions)}")

    def check_absent(self, name: str) -> None:
        """Raise the Problem of a function that the module names without having its graph."""
        for f in self.absent:
            if f.name == name:
                raise f.problem


def uses(block: Block) -> dict[Value, list[Operation | None]]:
    """Return the readers of each value: operations of `block` and of the regions in it; None for a terminator."""
    result: dict[Value, list[Operation | None]] = {}
    for operation in block.walk():
        for operand in operation.operands:
            result.setdefault(operand, []).append(operation)
        for region in operation.regions:
            for value in region.yields:
                result.setdefault(value, []).append(None)
    for value in block.yields:
        result.setdefault(value, []).append(None)
    return result


def captures(operation: Operation) -> tuple[Value, ...]:
    """Return the values of enclosing blocks that the regions of `operation` use, in order of first use."""
    inside: set[Value] = set()
    found: dict[Value, None] = {}

    def visit(block: Block) -> None:
        inside.update(block.arguments)
        for inner in block.operations:
            found.update((v, None) for v in inner.operands if v not in inside)
            for region in inner.regions:
                visit(region)
            inside.update(inner.results)
        found.update((v, None) for v in block.yields if v not in inside)

    for region in operation.regions:
        visit(region)
    return tuple(found)


class BlockBuilder:
    """A builder of a block, operation by operation; result types come from the operators."""

    def __init__(self, prefix: str = "") -> None:
        self.arguments: list[Value] = []
        self.operations: list[Operation] = []
        self._prefix = prefix

    def argument(self, type: Type, name: str | None = None, position: Position | None = None) -> Value:
        value = Value(name or f"{self._prefix}arg{len(self.arguments)}", type, position)
        self.arguments.append(value)
        return value

    def add(self, op: Op, *operands: Value, regions: Sequence[Block] = (), position: Position | None = None,
            types: tuple[Type, ...] | None = None, attributes: Mapping[str, Any] = NOTHING,
            name: str | None = None) -> tuple[Value, ...]:
        """Append an operation and return its results; give `types` if the operator cannot infer them alone."""
        if types is None:
            try:
                types = op.types(operands, regions)
            except Problem as problem:
                raise problem.at(position) from None
        number = len(self.operations)
        check_nodes(number + 1, position)
        data = op.constant(operands)
        results = tuple(Value(name or f"{self._prefix}{number}" + (f"_{i}" if len(types) > 1 else ""), t, position,
                              data) for i, t in enumerate(types))
        self.operations.append(Operation(op, operands, results, tuple(regions), attributes, position))
        return results

    def finish(self, *yields: Value, position: Position | None = None) -> Block:
        return Block(tuple(self.arguments), tuple(self.operations), yields, position, position)
