"""The reader from the syntax of operations to operations of the graph: it resolves operands, checks types, and makes operators.

Every form is treated alike, by the table of operators and their fields. Only conversion casts (dropped if they convert nothing)
and variables (whose type is written in three ways) have code of their own.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from ...runtime.errors import Position, Problem, Source
from ...runtime.records import dataclass
from ..dialects.onnx.node import PREFIX as ONNX_PREFIX
from ..dialects.onnx.node import RETURN, OnnxOp
from ..dialects.standard.blocks import BRANCHES
from ..dialects.standard.operators import CONDITION, CONSTANT, EXTRACT, SCF_YIELD, STANDARD, StandardOp
from ..dialects.tf.operator import PREFIX, YIELD, TensorFlowOp
from ..dialects.tf_executor.operators import PREFIX as EXECUTOR
from ..dialects.tosa.data import Identity, IdentityN
from ..graph.graph import Block, Operation, Value
from ..graph.operator import OPERATORS, Op, UnknownOp
from ..graph.quantized import is_quantized, storage_type
from ..graph.types import ElementType, TensorType, Type
from .attribute_reader import AttributeReader
from .attributes import Attribute, Dense, Dictionary, Symbol, Text
from .fields import make_operator
from .location_name import location_name
from .names import Scopes, uses
from .syntax import AnyOperation, OperationSyntax, RegionSyntax, place
from .types import TypeReader

if TYPE_CHECKING:
    from lark import Token

SPECIAL = (EXECUTOR, PREFIX, "wraps", "constant")
"""Prefixes of the names of operations whose written form may differ from their normal form."""
OWN = "tosa."
CAST = "builtin.unrealized_conversion_cast"
RETURNS = ("return", "func.return")
YIELDS = ("tosa.yield",)
FETCH, ISLAND_YIELD, TENSORFLOW_YIELD = ("tf_executor.fetch",), ("tf_executor.yield",), (YIELD,)
IMPLICIT = (FETCH, ISLAND_YIELD, (SCF_YIELD,))
"""Terminators that a text may leave out in MLIR if they yield nothing."""
TERMINATORS = frozenset((*RETURNS, *YIELDS, *FETCH, *ISLAND_YIELD, *TENSORFLOW_YIELD, RETURN, SCF_YIELD, CONDITION, *BRANCHES))


def ends_in(operations: Sequence[AnyOperation], terminators: Sequence[str]) -> bool:
    """True if the last of these operations is one of the terminators."""
    last = operations[-1] if operations else None
    return isinstance(last, OperationSyntax) and last.spelling in terminators


@dataclass()
class OperationReader:
    """The reader of one text's operations; `scopes` holds the names that are visible at the current position."""
    source: Source
    types: TypeReader
    attributes: AttributeReader
    scopes: Scopes
    special: Callable[[OperationReader, OperationSyntax], Operation | None]
    """Reader of an operation of `SPECIAL`, from `executor`."""
    conversions: dict[Value, Operation] = field(default_factory=dict)
    """Results of conversions between different types, which nothing may use."""
    before: list[Operation] = field(default_factory=list)
    """Operations to insert before the one that is being read: constants that are written as operands."""

    # Regions

    def region(self, syntax: RegionSyntax, entry: Sequence[tuple[Token, Type]], terminators: Sequence[str]) -> Block:
        """Return the one block of a region. `entry` holds arguments that are named outside it. Without `terminators` (the
        region of an unknown operator) its last operation is an ordinary one."""
        if len(syntax.blocks) > 1:
            raise Problem("a region of more than one block is not supported",
                          place(self.source, syntax.blocks[1].label or syntax.start), kind="unsupported",
                          help="lift branches to tosa.cond_if and tosa.while_loop first")
        block, outside, before = syntax.blocks[0], self.scopes.names, self.before
        self.scopes.names, self.before = [*outside, {}], []
        declared = [(a.name, self.types.value(a.type)) for a in block.arguments if a.name is not None]
        arguments = tuple(self.scopes.argument(name, type) for name, type in declared or entry)
        is_open = terminators in IMPLICIT and not ends_in(block.operations, terminators)
        last = block.operations[-1] if block.operations and terminators and not is_open else None
        others = block.operations[:-1] if last else block.operations
        found: list[Operation] = []
        for inner in others:
            operation = self.any_operation(inner, terminators)
            found += [*self.before, operation] if operation else ()
            self.before.clear()
        end = self.terminator(last, terminators, syntax) if terminators and not is_open else None
        yields = self.yielded(end) if end else ()
        self.scopes.names, self.before = outside, before
        given = self.attributes.dictionary(end.properties) | self.attributes.dictionary(end.attributes) if end else {}
        return Block(arguments, tuple(found), yields, place(self.source, block.label or syntax.start),
                     place(self.source, end.name if end else syntax.end), given)

    def yielded(self, end: OperationSyntax) -> tuple[Value, ...]:
        """Return the values that a terminator yields."""
        try:
            return self.operands(end)[0]
        except Problem as problem:
            raise (problem.of(end.spelling) if end.spelling.startswith(EXECUTOR) else problem) from None

    def terminator(self, last: AnyOperation | None, terminators: Sequence[str],
                   region: RegionSyntax) -> OperationSyntax:
        """Return the last operation of a block, which must be one of these terminators."""
        if isinstance(last, OperationSyntax) and last.spelling in terminators:
            if last.results or last.regions:
                raise Problem(f"{last.spelling} has no results and no regions", place(self.source, last.name),
                              kind="type")
            return last
        if last is not None:
            self.any_operation(last, terminators)
        raise Problem(f"expected {terminators[0]} at the end of the block", place(self.source, region.end),
                      kind="syntax")

    def any_operation(self, syntax: AnyOperation, terminators: Sequence[str]) -> Operation | None:
        """Return an operation that is not a terminator."""
        if not isinstance(syntax, OperationSyntax):
            raise Problem(f"{syntax.keyword} is not allowed inside a function", place(self.source, syntax.keyword),
                          kind="syntax")
        if terminators and syntax.spelling in TERMINATORS:
            rule = "must be the last operation of" if syntax.spelling in terminators else "is not allowed in"
            raise Problem(f"{syntax.spelling} {rule} this block", place(self.source, syntax.name), kind="syntax")
        return self.operation(syntax)

    def regions(self, syntax: OperationSyntax, op: Op, operands: tuple[Value, ...]) -> tuple[Block, ...]:
        """Return the regions of an operation. Names in its parentheses are the arguments of each region without a header."""
        wanted = None if isinstance(op, UnknownOp) else op.regions
        if wanted is not None and len(syntax.regions) != wanted:
            raise Problem(f"{op.name} has {wanted} regions, found {len(syntax.regions)}", kind="type")
        bound = operands[len(operands) - len(syntax.entry_names):]
        entry = [(name, value.type) for name, value in zip(syntax.entry_names, bound)]
        ends = [(op.terminator_of(n),) if op.foreign else () if wanted is None else YIELDS for n in range(len(syntax.regions))]
        return tuple(self.region(region, entry, end) for region, end in zip(syntax.regions, ends))

    # Operations

    def operation(self, syntax: OperationSyntax) -> Operation | None:
        """Return the operation of the graph; None for a conversion that converts nothing."""
        if syntax.spelling.startswith(SPECIAL):
            return self.special(self, syntax)
        return self.plain(syntax)

    def plain(self, syntax: OperationSyntax) -> Operation | None:
        """Return an operation that is kept as it is written."""
        position = place(self.source, syntax.name)
        operands, results = self.operands(syntax)
        results = self.implied_results(syntax, results)
        if syntax.spelling == CAST and tuple(v.type for v in operands) == results:
            self.scopes.rename(syntax.results, operands)
            return None
        try:
            op, rest = self.operator(syntax, operands, results)
            if syntax.spelling == CAST and converts_nothing([v.type for v in operands], results):
                op = Identity() if len(results) == 1 else IdentityN()
            regions = self.regions(syntax, op, operands)
        except Problem as problem:
            raise problem.at(position) from None
        constant = op.constant(operands)
        values = self.scopes.results(syntax.results, results, syntax.name, constant)
        location = self.attributes.location(syntax.location)
        operation = Operation(op, operands, values, regions, rest, position.called(location_name(location)), location)
        if isinstance(op, UnknownOp) and syntax.spelling == CAST:
            self.conversions.update((v, operation) for v in values)
        return operation

    def implied_results(self, syntax: OperationSyntax, written: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the types of the results if the form leaves them out: a constant's is its value's, an element's its tensor's;
        `op %a : T` of an unknown dialect has a result if the text names it."""
        if syntax.spelling == CONSTANT and syntax.initial is not None and not written:
            return (self.types.as_value(self.attributes.type_of(syntax.initial)),)
        if syntax.spelling == EXTRACT and syntax.types.signature is None:
            element = getattr(written[0], "element", None)
            return (self.types.as_value(element),) if isinstance(element, ElementType) else written
        is_custom = syntax.types.signature is None and syntax.types.operands is None and not syntax.regions
        return () if is_custom and syntax.results is None and syntax.spelling not in STANDARD else written

    def operands(self, syntax: OperationSyntax) -> tuple[tuple[Value, ...], tuple[Type, ...]]:
        """Return the values of the operands, checked against their types in the text, and the types of the results."""
        values = self.scopes.operands(syntax.operands)
        signature, types = syntax.types.signature, syntax.types
        declared: Sequence[Type] | None
        if signature is not None:
            declared, results = self.types.signature(signature)
            if types.operands is not None:
                declared = (*map(self.types.value, types.operands), *declared)
        else:
            declared = None if types.operands is None else tuple(map(self.types.value, types.operands))
            results = tuple(map(self.types.value, types.results))
        if declared is not None and tuple(v.type for v in values) != tuple(declared):
            raise self.mismatch(syntax, values, declared)
        for value in values if self.conversions and syntax.spelling.startswith(OWN) else ():
            if value in self.conversions:
                raise self.unconverted(value)
        return values, results

    def mismatch(self, syntax: OperationSyntax, values: tuple[Value, ...], declared: Sequence[Type]) -> Problem:
        """Return the Problem of operands that differ from their types in number or type."""
        if len(values) != len(declared):
            where = syntax.types.signature or syntax.name
            return Problem(f"{syntax.spelling} has {len(values)} operands, but {len(declared)} operand types",
                           place(self.source, where), kind="type")
        places = list(uses(syntax.operands))
        number = next(i for i, (v, t) in enumerate(zip(values, declared)) if v.type != t)
        match, token = places[number]
        return Problem(f"operand {number}, {match.group()}, is {values[number].type}, but its type here is "
                       f"{declared[number]}", place(self.source, token, match.start(), len(match.group())), kind="type")

    def unconverted(self, value: Value) -> Problem:
        cast = self.conversions[value]
        before = ", ".join(str(v.type) for v in cast.operands)
        return Problem(f"a conversion from {before} to {value.type} is not supported", cast.position,
                       kind="unsupported")

    # Operators

    def operator(self, syntax: OperationSyntax, operands: tuple[Value, ...],
                 results: tuple[Type, ...]) -> tuple[Op, Dictionary]:
        """Return the operator and the discardable attributes of an operation."""
        properties = self.attributes.dictionary(syntax.properties)
        rest = self.attributes.dictionary(syntax.attributes)
        for name, value in syntax.inline:
            properties[str(name)] = self.attributes.read(value)
        if syntax.symbol is not None:
            key = "callee" if syntax.spelling == "func.call" else "symbol"
            properties[key] = Symbol(self.attributes.symbol(syntax.symbol))
        if syntax.initial is not None:
            properties["value" if syntax.declared is None and syntax.name.type == "NAMED_CONSTANT" else "initial"] = (
                self.attributes.read(syntax.initial))
        if syntax.spelling.startswith(PREFIX):
            return TensorFlowOp(spelling=syntax.spelling, properties=properties), rest
        if syntax.spelling in STANDARD:
            return StandardOp(spelling=syntax.spelling, properties=properties), rest
        if syntax.spelling.startswith(ONNX_PREFIX):
            return OnnxOp(spelling=syntax.spelling, properties=properties), rest
        found = OPERATORS.get(syntax.spelling)
        given = rest | properties
        constants = [given[k] for k in ("values", "value", "initial", "initial_value") if k in given]
        if found is None or any(isinstance(c, Text) for c in constants):
            return UnknownOp(spelling=syntax.spelling, properties=properties), rest
        if found.variable_effect:
            given = self.typed_variable(found, syntax, given, results)
        return make_operator(found, given, [v.type for v in operands], results, partial(self.find_attribute, syntax))

    def find_attribute(self, syntax: OperationSyntax, name: str) -> Position | None:
        """Return the position of an attribute."""
        dictionaries = filter(None, (syntax.properties, syntax.attributes))
        keys = [key for d in dictionaries for key, _ in d.entries] + [i.name for i in syntax.inline]
        return next((place(self.source, key) for key in keys if key.strip('"') == name), None)

    def typed_variable(self, op: type[Op], syntax: OperationSyntax, given: dict[str, Attribute],
                       results: tuple[Type, ...]) -> dict[str, Attribute]:
        """Return the attributes of a variable's operator, with its tensor type in `type`."""
        initial = given.get("initial", given.get("initial_value"))
        match op.variable_effect, given.get("type"), given.get("var_shape"):
            case "read", _, _:
                return given | {"type": results[0]} if len(results) == 1 else given
            case "declare", ElementType() as element, Dense(array=extents):
                shape = tuple(None if n < 0 else int(n) for n in extents.reshape(-1))
                given = {k: v for k, v in given.items() if k != "var_shape"} | {"type": TensorType(shape, element)}
            case "declare", None, _ if syntax.declared is not None:
                given = given | {"type": self.types.value(syntax.declared)}
            case "declare", None, _ if isinstance(initial, Dense):
                given = given | {"type": initial.type}
            case _:
                pass
        if isinstance(initial, Dense) and initial.type not in (given.get("type"), storage_type(given.get("type"))):
            raise Problem(f"the variable is {given.get('type')}, its initial value is {initial.type}", kind="variable")
        return given


def converts_nothing(before: Sequence[Type], after: Sequence[Type]) -> bool:
    """True if a conversion only adds or drops quantization parameters."""
    return (len(before) == len(after) > 0 and any(is_quantized(t) for t in (*before, *after))
            and all(a == b or (storage_type(a) == storage_type(b) and not (is_quantized(a) and is_quantized(b)))
                    for a, b in zip(before, after)))
