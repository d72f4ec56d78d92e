"""Who works long tells how far it is; who shows it listens. Nothing is told where nobody does.

    for kernel in counted("schedule", kernels): ...      how many of how many
    tell("plan")                                         what begins now
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[int, str, int, int], None]
"""Hears how deep in other counts it is, what is done, how much of it has been done, and of how much (0: not known)."""


class Told(threading.local):
    """The listener of this thread, and how many counts are going on."""
    listener: Listener | None = None
    depth = 0


told = Told()


def tell(what: str, done: int = 0, total: int = 0) -> None:
    """Say what is going on."""
    if told.listener is not None:
        told.listener(told.depth, what, done, total)


def counted(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """The items, telling before each how many there were."""
    for number, item in enumerate(items):
        tell(what, number, len(items))
        told.depth += 1
        try:
            yield item
        finally:
            told.depth -= 1


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A block whose work tells the listener."""
    before = told.listener
    told.listener = listener
    try:
        yield
    finally:
        told.listener = before
