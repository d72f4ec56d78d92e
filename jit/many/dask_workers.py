"""Workers of a Dask cluster (the extra `dask`). If a worker goes away, Dask itself runs its tasks again, and gives up a task
whose workers went away too often.
"""
from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any

from ...runtime.errors import Problem
from .workers import Outcome, attempted

CONNECT_SECONDS = 10
"""Seconds within which a scheduler must answer."""
WORKER_SECONDS = 60
"""Seconds within which a cluster without workers must get one."""
AHEAD = 3
"""Tasks for each thread of the cluster: one that runs, and others in transfer, which takes longer than between processes."""
TASK_SECONDS = 0.2
"""Target duration of a task, in seconds: Dask itself needs milliseconds for each task, so that short items are grouped."""
MOST_ITEMS = 64
"""Maximum number of items of a task: if its worker goes away, all of them are run again."""
COUNT_SECONDS = 2.0
"""Seconds between two queries of the cluster's number of threads; workers come and go."""


class DaskWorkers:
    """The workers of the cluster whose scheduler has this address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Any = None

    @property
    def description(self) -> str:
        count = len(self._client.scheduler_info(-1)["workers"])
        return f"{count} worker{'s' * (count != 1)} of {self.address}"

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
        """`Workers.run`. The function is a task of its own: workers share its result, and Dask recomputes it if it is lost."""
        run = DaskRun(self._client, function, items)
        return run.outcomes()


class DaskRun:
    """The items of one `run`: those to come, those to run alone because their task was given up, and the tasks that run."""

    def __init__(self, client: Any, function: Callable[[Any], Any], items: Iterable[Any]) -> None:
        from distributed import as_completed
        self.client, self.coming = client, iter(enumerate(items))
        self.function = client.submit(pickle.loads, pickled(function), pure=False)
        self.alone: deque[Group] = deque()
        self.running: dict[Any, Group] = {}
        self.done = as_completed(loop=client.loop)
        self.size = 1
        self._room, self._looked = 0, 0.0

    def outcomes(self) -> Iterator[Outcome]:
        while self.fill():
            future = next(self.done)
            group = self.running.pop(future)
            try:
                found, seconds = future.result()
            except Exception as failure:  # an error of the cluster, for example if its workers went away too often
                if len(group) > 1:
                    self.alone.extend([each] for each in group)
                    continue
                text = str(failure).splitlines()
                yield Outcome(group[0][0], error=f"{type(failure).__name__}: {text[0] if text else ''}")
                continue
            self.size = max(1, min(MOST_ITEMS, 2 * self.size, int(TASK_SECONDS * len(group) / max(seconds, 1e-6))))
            for (number, _), (value, error) in zip(group, found):
                yield Outcome(number, value, error)

    def fill(self) -> bool:
        """Submit tasks while the cluster has room for them; return whether any task is pending."""
        while len(self.running) < self.room() and (group := self.next()):
            future = self.client.submit(attempted_each, self.function, [item for _, item in group], pure=False)
            self.running[future] = group
            self.done.add(future)
        return bool(self.running)

    def next(self) -> Group:
        return self.alone.popleft() if self.alone else list(islice(self.coming, self.size))

    def room(self) -> int:
        if time.monotonic() - self._looked > COUNT_SECONDS:
            self._room = AHEAD * max(1, sum(self.client.nthreads().values()))
            self._looked = time.monotonic()
        return self._room


Group = list[tuple[int, Any]]
"""Items of one task, with their numbers."""


def attempted_each(function: Callable[[Any], Any], items: Sequence[Any]) -> tuple[list[tuple[Any, str | None]], float]:
    """The body of a task: run its items, one after the other, and return their outcomes and the seconds that they took."""
    start = time.perf_counter()
    return [attempted(function, item) for item in items], time.perf_counter() - start


def pickled(function: Callable[[Any], Any]) -> bytes:
    """Pickle a function with cloudpickle, which comes with Dask."""
    import cloudpickle
    found: bytes = cloudpickle.dumps(function)
    return found
