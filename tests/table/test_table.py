"""The table of type combinations: every operator is in it and has a generator, what is in it is taken, what is not is
refused.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import tosaic.lowering.dialects.tosa  # noqa: F401  registers the operators
from tosaic.jit.stages import prepared
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import ELEMENT_TYPES, Array, ElementType, TensorType
from tosaic.runtime.errors import Problem

from .combinations import TABLE, VERSIONS, Types, written
from .draft import Draft
from .signatures import GENERATORS, case

NAMES = {operator.name.removeprefix("tosa.") for operator in OPERATORS.values() if operator.name.startswith("tosa.")}

MANY = 8
"""Combinations of the table whose neighbours are tried."""


class TypesOnly(Draft):
    """A draft whose tensors have no data, and whose numbers are all 0: what types alone make of a graph."""

    def tensor(self, element: ElementType, dims: Sequence[int], span: tuple[int, int] | None = None,
               constant: float = 0.15) -> Value:
        return self.argument(TensorType(tuple(dims), element))

    def integer(self, low: int, high: int) -> int:
        return max(low, min(0, high))

    def zero_point(self, element: ElementType, has_one: bool | None = None) -> Value:
        return super().zero_point(element, False)

    def change(self, value: Value, changed: Callable[[Array], Array]) -> None:
        """There are no data."""

    def number(self, element: ElementType) -> float:
        return 0


def is_taken(name: str, types: Types) -> bool:
    """True if the operator takes these types and gives the one that the table says it gives."""
    draft = TypesOnly(random.Random(0))
    try:
        prepared(draft.module(*GENERATORS[name](draft, types), variables=draft.variables))
    except Problem:
        return False
    variables = TABLE[name].variables
    result = next((n for n, v in enumerate(variables) if v in ("out", "in_out")), None)
    operation = next((o for o in reversed(draft.operations) if o.op.name == f"tosa.{name}"), None)
    if result is None or operation is None or not operation.results:
        return True
    found = operation.results[-1 if name == "while_loop" else 0].type  # that one counts first
    return isinstance(found, TensorType) and found.element == types[result]


def neighbours(name: str) -> Iterator[Types]:
    """Every combination that differs in one place from one of the table: from about MANY of them, where there are hundreds."""
    signature = TABLE[name]
    count, seen, rights = len(signature.variables), set[Types](), signature.combinations(*VERSIONS, "more")
    for right in rights[::max(1, len(rights) // MANY)]:
        for place in range(count):
            for element in ELEMENT_TYPES.values():
                types = (*right[:place], element, *right[place + 1:])
                if types not in seen:
                    seen.add(types)
                    yield types


def test_the_table_and_the_generators_have_every_operator_and_no_other() -> None:
    assert set(TABLE) == NAMES == set(GENERATORS)


@pytest.mark.parametrize("name", TABLE)
def test_the_types_of_the_table_are_taken(name: str) -> None:
    for types in TABLE[name].combinations(*VERSIONS, "more"):
        assert is_taken(name, types), written(types)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name, signature in TABLE.items() if signature.variables])
def test_types_beside_the_table_are_refused(name: str) -> None:
    taken = [written(types) for types in neighbours(name) if types not in TABLE[name] and is_taken(name, types)]
    assert not taken


def test_a_case_is_drawn_the_same_again() -> None:
    for name in ("conv2d", "rescale", "while_loop"):
        first, again = (case(name, TABLE[name].legal[0], 5) for _ in "ab")
        assert str(first) == str(again)
        assert [a.tobytes() for a in first.calls[0]] == [a.tobytes() for a in again.calls[0]]
        assert [type(o.op) for o in first.operations] == [type(o.op) for o in again.operations]


def test_cases_have_extents_around_vectors_and_every_rank() -> None:
    cases = [case("add", TABLE["add"].legal[0], seed) for seed in range(300)]
    shapes = [v.tensor.dims for c in cases for v in c.function.body.yields]
    assert {len(dims) for dims in shapes} == set(range(7))
    assert {n for dims in shapes for n in dims} >= {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65}
    assert any(len(c.operands) == 2 and c.operands[0] is c.operands[1] for c in cases)
    assert any(np.prod(a.shape) != np.prod(b.shape) for a, b in (c.operands for c in cases))
