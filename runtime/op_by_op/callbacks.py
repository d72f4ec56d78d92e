"""Calls of the callbacks that wait for values: one after the other and not nested, so that a long chain of values that wait for
each other needs no deep stack. No callback is lost, whatever exception another one raises, and whenever Ctrl-C comes.
"""
from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any, TypeVar

from .reporting import INTERRUPTS, unraisable

Callback = Callable[[Any], object]
T = TypeVar("T")
Row = deque[tuple[Any, list[Callback]]]

rows: dict[int, Row] = {}
"""Settled values by thread, each with the callbacks that the thread has yet to call. A value is added while it changes its
state, so that a child of `fork` knows the pending callbacks of the threads that it does not have."""

held: dict[int, BaseException] = {}
"""Interrupts by thread, each raised as soon as the interrupted state is consistent."""


def row_of(thread: int) -> Row:
    """Return the row of this thread, a new one if it has none."""
    return rows.get(thread) or rows.setdefault(thread, deque())


def run_callbacks(callbacks: Iterable[Callback], value: Any) -> None:
    """Call the callbacks in order; those that are added meanwhile in this thread follow."""
    entry = value, [*callbacks][::-1]
    with_row(lambda row: row.append(entry))


def with_row(body: Callable[[Row], T]) -> T:
    """Run `body` with the row of this thread, and call the row's callbacks at the end, unless that is already in progress."""
    thread = get_ident()
    if thread in rows:
        return body(rows[thread])
    try:
        return body(row_of(thread))
    finally:
        try:
            drain(thread)
        except BaseException:
            drain(thread)  # Ctrl-C may have come before it began
            raise


def drain(thread: int) -> None:
    """Call the callbacks in the row of this thread, until it is empty. An interrupt is raised at the end, so that no callback
    is lost and nobody waits for it."""
    row = rows.get(thread)
    if row is None:
        return
    try:
        while row:
            try:
                call_all(row)
            except BaseException as error:  # Ctrl-C, between two callbacks
                hold(error)
    finally:
        del rows[thread]
        if row:
            adopt_elsewhere(row)
    release()


def call_all(row: Row) -> None:
    """Call all callbacks in the row."""
    while row:
        value, callbacks = row[0]
        if not callbacks:
            row.popleft()
            continue
        callback: Callback | None = None
        try:
            callback = callbacks[-1]
            del callbacks[-1]  # no call: no signal comes between the two
            callback(value)
        except BaseException as error:
            failed(callback, error)


def failed(callback: Callback | None, error: BaseException) -> None:
    """Handle a callback that an error has ended. A callback of the runtime itself fails the value that it was for, so that
    nobody waits for it."""
    if isinstance(error, INTERRUPTS):
        hold(error)
    owner = getattr(callback, "__self__", None)
    give_up = getattr(type(owner), "_give_up", None)
    if give_up is not None:
        try:
            give_up(owner, error)
        except BaseException as another:
            hold(another) if isinstance(another, INTERRUPTS) else unraisable(another, callback)
    elif not isinstance(error, INTERRUPTS):
        unraisable(error, callback)


# ---- interrupts ------------------------------------------------------------------------------------------------------------

def hold(error: BaseException) -> None:
    """Keep an interrupt for `release`; an earlier one is reported."""
    before = held.get(get_ident())
    held[get_ident()] = error
    if before is not None and before is not error:
        unraisable(before, hold)


def release() -> None:
    """Raise the interrupt that is held for this thread, unless it is still calling callbacks."""
    if held and get_ident() not in rows and (error := held.pop(get_ident(), None)) is not None:
        raise error


# ---- other threads ---------------------------------------------------------------------------------------------------------

PATIENCE = 10
"""Maximum number of seconds that the end of a program waits for such a thread."""

_handed: list[Row] = []
"""Rows that another thread is about to adopt."""
_spare: set[threading.Thread] = set()


def leave_to_another(thread: int) -> None:
    """Hand this thread's pending callbacks to another thread, because this one is about to block and may wait for one of
    them."""
    row = rows.get(thread)
    if row:
        adopt_elsewhere(row)


def adopt_elsewhere(row: Row) -> None:
    """Call the callbacks of a row in a new thread, or here if no thread can be started."""
    rest = deque((value, callbacks) for value, callbacks in row if callbacks)
    row.clear()
    if not rest:
        return
    _handed.append(rest)
    spare = threading.Thread(target=adopt, name="tosaic callbacks", daemon=True)
    _spare.add(spare)
    try:
        spare.start()
    except RuntimeError:  # no more threads
        _spare.discard(spare)
        _handed.remove(rest)
        row.extend(rest)
        call_all(row)


def adopt() -> None:
    """Run the row of an adopting thread."""
    try:
        call_rest(_handed.pop(0))
    except BaseException as error:
        unraisable(error, adopt)
    finally:
        _spare.discard(threading.current_thread())


def call_rest(row: Row) -> None:
    """Call the pending callbacks of another thread."""
    with_row(lambda mine: mine.extend(row))


def join_spare() -> None:
    """Wait for the threads that have adopted rows, but not for ever."""
    for thread in list(_spare):
        if thread is not threading.current_thread():
            thread.join(PATIENCE)


_lost: list[Row] = []


def recover() -> None:
    """Call the pending callbacks of lost threads in a forked child, after its locks are renewed. Callbacks that had begun are
    not called again."""
    lost, _lost[:] = list(_lost), []
    for row in lost:
        call_rest(row)


def _after_fork_in_child() -> None:
    mine = get_ident()
    _lost.extend(_handed)
    _handed.clear()
    _spare.clear()
    _lost.extend(rows.pop(thread) for thread in list(rows) if thread != mine)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
