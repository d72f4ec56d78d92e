"""The forms that only the design document of TensorFlow's dialects writes -> operations in TensorFlow's own form.

Operators without quotes (`tf.Add %a, %b : T`), numbers as operands (`tf.Add %a, -1`), `constant splat<T, 3.0>`, `tf.If` with a
function for its condition, and Send and Recv of the executor. Numbers become `tf.Const` before the operation.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..dialects.tf.operator import CONST, TensorFlowOp
from ..dialects.tf_executor.operators import Island
from ..dialects.tf_executor.types import CONTROL, is_data
from ..graph.graph import Block, Operation, Value
from ..graph.operator import Op
from ..graph.types import I1, I64, TensorType, Type
from .attributes import Dense, Dictionary, Number, Symbol
from .elements import decode
from .names import UNUSED
from .syntax import OperationSyntax, SyntaxFault, place

if TYPE_CHECKING:
    from lark import Token

    from .operations import OperationReader

CONSTANT_NAME, CONDITION_NAME = "cst", "cond"
CALL, IF = "tf.StatefulPartitionedCall", "tf.If"
BRANCHES = {"cond": "f", "true_branch": "then_branch", "false_branch": "else_branch"}
"""Names of the functions of `tf.If` in the document -> their names in TensorFlow."""
MESSAGE_DEFAULTS: Dictionary = {"client_terminated": False, "recv_device": "", "send_device": "",
                                "send_device_incarnation": Number(0, I64)}


# Operators without quotes

def read_unquoted(reader: OperationReader, syntax: OperationSyntax) -> Operation:
    """`tf.Add %a, -1 : (T, T) -> T`, or with one type for all operands and the result."""
    operands, results = unquoted_types(reader, syntax)
    values: list[Value] = []
    assert isinstance(syntax.operands, tuple), "one token for each run of names, and for each number"
    for token in syntax.operands:
        if token.type == "NUMBER":
            values.append(literal(reader, syntax, token, literal_type(reader, syntax, token, operands, len(values))))
        else:
            values += reader.scopes.operands(token)
    check_operands(reader, syntax, values, operands)
    op, rest = reader.operator(syntax, tuple(values), results)
    return finished(reader, syntax, op, tuple(values), results, rest)


def unquoted_types(reader: OperationReader, syntax: OperationSyntax) -> tuple[tuple[Type, ...] | Type | None, tuple[Type, ...]]:
    """Return the types of the operands (one type: of all of them), and those of the results."""
    if syntax.types.signature is not None:
        return reader.types.signature(syntax.types.signature)
    results = tuple(map(reader.types.value, syntax.types.results))
    return (results[0] if len(results) == 1 else None), results


def check_operands(reader: OperationReader, syntax: OperationSyntax, values: list[Value],
                   declared: tuple[Type, ...] | Type | None) -> None:
    types = declared if isinstance(declared, tuple) else (declared,) * len(values)
    if len(types) != len(values):
        raise Problem(f"{syntax.spelling} has {len(values)} operands, but {len(types)} operand types",
                      place(reader.source, syntax.types.signature or syntax.name), kind="type")
    literals = {constant.results[0] for constant in reader.before}
    for number, (value, type) in enumerate(zip(values, types)):
        if type is not None and value.type != type and value not in literals:
            raise Problem(f"operand {number} of {syntax.spelling}, %{value.name}, is {value.type}, but its type here is "
                          f"{type}", place(reader.source, syntax.name), kind="type")


def literal_type(reader: OperationReader, syntax: OperationSyntax, token: Token, declared: tuple[Type, ...] | Type | None,
                 number: int) -> TensorType:
    """Return the type of a number that is operand `number`; if one type is given for all operands, and it is a tensor of
    unknown shape, the number has no axes."""
    type = declared if not isinstance(declared, tuple) else declared[number] if number < len(declared) else None
    if isinstance(type, TensorType) and not type.is_static and not isinstance(declared, tuple):
        return TensorType((), type.element)
    if type is None:
        raise Problem(f"the number {token} of {syntax.spelling} has no type", place(reader.source, token), kind="type")
    if not isinstance(type, TensorType) or not type.is_static:
        raise Problem(f"the number {token} of {syntax.spelling} needs a static tensor type, not {type}",
                      place(reader.source, token), kind="type")
    return type


def literal(reader: OperationReader, syntax: OperationSyntax, token: Token, type: TensorType) -> Value:
    """Return the constant of a number, inserted before the operation."""
    constant = constant_of(reader, token, type)
    reader.before.append(constant)
    return constant.results[0]


def constant_of(reader: OperationReader, token: Token, type: TensorType, name: str = CONSTANT_NAME) -> Operation:
    """Return a `tf.Const` whose elements all are one number."""
    text = f"{token}.0" if type.element.is_float and token.lstrip("-").isdigit() else str(token)
    try:
        array = decode(f"dense<{text}>", type)
    except SyntaxFault as fault:
        fault.offset = max(fault.offset - len("dense<"), 0)
        raise fault.at(reader.source, token) from None
    position = place(reader.source, token)
    op = TensorFlowOp(spelling=CONST, properties={"value": Dense(array, type)})
    return Operation(op, (), (Value(name, type, position, array),), position=position)


def finished(reader: OperationReader, syntax: OperationSyntax, op: Op, operands: tuple[Value, ...],
             types: tuple[Type, ...], attributes: Dictionary) -> Operation:
    results = reader.scopes.results(syntax.results, types, syntax.name, op.constant(operands))
    return Operation(op, operands, results, (), attributes, place(reader.source, syntax.name),
                     reader.attributes.location(syntax.location))


def read_splat(reader: OperationReader, syntax: OperationSyntax) -> Operation:
    """`constant splat<tensor<f32>, 3.0>`"""
    type, number = reader.types.value(syntax.types.results[0]), syntax.initial
    assert number is not None
    if not isinstance(type, TensorType) or not type.is_static:
        raise Problem(f"a constant needs a static tensor type, not {type}", place(reader.source, syntax.types.results[0]),
                      kind="type")
    constant = constant_of(reader, number.token, type)
    results = reader.scopes.results(syntax.results, (type,), syntax.name, constant.results[0].constant)
    return Operation(constant.op, (), results, position=place(reader.source, syntax.name),
                     location=reader.attributes.location(syntax.location))


# Functions for conditions

def is_document_branch(syntax: OperationSyntax) -> bool:
    """True if a `tf.If` names its functions as the document does."""
    if syntax.spelling != IF:
        return False
    entries = [e for d in (syntax.attributes, syntax.properties) if d for e in d.entries]
    return any(key in ("true_branch", "false_branch") for key, _ in entries)


def read_branch(reader: OperationReader, syntax: OperationSyntax) -> Operation:
    """`tf.If` with a function for its condition: a call of that function, and a `tf.If` of its result."""
    position = place(reader.source, syntax.name)
    operands, results = reader.operands(syntax)
    given = reader.attributes.dictionary(syntax.attributes) | reader.attributes.dictionary(syntax.properties)
    functions: Dictionary = {}
    for name, new in BRANCHES.items():
        symbol = given.pop(name, None)
        if not isinstance(symbol, Symbol):
            raise Problem(f"tf.If needs the name of a function as its {name}", position, kind="attribute",
                          help="a tf.If of three functions has cond, true_branch and false_branch")
        functions[new] = symbol
    call = TensorFlowOp(spelling=CALL, properties={"config": "", "config_proto": "", "executor_type": "",
                                                   "f": functions.pop("f")})
    condition = Value(CONDITION_NAME, TensorType((), I1), position)
    reader.before.append(Operation(call, operands, (condition,), position=position))
    op = TensorFlowOp(spelling=IF, properties={"else_branch": functions["else_branch"], "is_stateless": False,
                                               "then_branch": functions["then_branch"]})
    return finished(reader, syntax, op, (condition, *operands), results, given)


# Messages

def read_message(reader: OperationReader, syntax: OperationSyntax, spelling: str) -> Operation:
    """`tf_executor.Send` or `tf_executor.Recv` as an island that wraps `tf._Send` or `tf._Recv`."""
    position = place(reader.source, syntax.name)
    operands = reader.scopes.operands(syntax.operands)
    controls = tuple(v for v in operands if not is_data(v.type))
    data = tuple(v for v in operands if is_data(v.type))
    written = tuple(map(reader.types.value, syntax.types.results))
    if syntax.types.signature is not None:
        _, results = reader.operands(syntax)
        written = tuple(t for t in results if is_data(t))
    elif spelling == "tf._Send":
        if data and written and written[0] != data[0].type:
            raise Problem(f"{syntax.spelling} has data of type {written[0]}, but %{data[0].name} is a {data[0].type}",
                          place(reader.source, syntax.types.results[0]), kind="executor")
        written = ()
    attributes = MESSAGE_DEFAULTS | reader.attributes.dictionary(syntax.attributes)
    op = TensorFlowOp(spelling=spelling, properties=dict(sorted(attributes.items())))
    inner = Operation(op, data, tuple(Value(UNUSED, t, position) for t in written), position=position)
    body = Block((), (inner,), inner.results, position, position)
    return Operation(Island(), controls, reader.scopes.results(syntax.results, (*written, CONTROL), syntax.name), (body,),
                     {}, position, reader.attributes.location(syntax.location))
