"""Executor graphs in MLIR text -> their normal form, in whichever form they are written.

TensorFlow prints one form; its dialects' design document writes another, with fewer results and other operand orders. Both are
read here, from the same syntax tree, to the operators of `dialects/tf_executor`, whose docstring describes the normal form.
`executor_types.py` completes the types that a short form leaves out; `document.py` reads forms that only the document has.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..dialects.tf.operator import PREFIX as TENSORFLOW
from ..dialects.tf_executor.operators import (
    EXECUTOR_OPERATORS,
    Enter,
    ExecutorOp,
    Graph,
    Island,
    Merge,
    NextIterationSource,
    Switch,
)
from ..dialects.tf_executor.types import CONTROL, is_data
from ..graph.graph import Block, Operation, Value
from ..graph.operator import Op, UnknownOp
from ..graph.types import I1, TensorType, Type
from .attributes import Attribute, Dictionary
from .document import is_document_branch, read_branch, read_message, read_splat, read_unquoted
from .executor_rules import WRAPS
from .executor_types import node_types
from .fields import make_operator
from .names import NAME, UNUSED
from .operations import ends_in
from .syntax import OperationSyntax, RegionSyntax, place

if TYPE_CHECKING:
    from .operations import OperationReader

GRAPH, ISLAND = "tf_executor.graph", "tf_executor.island"
FETCH, ISLAND_YIELD = ("tf_executor.fetch",), ("tf_executor.yield",)
MESSAGES = {"tf_executor.Send": "tf._Send", "tf_executor.Recv": "tf._Recv"}
FULL_MERGE, FULL_SOURCE = 3, 3
"""Number of results of the two operators for which the design document leaves one out."""


def read_special(reader: OperationReader, syntax: OperationSyntax) -> Operation | None:
    """Return an operation of TensorFlow's dialects, or one that only their design document writes."""
    name = syntax.spelling
    if name == WRAPS:
        return read_wrapping(reader, syntax)
    if name == "constant" and syntax.initial is not None:
        return read_splat(reader, syntax)
    if name.startswith(TENSORFLOW):
        if is_document_branch(syntax):
            return read_branch(reader, syntax)
        return read_unquoted(reader, syntax) if isinstance(syntax.operands, tuple) else reader.plain(syntax)
    if name in (GRAPH, ISLAND):
        return read_container(reader, syntax)
    if name in MESSAGES:
        return read_message(reader, syntax, MESSAGES[name])
    return read_node(reader, syntax) if name.startswith("tf_executor.") else reader.plain(syntax)


# Graphs and islands

def read_container(reader: OperationReader, syntax: OperationSyntax) -> Operation:
    """`tf_executor.graph` or `tf_executor.island` with its region."""
    position, is_graph = place(reader.source, syntax.name), syntax.spelling == GRAPH
    if len(syntax.regions) != 1:
        raise Problem(f"{syntax.spelling} has one region, found {len(syntax.regions)}", position, kind="executor")
    blocks = syntax.regions[0].blocks
    if len(blocks) > 1:
        raise Problem(f"{syntax.spelling} has one block, found {len(blocks)}",
                      place(reader.source, blocks[1].label or syntax.name), kind="executor")
    operands = read_operands(reader, syntax)
    if syntax.name.startswith('"'):
        check_generic(reader, syntax, FETCH if is_graph else ISLAND_YIELD)
    body = reader.region(syntax.regions[0], (), FETCH if is_graph else ISLAND_YIELD)
    types = tuple(v.type for v in body.yields if is_data(v.type) or not is_graph)
    check_declared(reader, syntax, types)
    return finish(reader, syntax, Graph() if is_graph else Island(), operands, types if is_graph else (*types, CONTROL),
                  (body,), discardable(reader, syntax))


def check_generic(reader: OperationReader, syntax: OperationSyntax, terminators: tuple[str, ...]) -> None:
    """Check the generic form, where nothing is implied: the block ends in its terminator, and an island yields a control
    token."""
    position = place(reader.source, syntax.name)
    if not ends_in(syntax.regions[0].blocks[0].operations, terminators):
        raise Problem(f"{syntax.spelling} has a block that ends in {terminators[0]}", position, kind="executor")
    results = reader.types.signature(syntax.types.signature)[1] if syntax.types.signature is not None else ()
    if syntax.spelling == ISLAND and results[-1:] != (CONTROL,):
        raise Problem(f"{ISLAND} gives control as its last result", position, kind="executor")


def check_declared(reader: OperationReader, syntax: OperationSyntax, found: tuple[Type, ...]) -> None:
    """Check that the declared results of a graph or an island, if any, are those that its region yields."""
    types = syntax.types
    if types.signature is not None:
        declared, token = reader.types.signature(types.signature)[1], types.signature
    elif types.results:
        declared, token = tuple(map(reader.types.value, types.results)), types.results[0]
    else:
        return
    declared = declared[:-1] if declared and declared[-1] == CONTROL else declared
    if declared != found:
        raise Problem(f"{syntax.spelling} gives ({', '.join(map(str, found))}), but its type here is "
                      f"({', '.join(map(str, declared))})", place(reader.source, token), kind="executor")


def read_wrapping(reader: OperationReader, syntax: OperationSyntax) -> Operation:
    """Return an island in the short form: it yields all results of the one operation after `wraps`."""
    controls = read_operands(reader, syntax)
    body = read_wrapped(reader, syntax.regions[0], syntax)
    types = (*(v.type for v in body.yields), CONTROL)
    return finish(reader, syntax, Island(), controls, types, (body,), {})


def read_wrapped(reader: OperationReader, region: RegionSyntax, island: OperationSyntax) -> Block:
    inner = region.blocks[0].operations[0]
    assert isinstance(inner, OperationSyntax)
    if inner.spelling.startswith("tf_executor.") and inner.spelling != GRAPH:
        raise Problem(f"tf_executor.island wraps an operation that may stand in an island, not {inner.spelling}",
                      place(reader.source, inner.name), kind="executor")
    outside, before = reader.scopes.names, reader.before
    reader.scopes.names, reader.before = [*outside, {}], []
    operation = reader.operation(inner._replace(location=island.location))
    assert operation is not None, "a wrapped operation is no conversion"
    operations = (*reader.before, operation)
    reader.scopes.names, reader.before = outside, before
    position = place(reader.source, inner.name)
    return Block((), operations, operation.results, position, position)


# The other operators

def read_node(reader: OperationReader, syntax: OperationSyntax) -> Operation:
    """Return an operator without a region; an operator that the dialect does not have is kept, for the verifier to refuse."""
    operator = EXECUTOR_OPERATORS.get(syntax.spelling)
    operands = read_operands(reader, syntax)
    position = place(reader.source, syntax.name)
    try:
        if syntax.regions:
            raise Problem(f"{syntax.spelling} has no regions, found {len(syntax.regions)}", kind="executor")
        types = node_types(reader, syntax, operator, operands)
        op, rest = make_node(reader, syntax, operator, operands, types)
    except Problem as problem:
        raise problem.of(syntax.spelling).at(position) from None
    if isinstance(op, Switch) and is_swapped(operands):
        operands = (operands[1], operands[0], *operands[2:])
    return finish(reader, syntax, op, operands, types, (), rest)


def read_operands(reader: OperationReader, syntax: OperationSyntax) -> tuple[Value, ...]:
    try:
        return reader.scopes.operands(syntax.operands)
    except Problem as problem:
        raise problem.of(ISLAND if syntax.spelling == WRAPS else syntax.spelling) from None


def make_node(reader: OperationReader, syntax: OperationSyntax, operator: type[ExecutorOp] | None,
              operands: tuple[Value, ...], types: tuple[Type, ...]) -> tuple[Op, Dictionary]:
    """Return the operator with its fields, and the attributes that are not fields."""
    given: dict[str, Attribute] = reader.attributes.dictionary(syntax.properties)
    for inline in syntax.inline:
        given[str(inline.name)] = reader.attributes.read(inline.value)
    rest = reader.attributes.dictionary(syntax.attributes)
    if operator is Enter and "frame_name" not in {**rest, **given} and isinstance(rest.get("name"), str):
        given["frame_name"] = rest.pop("name")  # as the design document calls it
    if operator is None:
        return UnknownOp(spelling=syntax.spelling, properties=given), rest
    return make_operator(operator, rest | given, [v.type for v in operands], types,
                         lambda name: reader.find_attribute(syntax, name))


def is_swapped(operands: tuple[Value, ...]) -> bool:
    """True if a Switch has its predicate first, as the design document writes it: a boolean, and data that is not boolean."""
    if len(operands) < 2:
        return False
    first, second = operands[0].type, operands[1].type
    return (isinstance(first, TensorType) and first.element == I1 and first.shape in ((), None) and is_data(second)
            and not (isinstance(second, TensorType) and second.element == I1))


# Results

def finish(reader: OperationReader, syntax: OperationSyntax, op: Op, operands: tuple[Value, ...],
           types: tuple[Type, ...], regions: tuple[Block, ...], attributes: Dictionary) -> Operation:
    """Return the operation, with its results under their names in the text."""
    try:
        results = read_results(reader, syntax, op, types)
    except Problem as problem:
        raise problem.of(op.name) from None
    return Operation(op, operands, results, regions, attributes, place(reader.source, syntax.name),
                     reader.attributes.location(syntax.location))


def read_results(reader: OperationReader, syntax: OperationSyntax, op: Op, types: tuple[Type, ...]) -> tuple[Value, ...]:
    """Return the results; in a Merge with two names the index has none, in a Source with two names its control has none."""
    left_out = None
    if len(types) == FULL_MERGE and named(syntax) == 2:
        left_out = 1 if isinstance(op, Merge) else 2 if isinstance(op, NextIterationSource) else None
    if left_out is None:
        return reader.scopes.results(syntax.results, types, syntax.name)
    kept = (*types[:left_out], *types[left_out + 1:])
    values = reader.scopes.results(syntax.results, kept, syntax.name)
    hidden = Value(UNUSED, types[left_out], place(reader.source, syntax.name))
    return (*values[:left_out], hidden, *values[left_out:])


def named(syntax: OperationSyntax) -> int:
    """Return the number of results that the text names."""
    names = NAME.finditer(syntax.results) if syntax.results is not None else ()
    return sum(min(int(m.group(2) or 1), 1 << 20) if len(m.group(2) or "1") < 8 else 1 << 20 for m in names)


def discardable(reader: OperationReader, syntax: OperationSyntax) -> Dictionary:
    return reader.attributes.dictionary(syntax.properties) | reader.attributes.dictionary(syntax.attributes)
