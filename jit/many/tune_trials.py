"""Trials of a measured search on workers. A ratio of two times is only valid for the processor on which it was measured: a
worker with another processor than this process returns none, and its trials are run here. A worker measures one trial at a
time; two on one machine disturb each other, so a cluster for tuning has one worker with one thread on each machine.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..cache.versions import machine
from ..tools.tune import Findings, Trials, TuningRun, here
from .scheduler import workers_for
from .workers import Workers

if TYPE_CHECKING:
    from ...lowering.graph.types import Array
    from ...lowering.options import CompileOptions
    from ..stages import Traced


class TrialOnWorker:
    """The work on the choices of a trial: measure them beside the unchanged code, which the worker compiles once."""

    def __init__(self, traced: Traced, inputs: Sequence[Array], options: CompileOptions, calls: int,
                 processor: tuple[object, ...]) -> None:
        self.traced, self.inputs, self.options, self.calls, self.processor = traced, inputs, options, calls, processor
        self._begin()

    def _begin(self) -> None:
        self._measuring = threading.Lock()
        self._run: TuningRun | None = None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.traced, self.inputs, self.options, self.calls, self.processor

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.traced, self.inputs, self.options, self.calls, self.processor = state
        self._begin()

    def __call__(self, findings: Findings) -> dict[int, float] | None:
        """Return the speedup of each kernel; None if this machine has another processor."""
        if machine() != self.processor:
            return None
        with self._measuring:
            if self._run is None:
                self._run = TuningRun(self.traced.lower, self.inputs, self.options, self.calls)
            return self._run.ratios(findings)


def on_workers(workers: Workers, traced: Traced) -> Trials:
    """Return trials of a function on workers, and in this process for those that workers do not return."""
    def trials(search: TuningRun, rounds: Sequence[Findings]) -> Iterator[tuple[int, dict[int, float]]]:
        work = TrialOnWorker(traced, search.inputs, search.options, search.calls, machine())
        left = []
        for outcome in workers.run(work, rounds):
            if outcome.value is None:
                left.append(outcome.number)
            else:
                yield outcome.number, outcome.value
        for number in left:
            yield number, search.ratios(rounds[number])

    return trials


@contextmanager
def trials_on(scheduler: str | None, traced: Traced) -> Iterator[Trials]:
    """Return trials on the workers of the scheduler at an address; without one, in this process, one after the other."""
    if scheduler is None:
        yield here
        return
    with workers_for(scheduler, None) as workers:
        yield on_workers(workers, traced)
