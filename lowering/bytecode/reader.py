"""MLIR bytecode -> the tensor graph.

`read_module` returns the same graph as the text reader does for the text of the same module, except positions: an operation is
identified by its number in its function. It supports the subset that TOSA's operators and functions need; for anything else,
and for any error, it raises `Unreadable`.
"""
from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from dataclasses import field

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..dialects import tosa  # noqa: F401  registers the operators
from ..dialects.tosa.data import Identity, IdentityN
from ..graph.file_position import FilePosition, whole
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.operator import OPERATORS, Op
from ..graph.types import ElementType, TensorType, Type
from ..text.attribute_printer import quoted
from ..text.attributes import Attribute, Dense, Dictionary, Text
from ..text.fields import make_operator
from ..text.location_name import location_name
from ..text.operations import CAST, RETURNS, YIELDS, converts_nothing
from .attributes import AttributeTable
from .operation_records import BytecodeRegion, Record, read_ir
from .sections import (
    ATTRIBUTES,
    DIALECT,
    IR,
    OFFSETS,
    PROPERTIES,
    RESOURCE_OFFSETS,
    RESOURCES,
    STRING,
    Cursor,
    Unreadable,
    resources,
    sections,
    strings,
)

MODULE, FUNCTION = "builtin.module", "func.func"
FUNCTION_PROPERTIES = ("arg_attrs?", "function_type", "no_inline?", "res_attrs?", "sym_name", "sym_visibility?")
PRIVATE = ("private", "nested")
CONSTANTS = ("values", "value", "initial", "initial_value")
"""Properties that must be numbers."""


def read_module(data: memoryview, name: str = "<bytes>") -> Module:
    """Return the module of MLIR bytecode; its constants are views of `data`. Raises Unreadable, and a Problem for a supported
    but wrong operation."""
    try:
        return ModuleReader(data, name).module()
    except (IndexError, KeyError, ValueError, RecursionError, struct.error) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


@dataclass(slots=True)
class VisibleValues:
    """The values that are visible, by number, and how many names of results and of arguments MLIR's text has given."""
    values: dict[int, Value] = field(default_factory=dict)
    results: int = 0
    arguments: int = 0


class ModuleReader:
    """Builds one module."""

    def __init__(self, data: memoryview, name: str) -> None:
        found = sections(data)
        self.position = whole(name)
        texts = strings(found[STRING])
        dialects, self.operators = operator_names(found[DIALECT], texts)
        blobs = resources(found[RESOURCE_OFFSETS], found[RESOURCES]) if RESOURCE_OFFSETS in found else []
        self.table = AttributeTable(texts, dialects, found[ATTRIBUTES], found[OFFSETS], blobs)
        self.properties = property_places(found[PROPERTIES])
        self.records = read_ir(found[IR])
        self.locations: dict[int, str | None] = {}

    # ---- modules and functions ---------------------------------------------------------------------------------------
    def module(self) -> Module:
        if len(self.records) != 1 or self.operators[self.records[0].operator] != MODULE:
            raise Unreadable("this is not one module")
        record = self.records[0]
        name = self.property_values(record, ("sym_name?", "sym_visibility?")).get("sym_name")
        functions: list[Function] = []
        declarations: list[Operation | None] = []
        for item in only_region(record).operations:
            if self.operators[item.operator] == FUNCTION:
                functions.append(self.function(item))
            else:
                declarations.append(self.operation(item, VisibleValues(),
                                                   self.position.inside(f"operation {len(declarations)}")))
        return Module(tuple(functions), tuple(filter(None, declarations)), name if isinstance(name, str) else None,
                      self.discardable(record), self.position)

    def function(self, record: Record) -> Function:
        places = self.property_numbers(record, FUNCTION_PROPERTIES)
        type = self.table.function_type(places.pop("function_type"))
        given = {key: self.table.attribute(number) for key, number in places.items()}
        name = given["sym_name"]
        if not isinstance(name, str) or "no_inline" in given:
            raise Unreadable("a function without a name, or with an attribute that is not known")
        position = self.position.inside(f"function {name}")
        body = self.block(only_region(record), VisibleValues(), RETURNS, position)
        if tuple(a.type for a in body.arguments) != type.operands:
            raise Unreadable("a function whose arguments are others than its type says")
        attributes = self.discardable(record)
        return Function(name, body, type.results, attributes, each(given.get("arg_attrs"), len(type.operands)),
                        each(given.get("res_attrs"), len(type.results)), given.get("sym_visibility") in PRIVATE, position)

    def discardable(self, record: Record) -> Dictionary:
        return {} if record.attributes is None else self.table.dictionary(record.attributes)

    # ---- blocks and operations ---------------------------------------------------------------------------------------
    def block(self, region: BytecodeRegion, names: VisibleValues, terminators: Sequence[str], position: FilePosition) -> Block:
        """The block of a region. Its arguments and results are named first, then those of the regions inside."""
        types = [self.table.value_type(t) for t in region.arguments]
        arguments = tuple(Value(f"arg{names.arguments + i}", t, position) for i, t in enumerate(types))
        names.values.update(enumerate(arguments, region.first))
        inner = VisibleValues(names.values, names.results, names.arguments + len(arguments))
        number = region.first + len(arguments)
        *others, end = region.operations
        if self.operators[end.operator] not in terminators or end.results or end.regions:
            raise Unreadable("a block without its end")
        total = names.results + sum(bool(record.results) for record in others)
        operations: list[Operation] = []
        for index, record in enumerate(others):
            here = position.inside(f"operation {index} {self.operators[record.operator]}")
            inside = VisibleValues(names.values, total, inner.arguments)
            found = self.operation(record, inside, here, inner.results, number)
            inner.results += bool(record.results)
            number += len(record.results)
            operations += [found] if found else []
        yields = tuple(names.values[i] for i in end.operands)
        return Block(arguments, tuple(operations), yields, position, position)

    def operation(self, record: Record, names: VisibleValues, position: FilePosition, name: int = 0,
                  number: int = 0) -> Operation | None:
        """The operation of the graph, its results numbered from `number` on; None for a conversion that converts nothing."""
        spelling = self.operators[record.operator]
        operands = tuple([names.values[i] for i in record.operands])
        results = tuple([self.table.value_type(t) for t in record.results])
        if spelling == CAST:
            if tuple(v.type for v in operands) == results:
                names.values.update(enumerate(operands, number))
                return None
            if not converts_nothing([v.type for v in operands], results):
                raise Unreadable("a conversion between types")
        op, rest = self.operator(record, spelling, operands, results, position)
        regions = self.regions(record, op, names, position)
        constant = op.constant(operands)
        location = self.location(record.location)
        position = position.called(location_name(location))
        spelled = [str(name)] if len(results) == 1 else [f"{name}#{i}" for i in range(len(results))]
        values = tuple([Value(n, t, position, constant) for n, t in zip(spelled, results)])
        names.values.update(enumerate(values, number))
        return Operation(op, operands, values, regions, rest, position, location)

    def location(self, index: int) -> str | None:
        """MLIR's `loc("...")` with the name in a location; None where it has none. Each is read once."""
        if index not in self.locations:
            found = self.table.location_name(index)
            self.locations[index] = f"loc({quoted(found)})" if found else None
        return self.locations[index]

    def regions(self, record: Record, op: Op, names: VisibleValues, position: FilePosition) -> tuple[Block, ...]:
        if len(record.regions) != op.regions or any(r.isolated for r in record.regions):
            raise Unreadable(f"the regions of {op.name}")
        blocks: list[Block] = []
        for region in record.regions:
            inside = VisibleValues(dict(names.values), names.results, names.arguments)
            blocks.append(self.block(region, inside, YIELDS, position.inside(f"region {len(blocks)}")))
        return tuple(blocks)

    def operator(self, record: Record, spelling: str, operands: Sequence[Value], results: Sequence[Type],
                 position: FilePosition) -> tuple[Op, Dictionary]:
        if spelling == CAST:
            return Identity() if len(results) == 1 else IdentityN(), self.discardable(record)
        found = OPERATORS.get(spelling)
        if found is None:
            raise Unreadable(f"the operator {spelling}")
        rest = self.discardable(record)
        given = rest | self.property_values(record, property_names(found))
        if any(isinstance(given.get(key), Text) for key in CONSTANTS):
            raise Unreadable(f"a constant of {spelling}")
        try:
            given = typed_variable(found, given, results) if found.variable_effect else given
            return make_operator(found, given, [v.type for v in operands], results, lambda name: position)
        except Problem as problem:
            raise problem.at(position) from None

    # ---- properties --------------------------------------------------------------------------------------------------
    def property_values(self, record: Record, names: Sequence[str]) -> Dictionary:
        return {name: self.table.attribute(number) for name, number in self.property_numbers(record, names).items()}

    def property_numbers(self, record: Record, names: Sequence[str]) -> dict[str, int]:
        """The numbers of the attributes that are an operation's properties: one after the other, in the order of their
        names; those that may be missing (`?`) with a flag."""
        found: dict[str, int] = {}
        cursor = Cursor(self.properties[record.properties] if record.properties is not None else memoryview(b""))
        for name in names if record.properties is not None or any(not n.endswith("?") for n in names) else ():
            number, is_there = cursor.flagged() if name.endswith("?") else (cursor.number(), True)
            if is_there:
                found[name.rstrip("?")] = number
        if not cursor.is_at_end:
            raise Unreadable("properties that are not known")
        return found


def operator_names(section: memoryview, texts: list[bytes]) -> tuple[list[bytes], list[str]]:
    """The names of dialects, and of operators with their dialects: `tosa.add`."""
    cursor = Cursor(section)
    dialects = []
    for _ in range(cursor.number()):
        name, has_version = cursor.flagged()
        if has_version:
            raise Unreadable("a dialect with a version")
        dialects.append(texts[name])
    operators: list[str] = []
    count = cursor.number()
    while len(operators) < count:
        dialect = dialects[cursor.number()].decode()
        operators += [f"{dialect}.{texts[cursor.flagged()[0]].decode()}" for _ in range(cursor.number())]
    return dialects, operators


def property_places(section: memoryview) -> list[memoryview]:
    cursor = Cursor(section)
    return [cursor.blob() for _ in range(cursor.number())]


def property_names(operator: type[Op]) -> tuple[str, ...]:
    """An operator's properties by their names in MLIR, in their order, those that may be missing with `?`."""
    if operator.variable_effect:
        return ("initial_value?", "sym_name", "type", "var_shape") if operator.variable_effect == "declare" else ("name",)
    fields = dataclasses.fields(operator)  # type: ignore[arg-type]  # each subclass of Op is made a dataclass
    written = [f for f in fields if f.metadata.get("mlir") not in ("result", "none")]
    return tuple(sorted(f.name + "?" * (f.default is not dataclasses.MISSING) for f in written))


def typed_variable(op: type[Op], given: Dictionary, results: Sequence[Type]) -> Dictionary:
    """The attributes of a variable's operator, with its tensor type in `type`."""
    match op.variable_effect, given.get("type"), given.get("var_shape"):
        case "read", _, _ if len(results) == 1:
            return given | {"type": results[0]}
        case "declare", ElementType() as element, Dense(array=extents):
            shape = tuple(None if n < 0 else int(n) for n in extents.reshape(-1))
            type, initial = TensorType(shape, element), given.get("initial_value")
            if isinstance(initial, Dense) and initial.type != type:
                raise Unreadable("a variable with an initial value of another type")
            return {k: v for k, v in given.items() if k != "var_shape"} | {"type": type}
    return given


def only_region(record: Record) -> BytecodeRegion:
    if len(record.regions) != 1:
        raise Unreadable("one region is expected")
    return record.regions[0]


def each(value: Attribute | None, count: int) -> tuple[Mapping[str, Attribute], ...]:
    """`arg_attrs` or `res_attrs`: one dictionary each, or none at all."""
    found = tuple(v for v in value if isinstance(v, dict)) if isinstance(value, tuple) else ()
    return found if len(found) == count else ({},) * count
