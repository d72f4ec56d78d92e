"""One compile for all processes of a machine: the process that holds the lock compiles and stores the code in the cache, where
the others find it after their wait. Without a cache, or without file locks, each process compiles for itself.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..cache.folder import folder

NAME = "compiling.lock"
"""Name of the lock file in the cache's folder; it is no cache entry."""


@contextmanager
def alone() -> Iterator[None]:
    """A block that only one process of this machine executes at a time."""
    where = folder()
    descriptor = None
    if where is not None:
        with suppress(ImportError, OSError):
            import fcntl
            os.makedirs(where.path, 0o700, exist_ok=True)
            descriptor = os.open(os.path.join(where.path, NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
