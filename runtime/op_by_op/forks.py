"""The recovery of runtimes in a child of `fork`: new locks first and then, when all modules have theirs, the unfinished work of
the threads that the child does not have. `callbacks` knows their pending callbacks, `work_queue` starts threads.
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
        """Continue the waiting calls, and fail those that were running."""


_live: weakref.WeakSet[Forked] = weakref.WeakSet()


def follow_forks(runtime: Forked) -> None:
    """Let a runtime continue in forked children."""
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
    """Register `_recover` last: this is called when a runtime is created, after all modules with locks are imported."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_recover)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
