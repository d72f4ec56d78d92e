"""Blocks of the graph -> regions of a .tosa file.

A region of the file sees nothing of the blocks around it. Constants that it uses are written again inside it; other values
become inputs of its operator and of its block, and a loop passes them from one iteration to the next.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..dialects.tosa.data import Const, ConstShape
from ..graph.graph import Block, Function, Operation, Value, captures
from ..graph.types import Array, TensorType
from .attributes import attribute_fields, check_signs, code_of
from .model_names import location, result_names, tensor_names
from .records import BlockRecord, OperatorRecord, RegionRecord, ShapeRecord, TensorRecord
from .schema import BY_NAME, REGIONS
from .tensor_names import NAME_ATTRIBUTE, BlockNames
from .tensors import record_of, tensor_record

EFFECTS = {"read": "VARIABLE_READ", "write": "VARIABLE_WRITE"}


@dataclass(slots=True)
class RegionWriter:
    """The writer of a file's regions. `declarations` holds its variables by name, `taken` the names of its regions."""
    declarations: Mapping[str, Operation]
    taken: set[str]
    count: int = 0

    def function(self, function: Function, unused: frozenset[str]) -> list[RegionRecord]:
        """Return the region of a function, and those of its operators; `unused` are variables to declare although it does not
        use them."""
        writer = BlockWriter(self, function.body, BlockNames(), (), unused)
        for value, name in (result_names(function) | given_names(function)).items():
            writer.names.define(value, name)
        writer.variables = {symbol: writer.names.free(symbol) for symbol in self.declarations}
        return writer.regions(function.name)

    def name(self, what: str) -> str:
        """Return a name for the region of an operator."""
        name = f"{what}_{self.count}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def given_names(function: Function) -> dict[Value, str]:
    """Return the names of arguments and results in their attributes."""
    sides = ((function.arguments, function.argument_attributes), (function.body.yields, function.result_attributes))
    found: dict[Value, str] = {}
    for values, dictionaries in sides:
        for value, attributes in zip(values, dictionaries):
            name = attributes.get(NAME_ATTRIBUTE)
            if isinstance(name, str) and name:
                found.setdefault(value, name)
    return found


@dataclass(slots=True)
class BlockWriter:
    """The writer of one block. `captured` are values from enclosing blocks that become inputs after its own, `variables` the
    names of the tensors of variables, the same in all blocks of a function: Arm's reference model identifies a variable by
    them."""
    module: RegionWriter
    block: Block
    names: BlockNames
    captured: tuple[Value, ...] = ()
    unused: frozenset[str] = frozenset()
    variables: dict[str, str] = field(default_factory=dict)
    tensors: list[TensorRecord] = field(default_factory=list)
    shapes: list[ShapeRecord] = field(default_factory=list)
    operators: list[OperatorRecord] = field(default_factory=list)
    inner: list[RegionRecord] = field(default_factory=list)

    def regions(self, name: str, hands_on: bool = False) -> list[RegionRecord]:
        """Return the region of the block, and those inside it; `hands_on`: its captured values are among its outputs."""
        used = {*used_variables(self.block), *self.unused}  # those of regions inside, too: the model finds them block by block
        for symbol in (s for s in self.module.declarations if s in used):
            self.variable(self.module.declarations[symbol], symbol)
        constants, called = constants_of_others(self.block), tensor_names(self.block)
        for value in (*self.block.arguments, *self.captured):
            self.declare(value)
        for operation in (*map(constant_again, constants), *self.block.operations):
            for value in operation.results:
                self.names.define(value, called.get(value))
        handed = [self.handed_on(o) for o in self.block.operations]
        for value in constants:
            self.constant(constant_again(value), value)
        for operation, extra in zip(self.block.operations, handed):
            try:
                self.operation(operation, extra)
            except Problem as problem:
                raise problem.at(operation.position) from None
        inputs, outputs = (*self.block.arguments, *self.captured), (*self.block.yields, *(self.captured if hands_on else ()))
        record = BlockRecord(name, tuple(self.operators), tuple(self.tensors), tuple(self.shapes), self.uses(inputs),
                             self.uses(outputs))
        return [RegionRecord(name, (record,)), *self.inner]

    # Tensors

    def uses(self, values: tuple[Value, ...]) -> tuple[str, ...]:
        return tuple(self.names.values[v] for v in values)

    def declare(self, value: Value, data: Array | None = None) -> str:
        """Add the tensor or shape of a value."""
        name = self.names.define(value)
        return self.add(name, value, data)

    def add(self, name: str, value: Value, data: Array | None = None) -> str:
        try:
            match record_of(name, value.type, data):
                case TensorRecord() as tensor:
                    self.tensors.append(tensor)
                case shape:
                    self.shapes.append(shape)
        except Problem as problem:
            raise problem.at(value.position) from None
        return name

    def variable(self, declaration: Operation, symbol: str) -> None:
        op: Any = declaration.op
        try:
            record = tensor_record(self.variables[symbol], op.type, op.initial)
        except Problem as problem:
            raise problem.at(declaration.position) from None
        self.tensors.append(replace(record, variable=True, variable_name=symbol))

    # Operators

    def operation(self, operation: Operation, extra: tuple[str, ...]) -> None:
        match operation.op.variable_effect:
            case "declare":
                return
            case "read" | "write" as effect:
                self.variable_operation(operation, effect)
            case _ if isinstance(operation.op, Const | ConstShape):
                self.constant(operation, operation.results[0])
            case _:
                self.compute(operation, extra)

    def constant(self, operation: Operation, value: Value) -> None:
        """Write a CONST or CONST_SHAPE that defines `value`."""
        code = code_of(operation)
        name = self.declare(value, operation.op.values)  # type: ignore[attr-defined]
        self.operators.append(OperatorRecord(code, code, {}, (), (name,), location(operation)))

    def compute(self, operation: Operation, extra: tuple[str, ...]) -> None:
        code = code_of(operation)
        check_signs(operation, code)
        captured = self.inputs_of(operation) if operation.regions else ()
        if operation.regions:
            fields = self.region_fields(operation, captured, code.name == "WHILE_LOOP")
        else:
            fields = attribute_fields(operation, code)
        results = tuple(map(self.declare, operation.results))
        for name, value in zip(extra, captured):
            self.add(name, value)
        self.operators.append(OperatorRecord(code, code, fields, self.uses((*operation.operands, *captured)),
                                             (*results, *extra), location(operation)))

    def variable_operation(self, operation: Operation, effect: str) -> None:
        """Write an IDENTITY with the attributes of the operator, its form in files."""
        tensor = self.variables[symbol_of(operation)]
        inputs = (tensor,) if effect == "read" else self.uses(operation.operands)
        outputs = tuple(map(self.declare, operation.results)) if effect == "read" else (tensor,)
        self.operators.append(OperatorRecord(BY_NAME["IDENTITY"], BY_NAME[EFFECTS[effect]], {}, inputs, outputs,
                                             location(operation)))

    # Regions

    def inputs_of(self, operation: Operation) -> tuple[Value, ...]:
        """Return the values of enclosing blocks that an operation's regions use, except constants."""
        return tuple(v for v in captures(operation) if v.constant is None)

    def handed_on(self, operation: Operation) -> tuple[str, ...]:
        """Return the names of a loop's additional results: the values of enclosing blocks that its regions use."""
        if operation.op.name != "tosa.while_loop":
            return ()
        return self.names.more(self.uses(operation.results), self.uses(self.inputs_of(operation)))

    def region_fields(self, operation: Operation, captured: tuple[Value, ...], is_loop: bool) -> dict[str, str]:
        """Write the regions of an operator; return their names, by the attributes that hold them."""
        keys = REGIONS[code_of(operation).name]
        names = [self.module.name(key.removesuffix("_graph")) for key in keys]
        self.module.count += 1
        for name, region, key in zip(names, operation.regions, keys):
            writer = BlockWriter(self.module, region, BlockNames(self.names), captured, variables=self.variables)
            self.inner += writer.regions(name, hands_on=is_loop and key == "body_graph")
        return dict(zip(keys, names))


def constants_of_others(block: Block) -> list[Value]:
    """Return the constants of enclosing blocks that a block's own operations use, or that it yields."""
    own = {*block.arguments, *(v for o in block.operations for v in o.results)}
    used = dict.fromkeys((*(v for o in block.operations for v in o.operands), *block.yields))
    return [v for v in used if v.constant is not None and v not in own]


def constant_again(value: Value) -> Operation:
    """Return an operation that defines a constant value once more."""
    assert value.constant is not None
    op = Const(values=value.constant) if isinstance(value.type, TensorType) else ConstShape(values=value.constant)
    return Operation(op, (), (value,), position=value.position)


def symbol_of(operation: Operation) -> str:
    return str(getattr(operation.op, "symbol", ""))


def used_variables(block: Block) -> Iterator[str]:
    """Yield the names of the variables that a block reads or writes, also inside regions."""
    return (symbol_of(o) for o in block.walk() if o.op.variable_effect in EFFECTS)
