"""Sample 13: an algorithm of one's own for the memory planner.

A chip has two banks of memory, each with a port of its own: what a kernel reads from one while it writes the other moves at
twice the rate. The algorithm puts what a kernel writes into the other bank than most of what it reads for the last time, and
leaves the places in each bank to the default algorithm. It is called by name, as those of tosaic are; the plan is checked as
theirs are, and the results are the same.

    python samples/13_planner.py
"""
from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tosaic
from tosaic import planner

MODEL = pathlib.Path(__file__).parent / "models" / "classifier.mlir"


@planner.register("two_banks")
def two_banks(buffers: Sequence[planner.BufferInfo], pools: Sequence[planner.PoolInfo]) -> dict[str, planner.PoolAllocation]:
    """A bank for each buffer, in the order in which they are written; then a place in it."""
    bank: dict[str, int] = {}
    for b in sorted(buffers, key=lambda b: (born(b), b.name)):
        read = [0, 0]
        for other in buffers:
            if other.name in bank and other.name in b.conflicts and dies(other) == born(b):
                read[bank[other.name]] += other.size_bytes
        bank[b.name] = int(read[0] > read[1])
    places: dict[str, planner.PoolAllocation] = {}
    for number, pool in enumerate(pools):
        inside = [b for b in buffers if bank[b.name] == number]
        places |= planner.allocate(alone(inside), [pool])
    return places


def born(b: planner.BufferInfo) -> int:
    return b.live[0][0] if b.live else 0


def dies(b: planner.BufferInfo) -> int:
    return b.live[-1][1] if b.live else 0


def alone(buffers: Sequence[planner.BufferInfo]) -> tuple[planner.BufferInfo, ...]:
    """The same, without conflicts with others."""
    names = {b.name for b in buffers}
    return tuple(dataclasses.replace(b, conflicts=b.conflicts & names) for b in buffers)


def in_one_bank(report: Mapping[str, Any]) -> int:
    """Bytes that kernels write into a bank of which they read something for the last time."""
    read = {(b["last_reader"], b["pool"]) for b in report["buffers"]}
    return sum(b["nbytes"] for b in report["buffers"] if (b["producer"], b["pool"]) in read)


def main() -> None:
    model = tosaic.load(MODEL).main
    picture = np.random.default_rng(13).integers(-128, 128, (1, 32, 32, 3), np.int8)
    banks = tosaic.Pool("bank0"), tosaic.Pool("bank1")
    answers = []
    print(f"{'algorithm':14} {'bank0':>8} {'bank1':>8} {'written beside what is read':>30}")
    for name in ("portfolio", "two_banks"):
        options = tosaic.CompileOptions(rows="never", memory=tosaic.Memory(name, pools=banks, overlap=False))
        lowered = model.lower(options)
        sizes = {pool.name: pool.size_bytes for pool in lowered.plan.pools}
        print(f"{name:14} {sizes['bank0']:8,} {sizes['bank1']:8,} {in_one_bank(lowered.report().as_dict()):30,}")
        answers.append(lowered.compile()(picture))
    print("the same results:", all(np.array_equal(a, b) for a, b in zip(*answers)))


if __name__ == "__main__":
    main()
