"""An operation of TensorFlow: kept as written, by its name, whether the operation is known or not.

Later stages define its semantics, by a table over `spelling`. Properties (`<{...}>`) and attributes (`{...}`) are separate,
because MLIR prints them separately; `find` searches both.
"""
from __future__ import annotations

from typing import Any

from ...graph.graph import Operation
from ...graph.operator import ForeignOp

PREFIX = "tf."
CONST, YIELD = "tf.Const", "tf.Yield"
SEND, RECEIVE = ("tf._Send", "tf._HostSend"), ("tf._Recv", "tf._HostRecv")


class TensorFlowOp(ForeignOp):
    """An operator of the open dialect: `spelling` is its name (`tf.MatMul`), `properties` are the entries of `<{...}>`.

    The attributes of the operation (`Operation.attributes`) are the entries of `{...}`. A region ends in `tf.Yield`, whose
    operands are the block's `yields`.
    """
    terminator = YIELD
    constant_spelling = CONST

    def verify(self, operation: Operation, parent: Operation | None) -> None:
        from .definitions import check_definition
        from .verify_regions import verify_regions
        check_definition(operation)
        verify_regions(operation)

    def default_of(self, name: str) -> Any:
        from .definitions import default_of
        return default_of(self.spelling, name)


def is_tensorflow(operation: Operation, *names: str) -> bool:
    """True if the operation belongs to the dialect, and has one of these names if any are given."""
    return isinstance(operation.op, TensorFlowOp) and (not names or operation.op.spelling in names)
