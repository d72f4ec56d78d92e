"""The verifier of graphs: the properties that each later stage relies on, checked after reading and after each rewrite.

SSA form (a value is used after its definition, in its block or one inside it), known and unique symbols, types that are
those of the operators' own rules, variables of one type, nesting of control flow and bytes of a tensor (the other limits of
TOSA's level 8K are in `levels.py`). A violation is a `Problem` at the operation's position.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any
from weakref import WeakSet

from ...runtime.errors import Label, Position, Problem, require
from ...runtime.limits import NESTED, TENSOR_BYTES
from ...runtime.records import dataclass
from .agreement import check_agreement
from .dominance import walk
from .foreign import CALLS, callees, spelling
from .graph import Block, Function, Module, Operation, Value
from .operator import UnknownOp
from .quantized import check_quantized, same_element
from .types import BlockScaled, ElementType, ShapeType, TensorType, Type

MAXIMUM_RANK = 6
"""Maximum rank of TOSA's level 8K: lowering to TOSA stays within it where it can."""
MAXIMUM_BYTES, MAXIMUM_NESTING = TENSOR_BYTES, NESTED
MOST_AXES, MOST_EXTENTS = 32, 64
"""Maximum number of axes of a tensor, and of extents of a shape: TOSA's limits without a level."""
SOUND: WeakSet[Module] = WeakSet()
"""Modules that have been verified."""


def verify(module: Module) -> None:
    """Raise a Problem unless the module is sound. A sound module is not checked again: it cannot change.

    Operators that are not in the table (`UnknownOp`) only have to be in SSA form. If an extent is not known, types only
    have to be compatible.
    """
    if module in SOUND:
        return
    check(module)
    SOUND.add(module)


def check(module: Module) -> None:
    symbols: dict[str, Position | None] = {}
    variables: dict[str, Operation] = {}
    levels = not is_foreign(module)
    for operation in module.declarations:
        if operation.op.variable_effect == "declare":
            new_symbol(symbols, symbol_of(operation), operation.position)
            variables[symbol_of(operation)] = operation
        elif name := symbol_of_unknown(operation):
            new_symbol(symbols, name, operation.position)
    for function in module.functions:
        new_symbol(symbols, function.name, function.position)
    for absent in module.absent:
        new_symbol(symbols, absent.name, absent.problem.position)
    top = BlockVerifier(variables, levels=levels)
    for operation in module.declarations:
        top.operation(operation, 0)
    inside: dict[str, Operation] = {}
    for function in module.functions:
        verify_function(function, variables, inside, levels)
    if not levels:
        check_callees(module)


def is_foreign(module: Module) -> bool:
    """True if a module has operations of a foreign dialect: it becomes TOSA before TOSA's levels apply."""
    return any(operation.op.foreign for function in module.functions for operation in function.body.walk())


def check_callees(module: Module) -> None:
    """Check that the functions that operations name are in the module."""
    names = {f.name for f in module.functions} | {f.name for f in module.absent}
    counts = {f.name: (len(f.arguments), len(f.result_types)) for f in module.functions}
    counts |= {f.name: (len(f.types[0]), len(f.types[1])) for f in module.absent if f.types}
    for function in module.functions:
        for operation in function.body.walk():
            for attribute, symbols in callees(operation).items() if operation.op.foreign else ():
                missing = next((s for s in symbols if s not in names), None)
                if missing is not None:
                    raise Problem(f"{spelling(operation)} names @{missing} as its {attribute}, which the module does not "
                                  "have", operation.position, kind="symbol")
                if spelling(operation) in CALLS:
                    check_call(operation, symbols[0], counts)


def check_call(operation: Operation, name: str, counts: Mapping[str, tuple[int, int]]) -> None:
    """Check that a call has as many operands and results as the function, as far as the function's are known."""
    given = len(operation.operands), len(operation.results)
    for what, found, wanted in zip(("operands", "results"), given, counts.get(name, given)):
        if found != wanted:
            raise Problem(f"{spelling(operation)} has {found} {what}, @{name} needs {wanted}", operation.position, kind="type")


def new_symbol(symbols: dict[str, Position | None], name: str, position: Position | None) -> None:
    if name in symbols:
        raise Problem(f"@{name} is defined twice", position, kind="symbol",
                      labels=(Label(symbols[name], "it is defined here"),))
    symbols[name] = position


def symbol_of(operation: Operation) -> str:
    return str(getattr(operation.op, "symbol", ""))


def symbol_of_unknown(operation: Operation) -> str:
    """Return the symbol that an operation of another dialect declares; empty if it declares none."""
    name = (getattr(operation.op, "properties", None) or {}).get("sym_name")
    return name if isinstance(name, str) else ""


def verify_function(function: Function, variables: Mapping[str, Operation], inside: dict[str, Operation],
                    levels: bool = True) -> None:
    """Check a function. `variables` are declared at module level; `inside` collects those that functions declare; with
    `levels`, TOSA's levels apply."""
    scope = BlockVerifier(dict(variables), {}, inside, levels)
    scope.block(function.body, 0)
    for value in function.arguments:
        if isinstance(value.type, ShapeType) and not function.is_private:
            raise Problem(f"input %{value.name} of @{function.name} is a shape, which must be known when compiling",
                          value.position or function.position, kind="shape", help="make it a tosa.const_shape")
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
class BlockVerifier:
    """A check of operations in order, with the variables and values that they may use."""
    variables: dict[str, Operation]
    values: dict[Value, None] = field(default_factory=dict)
    inside: dict[str, Operation] = field(default_factory=dict)
    levels: bool = True

    def block(self, block: Block, depth: int, parent: Operation | None = None) -> None:
        """Check the operations of a block; its definitions are not visible after the block."""
        before = len(self.values)
        self.contents(block, depth, parent)
        if depth:
            self.forget(before)

    def forget(self, count: int) -> None:
        """Keep only the first `count` values visible."""
        while len(self.values) > count:
            self.values.popitem()  # the last one that was defined

    def contents(self, block: Block, depth: int, parent: Operation | None) -> None:
        """Check the operations of a block; its definitions stay visible."""
        for value in block.arguments:
            self.define(value, block.position, check_type if self.levels else None)
        for operation in block.operations:
            self.operation(operation, depth, parent)
        for value in block.yields:
            self.use(value, "what the block gives back", block.terminator_position)

    def regions(self, operation: Operation, depth: int) -> None:
        """Check the regions of an operation: each by itself, or as blocks that see the values of their dominators."""
        parents = operation.op.region_parents()
        if parents is None:
            for region in operation.regions:
                self.block(region, depth, operation)
            return
        before: list[int] = []
        for number, entering in walk(parents):
            if entering:
                before.append(len(self.values))
                self.contents(operation.regions[number], depth, operation)
            else:
                self.forget(before.pop())

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

    def operation(self, operation: Operation, depth: int, parent: Operation | None = None) -> None:
        known = not (isinstance(operation.op, UnknownOp) or operation.op.foreign)
        inner = depth + (known and bool(operation.regions))
        with blamed(operation):
            for number, value in enumerate(operation.operands):
                self.use(value, f"operand {number}", operation.position)
            require(inner <= MAXIMUM_NESTING, f"control flow is nested {inner} deep, level 8K allows {MAXIMUM_NESTING}",
                    kind="level")
            if known:
                self.known(operation)  # before the regions: a wrong signature of a region makes its operations wrong
        if operation.op.foreign:
            operation.op.verify(operation, parent)
        self.regions(operation, inner if known else max(depth, 1))
        with blamed(operation):
            for value in operation.results:
                self.define(value, operation.position, check_type if known else None)

    def known(self, operation: Operation) -> None:
        """Check the operator's own rule, its attributes, and its variable."""
        check_attributes(operation)
        types = inferred(operation)
        declared = [v.type for v in operation.results]
        name = operation.op.name
        require(len(types) == len(declared), f"{name} has {len(types)} results, {len(declared)} are declared")
        for number, (type, other) in enumerate(zip(types, declared)):
            if type == other:
                continue
            which = "the result" if len(types) == 1 else f"result {number}"
            require(compatible(type, other), f"{which} of {name} is {type}, but {other} is declared")
        check_agreement(operation)
        if operation.op.variable_effect:
            self.variable(operation)

    def variable(self, operation: Operation) -> None:
        """Check that a variable is declared, and of the same type everywhere."""
        op, name = operation.op, symbol_of(operation)
        type: Any = getattr(op, "type", None)
        if op.variable_effect == "declare":
            require(isinstance(type, TensorType), f"variable @{name} must be a tensor, not {type}", kind="variable")
            before = self.variables.get(name)
            if before is not None and before is not operation:
                what = "declared behind what reads it" if is_external(before) else "declared twice"
                raise Problem(f"variable @{name} is {what}", operation.position, kind="variable", labels=(type_label(before),))
            check_tensor(type, f"@{name}")
            self.variables[name] = operation
            self.same_variable(name, type, self.inside.setdefault(name, operation), operation)
            return
        declaration = self.variables.get(name)
        if declaration is None and op.variable_effect == "read":
            self.external(name, type, operation)
        elif declaration is None or (op.variable_effect == "write" and is_external(declaration)):
            raise Problem(f"variable @{name} is not declared", operation.position, kind="variable",
                          help=f"declare it before: tosa.variable @{name} : {type or operation.operands[0].type}")
        self.same_variable(name, type or operation.operands[0].type, self.variables[name], operation)

    def external(self, name: str, type: Any, operation: Operation) -> None:
        """Declare a variable that is only read: another graph declares it, and this operation gives its type."""
        require(isinstance(type, TensorType) and type.is_static, f"variable @{name} is declared elsewhere, and read as {type}: "
                "its shape must be known", kind="variable")
        check_tensor(type, f"@{name}")
        self.variables[name] = operation
        self.same_variable(name, type, self.inside.setdefault(name, operation), operation)

    def same_variable(self, name: str, type: Type, declaration: Operation, operation: Operation) -> None:
        declared: Any = getattr(declaration.op, "type", None)
        if not compatible(type, declared):
            raise Problem(f"variable @{name} is {declared}, here it is {type}", operation.position, kind="variable",
                          labels=(type_label(declaration),))


def is_external(declaration: Operation) -> bool:
    """True if a read of a variable gives its type: another graph declares the variable."""
    return declaration.op.variable_effect == "read"


def type_label(declaration: Operation) -> Label:
    """Return a label at the operation that gives a variable its type."""
    return Label(declaration.position, f"it is {'read' if is_external(declaration) else 'declared'} here")


@contextmanager
def blamed(operation: Operation) -> Iterator[None]:
    """Make a Problem in here name the operation, at the operation's position unless the Problem has its own."""
    try:
        yield
    except Problem as problem:
        raise problem.of(operation.op.name or getattr(operation.op, "spelling", "")).at(operation.position) from None


def inferred(operation: Operation) -> tuple[Type, ...]:
    """Return the result types that the operator's own rule gives."""
    op, found = operation.op, len(operation.regions)
    require(found == op.regions, f"{op.name} has {op.regions} regions, found {found}")
    return op.types(operation.operands, operation.regions)


def check_attributes(operation: Operation) -> None:
    """Check that attributes that are no fields belong to a dialect (`tf.name`); others would be lost silently."""
    wrong = [name for name in operation.attributes if "." not in name and not name.startswith("_")]
    if wrong:
        raise Problem(f"{operation.op.name} has no attribute {wrong[0]}", operation.position, kind="attribute",
                      help="TOSA before 1.0 had other attributes: make the text again with newer tools")


def check_type(value: Value) -> None:
    """Check the type of a value of a known operator."""
    match value.type:
        case TensorType() as type:
            check_tensor(type, f"%{value.name}")
        case ShapeType(rank):
            require(rank <= MOST_EXTENTS, f"%{value.name} has {rank} extents, there may be {MOST_EXTENTS}", kind="level")
        case _:
            pass


@functools.lru_cache(maxsize=4096)
def is_plain(tensor: TensorType) -> bool:
    """True if nothing can be wrong with a tensor, so that no message about it is needed: most tensors are plain."""
    return (type(tensor.element) is ElementType and tensor.is_static and tensor.rank <= MOST_AXES
            and min(tensor.dims, default=1) > 0 and tensor.nbytes <= MAXIMUM_BYTES)


def check_tensor(type: TensorType, what: str) -> None:
    if is_plain(type):
        return
    require(type.shape is not None, f"the rank of {what} is not known: {type}", kind="unsupported")
    require(type.rank <= MOST_AXES, f"{what} has rank {type.rank}, there may be {MOST_AXES} axes", kind="level")
    require(all(n is None or n > 0 for n in type.shape or ()), f"{what} has no elements: {type}", kind="shape")
    check_quantized(type, what)
    if isinstance(type.element, BlockScaled):
        check_blocks(type, type.element.block, what)
    known = [n for n in type.shape or () if n is not None]
    nbytes = math.prod(known) * type.element.itemsize
    require(nbytes <= MAXIMUM_BYTES, f"{what} is {type}, {nbytes} bytes, level 8K allows 2^31 - 1", kind="level")


def check_blocks(type: TensorType, block: int, what: str) -> None:
    """Check that a block-scaled tensor has whole blocks along its last axis."""
    *_, last = type.shape or (0,)
    require(type.rank > 0 and (last is None or last % block == 0),
            f"{what} is {type}, its last extent must be a multiple of {block}", kind="shape")


def compatible(a: Type, b: Type) -> bool:
    """True if two types are equal, or can be, where an extent, the rank or the quantization of elements is not known."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a == b
    if a.element != b.element and not same_element(a.element, b.element):
        return False
    if a.shape is None or b.shape is None:
        return True
    return len(a.shape) == len(b.shape) and all(n == m or n is None or m is None for n, m in zip(a.shape, b.shape))
