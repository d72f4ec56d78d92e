"""An observer of a recorded translation while its graph is interpreted: it reports when an operation of the source is complete,
with the arrays of its operands and results at that moment, anew in every iteration of a loop.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....lowering.dialects.data import ComplexTensor, Datum, ListOfTensors, TensorSequence, leaves
from ....lowering.dialects.tf.values import TensorList
from ....lowering.graph.graph import Block, Operation, Value
from ....lowering.graph.types import Array
from ....lowering.rewrite.translation_record import RecordedTranslation, Translated

Written = Callable[[Operation, str, Array], None]
MISSING = object()
"""A datum that is not known at the moment, or that no array represents."""


@dataclass(slots=True, eq=False)
class Follower:
    """The values of the graph as it runs. In a call, call `complete` with each record whose results have all been computed, and
    `written` with each write to a variable."""
    translation: RecordedTranslation
    complete: Callable[[Translated], None] = lambda record: None
    written: Written = lambda node, name, array: None
    values: dict[Value, Array] = field(default_factory=dict)
    waiting: dict[Value, list[Translated]] = field(default_factory=dict)
    expected: dict[Translated, frozenset[Value]] = field(default_factory=dict)
    missing: dict[Translated, set[Value]] = field(default_factory=dict)
    """Results not yet computed since the record was last complete."""
    arguments: set[Value] = field(default_factory=set)
    """Arguments of regions and of the function."""
    known: list[Translated] = field(default_factory=list)
    """Records whose results are constants."""

    def __post_init__(self) -> None:
        function = self.translation.module.function(self.translation.name)
        there = set(defined(function.body, self.arguments))
        for record in self.translation.records:
            found = tuple(v for datum in record.results for v in leaves(datum) if v in there)
            for value in found:
                self.waiting.setdefault(value, []).append(record)
            self.expected[record], self.missing[record] = frozenset(found), set(found)
            if not found and any(leaves(d) for d in record.results):
                self.known.append(record)

    def begin(self, complete: Callable[[Translated], None], written: Written) -> None:
        """Begin a call."""
        self.complete, self.written = complete, written
        for record, expected in self.expected.items():
            self.missing[record] = set(expected)

    def observe(self, operation: Operation, results: Sequence[Array]) -> None:
        """Record the results of an operation; called after each operation of the graph."""
        if operation.op.variable_effect == "write":
            self.written(operation, operation.op.symbol, self.array(operation.operands[0]))  # type: ignore[attr-defined]
        self.came(operation.results, results)

    def enter(self, block: Block, arrays: Sequence[Array]) -> None:
        """Record the arguments of a block; called when a block begins."""
        self.came(block.arguments, arrays)

    def came(self, values: Sequence[Value], arrays: Sequence[Array]) -> None:
        self.values.update(zip(values, arrays))
        for value in values:
            for record in self.waiting.get(value, ()):
                rest = self.missing[record]
                rest.discard(value)
                if not rest:
                    rest.update(self.expected[record])
                    self.complete(record)

    def end(self) -> None:
        """End a call: complete the records that are known when compiling."""
        for record in self.known:
            self.complete(record)

    # ---- arrays ----------------------------------------------------------------------------------------------------------
    def array(self, value: Value) -> Any:
        return value.constant if value.constant is not None else self.values.get(value, MISSING)

    def datum(self, datum: Datum) -> Any:
        """Return an array, a list, a sequence, or None for an omitted datum; MISSING if the datum is not known."""
        found = [self.array(v) for v in leaves(datum)]
        if any(x is MISSING for x in found):
            return MISSING
        match datum:
            case Value():
                return found[0]
            case ComplexTensor():
                return (found[0] + 1j * found[1]).astype(np.complex64)
            case ListOfTensors(count=count, element=element) if element is not None and element.is_static:
                items = tuple(found[0]) if found else (None,) * count
                return TensorList(items, element.dims, np.dtype(element.element.dtype))
            case TensorSequence():
                return tuple(found)
            case None:
                return None
            case _:
                return MISSING


def defined(block: Block, arguments: set[Value]) -> Iterator[Value]:
    """Yield the values that a block and its regions define, without constants; add those that are arguments to `arguments`."""
    arguments.update(block.arguments)
    yield from block.arguments
    for operation in block.operations:
        yield from (v for v in operation.results if v.constant is None)
        for region in operation.regions:
            yield from defined(region, arguments)
