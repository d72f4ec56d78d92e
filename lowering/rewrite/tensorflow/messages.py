"""Send and Recv in program order: a Recv gets the data of a Send before it. A Recv whose Send is not in the compiled code is
refused."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...dialects.data import Datum
from ...dialects.tf.operator import RECEIVE, SEND
from ...graph.foreign import find
from ...graph.graph import Operation
from .special import Scope, special

if TYPE_CHECKING:
    from .translate import Translation


@special(*SEND, operands=1)
def send(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    t.messages[str(find(operation, "tensor_name"))] = operands[0]
    return []


@special(*RECEIVE)
def receive(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    name = str(find(operation, "tensor_name"))
    if name not in t.messages:
        raise Problem(f"a Recv waits for {name!r}, which nothing sends before it", operation.position, kind="unsupported",
                      help="compile both sides in one function, or interpret them")
    return [t.messages.pop(name)]
