"""Delays at every point where threads meet: before a lock is taken, after it is given back, before each use of a list of tasks.
How long they are follows from a seed, so that each seed is another order of threads."""
from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

LENGTHS = 0.0, 0.0, 0.0, 0.0, 0.0002, 0.0002, 0.002, 0.005
"""Seconds."""


class Delays:
    """What delays, and the classes whose objects are delayed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        delay = self.delay

        class Lock:
            def __init__(self) -> None:
                self.lock = threading.RLock()

            def acquire(self, *arguments: Any) -> bool:
                delay()
                return self.lock.acquire(*arguments)

            def release(self) -> None:
                self.lock.release()
                delay()

            def __enter__(self) -> None:
                self.acquire()

            def __exit__(self, *ignored: Any) -> None:
                self.release()

        class Tasks:
            def __init__(self) -> None:
                self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()

            def __getattr__(self, name: str) -> Any:
                delay()
                return getattr(self.queue, name)

        self.Lock, self.Tasks = Lock, Tasks

    def delay(self) -> None:
        length = self.random.choice(LENGTHS)
        if length:
            time.sleep(length)

    @property
    def threading(self) -> Any:
        """The module as the product imports it, with locks that are delayed."""
        return type("threading", (), {**vars(threading), "RLock": self.Lock, "Lock": self.Lock})


def ends(scene: Callable[[], None], seconds: float = 60) -> bool:
    """True if a scene ends: it runs in a thread of its own, which is left alone where it hangs. Raises what it raises."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            scene()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    return not thread.is_alive()
