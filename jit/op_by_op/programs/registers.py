"""Registers: the values of a kernel program while it runs. A register is pending, then has its value or an error.

The value of a tensor handle's register is the handle, which may itself still be pending: kernels that only pass handles on do
not wait for tensors. A chain's value is None: only its readiness matters.

A register counts the uses of its value that are still to come, as the program's text determines. The last use takes the handle
out, so that the operation that gets it has the only reference, and its result may reuse the buffer.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....runtime.errors import Problem
from ....runtime.op_by_op.asynchronous import TRANSITION, AsyncValue, Waiting
from ....runtime.op_by_op.handle import TensorHandle


class Register(AsyncValue):
    """One value of a running program. `uses` is the number of uses to come; one at first, that of its creator."""
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
        """Return the value, for one use; the last use leaves no handle here."""
        with TRANSITION:
            value, self.uses = self.value, self.uses - 1
            if not self.uses and isinstance(value, TensorHandle):
                self.value = None
        return value

    def set(self, value: Any) -> None:
        """Set the register's value."""
        self.value = value
        self._settle(None)

    def fail(self, error: Problem) -> None:
        """Set an error, unless the register is settled."""
        self._fail(error)

    def follow(self, other: AsyncValue) -> None:
        """Settle as another register, or a chain of the runtime, settles."""
        other.then(self._become)

    def _become(self, other: AsyncValue) -> None:
        if other.error is not None:
            self.fail(other.error)
        else:
            self.set(other.take() if isinstance(other, Register) else None)


def first_error(values: Iterable[AsyncValue]) -> Problem | None:
    """Return the error of the first value that has one."""
    return next((v.error for v in values if v.error is not None), None)


def when_settled(values: Iterable[AsyncValue], then: Callable[[], object]) -> None:
    """Call `then` once all values are settled: now, or in the thread that settles the last."""
    pending = [v for v in values if v.is_pending]
    if not pending:
        then()
        return
    left = iter(range(len(pending) - 1, -1, -1))  # each next() is one atomic step in any thread

    def arrived(_: object) -> None:
        if next(left) == 0:
            then()

    for value in pending:
        value.then(arrived)
