"""Formulas (`lowering/formulas`) as legalizations: half floats are computed in f32 and rounded once at the end, as TensorFlow
computes them, narrow integers in i32.
"""
from __future__ import annotations

from collections.abc import Callable

from ....formulas.term import Function
from ....formulas.working_types import evaluated
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .table import legalization


def formula(*names: str, integers: bool = False, floats: bool = True) -> Callable[[Function], Function]:
    """Register the function of terms for these operations, on operands of these kinds."""
    def add(function: Function) -> Function:
        def emit(e: Emitter, operation: Operation, *operands: Value) -> Value:
            return evaluated(function, e, operands, integers, floats)
        legalization(*names)(emit)
        return function
    return add
