"""The lowering of a function of TensorFlow's dialects to TOSA. Types follow from the arguments of this call: types that the
text leaves open (`tensor<*xf32>`) are inferred, and declared types are checked against the inferred ones.

Calls are inlined. An operation whose results nobody needs is emitted too, and pruned later; an unknown operation is a Problem
only if something needs it, because `pruned` in `to_tosa` removes the others first.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from ....runtime import limits
from ....runtime.errors import Position, Problem
from ....runtime.records import dataclass
from ...dialects.data import Datum, ListOfTensors, Text, VariableHandle, described
from ...dialects.emitter import Emitter
from ...dialects.standard.operators import scalar_tensor
from ...dialects.tf.legalizations import LEGALIZATIONS
from ...dialects.tf.legalizations.table import legalized
from ...dialects.tf.types import is_resource, is_string, is_tensor
from ...graph.foreign import spelling
from ...graph.graph import Block, Function, Module, Operation, Value
from ...graph.operator import UnknownOp
from ...graph.result_names import names_alone
from ...graph.types import Array, TensorType, Type
from ...graph.verify import compatible
from ..fold_convolutions import fold_convolutions
from ..prune import prune
from ..translation_record import Translated
from .special import SPECIAL, TOSA, Scope, check_number
from .variables import Variables

FEWER_CALLS = "let functions that call others several times do so once, with all that they need, or in a loop"

DEPTH = 64
"""Maximum depth of functions that call each other."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """Facts about arguments and variables that a module does not state. By the argument's name: the symbol of each that is a
    handle, and the values of those that are constants. By symbol: the initial values of variables, or their types, and the
    values of those that never change."""
    symbols: Mapping[str, str] = field(default_factory=dict)
    initial: Mapping[str, Array] = field(default_factory=dict)
    types: Mapping[str, TensorType] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    arguments: Mapping[str, Array] = field(default_factory=dict)
    rfc_merge: bool = False
    """True if a Merge with a dead control input is dead, as in the dialect's design document; in TensorFlow it is live."""


def to_tosa(module: Module, name: str | None, types: Sequence[Type] | None = None, bindings: Bindings | None = None) -> Module:
    """Return a TOSA module with the one function `name`, for arguments of these types (one for each that is not a handle; None:
    as they are declared). Raise a Problem at an operation that cannot be lowered to TOSA."""
    pruned = prune(module)
    function = pruned.function(name)
    translation = Translation(pruned, bindings or Bindings())
    return prune(fold_convolutions(translation.function(function, types)))


def recorded(module: Module, name: str | None, types: Sequence[Type] | None, bindings: Bindings | None
             ) -> tuple[Module, list[Translated]]:
    """Return the TOSA module before anything is folded, and the record of each operation."""
    pruned = prune(module)
    translation = Translation(pruned, bindings or Bindings())
    translation.emitter.records = []
    return translation.function(pruned.function(name), types), translation.emitter.records


class Translation:
    """The translation of one function of a module into TOSA."""

    def __init__(self, module: Module, bindings: Bindings) -> None:
        self.module, self.bindings = module, bindings
        self.emitter = Emitter()
        self.variables = Variables(module, bindings.initial, bindings.types, bindings.constants)
        self.messages: dict[str, Datum] = {}
        """Data that was sent and not yet received, by name."""
        self.depth = 0
        self.operations_left = limits.most_expanded(sum(1 for f in module.functions for _ in f.body.walk()))

    # ---- the function ------------------------------------------------------------------------------------------------
    def function(self, function: Function, types: Sequence[Type] | None) -> Module:
        given = iter(types if types is not None else [])
        names, fixed = argument_names(function), self.bindings.arguments
        scope: Scope = {}
        for argument, handle in zip(function.arguments, self.handles(function)):
            if argument.name in fixed:
                scope[argument] = self.emitter.constant(np.asarray(fixed[argument.name]))
            else:
                scope[argument] = handle or self.argument(argument, names[argument], next(given, argument.type))
        found = self.block(function.body, scope)
        place = function.body.terminator_position or function.position
        yields = [self.result(datum, number, place) for number, datum in enumerate(found)]
        body = self.emitter.blocks[0].finish(*yields, position=function.position)
        result = Function(function.name, body, tuple(v.type for v in yields), position=function.position,
                          result_attributes=names_alone(function.result_attributes))
        declared = tuple(o for o in self.module.declarations if o.op.variable_effect == "declare")
        module = Module((result,), (*declared, *self.variables.declarations()), self.module.name, position=self.module.position)
        return prune(module)

    def argument(self, argument: Value, name: str, type: Type) -> Value:
        """Return an argument of the new function. Its type must be known and compatible with that of the old argument."""
        type = scalar_tensor(type)
        if not isinstance(type, TensorType) or not type.is_static:
            raise Problem(f"argument %{argument.name} is a {type}: its shape must be known to compile", argument.position,
                          kind="shape", help="call it with arrays, or give it types")
        declared = scalar_tensor(argument.type)
        if isinstance(declared, TensorType) and not compatible(declared, type):
            raise Problem(f"argument %{argument.name} is a {declared}, not a {type}", argument.position, kind="argument")
        return self.emitter.blocks[0].argument(type, name, argument.position)

    def handles(self, function: Function) -> list[VariableHandle | None]:
        """Return the variable that each argument is a handle of; None for the others."""
        return [VariableHandle(symbol) if symbol else None for symbol in handle_symbols(function, self.bindings)]

    def result(self, datum: Datum, number: int, place: object) -> Value:
        if not isinstance(datum, Value):
            raise Problem(f"result {number} is {described(datum)}, which is no tensor of numbers", kind="unsupported")
        return datum

    # ---- blocks ------------------------------------------------------------------------------------------------------
    def block(self, block: Block, scope: Scope) -> tuple[Datum, ...]:
        """Emit the operations of a block, with the enclosing values in `scope`; return the values that it yields."""
        for operation in block.operations:
            scope.update(zip(operation.results, self.operation(operation, scope), strict=True))
        return tuple(scope[v] for v in block.yields)

    def operation(self, operation: Operation, scope: Scope) -> Sequence[Datum]:
        """Return the results of one operation."""
        self.operations_left -= 1
        if self.operations_left < 0:
            raise limits.expanded("calls and loops", FEWER_CALLS, operation.position)
        limits.checkpoint()
        before, self.emitter.position = self.emitter.position, operation.position
        try:
            operands = [scope[v] for v in operation.operands]
            results = self.translated(operation, operands, scope)
            if len(results) != len(operation.results):
                raise Problem(f"it has {len(results)} results, not {len(operation.results)}", kind="type")
            for value, datum in zip(operation.results, results):
                check_declared(value, datum)
            self.record(operation, operands, results)
            return results
        except Problem as problem:
            raise problem.of(spelling(operation)).at(operation.position) from None
        finally:
            self.emitter.position = before

    def record(self, operation: Operation, operands: Sequence[Datum], results: Sequence[Datum]) -> None:
        """Record the operands and results of an operation in the new graph."""
        if self.emitter.records is not None:
            self.emitter.records.append(Translated(operation, tuple(operands), tuple(results)))

    def translated(self, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
        name = spelling(operation)
        is_tosa = not isinstance(operation.op, UnknownOp) and not operation.op.foreign
        if (found := SPECIAL.get(TOSA if is_tosa else name)) is not None:
            return found(self, operation, operands, scope)
        legalization = LEGALIZATIONS.get(name)
        if legalization is None and operation.results and all(is_string(v.type) for v in operation.results):
            return [Text(None)] * len(operation.results)  # text for messages only
        if legalization is None:
            raise Problem(f"{name} cannot be compiled", operation.position, kind="unsupported", help=remedy(name))
        return legalized(legalization, self.emitter, operation, operands)

    def require(self, condition: Value, message: str, place: Position | None) -> None:
        """Stop the run with a message unless the condition is true."""
        before, self.emitter.position = self.emitter.position, place
        self.emitter.check(condition, message)
        self.emitter.position = before

    def call(self, name: str, arguments: Sequence[Datum]) -> tuple[Datum, ...]:
        """Return the results of a function of the module, inlined."""
        function = self.module.function(name)
        if self.depth >= DEPTH:
            raise Problem(f"@{name}: functions call each other more than {DEPTH} deep", function.position, kind="unsupported")
        check_number(len(function.arguments), len(arguments), f"@{name}")
        self.depth += 1
        try:
            return self.block(function.body, dict(zip(function.arguments, arguments, strict=True)))
        finally:
            self.depth -= 1


REMEDIES = {
    r"(Stateless|Parameterized)?(Random|Multinomial|TruncatedNormal)":
        "random numbers are no function of the inputs: pass them as one",
    r"(Eager)?PyFunc": "Python code is no part of a graph: write it with TensorFlow's operations, or do it outside",
    r"Print|StringFormat": "leave what prints out of the function",
    r"Lookup|HashTable|MutableHashTable|AnonymousHashTable": "keep lookup tables outside, and give what they find as an input",
    r"String|Regex|AsString|Decode|Encode|Unicode": "strings have no place in compiled code: do it outside",
    r"Queue|Iterator|Dataset|ReadFile|WriteFile|Barrier|Stack": "read and write data outside of the function"}
"""Remedies for operations that compiled code cannot have, by prefixes of their names."""


def remedy(name: str) -> str:
    found = next((text for pattern, text in REMEDIES.items() if re.match(rf"tf\.({pattern})", name)), None)
    return found or "tosaic has no lowering of this operation to TOSA"


def check_declared(value: Value, datum: Datum) -> None:
    """Check that an inferred type agrees with the declared one, as far as the text declares it."""
    declared = value.type
    if isinstance(datum, Text | ListOfTensors) or not isinstance(declared, TensorType):
        return  # the flow of a TensorArray is declared as a number
    found = datum.type if isinstance(datum, Value) else None
    if not isinstance(found, TensorType) or not compatible(declared, found):
        raise Problem(f"%{value.name} is declared as {declared}, for these arguments it is {described(datum)}", kind="shape")


def argument_names(function: Function) -> dict[Value, str]:
    """Return a name for each argument: the user's name if it is an identifier and unique, else the argument's own."""
    attributes = function.argument_attributes or ({},) * len(function.arguments)
    wanted = [str(a.get("tf._user_specified_name", "")) for a in attributes]
    own = {v.name for v in function.arguments}
    return {v: w if w.isidentifier() and wanted.count(w) == 1 and w not in own else v.name
            for v, w in zip(function.arguments, wanted)}


def handle_symbols(function: Function, bindings: Bindings | None = None) -> list[str | None]:
    """Return the symbol of the variable that each argument is a handle of: from the module, from the caller, or the argument's
    own name; None for arguments that are not handles."""
    attributes = function.argument_attributes or ({},) * len(function.arguments)
    names = argument_names(function)
    found: list[str | None] = []
    for argument, own in zip(function.arguments, attributes):
        bound = own.get("tf_saved_model.bound_input")
        if bound is None and not (is_resource(argument.type) and is_tensor(argument.type)):
            found.append(None)
            continue
        symbol = str(bound.path[-1]) if bound is not None else names[argument]
        given = bindings.symbols if bindings else {}
        found.append(given.get(argument.name, given.get(symbol, symbol)))
    return found
