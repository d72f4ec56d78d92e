"""ASSERT: a check at run time. It is not TOSA: TensorFlow's assertions, fetches of dead values and `tosaic.check` of the Python
front end become it.

It computes nothing, so there is no `element`: fusion turns it into a step (`fuse.checks`).
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
