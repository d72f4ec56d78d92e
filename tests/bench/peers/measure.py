"""One row: every peer's worker loads the case, the results are compared with tosaic's, then batches of calls go round.

A round is one batch of each worker; `machine`, the unit that bounds the case, is one of them. So a peak and a time come from
the same second, whatever else the machine does. Each round has another order, drawn at random, but the same in every run: what
comes after a batch that has used up the machine, as `machine` does, is slower for it, and must not always be the same.
"""
from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import cases, models
from .roster import MACHINE, OWN, Peer
from .task import Refused, Task
from .workers import Worker

ENDINGS = ("tflite", "mlir", "onnx", "npz", "keras")
BATCH = 0.010
"""Seconds of a batch."""
ROUNDS = 7
"""At least, however long a call takes."""


@dataclass(slots=True)
class Outcome:
    """What was measured of a peer: seconds a call in each batch, what loading took, or why there is nothing. `cold` is the
    process that compiled, for a peer that keeps what it compiles (`keeps`): `load` is then its second start."""
    peer: str
    keeps: bool = False
    refused: str = ""
    cold: dict[str, Any] = field(default_factory=dict)
    load: dict[str, Any] = field(default_factory=dict)
    batches: list[float] = field(default_factory=list)
    run_mb: float = 0.0
    difference: float = 0.0


@dataclass(slots=True)
class Row:
    """A case on a number of threads: `peak` is operations or bytes a second, the best batch of the machine's unit in this row
    or an earlier one (`settle`); `peak_here` in this row."""
    case: cases.Case
    threads: int
    work: int
    outcomes: list[Outcome]
    peak: float = 0.0
    peak_here: float = 0.0
    unit: str = ""


def settle(rows: Sequence[Row]) -> None:
    """Rows with one bound and number of threads take the best peak of all: a busy machine never shows more than it has."""
    for row in rows:
        row.peak = max(other.peak_here for other in rows if (other.case.bound, other.threads) == (row.case.bound, row.threads))


class Bench:
    """Settings of a run, and the folder that its workers share."""

    def __init__(self, folder: Path, peers: Sequence[Peer], seconds: float, missing: dict[str, str]) -> None:
        self.folder, self.peers, self.seconds, self.missing = folder, peers, seconds, missing

    def row(self, case: cases.Case, threads: int) -> Row:
        """Measure a case."""
        facts = models.facts(case.model)
        place = self.folder / case.name
        place.mkdir(parents=True, exist_ok=True)
        arrays = cases.given(case, list(facts.inputs))
        np.savez(place / "inputs.npz", **{f"a{i:02}": a for i, a in enumerate(arrays)})  # type: ignore[arg-type]
        row = Row(case, threads, case.work or facts.operations, [])
        with contextlib.ExitStack() as stack:
            workers = [pair for peer in (*self.peers, MACHINE) for pair in self.started(row, peer, stack)]
            self.go_round(workers, row)
        for path in place.glob("*.results.npz"):
            path.unlink()
        return row

    def started(self, row: Row, peer: Peer, stack: contextlib.ExitStack) -> Iterator[tuple[Outcome, Worker]]:
        """The peer's worker, loaded and compared; none where it refuses."""
        outcome = Outcome(peer.name, bool(peer.compiles))
        row.outcomes.append(outcome)
        try:
            if reason := self.missing.get(peer.part, "") or peer.refuses(row.case):
                raise Refused(reason)
            if peer.compiles and not self.kept(row, peer).exists():
                outcome.cold = self.compiled(row, peer)
            worker = Worker(peer, self.task(row, peer))
            stack.callback(worker.close)
            outcome.load = worker.load()
            if peer != MACHINE:
                outcome.difference = self.compared(row, peer)
        except Refused as reason:
            outcome.refused = f"second start: {reason}" if outcome.cold else str(reason)
            return
        yield outcome, worker

    def kept(self, row: Row, peer: Peer) -> Path:
        """Where a peer keeps what it compiles of a case."""
        return self.folder / row.case.name / f"{peer.name}.kept{row.threads if peer.compiles == 'each' else ''}"

    def compiled(self, row: Row, peer: Peer) -> dict[str, Any]:
        """What compiling took in a process of its own, which leaves what it compiled."""
        worker = Worker(peer, self.task(row, peer, is_cold=True))
        try:
            return worker.load()
        except Refused:
            shutil.rmtree(self.kept(row, peer), ignore_errors=True)
            raise
        finally:
            worker.close()

    def task(self, row: Row, peer: Peer, is_cold: bool = False) -> Task:
        files, kept = {}, self.kept(row, peer)
        kept.mkdir(exist_ok=True)
        for ending in ENDINGS:
            try:
                files[ending] = str(models.file(row.case.model, ending))
            except models.Missing as missing:
                files[ending] = str(missing)
        place = self.folder / row.case.name
        return Task(peer.engine, row.case.family, row.case.bound, row.threads, files, str(place / "inputs.npz"), str(kept),
                    str(place / f"{peer.name}.results.npz"), peer.option, is_cold)

    def compared(self, row: Row, peer: Peer) -> float:
        """How far a peer's results are from tosaic's; 0 where tosaic has none."""
        place = self.folder / row.case.name
        paths = place / f"{peer.name}.results.npz", place / f"{OWN.name}.results.npz"
        if not paths[1].exists():
            return 0.0
        results, expected = (list(np.load(path).values()) for path in paths)
        return cases.difference(results, expected)

    def go_round(self, workers: list[tuple[Outcome, Worker]], row: Row) -> None:
        """Batches, until each worker has had its seconds and there are enough rounds."""
        spent, rounds = 0.0, 0
        while workers and (rounds < ROUNDS or spent < self.seconds * len(workers)):
            for outcome, worker in random.Random(rounds).sample(workers, len(workers)):
                try:
                    answer = worker.batch(BATCH)
                except Refused as reason:
                    outcome.refused = f"while running: {reason}"
                    workers = [pair for pair in workers if pair[1] is not worker]
                    continue
                outcome.batches.append(answer["seconds"])
                outcome.run_mb = answer["run_mb"]
                spent += answer["seconds"] * answer["calls"]
            rounds += 1
        machine = row.outcomes.pop()
        row.unit = machine.load.get("unit", machine.refused)
        row.peak_here = machine.load.get("work", 0) / min(machine.batches) if machine.batches else 0.0
        settle([row])
