"""Calls of the module's functions, which are inlined."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...dialects.data import Datum
from ...graph.foreign import find, spelling
from ...graph.graph import Operation
from .special import Scope, special

if TYPE_CHECKING:
    from .translate import Translation


@special("tf.PartitionedCall", "tf.StatefulPartitionedCall", "tf.LegacyCall", "func.call")
def call(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    found = find(operation, "f") or find(operation, "callee")
    if found is None:
        raise Problem(f"{spelling(operation)} does not say which function it calls", kind="attribute")
    return t.call(str(found.path[-1]), operands)
