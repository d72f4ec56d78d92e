"""What a child of `fork` does for the runtimes that it has: new locks first, then, when all modules have theirs, what the
threads that it does not have left undone. `callbacks` knows what they were about to call, `work_queue` starts threads.
"""
from __future__ import annotations

import functools
import os
import weakref
from typing import Protocol

from .callbacks import recover


class Forked(Protocol):
    """A runtime."""

    def after_fork(self) -> None:
        """Renew the locks."""

    def go_on_after_fork(self) -> None:
        """Go on with what waits, and fail what was running."""


_live: weakref.WeakSet[Forked] = weakref.WeakSet()


def follow_forks(runtime: Forked) -> None:
    """Let a runtime go on in children."""
    _live.add(runtime)
    _recover_last()


def _renew() -> None:
    for runtime in list(_live):
        runtime.after_fork()


def _recover() -> None:
    for runtime in list(_live):
        runtime.go_on_after_fork()
    recover()


@functools.cache
def _recover_last() -> None:
    """Let `_recover` come last: this is called when a runtime is made, and all modules with locks are there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_recover)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
