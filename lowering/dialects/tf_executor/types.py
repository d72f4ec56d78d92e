"""The two types of the executor: control edges, and the token that joins the halves of a NextIteration."""
from __future__ import annotations

from ...graph.types import I1, I32, OpaqueType, TensorType, Type

CONTROL = OpaqueType("!tf_executor.control")
TOKEN = OpaqueType("!tf_executor.token")
SPELLINGS = {
    "!tf_executor.control": CONTROL, '!tf_executor<"control">': CONTROL, "!_tf_executor.control": CONTROL,
    "!tf_executor.token": TOKEN, "!tf_executor.loop_token": TOKEN, '!tf_executor<"token">': TOKEN,
    '!tf_executor<"loop_token">': TOKEN}
"""The types by each of their spellings; the dialect's design document has several."""
PREDICATE = TensorType((), I1)
INDEX_TYPE = TensorType((), I32)
"""The type of `value_index`, and of the index of _SwitchN."""


def is_data(type: Type) -> bool:
    """True if values of the type are neither control nor tokens."""
    return type not in (CONTROL, TOKEN)
