"""Assertions: `tf.Assert` ends the run, as in TensorFlow; its message is the part of its data that is known at compile time."""
from __future__ import annotations

from ....graph.graph import Operation, Value
from ...data import Datum, Text
from ...emitter import Emitter
from .table import legalization

MOST = 8
"""Maximum number of elements of a constant in a message."""


@legalization("tf.Assert")
def assertion(e: Emitter, operation: Operation, condition: Value, *data: Datum) -> tuple[()]:
    shown = [text_of(datum, value) for datum, value in zip(data, operation.operands[1:])]
    message = " ".join(filter(None, (" ".join(part.split()) for part in shown)))
    e.check(e.is_true(condition), f"assertion failed: {message}" if message else "assertion failed")
    return ()


def text_of(datum: Datum, value: Value) -> str:
    """Return the text of a datum in a message: the data of a constant, the name of any other datum."""
    found = getattr(datum.value, "values", None) if isinstance(datum, Text) else None
    if found is not None:
        return ", ".join(string.decode("utf-8", "replace") for string in found[:MOST]) + ", ..." * (len(found) > MOST)
    if isinstance(datum, Value) and datum.constant is not None:
        flat = datum.constant.reshape(-1)
        return ", ".join(str(x) for x in flat[:MOST].tolist()) + ", ..." * (flat.size > MOST)
    return f"%{value.name}"
