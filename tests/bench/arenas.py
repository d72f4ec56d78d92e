"""The arena beside what of it is live at once, for every model of some files and folders.

    python tests/bench/arenas.py                           the models of the tests and samples
    python tests/bench/arenas.py FILE|FOLDER...            others: .mlir, .tflite, .tosa, .onnx
    python tests/bench/arenas.py --rows memory --above     one way of tiling, and only what lies above that
    python tests/bench/arenas.py --target cortex-m4 --workspace-io

Each function of a file has a line: bytes of the workspace, the most that is live at once by this schedule, and how far above
that it is; a star marks a plan that is proved to be the best. An open extent is 1. What cannot be compiled is named with its
reason.
"""
from __future__ import annotations

import argparse
import collections
import pathlib
import time
from collections.abc import Iterator, Sequence

import tosaic
from tosaic import CompileOptions, Memory
from tosaic.jit.models.entry import Entry
from tosaic.lowering.memory.plan import Plan

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = [ROOT / "tests" / "data", ROOT / "samples" / "models"]
ENDINGS = ".mlir", ".tflite", ".tosa", ".onnx"


def files(given: Sequence[pathlib.Path]) -> Iterator[pathlib.Path]:
    """The models of files and folders."""
    for path in given:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in ENDINGS)
        else:
            yield path


def closed(entry: Entry) -> Entry:
    """The same with 1 for each open extent."""
    open_ = {v.name: v.tensor for v in entry.trace().function.arguments if not v.tensor.is_static}
    return entry.specialize({name: tuple(n or 1 for n in type.shape or ()) for name, type in open_.items()}) if open_ else entry


def planned(entry: Entry, rows: str, options: argparse.Namespace) -> Plan:
    target = tosaic.target(options.target) if options.target else None
    memory = Memory(workspace_io=options.workspace_io, overlap=not options.no_overlap)
    return entry.trace().lower(CompileOptions(target, rows=rows, memory=memory)).plan  # type: ignore[arg-type]


def line(name: str, rows: str, plan: Plan, seconds: float) -> str:
    size, bound = plan.size_bytes, plan.live_bytes
    gap = f"{100 * size / max(bound, 1) - 100:7.2f} %" if size > bound else f"{'':8}{'*' if plan.is_proved else ' '}"
    return f"{name:64} {rows:7} {size:>12,} {bound:>12,} {gap} {seconds:6.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="FILE|FOLDER")
    parser.add_argument("--rows", nargs="*", default=["cache", "memory"], choices=["cache", "memory", "never"])
    parser.add_argument("--target", help="a name of `tosaic targets` (default: this machine)")
    parser.add_argument("--workspace-io", action="store_true", help="inputs and outputs lie in the workspace, too")
    parser.add_argument("--no-overlap", action="store_true", help="buffers that are live together share no byte")
    parser.add_argument("--above", action="store_true", help="only what lies above that")
    options = parser.parse_args()
    count, above, failed = collections.Counter[str](), collections.Counter[str](), collections.Counter[str]()
    for path in files(options.paths or FOLDERS):
        try:
            entries = [closed(e) for e in tosaic.load(path).entries.values()]
        except tosaic.Problem as problem:
            failed[problem.message.splitlines()[0][:90]] += 1
            continue
        for entry in entries:
            for rows in options.rows:
                started = time.perf_counter()
                try:
                    plan = planned(entry, rows, options)
                except tosaic.Problem as problem:
                    failed[problem.message.splitlines()[0][:90]] += 1
                    continue
                count[rows] += 1
                above[rows] += plan.size_bytes > plan.live_bytes
                if not options.above or plan.size_bytes > plan.live_bytes:
                    print(line(f"{path.parent.name}/{path.name} {entry.name}"[-64:], rows, plan,
                               time.perf_counter() - started), flush=True)
    print("\n" + "\n".join(f"rows {rows}: {above[rows]} of {n} above the bound" for rows, n in count.items()))
    for reason, times in failed.most_common():
        print(f"not compiled, {times} times: {reason}")


if __name__ == "__main__":
    main()
