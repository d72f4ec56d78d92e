"""TensorFlow operations with effects, which are visible from outside although nobody reads their results.

TensorFlow marks its operators as stateful if they touch a resource, another device or the console. Here an operator has an
effect unless it has results and is not among the writers; operators that only read have none.
"""
from __future__ import annotations

from ...graph.foreign import find, spelling
from ...graph.graph import Operation
from .operator import is_tensorflow

WITHOUT = frozenset({"tf.NoOp", "tf.ControlTrigger", "tf.Yield"})
"""Operators without results that do nothing."""
WRITERS = frozenset({
    "tf._Recv", "tf._HostRecv", "tf.StatefulPartitionedCall", "tf.LegacyCall", "tf.PyFunc", "tf.EagerPyFunc", "tf.RemoteCall",
    "tf.VariableV2", "tf.Assign", "tf.AssignAdd", "tf.AssignSub", "tf.CountUpTo", "tf.ResourceCountUpTo",
    "tf.StackPushV2", "tf.StackPopV2", "tf.TensorArrayWriteV3", "tf.TensorArrayScatterV3", "tf.TensorArraySplitV3",
    "tf.QueueDequeueV2", "tf.QueueDequeueManyV2", "tf.IteratorGetNext", "tf.ReaderReadV2", "tf.PrintV2", "tf.Print",
    "tf.MapUnstage", "tf.Unstage", "tf.CollectiveReduceV2", "tf.CollectiveGatherV2"})
"""Operators with results and an effect that is visible elsewhere."""
CONTROL_FLOW = frozenset({"tf.If", "tf.While", "tf.Case", "tf.IfRegion", "tf.WhileRegion", "tf.CaseRegion"})
"""Operators that are stateful unless they have `is_stateless = true`."""

STANDARD = frozenset({"func.call", "scf.while", "tosaic.blocks"})
"""Operations of MLIR's own dialects that may have any effect, or not terminate."""


def has_effect(operation: Operation) -> bool:
    """True if one operation, its regions not counted, does more than compute its results."""
    name = spelling(operation)
    if not is_tensorflow(operation):
        return name in STANDARD
    if name in CONTROL_FLOW:
        return find(operation, "is_stateless") is not True
    return name in WRITERS or (not operation.results and name not in WITHOUT)
