"""ASSERT: a check that a run makes. It is not TOSA: TensorFlow's assertions and fetches of dead values become it, and
`tosaic.check` of the Python front end.

It computes nothing, so there is no `element`: fusion makes a step of it (`fuse.checks`).
"""
from __future__ import annotations

from ....runtime.errors import Problem
from ...graph.operator import Op, Operand, attribute
from ...graph.types import Array
from ..tosa.control_flow import check_condition


class Assert(Op, name="tosaic.assert"):
    """Ends the run with `message` where the one element of the condition is false. Then no variable has changed."""
    message: str = attribute("string")
    is_check = True

    def infer(self, condition: Operand) -> tuple[()]:
        check_condition(condition, "what is asserted")
        return ()

    def reference(self, condition: Array) -> tuple[()]:
        if not condition.item():
            raise Problem(self.message, kind="check")
        return ()
