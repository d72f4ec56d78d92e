"""A value that is computed on first use, once, by whichever thread asks first."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """A lazy value; call it for the value. Its maker is dropped after success; if the maker fails, the next call tries again.
    It pickles as its value, which is computed for that."""
    __slots__ = ("_lock", "_made", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._made: list[T] = []
        self._lock = threading.Lock()

    def __call__(self) -> T:
        if not self._made:
            with self._lock:
                if self._make is not None:
                    _being_made.append(self)
                    try:
                        self._made.append(self._make())
                    finally:
                        _being_made.remove(self)
                    self._make = None
        return self._made[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return now, (self(),)

    def after_fork(self) -> None:
        """Reset the state in a forked child: the thread that was computing the value does not exist, and the next caller begins
        anew."""
        self._lock = threading.Lock()


_being_made: list[Later[Any]] = []


def _after_fork() -> None:
    for value in _being_made:
        value.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def now(value: T) -> Later[T]:
    """Return a `Later` of an existing value."""
    return Later(lambda: value)
