"""How far long work is: the compiler reports it, and who shows it listens. Without a listener nothing happens.

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
"""Takes the number of counts around this one, what is done, the items that are done, and their number (0: not known)."""


class State(threading.local):
    """The listener of this thread, and the number of counts that are going on."""
    listener: Listener | None = None
    depth = 0


state = State()


def report_progress(what: str, done: int = 0, total: int = 0) -> None:
    """Report what is going on."""
    if state.listener is not None:
        state.listener(state.depth, what, done, total)


def counted(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """The items; before each its number is reported."""
    for number, item in enumerate(items):
        report_progress(what, number, len(items))
        state.depth += 1
        try:
            yield item
        finally:
            state.depth -= 1


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A block whose work reports to the listener."""
    before = state.listener
    state.listener = listener
    try:
        yield
    finally:
        state.listener = before
