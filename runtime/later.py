"""A value that is made when it is first asked for, once, whichever thread asks."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """Call it for the value. What makes it is dropped then; where making it fails, the next call tries again."""
    __slots__ = ("_lock", "_made", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._made: list[T] = []
        self._lock = threading.Lock()

    def __call__(self) -> T:
        if not self._made:
            with self._lock:
                if self._make is not None:
                    self._made.append(self._make())
                    self._make = None
        return self._made[0]


def now(value: T) -> Later[T]:
    """A value that is there already."""
    return Later(lambda: value)
