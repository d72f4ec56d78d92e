"""Assertions: `tf.Assert` ends the run, as it does in TensorFlow; its message is what is known of its data when compiling."""
from __future__ import annotations

from ....graph.graph import Operation, Value
from ...data import Datum, Text
from ...emitter import Emitter
from .table import legalization

MOST = 8
"""Elements of a constant that a message shows."""


@legalization("tf.Assert")
def assertion(e: Emitter, operation: Operation, condition: Value, *data: Datum) -> tuple[()]:
    shown = [text_of(datum, value) for datum, value in zip(data, operation.operands[1:])]
    message = " ".join(filter(None, (" ".join(part.split()) for part in shown)))
    e.check(e.is_true(condition), f"assertion failed: {message}" if message else "assertion failed")
    return ()


def text_of(datum: Datum, value: Value) -> str:
    """A datum in a message: the data of a constant, of anything else its name."""
    found = getattr(datum.value, "values", None) if isinstance(datum, Text) else None
    if found is not None:
        return ", ".join(string.decode("utf-8", "replace") for string in found[:MOST]) + ", ..." * (len(found) > MOST)
    if isinstance(datum, Value) and datum.constant is not None:
        flat = datum.constant.reshape(-1)
        return ", ".join(str(x) for x in flat[:MOST].tolist()) + ", ..." * (flat.size > MOST)
    return f"%{value.name}"
