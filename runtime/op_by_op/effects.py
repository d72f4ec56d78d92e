"""The side effects that `run` calls: they run in the order of their calls, and have no other dependencies. An effect that
fails, immediately or later, does not stop those after it; a client that wants them to depend on each other passes chains to
`execute`.

The call raises an immediate failure. A later failure has no call to raise it: it is printed if the runtime has no diagnostic
handler, and raised by `CoreRuntime.wait`, so that no effect is lost silently.
"""
from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import Label, Problem
from .asynchronous import Waiting, raised
from .chain import Chain
from .reporting import problem_of, show

if TYPE_CHECKING:
    from .core import CoreRuntime
    from .handler import OpInvocation

MOST_LOSSES = 1000
"""Maximum number of losses kept for `wait`; further losses are only counted."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An effect that has not happened, and its error. `has_results` is True if the error is also in handles."""
    op_name: str
    error: Problem
    has_results: bool

    @property
    def is_known(self) -> bool:
        """True if the client knows the error already, from reading a result."""
        return self.has_results and "raised" in self.error.__dict__

    def text(self) -> str:
        return f"the effect of {self.op_name} is lost: {self.error}"


class Effects:
    """The side effects of one runtime."""

    def __init__(self, runtime: CoreRuntime) -> None:
        self.runtime = runtime
        self.last = Chain.ready()
        """Ready when the last effect has ended, whether or not it failed."""
        self._losses: list[Loss] = []
        self._uncounted = 0
        self._lock = threading.RLock()

    def append(self, link: Link, invocation: OpInvocation) -> None:
        """Append a call to the order."""
        with self._lock:
            invocation.chain, self.last = self.last, link.done

    def lose(self, loss: Loss) -> None:
        """Record an effect that has failed after its call had returned."""
        if loss.error is self.runtime.cancelled:
            return  # the client cancelled it
        with self._lock:
            if len(self._losses) < MOST_LOSSES:
                self._losses.append(loss)
            else:
                self._uncounted += 1
        if self.runtime.diagnostic is None:
            show(loss.text())

    def raise_losses(self) -> None:
        """Raise the first error of the effects that were lost since the last time, with the others as notes."""
        with self._lock:
            lost, uncounted = [loss for loss in self._losses if not loss.is_known], self._uncounted
            self._losses, self._uncounted = [], 0
        if not lost:
            return
        error = raised(lost[0].error)
        notes = [f"the effect of {lost[0].op_name} is lost"]
        notes += [f"and that of {loss.op_name}: {loss.error.message}" for loss in lost[1:4]]
        if (more := len(lost[4:]) + uncounted) > 0:
            notes.append(f"and {more} more")
        error.labels = (*error.labels, *[Label(None, note) for note in notes])
        raise error

    def after_fork(self) -> None:
        """Reset the state in a forked child: no other thread has the lock."""
        self._lock = threading.RLock()


class Link:
    """One effect's position in the order: `done` is ready when the effect has ended."""
    __slots__ = ("done", "effects", "has_results", "op_name")

    def __init__(self, effects: Effects, invocation: OpInvocation) -> None:
        self.effects, self.op_name, self.has_results = effects, invocation.op_name, bool(invocation.results)
        self.done = Chain(Waiting())

    def close(self, invocation: OpInvocation) -> None:
        """Close the link when the call has returned: the call raises an error that is known by then, and later errors are
        losses."""
        out = invocation.out_chain
        if not self.done.is_pending:
            return
        if out is not None and out.is_pending and invocation.problem is None:
            if type(self.done._state) is Waiting:
                self.done._state.source = out
            out.then(self.arrived)
            return
        if out is not None and out.error is not None and not self.has_results:
            invocation.problem = out.error
        self.done._settle(None)

    def arrived(self, out: Chain) -> None:
        """Settle the link when the effect has ended."""
        try:
            if out.error is not None and self.done.is_pending:
                self.effects.lose(Loss(self.op_name, out.error, self.has_results))
        finally:
            self.done._settle(None)

    def _give_up(self, error: BaseException) -> None:
        """Record the effect as lost after an interrupt ended `arrived`."""
        self.effects.lose(Loss(self.op_name, problem_of(error, self.op_name), self.has_results))
        self.done._settle(None)
