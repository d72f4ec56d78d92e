"""Whether a graph makes sense: what each later stage relies on, checked after reading and after each rewrite.

SSA form (a value is used after its definition, in its block or one inside it), known and unique symbols, types that are
those of the operators' own rules, variables of one type, and TOSA's level 8K. What is wrong is a `Problem` at the
operation's position.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...runtime.errors import Label, Position, Problem, require
from .graph import Block, Function, Module, Operation, Value
from .operator import UnknownOp
from .types import ShapeType, TensorType, Type

MAXIMUM_RANK = 6
MAXIMUM_BYTES = (1 << 31) - 1
MAXIMUM_SHAPE = 16
MAXIMUM_NESTING = 6


def verify(module: Module) -> None:
    """Raise a Problem unless the module is sound.

    Operators that are not in the table (`UnknownOp`) only have to be in SSA form. Where an extent is not known, types
    only have to be able to be equal.
    """
    symbols: dict[str, Position | None] = {}
    variables: dict[str, Operation] = {}
    for operation in module.declarations:
        if operation.op.variable_effect == "declare":
            new_symbol(symbols, symbol_of(operation), operation.position)
            variables[symbol_of(operation)] = operation
    for function in module.functions:
        new_symbol(symbols, function.name, function.position)
    top = Scope(variables)
    for operation in module.declarations:
        top.operation(operation, 0)
    inside: dict[str, Operation] = {}
    for function in module.functions:
        verify_function(function, variables, inside)


def new_symbol(symbols: dict[str, Position | None], name: str, position: Position | None) -> None:
    if name in symbols:
        raise Problem(f"@{name} is defined twice", position, kind="symbol",
                      labels=(Label(symbols[name], "it is defined here"),))
    symbols[name] = position


def symbol_of(operation: Operation) -> str:
    return str(getattr(operation.op, "symbol", ""))


def verify_function(function: Function, variables: Mapping[str, Operation], inside: dict[str, Operation]) -> None:
    """`variables` are declared at module level; `inside` collects those that functions declare."""
    scope = Scope(dict(variables), {}, inside)
    scope.block(function.body, 0)
    position = function.body.terminator_position or function.position
    found, declared = [v.type for v in function.body.yields], function.result_types
    if len(found) != len(declared):
        raise Problem(f"@{function.name} returns {len(found)} values, but has {len(declared)} results", position,
                      kind="type")
    for number, (type, expected) in enumerate(zip(found, declared)):
        if not compatible(type, expected):
            raise Problem(f"@{function.name} returns {type} as result {number}, which is declared as {expected}",
                          position, kind="type")
    for what, attributes, count in (("argument", function.argument_attributes, len(function.arguments)),
                                    ("result", function.result_attributes, len(declared))):
        if attributes and len(attributes) != count:
            raise Problem(f"@{function.name} has {len(attributes)} dictionaries for {count} {what}s", function.position)


@dataclass(slots=True)
class Scope:
    """Checks operations in order; knows the variables and values that they may use."""
    variables: dict[str, Operation]
    values: dict[Value, None] = field(default_factory=dict)
    inside: dict[str, Operation] = field(default_factory=dict)

    def block(self, block: Block, depth: int) -> None:
        """The operations of a block; what it defines is not visible behind it."""
        outer = dict(self.values) if depth else self.values
        for value in block.arguments:
            self.define(value, block.position, check_type)
        for operation in block.operations:
            self.operation(operation, depth)
        for value in block.yields:
            self.use(value, "what the block gives back", block.terminator_position)
        self.values = outer

    def define(self, value: Value, position: Position | None, check: Callable[[Value], None] | None) -> None:
        if value in self.values:
            raise Problem(f"%{value.name} is defined twice", position, kind="ssa")
        try:
            if check:
                check(value)
        except Problem as problem:
            raise problem.at(value.position or position) from None
        self.values[value] = None

    def use(self, value: Value, what: str, position: Position | None) -> None:
        if value not in self.values:
            raise Problem(f"{what}, %{value.name}, is not defined before this place", position, kind="ssa",
                          labels=(Label(value.position, "its definition"),) if value.position else ())

    def operation(self, operation: Operation, depth: int) -> None:
        for number, value in enumerate(operation.operands):
            self.use(value, f"operand {number}", operation.position)
        known = not isinstance(operation.op, UnknownOp)
        try:
            inner = depth + (known and bool(operation.regions))
            require(inner <= MAXIMUM_NESTING, f"control flow is nested {inner} deep, level 8K allows {MAXIMUM_NESTING}",
                    kind="level")
            for region in operation.regions:
                self.block(region, inner if known else max(depth, 1))
            if known:
                self.known(operation)
        except Problem as problem:
            raise problem.at(operation.position) from None
        for value in operation.results:
            self.define(value, operation.position, check_type if known else None)

    def known(self, operation: Operation) -> None:
        """The operator's own rule, its attributes, and its variable."""
        check_attributes(operation)
        types = inferred(operation)
        declared = [v.type for v in operation.results]
        name = operation.op.name
        require(len(types) == len(declared), f"{name} has {len(types)} results, {len(declared)} are declared")
        for number, (type, other) in enumerate(zip(types, declared)):
            which = "the result" if len(types) == 1 else f"result {number}"
            require(compatible(type, other), f"{which} of {name} is {type}, but {other} is declared")
        if operation.op.variable_effect:
            self.variable(operation)

    def variable(self, operation: Operation) -> None:
        """Declared, and of the same type everywhere."""
        op, name = operation.op, symbol_of(operation)
        type: Any = getattr(op, "type", None)
        if op.variable_effect == "declare":
            require(isinstance(type, TensorType), f"variable @{name} must be a tensor, not {type}", kind="variable")
            before = self.variables.get(name)
            if before is not None and before is not operation:
                raise Problem(f"variable @{name} is declared twice", operation.position, kind="variable",
                              labels=(Label(before.position, "it is declared here"),))
            self.variables[name] = operation
            self.same_variable(name, type, self.inside.setdefault(name, operation), operation)
            return
        if name not in self.variables:
            raise Problem(f"variable @{name} is not declared", operation.position, kind="variable",
                          help=f"declare it before: tosa.variable @{name} : {type or operation.operands[0].type}")
        self.same_variable(name, type or operation.operands[0].type, self.variables[name], operation)

    def same_variable(self, name: str, type: Type, declaration: Operation, operation: Operation) -> None:
        declared: Any = getattr(declaration.op, "type", None)
        if not compatible(type, declared):
            raise Problem(f"variable @{name} is {declared}, here it is {type}", operation.position, kind="variable",
                          labels=(Label(declaration.position, "it is declared here"),))


def inferred(operation: Operation) -> tuple[Type, ...]:
    """The result types that the operator's own rule gives."""
    op, found = operation.op, len(operation.regions)
    require(found == op.regions, f"{op.name} has {op.regions} regions, found {found}")
    return op.region_types(operation.operands, operation.regions) if found else op.result_types(operation.operands)


def check_attributes(operation: Operation) -> None:
    """Attributes that are no fields must belong to a dialect (`tf.name`), or they would be lost in silence."""
    wrong = [name for name in operation.attributes if "." not in name and not name.startswith("_")]
    if wrong:
        raise Problem(f"{operation.op.name} has no attribute {wrong[0]}", operation.position, kind="attribute",
                      help="TOSA before 1.0 had other attributes: make the text again with newer tools")


def check_type(value: Value) -> None:
    """TOSA's level 8K: what a value of a known operator may be."""
    match value.type:
        case TensorType(None):
            raise Problem(f"the rank of %{value.name} is not known: {value.type}", kind="unsupported")
        case TensorType() as type:
            check_tensor(type, f"%{value.name}")
        case ShapeType(rank):
            require(rank <= MAXIMUM_SHAPE, f"%{value.name} has {rank} extents, level 8K allows {MAXIMUM_SHAPE}",
                    kind="level")
        case _:
            pass


def check_tensor(type: TensorType, what: str) -> None:
    require(type.rank <= MAXIMUM_RANK, f"{what} has rank {type.rank}, level 8K allows {MAXIMUM_RANK}", kind="level")
    require(all(n is None or n > 0 for n in type.shape or ()), f"{what} has no elements: {type}", kind="shape")
    known = [n for n in type.shape or () if n is not None]
    nbytes = math.prod(known) * type.element.itemsize
    require(nbytes <= MAXIMUM_BYTES, f"{what} is {type}, {nbytes} bytes, level 8K allows 2^31 - 1", kind="level")


def compatible(a: Type, b: Type) -> bool:
    """Whether two types are equal, or can be where an extent or the rank is not known."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a == b
    if a.element != b.element:
        return False
    if a.shape is None or b.shape is None:
        return True
    return len(a.shape) == len(b.shape) and all(n == m or n is None or m is None for n, m in zip(a.shape, b.shape))
