"""Faults in how branches, loops, variables and executor graphs of TensorFlow become TOSA: no operation alone is wrong there, so
they are found by what values become in time."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tf_executor.operators import Island, data_operands
from tosaic.lowering.formulas.term import Term
from tosaic.lowering.graph.graph import Operation
from tosaic.lowering.rewrite.functionalize import emit, live_bits, loops
from tosaic.lowering.rewrite.tensorflow import control_flow

from .fault import Fault, Patch, text

T, F = np.array(True), np.array(False)
X, Y = np.array([1, -2], np.float32), np.array([4, 8], np.float32)
FIRST = {"v": np.zeros(2, np.float32)}


# ---- changes -----------------------------------------------------------------------------------------------------------
def attribute(owner: Any, name: str, made: Callable[[Any], Any]) -> Patch:
    """Something of the product, made wrong out of what it is."""
    def patch(planted: pytest.MonkeyPatch) -> None:
        planted.setattr(owner, name, made(getattr(owner, name)))
    return patch


def other_way(found: Any) -> Any:
    return lambda e, condition, then, otherwise: found(e, condition, otherwise, then)


def negated(found: Any) -> Any:
    """The bit of a predicate's opposite."""
    return lambda self, value: self.manager.negation(found(self, value))


def next_case(found: Any) -> Any:
    """Results of a Switch of several ways, one place on."""
    return lambda self, index, count, own: (lambda bits: [bits[-1], *bits[:-1]])(found(self, index, count, own))


def permuted(found: Any) -> Any:
    """What a loop carries, in another order after an iteration."""
    def loop(e: Any, state: Any, test: Any, body: Any) -> Any:
        return found(e, state, test, lambda values: list(body(values))[::-1])
    return loop


def once_more(found: Any) -> Any:
    """An iteration too many."""
    def loop(e: Any, state: Any, test: Any, body: Any) -> Any:
        return list(body(found(e, state, test, body)))
    return loop


def without(is_lost: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """An island that writes runs whenever inputs of another kind are live."""
    def change(found: Any) -> Any:
        def all_live(self: Any, operation: Operation) -> Any:
            if isinstance(operation.op, Island) and any(o.op.spelling == "tf.AssignVariableOp"  # type: ignore[attr-defined]
                                                        for o in operation.regions[0].operations):
                data = set(data_operands(operation)) | {v for o in operation.regions[0].operations for v in o.operands}
                kept = [v for v in self.frames.inputs[operation] if not is_lost(v in data)]
                return self.manager.conjunction(*(self.bit(v) for v in kept))
            return found(self, operation)
        return all_live
    return change


def backwards(found: Any) -> Any:
    """Writes in the order that the text does not have."""
    def ordered(self: Any, frame: Any) -> Any:
        units = found(self, frame)
        writes = [u for u in units if isinstance(u, Operation) and any(
            getattr(o.op, "spelling", "") == "tf.AssignVariableOp" for r in u.regions for o in r.operations)]
        back = dict(zip(map(id, writes), reversed(writes)))
        return [back.get(id(u), u) for u in units]
    return ordered


def numbers_up(found: Any) -> Any:
    """value_index counts from 1."""
    def merge(self: Any, operation: Operation, care: Any, known: Any) -> None:
        found(self, operation, care, known)
        index = operation.results[1]
        if known.get(index) is not None:
            known[index] = self.t.emitter.sum(known[index], self.t.emitter.constant(np.array(1, np.int32)))
    return merge


def subtracting(found: Any) -> Any:
    return lambda t, operation, operands, scope: found(
        t, operation, [operands[0], (-Term(t.emitter, operands[1])).value], scope)


def special(name: str, made: Callable[[Any], Any]) -> Patch:
    from tosaic.lowering.rewrite.tensorflow.special import SPECIAL

    def patch(planted: pytest.MonkeyPatch) -> None:
        planted.setitem(SPECIAL, name, made(SPECIAL[name]))
    return patch


def calls(*each: Sequence[Any]) -> list[list[Any]]:
    return [list(one) for one in each]


BOTH = calls([X, T], [Y, F], [X, F])
N = calls([np.int32(3), np.int32(20)], [np.int32(0), np.int32(5)])
COUNTS = [[np.array(a) for a in one] for one in N]
M = "tf_executor.Merge"

FAULTS = (
    Fault("the regions of a condition swapped", "functionalize", attribute(emit, "branch", other_way),
          text("switched", *BOTH), M),
    Fault("a Switch by the opposite", "functionalize", attribute(live_bits.Liveness, "condition", negated),
          text("switched", *BOTH), M),
    Fault("value_index from 1", "functionalize", attribute(emit.Functionalization, "merge", numbers_up),
          text("switched", *BOTH), M),
    Fault("the next case of _SwitchN", "functionalize", attribute(live_bits.Liveness, "cases", next_case),
          text("cases", *calls([X, np.array(0, np.int32)], [X, np.array(1, np.int32)], [X, np.array(7, np.int32)])), M),
    Fault("carried values permuted", "functionalize", attribute(loops, "while_loop", permuted), text("loop", *COUNTS), M),
    Fault("an iteration too many in a frame", "functionalize", attribute(loops, "while_loop", once_more), text("loop", *COUNTS),
          "tf_executor.Exit"),
    Fault("a dead island runs", "functionalize", attribute(live_bits.Liveness, "all_live", without(lambda data: data)),
          text("dead_write", *BOTH, variables=FIRST), "tf.AssignVariableOp"),
    Fault("a control dependency is lost", "functionalize", attribute(live_bits.Liveness, "all_live",
                                                                     without(lambda data: not data)),
          text("controlled_write", *BOTH, variables=FIRST), "tf.AssignVariableOp"),
    Fault("writes in another order", "functionalize", attribute(live_bits.Liveness, "ordered", backwards),
          text("writes_in_order", [X], [Y], variables=FIRST), "tf.AssignVariableOp"),
    Fault("the branches of tf.If swapped", "control flow", attribute(control_flow, "branch", other_way),
          text("branches", *BOTH), "tf.If"),
    Fault("carried values of tf.While permuted", "control flow", attribute(control_flow, "loop", permuted),
          text("while", *COUNTS), "tf.While"),
    Fault("tf.While runs once more", "control flow", attribute(control_flow, "loop", once_more), text("while", *COUNTS),
          "tf.While"),
    Fault("a variable counts down", "variables", special("tf.AssignAddVariableOp", subtracting),
          text("counter", [X], [Y], variables=FIRST), "tf.AssignAddVariableOp"),
)
