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
from threading import get_ident
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

    def close(self) -> None:
        """Put all in `for_value`, in the order in which `drain` takes them: the last one first."""
        self.for_value.reverse()
        if self.for_metadata:
            self.for_metadata.reverse()
            self.for_value.extend(self.for_metadata)


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

    def _settle(self, state: Problem | None, contents: tuple[Any, ...] | None = None) -> bool:
        """Make this ready, with these contents, or an error; False where it has been settled before."""
        waiting = self._state
        if type(waiting) is not Waiting:
            return False
        thread, told, is_settled = get_ident(), (self, waiting.for_value), False
        is_first = thread not in _rows
        try:
            row = _rows.setdefault(thread, deque()) if is_first else _rows[thread]
            with TRANSITION:
                if self._state is waiting:
                    if contents is not None:
                        self._fill(*contents)
                    self._state, is_settled = state, True
                    waiting.close()
                    row.append(told)
        finally:
            if is_first:
                drain(thread)
        return is_settled

    def _fill(self, *contents: Any) -> None:
        """Take the contents of a ready value, under the lock."""

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


Row = deque[tuple["AsyncValue | None", list[Callback]]]
_rows: dict[int, Row] = {}
"""By thread: what it has settled, each with the callbacks that it has yet to call. A value is put there while it changes its
state, so that a child of `fork` knows what the threads that it does not have were about to say."""


def run_callbacks(callbacks: Iterable[Callback], value: AsyncValue | None) -> None:
    """Call them in order; those that come up meanwhile in this thread follow, one after the other and not inside each other, so
    that a long row of values that wait for each other needs no deep stack."""
    told = value, [*callbacks][::-1]
    with telling() as row:
        row.append(told)


class telling:
    """The row of this thread, whose callbacks are called at the end, unless that is going on already."""
    __slots__ = ("is_first", "thread")

    def __enter__(self) -> Row:
        self.thread = get_ident()
        self.is_first = self.thread not in _rows
        return _rows.setdefault(self.thread, deque()) if self.is_first else _rows[self.thread]

    def __exit__(self, *error: object) -> None:
        if self.is_first:
            drain(self.thread)


def drain(thread: int) -> None:
    """Call what is in the row of this thread, until nothing is left there. An interrupt (Ctrl-C) is raised at the end, so that
    nobody waits for what would never be said."""
    row = _rows.get(thread)
    if row is None:
        return
    interrupt: BaseException | None = None
    try:
        while row:
            value, callbacks = row[0]
            if not callbacks:
                row.popleft()
                continue
            callback = callbacks.pop()
            try:
                callback(value)
            except Exception as error:
                unraisable(error, callback)
            except BaseException as error:
                interrupt = error
    finally:
        del _rows[thread]
    if interrupt is not None:
        raise interrupt


def recover() -> None:
    """In a child of `fork`, when its locks are new: call what threads that are no more were about to call. What one of them had
    begun to call is not called again."""
    lost, _lost[:] = list(_lost), []
    for row in lost:
        for value, callbacks in row:
            run_callbacks(callbacks[::-1], value)


def unraisable(error: BaseException, culprit: object) -> None:
    """Tell of an error in a callback, which nobody can catch."""
    sys.unraisablehook(SimpleNamespace(exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__,
                                       err_msg="Exception ignored in a callback of tosaic", object=culprit))


def raised(error: Problem) -> Problem:
    """The same problem as an exception of its own, to be raised here: one error is read in many places."""
    copy = Problem(error.message, error.position, kind=error.kind, help=error.help, labels=error.labels)
    copy.__cause__ = error.__cause__
    return copy


_lost: list[Row] = []


def _after_fork_in_child() -> None:
    mine = get_ident()
    _lost.extend(_rows.pop(thread) for thread in list(_rows) if thread != mine)
    TRANSITION._at_fork_reinit()  # type: ignore[attr-defined]


def _after_fork_in_parent() -> None:
    TRANSITION.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=TRANSITION.acquire, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
