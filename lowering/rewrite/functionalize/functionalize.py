"""The translation of an executor graph as one operation: the entry point of this package."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...dialects.data import Datum
from ...graph.graph import Operation
from ..tensorflow.special import Scope, special
from .emit import Functionalization
from .loops import emit_loop

if TYPE_CHECKING:
    from ..tensorflow.translate import Translation


@special("tf_executor.graph")
def functionalize(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    """Return the fetched values of the graph."""
    return Functionalization(t, operation, scope, emit_loop).results()
