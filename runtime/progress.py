"""The progress of long work: the compiler reports it to a listener, which shows it. Without a listener nothing happens.

    for kernel in counted("schedule", kernels): ...      each item, and their number
    report_progress("plan")                              what begins now
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[int, str, int, int], None]
"""A function of the nesting depth of this count, the current work, the number of finished items, and the total (0: not
known)."""


class State(threading.local):
    """The listener of this thread, and the nesting depth of its counts."""
    listener: Listener | None = None
    depth = 0


state = State()


def report_progress(what: str, done: int = 0, total: int = 0) -> None:
    """Report the current work."""
    if state.listener is not None:
        state.listener(state.depth, what, done, total)


def counted(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, and report the number of each before it."""
    for number, item in enumerate(items):
        report_progress(what, number, len(items))
        state.depth += 1
        try:
            yield item
        finally:
            state.depth -= 1


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report the work in this context to the listener."""
    before = state.listener
    state.listener = listener
    try:
        yield
    finally:
        state.listener = before
