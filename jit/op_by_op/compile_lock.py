"""One compile at a time: operations come from many threads, and a compile uses parts of LLVM that are shared."""
from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager

_lock = threading.RLock()


def compiling() -> AbstractContextManager[object]:
    """Return the lock to hold while compiling."""
    return _lock


def _renew() -> None:
    """Replace the lock in the child of a fork, where no other thread compiles."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
