"""The reference for the integers of a rewritten quantized model (`rewrite/onnx/quantized_patterns`): the nodes of the file,
which dequantize, compute in floats, and quantize. `check` computes these from the integers that precede them in the new graph,
and compares: the rewrite's integer operator may be one quantization step off for each QuantizeLinear that it replaces.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....lowering.graph.foreign import spelling

if TYPE_CHECKING:
    from ....lowering.dialects.data import Datum
    from ....lowering.graph.graph import Module, Operation, Value
    from ....lowering.graph.types import Array
    from ....lowering.rewrite.onnx.translate import Translation
    from ....lowering.rewrite.translation_record import Term, Translated

Label = Callable[["Operation"], str]
Border: TypeAlias = "tuple[Datum, Callable[[Any], Any]]"
"""A value of the new graph, and the function that converts it to a value of the file."""
ROUNDING = ("QLinear", "QGemm", "QuantizeLinear", "QLinearTable", "ConvInteger", "DynamicQuantize")
EXACT = ("ConvInteger", "MatMulInteger", "AsUnsigned", "QLinearTable", "QLinearConcat")
"""Integer operators that round nothing, or are tables of values."""


def steps_of(operation: Operation) -> int:
    """Return the number of steps by which an operator's integers may differ from its own reference: one if a product with a
    scale is rounded, which is a float in the reference and a fixed-point number here."""
    name = spelling(operation).rpartition(".")[2]
    return int(name.startswith(ROUNDING) and name not in EXACT)


def terms(module: Module, name: str, translation: Translation, label: Label) -> Mapping[Translated, Term]:
    """Return, for each record of an operation that the file does not have, the nodes of the file that it replaces."""
    return Terms(module, name, translation, label).found


class Terms:
    """The nodes of the file that operations of the rewrite replace."""

    def __init__(self, module: Module, name: str, translation: Translation, label: Label) -> None:
        self.module, self.label = module, label
        function, rewritten = module.function(name), translation.module.function(name)
        self.makers = {v: o for o in function.body.operations for v in o.results}
        top = {v: o for o in rewritten.body.operations for v in o.results}
        self.records: dict[Value, Translated] = {
            v: r for r in translation.emitter.records or () for v in r.operation.results[:1] if top.get(v) is r.operation}
        self.arguments: dict[Value, Datum] = dict(translation.arguments)
        self.signed = {v: o.operands[0] for v, o in translation.unsigned.items()}
        self.found: dict[Translated, Term] = {}
        for value, operation in self.makers.items():
            self.add(value, operation)

    def add(self, value: Value, operation: Operation) -> None:
        from ....lowering.rewrite.translation_record import Term
        record = self.available(value)
        if record is None or record.operation.op is operation.op or value is not operation.results[0]:
            return
        chain, borders = self.chain(operation)
        if borders is None:
            return
        values = list(borders)
        lifts = [borders[v][1] for v in values]
        count = sum(spelling(o).endswith(".QuantizeLinear") for o in chain)

        def compute(given: Sequence[Any]) -> Any:
            scope = {v: lift(x) for v, lift, x in zip(values, lifts, given, strict=True)}
            return self.computed(chain, scope, value)
        lift = as_unsigned if value in self.signed and value not in self.records else same
        self.found[record] = Term(tuple(borders[v][0] for v in values), lift, compute, self.label(operation), max(count, 1))

    def available(self, value: Value) -> Translated | None:
        """Return the record whose result is a value of the file, possibly with another signedness."""
        return self.records.get(value) or (self.records.get(self.signed[value]) if value in self.signed else None)

    def border(self, value: Value) -> Border | None:
        """Return the value of the new graph that corresponds to a value of the file, and the conversion from it."""
        if value in self.arguments:
            return self.arguments[value], same
        record = self.available(value)
        if record is None:
            return None
        return record.results[0], same if value in self.records else as_unsigned

    def chain(self, last: Operation) -> tuple[list[Operation], dict[Value, Border] | None]:
        """Return the nodes of the file between the values that the new graph has and `last`, in order, with those values; None
        in place of the values if the new graph lacks one."""
        found: dict[Operation, None] = {}
        borders: dict[Value, Border] = {}
        lacking: list[Value] = []

        def visit(operation: Operation) -> None:
            for operand in operation.operands:
                maker = self.makers.get(operand)
                border = self.border(operand)
                if border is not None:
                    borders[operand] = border
                elif maker is None:
                    lacking.append(operand)
                elif maker not in found:
                    visit(maker)
            found[operation] = None
        visit(last)
        return list(found), None if lacking else borders

    def computed(self, chain: Sequence[Operation], scope: dict[Value, Any], wanted: Value) -> Any:
        from ....lowering.dialects.onnx.interpret import run
        for operation in chain:
            scope.update(zip(operation.results, run(self.module, operation, scope)))
        return scope[wanted]


def same(array: Any) -> Any:
    return array


def as_unsigned(array: Array) -> Array:
    """Return the unsigned bytes for the signed bytes by which a rewrite replaces them."""
    return np.asarray((array.astype(np.int16) + 128).astype(np.uint8))
