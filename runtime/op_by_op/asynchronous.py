"""Asynchronous values: the states that tensor handles and chains share.

A value is pending, then permanently ready or an error. Callbacks wait for a pending value. All transitions of this process
happen under one lock that is only held for a few assignments; settled values are read without it.
"""
from __future__ import annotations

import os
import threading
from _thread import allocate_lock
from collections.abc import Generator
from threading import get_ident
from typing import Any

from ..errors import Problem
from .callbacks import Callback, drain, leave_to_another, row_of, rows, run_callbacks
from .recording import check_no_region
from .workers import blocked

TRANSITION = threading.RLock()
"""Held during state transitions of values. It is reentrant, as a destructor may run anywhere. Its holder takes no other lock,
and creates no objects that might start the garbage collector."""


class Waiting:
    """The callbacks of a pending value. `source` is the object that will settle it, if known: a call, the value that it
    follows, or a region."""
    __slots__ = ("for_metadata", "for_value", "source")

    def __init__(self, source: Any = None) -> None:
        self.for_value: list[Callback] = []
        self.for_metadata: list[Callback] = []
        self.source = source

    def close(self) -> None:
        """Move all callbacks to `for_value`, in the order in which `drain` takes them: the last one first."""
        self.for_value.reverse()
        if self.for_metadata:
            self.for_metadata.reverse()
            self.for_value.extend(self.for_metadata)
            self.for_metadata = []


class AsyncValue:
    """A value that may be pending. `_state` is None when it is ready, its error, or the callbacks that wait for it."""
    __slots__ = ("__weakref__", "_state")
    _state: Waiting | Problem | None

    @property
    def is_pending(self) -> bool:
        return type(self._state) is Waiting

    @property
    def is_ready(self) -> bool:
        """True if the value is available; an error is not."""
        return self._state is None

    @property
    def is_error(self) -> bool:
        return isinstance(self._state, Problem)

    @property
    def error(self) -> Problem | None:
        """The reason why there will never be a value; None while there may be one."""
        state = self._state
        return state if isinstance(state, Problem) else None

    def then(self, callback: Callback) -> None:
        """Call `callback(self)` as soon as this is ready or an error: immediately if it is, otherwise in the thread that
        settles it (or in another one, if that thread blocks in an earlier callback)."""
        with TRANSITION:
            waiting = self._state
            if type(waiting) is Waiting:
                waiting.for_value.append(callback)
                return
        run_callbacks((callback,), self)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until this is ready or an error; return False if `timeout` seconds were not enough. Raises a Problem if only
        the waiting thread could settle it: in a region that records it."""
        return type(self._state) is not Waiting or self._block("for_value", timeout)

    def _block(self, what: str, timeout: float | None) -> bool:
        """Wait until the callbacks `what` of the state are called."""
        check_no_region([self])
        lock = allocate_lock()
        lock.acquire()
        with TRANSITION:
            waiting = self._state
            callbacks = getattr(waiting, what) if type(waiting) is Waiting else KNOWN
            if callbacks is KNOWN:
                return True
            callbacks.append(lock.__exit__)  # type: ignore[arg-type]  # in C: no signal comes between its call and what it does
        leave_to_another(get_ident())
        with blocked(lock):
            is_called = lock.acquire(True, -1 if timeout is None else max(0, min(timeout, threading.TIMEOUT_MAX)))
        if is_called and callbacks is getattr(self._state, what, None):  # woken at the end of the program
            raise Problem("the program ends, and nobody is left who would give this value", kind="cancelled",
                          help="settle all pending handles before the program ends")
        return is_called

    def _fail(self, error: Problem) -> bool:
        """Make this an error; return False if it has been settled before."""
        return self._settle(error)

    def _settle(self, state: Problem | None, contents: tuple[Any, ...] | None = None) -> bool:
        """Make this ready, with these contents, or an error; return False if it has been settled before."""
        waiting = self._state
        if type(waiting) is not Waiting:
            return False
        thread, entry, is_settled = get_ident(), (self, waiting.for_value), False
        is_first = thread not in rows
        try:
            row = row_of(thread)
            with TRANSITION:
                if self._state is waiting:
                    waiting.close()
                    if contents is not None:
                        self._fill(*contents)
                    self._state, is_settled = state, True
                    row.append(entry)  # in C: no signal comes between the two
        finally:
            if is_first:
                try:
                    drain(thread)
                except BaseException:
                    drain(thread)  # Ctrl-C may have come before it began
                    raise
        return is_settled

    def _fill(self, *contents: Any) -> None:
        """Store the contents of a ready value, under the lock."""

    def _settled(self) -> Generator[Any, None, None]:
        """Yield what `await` waits for: nothing if this is settled, otherwise a future of the running loop."""
        if self.is_pending:
            import asyncio
            check_no_region([self])
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self.then(lambda _: wake(loop, future))
            yield from future


KNOWN: list[Callback] = []
"""Callbacks for metadata that is known already: none."""


def wake(loop: Any, future: Any) -> None:
    """Wake a coroutine from any thread; a closed loop needs no wake-up."""
    try:
        loop.call_soon_threadsafe(lambda: future.done() or future.set_result(None))
    except RuntimeError:
        if not loop.is_closed():
            raise


def raised(error: Problem) -> Problem:
    """Return the same problem as a separate exception, to be raised here, because one error is read in many places. Note that
    in `error`."""
    error.__dict__["raised"] = True
    return error.copy()


def _after_fork_in_child() -> None:
    TRANSITION._at_fork_reinit()  # type: ignore[attr-defined]


def _after_fork_in_parent() -> None:
    TRANSITION.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=TRANSITION.acquire, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
