"""Planning algorithms on hard instances: size of the arena, lower bound, how far above it, seconds of the processor.

    python tests/bench/planner.py                          generated instances (tests/memory/instances.py)
    python tests/bench/planner.py FILE.csv|FOLDER...       MiniMalloc's (id,lower,upper,size; google/minimalloc, benchmarks)
    python tests/bench/planner.py --algorithms portfolio --capacity 1048576 FOLDER     in a pool of 1 MiB
    python tests/bench/planner.py --algorithms exact --twice
    python tests/bench/planner.py --peer 30                CP-SAT beside ours, 30 s each (pip install ortools)
    python tests/bench/planner.py --large 62000            one long program of that number of buffers

A star marks a size that is proved: the lower bound, or every smaller size ruled out. With --capacity a plan that needs more is
refused, and has no size. With --twice each plan is made again, and must be the same.
"""
from __future__ import annotations

import argparse
import csv
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tosaic.lowering.memory.algorithms.lower_bound import lower_bound
from tosaic.lowering.memory.algorithms.run import ALGORITHMS, run_algorithm
from tosaic.lowering.memory.buffers import BufferInfo, PoolAllocation, PoolInfo, sizes_of, with_conflicts
from tosaic.lowering.memory.check.verify import conflict_faults
from tosaic.runtime.errors import Problem

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "memory"))
from instances import SHAPES, stream

Instances = Iterator[tuple[str, tuple[BufferInfo, ...]]]
Result = tuple[int, int, int, Mapping[str, PoolAllocation]]
"""Size (0: refused), proved bound, branches of a peer, the plan."""


def read(path: pathlib.Path) -> tuple[BufferInfo, ...]:
    """An instance of MiniMalloc; its upper ends are exclusive."""
    with path.open() as file:
        return with_conflicts([BufferInfo(f"b{row['id']}", int(row["size"]), int(row.get("alignment") or 1),
                                          live=((int(row["lower"]), int(row["upper"]) - 1),)) for row in csv.DictReader(file)])


def instances(files: Sequence[pathlib.Path], seeds: int, large: int) -> Instances:
    if large:
        yield f"stream {large}", stream(0, large)
    elif files:
        paths = [p for path in files for p in (sorted(path.glob("*.csv")) if path.is_dir() else [path])]
        yield from ((path.name.split(".")[0], read(path)) for path in paths)
    else:
        yield from ((f"{name}/{seed}", make(seed)) for name, make in SHAPES.items() for seed in range(seeds))


def solve(name: str, buffers: Sequence[BufferInfo], capacity: int | None = None) -> Result:
    """Run one of our algorithms."""
    pools = (PoolInfo("arena", capacity),)
    try:
        found = run_algorithm(buffers, pools, name)
    except Problem as problem:
        print(problem)
        return 0, lower_bound(buffers), 0, {}
    assert not list(conflict_faults(buffers, found.allocations))
    size, = sizes_of(buffers, pools, found.allocations)
    return size, max(lower_bound(buffers), found.bounds["arena"]), 0, found.allocations


def cp_sat(limit: float) -> Callable[[Sequence[BufferInfo]], Result]:
    """OR-tools' CP-SAT, one thread, on the question that suits it best: rectangles that do not overlap in time and address, in
    an arena of the size of the lower bound. Without an answer its size is the sum of all."""
    from ortools.sat.python import cp_model

    def solve(buffers: Sequence[BufferInfo]) -> Result:
        model, size = cp_model.CpModel(), lower_bound(buffers)
        offsets: list[Any] = [model.new_int_var(0, size - b.size_bytes, b.name) for b in buffers]
        times = [model.new_fixed_size_interval_var(b.live[0][0], b.live[-1][1] - b.live[0][0] + 1, b.name)
                 for b in buffers if b.live]
        model.add_no_overlap_2d(times, [model.new_fixed_size_interval_var(o, b.size_bytes, b.name)
                                        for o, b in zip(offsets, buffers)])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.max_time_in_seconds = 1, limit
        if solver.solve(model) != cp_model.OPTIMAL:
            return sum(b.size_bytes for b in buffers), size, int(solver.num_branches), {}
        places = {b.name: PoolAllocation("arena", solver.value(o)) for b, o in zip(buffers, offsets)}
        return size, size, int(solver.num_branches), places

    return solve


def show(name: str, buffers: Sequence[BufferInfo], algorithm: str, run: Callable[[Sequence[BufferInfo]], Result],
         twice: bool) -> float:
    """Run and print one line; the seconds."""
    started = time.process_time()
    size, bound, branches, places = run(buffers)
    seconds = time.process_time() - started
    gap = f"{100 * size / max(1, bound) - 100:8.2f}{'*' if size == bound else ' '}"
    print(f"{name:18} {len(buffers):6} {algorithm:20} {size:10} {bound:10} {gap} {seconds:8.3f} {branches or '':>9}",
          flush=True)
    assert not twice or algorithm not in ALGORITHMS or run(buffers)[3] == places, f"{algorithm} made another plan for {name}"
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--algorithms", nargs="*", default=sorted(ALGORITHMS), help="by name (default: all)")
    parser.add_argument("--seeds", type=int, default=3, help="generated instances of each shape")
    parser.add_argument("--large", type=int, default=0, help="one instance of this number of buffers instead")
    parser.add_argument("--capacity", type=int, metavar="BYTES", help="the most that the pool may hold")
    parser.add_argument("--peer", type=float, default=0, metavar="SECONDS", help="CP-SAT too, for so long each")
    parser.add_argument("--twice", action="store_true", help="make each plan twice")
    options = parser.parse_args()
    print(f"{'instance':18} buffers {'algorithm':19} {'bytes':>10} {'bound':>10} {'gap %':>8}  {'seconds':>8} {'branches':>9}")
    runs: dict[str, Callable[[Sequence[BufferInfo]], Result]] = {
        name: lambda buffers, name=name: solve(name, buffers, options.capacity) for name in options.algorithms}  # type: ignore[misc]
    if options.peer:
        runs["CP-SAT"] = cp_sat(options.peer)
    totals = dict.fromkeys(runs, 0.0)
    for name, buffers in instances(options.files, options.seeds, options.large):
        for algorithm, run in runs.items():
            totals[algorithm] += show(name, buffers, algorithm, run, options.twice)
    print("\n" + "\n".join(f"{name:20} {seconds:8.2f} s together" for name, seconds in totals.items()))


if __name__ == "__main__":
    main()
