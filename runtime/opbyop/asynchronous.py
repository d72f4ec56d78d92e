"""Values that come later: the states that tensor handles and chains share.

A value is pending, then ready or an error, for ever. Callbacks wait for a pending one. All transitions of this process happen
under one lock that is only held for a few assignments; what is settled is read without it.
"""
from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from types import SimpleNamespace
from typing import Any

from ..errors import Problem

TRANSITION = threading.RLock()
"""Held while a value changes its state. It may be taken twice, as a destructor may run anywhere. Who has it takes no other
lock, and makes no objects that might start the garbage collector."""

Callback = Callable[[Any], object]


class Waiting:
    """The callbacks of a pending value."""
    __slots__ = ("for_metadata", "for_value")

    def __init__(self) -> None:
        self.for_value: list[Callback] = []
        self.for_metadata: list[Callback] = []


class AsyncValue:
    """A value that may be pending. `_state` is None when it is ready, its error, or what waits for it."""
    __slots__ = ("__weakref__", "_state")
    _state: Waiting | Problem | None

    @property
    def is_pending(self) -> bool:
        return type(self._state) is Waiting

    @property
    def is_ready(self) -> bool:
        """Whether the value is there; an error is not."""
        return self._state is None

    @property
    def is_error(self) -> bool:
        return isinstance(self._state, Problem)

    @property
    def error(self) -> Problem | None:
        """Why there will never be a value; None while there may be one."""
        state = self._state
        return state if isinstance(state, Problem) else None

    def then(self, callback: Callback) -> None:
        """Call `callback(self)` as soon as this is ready or an error: now if it is, else in the thread that settles it."""
        with TRANSITION:
            waiting = self._state
            if type(waiting) is Waiting:
                waiting.for_value.append(callback)
                return
        run_callbacks((callback,), self)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until this is ready or an error; False where `timeout` seconds were not enough."""
        if not self.is_pending:
            return True
        done = threading.Event()
        self.then(lambda _: done.set())
        return done.wait(timeout)

    def _fail(self, error: Problem) -> bool:
        """Make this an error; False where it has been settled before."""
        return self._settle(error)

    def _settle(self, state: Problem | None) -> bool:
        with TRANSITION:
            waiting = self._state
            if type(waiting) is not Waiting:
                return False
            self._state = state
        run_callbacks((*waiting.for_metadata, *waiting.for_value), self)
        return True

    def _settled(self) -> Generator[Any, None, None]:
        """What `await` goes through: nothing if this is settled, else a future of the running loop."""
        if self.is_pending:
            import asyncio
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self.then(lambda _: tell(loop, future))
            yield from future


def tell(loop: Any, future: Any) -> None:
    """Wake a coroutine from any thread; a loop that has been closed waits for nothing."""
    try:
        loop.call_soon_threadsafe(lambda: future.done() or future.set_result(None))
    except RuntimeError:
        if not loop.is_closed():
            raise


class _Running(threading.local):
    callbacks: deque[tuple[Callback, Any]] | None = None


_running = _Running()


def run_callbacks(callbacks: Iterable[Callback], value: AsyncValue | None) -> None:
    """Call them in order; those that come up meanwhile in this thread follow, one after the other and not inside each other, so
    that a long row of values that wait for each other needs no deep stack."""
    if (queue := _running.callbacks) is not None:
        queue.extend((callback, value) for callback in callbacks)
        return
    queue = _running.callbacks = deque((callback, value) for callback in callbacks)
    try:
        while queue:
            callback, of = queue.popleft()
            try:
                callback(of)
            except Exception as error:
                unraisable(error, callback)
    finally:
        _running.callbacks = None


def unraisable(error: Exception, culprit: object) -> None:
    """Tell of an error in a callback, which nobody can catch."""
    sys.unraisablehook(SimpleNamespace(exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__,
                                       err_msg="Exception ignored in a callback of tosaic", object=culprit))


def raised(error: Problem) -> Problem:
    """The same problem as an exception of its own, to be raised here: one error is read in many places."""
    copy = Problem(error.message, error.position, kind=error.kind, help=error.help, labels=error.labels)
    copy.__cause__ = error.__cause__
    return copy


def _after_fork_in_child() -> None:
    global TRANSITION
    _running.callbacks = None
    TRANSITION._at_fork_reinit()  # type: ignore[attr-defined]


def _after_fork_in_parent() -> None:
    TRANSITION.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=TRANSITION.acquire, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
