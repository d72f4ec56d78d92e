"""What each operation of a source became while its graph was translated to TOSA: the record that `check` compares the two by.

A translation keeps records where it is asked for them. Operands and results are what the source's values are in the new graph
at that operation, so that each operation can be computed again by its own reference, from the operands that it had.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...runtime.records import dataclass
from ..dialects.data import Datum
from ..graph.graph import Module, Operation

Reference = Callable[[Operation, Sequence[Any]], "Sequence[Any] | None"]
"""Computes the results of an operation of the source by its own reference; None where it has none."""


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
    """Operations of the source that a rewrite has put one other in the place of, as one function of values that the new graph
    still has. `steps`: how many quantization steps the result may be off."""
    operands: tuple[Datum, ...]
    result: Callable[[Any], Any]
    """The result of the source from that of what stands in its place."""
    compute: Callable[[Sequence[Any]], Any]
    label: str
    steps: int


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTranslation:
    """A function of TOSA with the record of its making. `label` says an operation of the source in words; `steps` is how many
    quantization steps its integers may be off those of its reference; `terms` are checked besides, by the record of what stands
    in their place."""
    module: Module
    name: str
    records: tuple[Translated, ...]
    reference: Reference
    label: Callable[[Operation], str]
    steps: Callable[[Operation], int]
    is_followed: Callable[[Operation], bool]
    """True for control flow, calls and variables, which are more than a function of their operands: their values are followed
    in time instead."""
    terms: Mapping[Translated, Term]
