"""The lowering of an ONNX graph to TOSA for arguments of known types, from which the types that the file leaves open follow.

A node's reference evaluates arithmetic on integers that are known at compile time (arithmetic on shapes). Nodes whose results
nobody needs are skipped.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....runtime import limits
from ....runtime.errors import Problem
from ...dialects.data import Datum, TensorSequence, Text, described
from ...dialects.emitter import Emitter
from ...dialects.onnx.element_types import IN_BYTES
from ...dialects.onnx.node import CONSTANT, IN_FLOAT, MADE_FROM, NO_VALUE, PREFIX, WITHOUT_ELEMENTS, label, made_from
from ...dialects.onnx.operator import ERRORS, Operator, interpreted, lowered
from ...dialects.onnx.operators import operator_of
from ...dialects.tf.types import shapes_can_be_equal
from ...graph.file_position import FilePosition, whole
from ...graph.foreign import find, spelling
from ...graph.graph import Block, Function, Module, Operation, Value
from ...graph.shape_options import shape_options
from ...graph.types import BY_STORAGE, ElementType, TensorType, Type
from ...text.printed_position import printed_position
from ..fold_convolutions import fold_convolutions
from ..prune import prune
from ..translation_record import Translated
from .edited_graph import AS_UNSIGNED
from .in_float import in_float
from .quantized_patterns import in_integers
from .reaching_inputs import reaching_inputs
from .stored_numbers import stored_numbers

Scope = dict[Value, Datum]
MOST_COMPUTED = 1 << 12
"""Maximum number of integers in the operands of a node that is computed at compile time: arithmetic on shapes, and indices."""


def to_tosa(module: Module, name: str | None, types: Sequence[Type] | None = None, printed: Module | None = None) -> Module:
    """Return a TOSA module with the one function `name`, for arguments of these types (None: as they are declared). Raise a
    Problem at a node that cannot be lowered to TOSA; its line is that of `printed`, some of whose values are known in
    `module`."""
    return prune(fold_convolutions(Translation(module, name, printed or module).function(types)))


def recorded(module: Module, name: str | None, types: Sequence[Type] | None) -> tuple[Module, Translation]:
    """Return the TOSA module before anything is folded, and the translation with the record of each node."""
    translation = Translation(module, name, module)
    translation.emitter.records = []
    return translation.function(types), translation


MOST_MADE = limits.Limits(bytes=MOST_COMPUTED * 8)
"""Maximum number of bytes of the results of such a node: larger results are refused before they are computed."""


class Translation:
    """The translation of one graph into TOSA."""

    def __init__(self, module: Module, name: str | None, printed: Module) -> None:
        self.whole, self.rewritten, self.name, self.printed = module, in_integers(prune(module)), name, printed
        self.module = prune(self.rewritten)
        self.emitter = Emitter()
        self.arguments: Scope = {}
        """The data that the inputs became."""
        self.file = whole(module.position.source.name if module.position else "<model>")
        self.nodes_left = limits.most_expanded(sum(1 for f in module.functions for _ in f.body.walk()))

    def function(self, types: Sequence[Type] | None) -> Module:
        function = self.module.function(self.name)
        given = types or [v.type for v in function.arguments]
        numbers = stored_numbers(self.whole, self.whole.function(self.name))
        scope: Scope = {v: self.argument(v, t, numbers.get(v)) for v, t in zip(function.arguments, given, strict=True)}
        self.arguments = dict(scope)
        found = self.block(function.body, scope)
        results = [self.result(datum, number) for number, datum in enumerate(found)]
        empty = {number: v.tensor for number, v in enumerate(results) if not v.tensor.size}
        yields = [v for number, v in enumerate(results) if number not in empty]
        function = without_results(function, empty)
        body = self.emitter.blocks[0].finish(*yields, position=function.position)
        found_types = tuple(with_numbers(v.type, numbers.get(old)) for v, old in
                            zip(yields, without_results(self.whole.function(self.name), empty).body.yields))
        result = Function(function.name, body, found_types, result_attributes=names(function.result_attributes),
                          position=function.position)
        lines = in_float(self.module)
        notes: dict[str, Any] = {MADE_FROM: made_from(self.printed)} | ({IN_FLOAT: lines} if lines else {})
        if empty:
            notes[WITHOUT_ELEMENTS] = tuple(empty.items())
        return prune(Module((result,), (), self.module.name, notes, self.module.position))

    @property
    def unsigned(self) -> dict[Value, Operation]:
        """The nodes that convert the signed bytes of a rewrite to unsigned ones, by their results, read or not."""
        body = self.rewritten.function(self.name).body
        return {o.results[0]: o for o in body.operations if spelling(o) == PREFIX + AS_UNSIGNED}

    def argument(self, argument: Value, type: Type, numbers: ElementType | None) -> Value:
        """Return an argument of the new function. Its type must be known and compatible with that of the old argument.
        `numbers` is the quantized type of its elements; later nodes see only the integers."""
        declared = argument.type
        if not isinstance(type, TensorType):
            raise Problem(f"input {argument.name} is {declared}, which is no tensor of numbers", kind="unsupported")
        if not type.is_static:
            raise Problem(f"input {argument.name} is {type}: its shape must be known to compile", kind="shape",
                          help="call it with arrays, or give it a shape: shapes=, or "
                               f"{shape_options(self.module.function(self.name))}")
        if isinstance(declared, TensorType) and not (declared.element == type.element and
                                                     shapes_can_be_equal(declared.shape, type.shape)):
            raise Problem(f"input {argument.name} is {declared}, not {type}", kind="argument")
        if not type.size:
            problem = Problem(f"input {argument.name} is {type}: it has no elements", kind="shape",
                              help="TOSA has no such tensors; a call is computed without it")
            problem.inputs = frozenset([argument.name])
            raise problem
        stored = TensorType(type.shape, IN_BYTES.get(type.element, type.element))
        found = self.emitter.blocks[0].argument(with_numbers(stored, numbers), argument.name, argument.position)
        return found if numbers is None else self.emitter("identity", found)

    def result(self, datum: Datum, number: int) -> Value:
        if not isinstance(datum, Value):
            raise Problem(f"output {number} is {described(datum)}, which is no tensor of numbers", kind="unsupported",
                          help="give its tensors as outputs of their own")
        return datum

    # ---- nodes -------------------------------------------------------------------------------------------------------
    def block(self, block: Block, scope: Scope) -> tuple[Datum, ...]:
        """Emit the nodes of a block, with the enclosing values in `scope`; return its results."""
        for operation in block.operations:
            scope.update(zip(operation.results, self.operation(operation, scope), strict=True))
        return tuple(scope[v] for v in block.yields)

    def operation(self, operation: Operation, scope: Scope) -> Sequence[Datum]:
        """Return the results of one node."""
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise limits.expanded("loops", "let loops be nested less deep", operation.position)
        limits.checkpoint()
        here = operation.position or self.place(operation)
        before, self.emitter.position = self.emitter.position, here
        try:
            results = self.translated(operation, scope)
            for value, datum in zip(operation.results, results):
                check_declared(value, datum)
            return results
        except Problem as problem:
            if problem.position is None or problem.position is here:
                problem.position = operation.position or printed_position(self.printed, operation)
            problem.inputs |= reaching_inputs(self.module.function(self.name), operation)
            raise problem.of(label(operation, self.module)) from None
        finally:
            self.emitter.position = before

    def place(self, operation: Operation) -> FilePosition:
        """Return the position of a node of a file, which has no lines. The position has the name of the result if there is one
        result, else the name of the node."""
        node, results = find(operation, "onnx.node"), operation.results
        name = results[0].name if len(results) == 1 else node
        return self.file.inside(label(operation, self.module)).called(name if isinstance(name, str) else None)

    def translated(self, operation: Operation, scope: Scope) -> Sequence[Datum]:
        name = spelling(operation)
        if name == NO_VALUE:
            return [None]
        value = find(operation, "value")
        if name == CONSTANT and hasattr(value, "array"):
            element = value.type.element
            return [self.emitter.constant(value.array, IN_BYTES.get(element, element))]

        def inside(number: int, arguments: Sequence[Datum]) -> Sequence[Datum]:
            region = operation.regions[number]
            if len(arguments) != len(region.arguments):
                raise Problem(f"subgraph {number} takes {len(region.arguments)} values, it is given {len(arguments)}",
                              kind="type")
            return self.block(region, {**scope, **dict(zip(region.arguments, arguments, strict=True))})
        found = operator_of(operation, self.module, inside)
        operands = [scope[v] for v in operation.operands]
        known = self.computed(found, operands)
        results = lowered(found, self.emitter, operands) if known is None else known
        if self.emitter.records is not None:
            self.emitter.records.append(Translated(operation, tuple(operands), tuple(results), known is not None))
        return results

    def computed(self, found: Operator, operands: Sequence[Datum]) -> Sequence[Datum] | None:
        """Return the results of a node that computes with few known integers or strings; None for any other node."""
        if found.is_random or found.operation.regions or not operands or not all(map(is_known, operands)):
            return None
        arrays = [known_data(o) for o in operands]
        if sum(np.size(a) for a in arrays if a is not None) > MOST_COMPUTED:
            return None
        try:
            with np.errstate(all="ignore"), MOST_MADE:
                results = interpreted(found, arrays)
        except (Problem, *ERRORS):
            return None  # the lowering reports the error
        data = [self.datum(r) for r in results]
        return None if any(d is UNKNOWN for d in data) else data

    def datum(self, result: Any) -> Any:
        """Return a computed array as a constant of the new graph if it has few integers, else UNKNOWN."""
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "iub" or result.size > MOST_COMPUTED:
            return UNKNOWN
        return self.emitter.constant(result, BY_STORAGE[result.dtype.name])


def names(attributes: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return only the names among the results' attributes: their extents are known."""
    return tuple({"onnx.name": own["onnx.name"]} if "onnx.name" in own else {} for own in attributes)


def without_results(function: Function, places: Collection[int]) -> Function:
    """Return the function without the results at these indices."""
    kept = [n for n in range(len(function.body.yields)) if n not in places]
    attributes = tuple(function.result_attributes[n] for n in kept) if function.result_attributes else ()
    body = replace(function.body, yields=tuple(function.body.yields[n] for n in kept))
    types = tuple(function.result_types[n] for n in kept)
    return replace(function, body=body, result_types=types, result_attributes=attributes)


def with_numbers(type: Type, numbers: ElementType | None) -> Type:
    """Return a tensor's type with the quantized type of its integers."""
    return type if numbers is None or not isinstance(type, TensorType) or type.element.bits != numbers.bits else \
        type.with_element(numbers)


UNKNOWN = object()


def is_known(datum: Datum) -> bool:
    """True if a datum is omitted, or is an array of integers, bools or strings that is known at compile time."""
    match datum:
        case None:
            return True
        case Value():
            return datum.constant is not None and not datum.tensor.element.is_float
        case Text():
            return isinstance(datum.value, np.ndarray)
        case TensorSequence():
            return False
        case _:
            return False


def known_data(datum: Datum) -> Any:
    match datum:
        case Value():
            return datum.constant
        case Text():
            return datum.value
        case _:
            return None


def check_declared(value: Value, datum: Datum) -> None:
    """Check that elements have the type that the file declares. Declared extents are only a hint: exporters write those of
    their example even if an input's extents are dynamic."""
    declared = value.type
    if not isinstance(declared, TensorType) or not isinstance(datum, Value):
        return
    found = datum.tensor
    element = IN_BYTES.get(declared.element, declared.element)
    if found.element != element:
        raise Problem(f"{value.name} is declared as {declared}, for these inputs it is {found}", kind="shape")
