"""Workers that are this process: what `map` does, without other processes."""
from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tosaic.jit.many.workers import Outcome, attempted


class InThisProcess:
    """Runs items one by one. It stops after `most` of them, as if somebody had pressed Ctrl-C."""
    description = "this process"

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.ran = 0

    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        function = pickle.loads(pickle.dumps(function))
        for number, item in enumerate(items):
            if number == self.most:
                raise KeyboardInterrupt
            self.ran += 1
            yield Outcome(number, *attempted(function, item))
