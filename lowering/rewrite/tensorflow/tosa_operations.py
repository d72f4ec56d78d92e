"""Operators of TOSA in a module that also holds other dialects: they are kept, for types that are known now."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...dialects.control_flow import branch, condition_of, loop
from ...dialects.data import Datum
from ...dialects.tosa.control_flow import CondIf, WhileLoop
from ...graph.graph import Block, Operation, Value
from .special import TOSA, Scope, special
from .standard_operations import tensor_of

if TYPE_CHECKING:
    from .translate import Translation


@special(TOSA)
def tosa(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    """Return the results of an operator of TOSA, or of tosaic's own."""

    def inside(region: Block, state: Sequence[Datum]) -> Sequence[Datum]:
        return t.block(region, {**scope, **dict(zip(region.arguments, state, strict=True))})

    match operation.op:
        case CondIf():
            condition, *rest = operands
            then, otherwise = operation.regions
            return branch(t.emitter, condition_of(t.emitter, condition), lambda: inside(then, rest),
                          lambda: inside(otherwise, rest))
        case WhileLoop():
            test, body = operation.regions
            return loop(t.emitter, operands, lambda state: inside(test, state)[0], lambda state: inside(body, state))
        case op if operation.regions:
            raise Problem(f"{op.name} with regions cannot be compiled here", kind="unsupported")
        case op:
            values: list[Value] = [tensor_of(x) for x in operands]
            return t.emitter.add(op, *values)
