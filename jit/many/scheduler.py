"""The choice between processes of this machine and the workers of a Dask cluster."""
from __future__ import annotations

import os
from contextlib import AbstractContextManager

from ...runtime.errors import Problem
from .workers import Workers


def workers_for(scheduler: str | None, count: int | None) -> AbstractContextManager[Workers]:
    """Return the workers of the Dask cluster at an address, or `count` processes of this machine (None: one for each core)."""
    if scheduler is None:
        from .local_workers import LocalWorkers
        return LocalWorkers(count or cores())
    if count is not None:
        raise Problem("a cluster has its own workers", kind="option", help="leave out --workers, or --scheduler")
    from .dask_workers import DaskWorkers
    return DaskWorkers(scheduler)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
