"""Workers of a Dask cluster (the extra `dask`). Dask itself runs again what a worker had that goes away, and gives an item up
whose workers went away too often.
"""
from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

from ...runtime.errors import Problem
from .workers import Outcome, attempted

CONNECT_SECONDS = 10
"""Seconds in which a scheduler has to answer."""
WORKER_SECONDS = 60
"""Seconds in which a cluster that has no workers has to get one."""
AHEAD = 8
"""Items for each thread of the cluster: one that runs, and some on their way, which takes longer than between processes."""
COUNT_SECONDS = 2.0
"""Seconds between two looks at how many threads the cluster has; workers come and go."""


class DaskWorkers:
    """The workers of the cluster whose scheduler has that address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Any = None

    @property
    def description(self) -> str:
        return f"{len(self._client.scheduler_info(-1)['workers'])} workers of {self.address}"

    def __enter__(self) -> DaskWorkers:
        try:
            from distributed import Client
        except ImportError:
            raise Problem("a Dask cluster needs the package distributed", kind="option",
                          help='pip install "tosaic[dask]"; or leave out --scheduler, for processes of this machine') from None
        try:
            self._client = Client(self.address, timeout=CONNECT_SECONDS, set_as_default=False)
            self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            has = "has no workers" if self._client is not None else "does not answer"
            self.close()
            raise Problem(f"the scheduler {self.address} {has}: {str(error).splitlines()[0]}", kind="option",
                          help="dask scheduler starts one and prints its address, dask worker ADDRESS a worker") from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """`Workers.run`. The function is a task of its own: workers share it, and Dask makes it again where it is lost."""
        from distributed import as_completed
        client, coming = self._client, iter(enumerate(items))
        shared = client.submit(pickle.loads, pickled(function), pure=False)
        running: dict[Any, int] = {}
        room, looked = 0, 0.0
        done = as_completed(loop=client.loop)
        while True:
            if time.monotonic() - looked > COUNT_SECONDS:
                room, looked = AHEAD * max(1, sum(client.nthreads().values())), time.monotonic()
            while len(running) < room and (found := next(coming, None)) is not None:
                future = client.submit(attempted, shared, found[1], pure=False)
                running[future] = found[0]
                done.add(future)
            if not running:
                return
            future = next(done)
            yield outcome_of(running.pop(future), future)


def pickled(function: Callable[[Any], Any]) -> bytes:
    """cloudpickle comes with Dask."""
    import cloudpickle
    found: bytes = cloudpickle.dumps(function)
    return found


def outcome_of(number: int, future: Any) -> Outcome:
    """What became of a task; what is no outcome of the function (its worker went away too often) is an error, too."""
    try:
        value, error = future.result()
    except Exception as failure:
        return Outcome(number, error=f"{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}")
    return Outcome(number, value, error)
