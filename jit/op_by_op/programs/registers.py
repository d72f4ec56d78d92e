"""Registers: what the values of a kernel program are while it runs. A register is pending, then has its value or an error.

The value of a tensor handle's register is the handle, which may itself still be pending: kernels that only pass handles on
do not wait for tensors. A chain's value is None: that it is there is all.

A register knows how many uses of it are still to come, which the program's text says; the last one takes the handle out, so
that the operation that gets it has the only reference, and its result may have the buffer.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....runtime.errors import Problem
from ....runtime.op_by_op.asynchronous import TRANSITION, AsyncValue, Waiting
from ....runtime.op_by_op.handle import TensorHandle


class Register(AsyncValue):
    """One value of a running program. `uses` are those to come; one at first, that of whoever made it."""
    __slots__ = ("uses", "value")

    def __init__(self, value: Any = None, state: Waiting | Problem | None = None, uses: int = 1) -> None:
        self.value, self._state, self.uses = value, state, uses

    @classmethod
    def pending(cls, uses: int = 1) -> Register:
        return cls(None, Waiting(), uses)

    def lend(self, uses: int) -> None:
        """Add `uses` to the uses that are still to come; a negative number takes them away."""
        with TRANSITION:
            self.uses += uses

    def take(self) -> Any:
        """The value, for one use; the last one leaves no handle here."""
        with TRANSITION:
            value, self.uses = self.value, self.uses - 1
            if not self.uses and isinstance(value, TensorHandle):
                self.value = None
        return value

    def set(self, value: Any) -> None:
        """Give it its value."""
        self.value = value
        self._settle(None)

    def fail(self, error: Problem) -> None:
        """Make it an error, unless it is settled."""
        self._fail(error)

    def follow(self, other: AsyncValue) -> None:
        """Become what a register, or a chain of the runtime, becomes."""
        other.then(self._become)

    def _become(self, other: AsyncValue) -> None:
        if other.error is not None:
            self.fail(other.error)
        else:
            self.set(other.take() if isinstance(other, Register) else None)


def first_error(values: Iterable[AsyncValue]) -> Problem | None:
    """The error of the first value that is one."""
    return next((v.error for v in values if v.error is not None), None)


def when_settled(values: Iterable[AsyncValue], then: Callable[[], object]) -> None:
    """Call `then` once all values are settled: now, or in the thread that settles the last."""
    pending = [v for v in values if v.is_pending]
    if not pending:
        then()
        return
    left = iter(range(len(pending) - 1, -1, -1))  # next() of it is one step, whatever the thread

    def arrived(_: object) -> None:
        if next(left) == 0:
            then()

    for value in pending:
        value.then(arrived)
