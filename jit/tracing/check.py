"""`tosaic.check`: a condition that every call must meet. It becomes an ASSERT in the graph, and a call that fails it ends."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.dialects.tosaic.assertion import Assert
from ...lowering.graph.types import I1
from ...runtime.errors import TypeProblem, class_of
from ...runtime.public_names import public
from .conversion import tensor
from .trace import is_tracing, problem, record


@public("tosaic.check")
def check(condition: Any, message: str = "a check fails") -> None:
    """Raise a Problem with this message, at this line, in every call in which the condition, one bool, is false.

    A call that fails changes no variable. It reports the first failing check in program order. A check in a branch or a loop
    runs when the branch or the loop runs. Outside of traced functions the check runs at once. Raise a Problem when tracing for
    a condition that is not one bool, and when compiling for a condition that is false in every call."""
    if not isinstance(message, str):
        raise problem(f"the message of check is {class_of(message)}, not a string", "argument", raised=TypeProblem)
    if not is_tracing():
        made_now(condition, message)
        return
    test = tensor(condition)
    if test.element != I1 or test.size != 1:
        raise not_one_bool(test.type)
    if test.value.constant is None or not test.value.constant.item():
        record(Assert(message=message), test)


def made_now(condition: Any, message: str) -> None:
    """Check a condition that is a value, not a traced tensor."""
    found = np.asarray(condition)
    if found.dtype != np.bool_ or found.size != 1:
        raise not_one_bool(f"{found.dtype}{list(found.shape)}")
    if not found.item():
        raise problem(message, "check")


def not_one_bool(found: object) -> Exception:
    return problem(f"the condition of check is {found}, it must be one bool", help="x.any() or x.all() make one")
