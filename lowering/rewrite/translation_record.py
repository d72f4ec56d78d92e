"""The record of a graph's translation to TOSA: the data that each operation of the source became. `check` compares source and
result by this record.

A translation keeps records only on request. Operands and results are the new graph's values at that operation, so that its own
reference can compute each operation again from the same operands.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...runtime.records import dataclass
from ..dialects.data import Datum
from ..graph.graph import Module, Operation

Reference = Callable[[Operation, Sequence[Any]], "Sequence[Any] | None"]
"""A function that computes the results of an operation of the source by its own reference; None if it has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Translated:
    """An operation of the source, and its operands and results in the new graph. `is_computed`: the translation has computed
    the results by the operator's own reference, which then cannot check them."""
    operation: Operation
    operands: tuple[Datum, ...]
    results: tuple[Datum, ...]
    is_computed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Operations of the source that a rewrite replaced by one operation, as one function of values that the new graph still
    has. `steps`: maximum difference of the result, in quantization steps."""
    operands: tuple[Datum, ...]
    result: Callable[[Any], Any]
    """A function that returns the result of the source from the result of its replacement."""
    compute: Callable[[Sequence[Any]], Any]
    label: str
    steps: int


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTranslation:
    """A function of TOSA with the record of its translation. `label` returns the name of an operation of the source for
    messages; `steps` the maximum difference of its integers from those of its reference, in quantization steps; `terms` are
    checked in addition, by the record of their replacements."""
    module: Module
    name: str
    records: tuple[Translated, ...]
    reference: Reference
    label: Callable[[Operation], str]
    steps: Callable[[Operation], int]
    is_followed: Callable[[Operation], bool]
    """True for control flow, calls and variables, which are more than a function of their operands: their values are traced
    during a run instead."""
    terms: Mapping[Translated, Term]
