"""A .tosa file -> the tensor graph.

`read_module` decodes the bytes to records (`decode`) and builds functions and declarations from those; `verify` of the graph
then checks the result. The first region is the main function; regions that operators name are their blocks; other regions are
further functions. Any error in a file is a `Problem` at its position in the file.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...runtime.errors import Label, Problem, require
from ...runtime.records import dataclass
from ..dialects import tosa  # noqa: F401  registers the operators
from ..dialects.tosa.layout import Slice
from ..dialects.tosa.variable import Variable, VariableRead, VariableWrite
from ..graph.file_position import FilePosition, shown, whole
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.operator import Op
from ..graph.types import Array, ShapeType, TensorType, Type
from ..graph.verify import MAXIMUM_NESTING, symbol_of
from ..text.location_name import location_name
from ..text.printer import IDENTIFIER
from .constant_cache import ConstantCache
from .decode import decode
from .operators import make_operator
from .order import Cycle, in_order
from .position import location_of
from .records import BlockRecord, FileRecord, OperatorRecord, RegionRecord, ShapeRecord, TensorRecord
from .schema import REGIONS
from .tensor_names import NAME_ATTRIBUTE
from .tensors import UNKNOWN_EXTENT, type_of

SHARED_PARTS = 20_000
"""Maximum number of additional operators, tensors and names of regions that several operators name."""


def read_module(data: bytes | bytearray | memoryview, name: str = "<bytes>") -> Module:
    """Return the module of a .tosa file. Constants are views of `data` where possible.

    `name` is the name of the file in problems. Raises a Problem for a file that is damaged or makes no sense.
    """
    position = whole(name)
    return ModuleReader(decode(bytes(data), position), position).module()


class ModuleReader:
    """The builder of one module from its records."""

    def __init__(self, file: FileRecord, position: FilePosition) -> None:
        self.file, self.position = file, position
        self.regions: dict[str, RegionRecord] = {}
        self.declarations: dict[str, Operation] = {}
        self.with_operator: set[str] = set()
        self.constants = ConstantCache()
        self.is_dynamic = has_unknown_extents(file)
        for region in file.regions:
            if region.name in self.regions:
                raise Problem(f"there are two regions {shown(region.name)}", position, kind="symbol")
            self.regions[region.name] = region

    def module(self) -> Module:
        if not self.regions:
            raise Problem("the file has no regions", self.position, kind="model")
        named = {o.fields[key] for r in self.file.regions for b in r.blocks for o in b.operators
                 for key in REGIONS.get(o.attribute.name, ()) if o.fields}
        budget = Budget(SHARED_PARTS + sum(parts(b) for r in self.file.regions for b in r.blocks))
        functions = tuple(self.function(region, budget) for number, region in enumerate(self.file.regions)
                          if number == 0 or region.name not in named)
        return Module(functions, self.own_declarations(functions), position=self.position)

    def own_declarations(self, functions: Sequence[Function]) -> tuple[Operation, ...]:
        """Return the variables that the file declares: a tensor without data and without the operator VARIABLE that the file
        reads and never writes is a variable that another graph declares."""
        effects = [(o.op.variable_effect, symbol_of(o)) for f in functions for o in f.body.walk() if o.op.variable_effect]
        read, written = ({symbol for effect, symbol in effects if effect == wanted} for wanted in ("read", "write"))
        external = read - written - self.with_operator
        return tuple(o for symbol, o in self.declarations.items()
                     if symbol not in external or o.op.initial is not None)  # type: ignore[attr-defined]

    def function(self, region: RegionRecord, budget: Budget) -> Function:
        here = self.position.inside(f"region {region.name}")
        block = self.only_block(region, here)
        body = BlockReader(self, block, here.inside(f"block {block.name}"), 0, budget).block()
        return Function(region.name, body, tuple(v.type for v in body.yields), {},
                        names(body.arguments, block.inputs), names(body.yields, block.outputs), position=here)

    def only_block(self, region: RegionRecord, position: FilePosition) -> BlockRecord:
        if len(region.blocks) != 1:
            raise Problem(f"region {shown(region.name)} has {len(region.blocks)} blocks, one is needed", position, kind="model")
        return region.blocks[0]

    def variable(self, record: TensorRecord, type: TensorType, position: FilePosition, has_operator: bool) -> str:
        """Declare the variable of a tensor, once for all blocks that have it; return its name. `has_operator`: VARIABLE
        declares it."""
        symbol = record.variable_name or record.name
        if has_operator:
            self.with_operator.add(symbol)
        initial = None if record.data is None else self.constants.data_of(record, type)
        found = self.declarations.get(symbol)
        if found is None:
            op = Variable(symbol=symbol, type=type, initial=initial)
            self.declarations[symbol] = Operation(op, (), (), position=position)
            return symbol
        known: Any = found.op
        before = (Label(found.position, "it is declared here"),)
        if known.type != type:
            raise Problem(f"variable {shown(symbol)} is {type} here", kind="variable", labels=before)
        if not self.constants.same(known.initial, initial):
            raise Problem(f"variable {shown(symbol)} has another initial value here", kind="variable", labels=before)
        return symbol

    def region(self, name: str, position: FilePosition, depth: int, budget: Budget) -> Block:
        """Return a new block for each use of a region."""
        found = self.regions.get(name)
        if found is None:
            raise Problem(f"there is no region {shown(name)}", position, kind="symbol")
        here = self.position.inside(f"region {name}")
        block = self.only_block(found, here)
        return BlockReader(self, block, here.inside(f"block {block.name}"), depth, budget).block()


def has_unknown_extents(file: FileRecord) -> bool:
    """True if an input of the main graph has an unknown extent."""
    blocks = [block for region in file.regions[:1] for block in region.blocks]
    inputs = {name for block in blocks for name in block.inputs}
    return any(UNKNOWN_EXTENT in tensor.shape for block in blocks for tensor in block.tensors if tensor.name in inputs)


def names(values: Sequence[Value], given: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """Return the attributes that keep tensor names that MLIR cannot write; nothing if it can write all."""
    found = tuple({} if IDENTIFIER.fullmatch(name) else {NAME_ATTRIBUTE: name} for name in given)
    return found if any(found) else ()


CONSTANTS: dict[str, type[TensorType] | type[ShapeType]] = {"CONST": TensorType, "CONST_SHAPE": ShapeType}
"""Operators whose result holds their data, and the type of that result."""
EFFECTS = {"VARIABLE": "declare", "VARIABLE_READ": "read", "VARIABLE_WRITE": "write"}
COUNTS = {"declare": (0, 1), "read": (1, 1), "write": (1, 1)}
"""Number of operands and of results of the operators of variables."""


@dataclass(slots=True)
class Budget:
    """The number of parts of blocks that may still be made: a region is made anew for each operator that names it."""
    parts: int

    def spend(self, count: int, position: FilePosition) -> None:
        self.parts -= count
        if self.parts < 0:
            raise Problem("too many operators share their regions", position, kind="level")


def parts(block: BlockRecord) -> int:
    """Return the number of parts of a block."""
    return 1 + len(block.operators) + len(block.tensors) + len(block.shapes) + len(block.inputs) + len(block.outputs)


def effect_of(record: OperatorRecord) -> str:
    """Return "declare", "read" or "write" for operators of variables, whatever their code is."""
    code, attribute = record.code.name, record.attribute.name
    if code != attribute and (code != "IDENTITY" or attribute not in EFFECTS):
        raise Problem(f"{code} has the attributes of {attribute}", kind="attribute")
    return EFFECTS.get(attribute, "")


class BlockReader:
    """The builder of one block. `depth` is the number of enclosing regions."""

    def __init__(self, module: ModuleReader, record: BlockRecord, position: FilePosition, depth: int, budget: Budget) -> None:
        self.module, self.record, self.position, self.depth, self.budget = module, record, position, depth, budget
        self.records: dict[str, TensorRecord | ShapeRecord] = {}
        self.types: dict[str, TensorType | ShapeType] = {}
        self.variables: dict[str, str] = {}
        self.values: dict[str, Value] = {}
        if depth > MAXIMUM_NESTING:
            raise Problem(f"control flow is nested {depth} deep, level 8K allows {MAXIMUM_NESTING}", position, kind="level")
        budget.spend(parts(record), position)
        self.effects = tuple(self.effect(number) for number in range(len(record.operators)))

    def block(self) -> Block:
        declared = {o.outputs[0] for o, effect in zip(self.record.operators, self.effects) if effect == "declare" and o.outputs}
        for number, tensor in enumerate(self.record.tensors):
            self.declare(tensor, self.position.inside(f"tensor {tensor.name or number}"), tensor.name in declared)
        for number, shape in enumerate(self.record.shapes):
            self.declare(shape, self.position.inside(f"shape {shape.name or number}"), False)
        arguments = tuple(self.argument(number, name) for number, name in enumerate(self.record.inputs))
        found = [self.operation(number) for number in self.order()]
        yields = tuple(self.output(number, name) for number, name in enumerate(self.record.outputs))
        return Block(arguments, tuple(o for o in found if o), yields, self.position, self.position)

    # Tensors and shapes

    def declare(self, record: TensorRecord | ShapeRecord, position: FilePosition, is_variable: bool) -> None:
        """Record the type of a name; declare variables in the module."""
        try:
            if record.name in self.types:
                raise Problem(f"{shown(record.name)} is the name of two tensors or shapes of the block", kind="symbol")
            type = self.types[record.name] = type_of(record, self.module.is_dynamic)
            self.records[record.name] = record
            if isinstance(record, TensorRecord) and (is_variable or record.variable):
                assert isinstance(type, TensorType)
                self.variables[record.name] = self.module.variable(record, type, position, is_variable)
        except Problem as problem:
            raise problem.at(position) from None

    def argument(self, number: int, name: str) -> Value:
        here = self.position.inside(f"input {number} {name}")
        if name not in self.types:
            raise Problem(f"no tensor of the block is called {shown(name)}", here, kind="symbol")
        if name in self.values:
            raise Problem(f"{shown(name)} is an input twice", here, kind="symbol")
        if name in self.variables:
            raise Problem(f"the variable {shown(name)} cannot be an input", here, kind="variable")
        value = self.values[name] = Value(name, self.types[name], here)
        return value

    def output(self, number: int, name: str) -> Value:
        found = self.values.get(name)
        if found is None:
            raise Problem(f"no operator produces {shown(name)}", self.position.inside(f"output {number} {name}"), kind="symbol")
        return found

    # Operators

    def place(self, number: int) -> FilePosition:
        return self.position.inside(f"operator {number} {self.record.operators[number].code.name}")

    def effect(self, number: int) -> str:
        try:
            return effect_of(self.record.operators[number])
        except Problem as problem:
            raise problem.at(self.place(number)) from None

    def order(self) -> list[int]:
        """Return the numbers of the operators in an order in which they can run."""
        makers: dict[str, int] = {}
        for number, operator in enumerate(self.record.operators):
            for name in operator.outputs if self.effects[number] in ("", "read") else ():
                if name in makers or name in self.values:
                    who = "is an input of the block" if name in self.values else f"is the result of operator {makers[name]}"
                    raise Problem(f"{shown(name)} already {who}", self.place(number), kind="symbol")
                if name in self.variables:
                    raise Problem(f"the result is the variable {shown(name)}", self.place(number), kind="variable",
                                  help="only the attribute VariableWriteAttribute writes one")
                makers[name] = number
        has_effect = [bool(effect) or o.code.name in REGIONS for effect, o in zip(self.effects, self.record.operators)]
        try:
            return in_order(self.record.operators, makers, has_effect)
        except Cycle as cycle:
            raise Problem("the operands are never there: operators need each other's results", self.place(cycle.number),
                          kind="ssa") from None

    def operation(self, number: int) -> Operation | None:
        record, here, effect = self.record.operators[number], self.place(number), self.effects[number]
        try:
            return self.variable_operation(record, effect, here) if effect else self.compute(record, here)
        except Problem as problem:  # a Problem with a position is of an operator in a region
            raise (problem if problem.position else problem.of(f"tosa.{record.code.name.lower()}").at(here)) from None

    def compute(self, record: OperatorRecord, here: FilePosition) -> Operation:
        """Read an operator that does not access variables."""
        operands = tuple(self.use(i, name) for i, name in enumerate(record.inputs))
        types = tuple(self.type_of(name, f"result {i}") for i, name in enumerate(record.outputs))
        data = self.constant(record) if record.code.name in CONSTANTS else None
        op = make_operator(record, tuple(v.type for v in operands), types, data)
        if isinstance(op, Slice) and not self.module.is_dynamic:
            check_sizes(operands)
        regions = tuple(self.module.region(record.fields.get(key, ""), here, self.depth + 1, self.budget)
                        for key in REGIONS.get(record.code.name, ()))
        return self.finished(record, op, operands, types, regions, here)

    def finished(self, record: OperatorRecord, op: Op, operands: tuple[Value, ...], types: tuple[Type, ...],
                 regions: tuple[Block, ...], here: FilePosition) -> Operation:
        """Return the operation, and record its results by their names."""
        known, location = op.constant(operands), location_of(record.location)
        here = here.called(location_name(location))
        results = tuple(Value(name, type, here, known) for name, type in zip(record.outputs, types))
        self.values.update((v.name, v) for v in results)
        return Operation(op, operands, results, regions, {}, here, location)

    def use(self, number: int, name: str) -> Value:
        found = self.values.get(name)
        if found is None:
            self.type_of(name, f"operand {number}")
            raise Problem(f"operand {number}, {shown(name)}, is produced by no operator and no input of the block",
                          kind="symbol")
        return found

    def type_of(self, name: str, what: str) -> TensorType | ShapeType:
        found = self.types.get(name)
        if found is None:
            raise Problem(f"{what} is {shown(name)}, which no tensor of the block is called", kind="symbol")
        return found

    def constant(self, record: OperatorRecord) -> Array:
        """Return the data of a CONST or CONST_SHAPE, which its result holds."""
        check_counts(record, (0, 1))
        name, wanted = record.outputs[0], CONSTANTS[record.code.name]
        type = self.type_of(name, "the result")
        if not isinstance(type, wanted):
            raise Problem(f"the result of {record.code.operator}, {shown(name)}, is {type}", kind="type")
        return self.module.constants.data_of(self.records[name], type)

    def variable_operation(self, record: OperatorRecord, effect: str, here: FilePosition) -> Operation | None:
        """Read an operator that reads or writes a variable; a declaration is the tensor's, and its operator adds nothing."""
        check_counts(record, COUNTS[effect])
        name = record.inputs[0] if effect == "read" else record.outputs[0]
        type = self.type_of(name, "the variable")
        if name not in self.variables or not isinstance(type, TensorType):
            raise Problem(f"{shown(name)} is no variable", kind="variable")
        match effect:
            case "read":
                result = self.type_of(record.outputs[0], "the result")
                op = VariableRead(symbol=self.variables[name], type=type)
                return self.finished(record, op, (), (result,), (), here)
            case "write":
                write = VariableWrite(symbol=self.variables[name])
                value = self.use(0, record.inputs[0])
                return Operation(write, (value,), (), (), {}, here, location_of(record.location))
            case _:
                return None


def check_sizes(operands: tuple[Value, ...]) -> None:
    """Check SLICE's sizes, which are numbers of elements in a .tosa file: -1 for all remaining elements exists in MLIR only."""
    sizes = operands[-1].constant if operands else None
    if sizes is not None and bool((sizes < 1).any()):
        raise Problem(f"size must be positive, it is {sizes.reshape(-1).tolist()}", kind="shape")


def check_counts(record: OperatorRecord, wanted: tuple[int, int]) -> None:
    """Raise a Problem unless the operator has the `wanted` numbers of operands and results."""
    found = (len(record.inputs), len(record.outputs))
    require(found == wanted, f"{record.attribute.operator} has {found[0]} operands and {found[1]} results, "
            f"it must have {wanted[0]} and {wanted[1]}")
