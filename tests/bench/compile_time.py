"""Compile time of graphs of one operator, and what compiling keeps in memory.

    python tests/bench/compile_time.py                      processor time per operator, the slowest graphs
    python tests/bench/compile_time.py --only conv2d i8     graphs whose names have these words
    python tests/bench/compile_time.py FILE...              models (.mlir, .tosa) instead
    python tests/bench/compile_time.py --growth 10000       KiB that stay per graph compiled and dropped

A time is from text or file to a callable, in seconds of the processor, so that a busy machine changes little; the least
of several.
"""
from __future__ import annotations

import argparse
import gc
import itertools
import os
import pathlib
import statistics
import time
from collections.abc import Iterable, Iterator

import tosaic
from one_operator import Case, every
from tosaic.jit.stages import Compiled

LIMIT = 0.030
"""Seconds that a graph of one operator may take."""


def compiled(source: str | pathlib.Path) -> Compiled:
    """From text or file to a callable."""
    return tosaic.load(source).main.trace().lower().compile(tosaic.Context("bench"))


def least(source: str | pathlib.Path, repeats: int) -> tuple[float, dict[str, float]]:
    """The least processor time of several compiles, and of its parts; those of `lower` are the clock's."""
    best: tuple[float, dict[str, float]] = (float("inf"), {})
    for _ in range(repeats):
        times = [time.process_time()]
        traced = tosaic.load(source).main.trace()
        times.append(time.process_time())
        lowered = traced.lower()
        times.append(time.process_time())
        function = lowered.compile(tosaic.Context("bench"))
        times.append(time.process_time())
        if times[-1] - times[0] < best[0]:
            parts = dict(zip(("read", "lower", "native"), (b - a for a, b in itertools.pairwise(times))))
            best = times[-1] - times[0], parts | {f"of it {name}": s for name, s in lowered.seconds.items()}
        function.close()
    return best


def measure(cases: Iterable[tuple[str, str | pathlib.Path]], repeats: int, slowest: int) -> None:
    """Print the times, by operator and the slowest."""
    times: dict[str, tuple[float, dict[str, float]]] = {}
    for name, source in cases:
        times[name] = least(source, repeats)
    print(f"{'ms':28} graphs   least  median    most  slowest")
    for operator, group in itertools.groupby(sorted(times), key=lambda name: name.split()[0]):
        names = sorted(group, key=lambda name: times[name][0])
        seconds = [times[name][0] for name in names]
        print(f"{operator:28} {len(names):6} {min(seconds) * 1e3:7.1f} {statistics.median(seconds) * 1e3:7.1f} "
              f"{max(seconds) * 1e3:7.1f}  {names[-1]}")
    over = [name for name, (seconds, _) in times.items() if seconds > LIMIT]
    total = sum(seconds for seconds, _ in times.values())
    print(f"\n{len(times)} graphs, {total:.2f} s together, {len(over)} over {LIMIT * 1e3:.0f} ms; the slowest:")
    for name in sorted(times, key=lambda name: -times[name][0])[:slowest]:
        seconds, stages = times[name]
        shown = "  ".join(f"{stage} {s * 1e3:.1f}" for stage, s in stages.items())
        print(f"{seconds * 1e3:7.1f} {name}: {shown}")


def resident() -> float:
    """KiB of this process that are in memory."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def growth(cases: list[Case], count: int) -> None:
    """Compile and drop, and print what stays."""
    order = itertools.cycle(text for _, text in cases)
    warm = min(count, max(200, 2 * len(cases)))
    for text in itertools.islice(order, warm):
        compiled(text)
    gc.collect()
    start = last = resident()
    step = max(1, count // 10)
    for done in range(1, count + 1):
        compiled(next(order))
        if done % step == 0:
            gc.collect()
            now = resident()
            print(f"{done:6} compiles: {now / 1024:8.1f} MiB, {(now - last) / step:+7.3f} KiB each since, "
                  f"{(now - start) / done:+7.3f} in the mean", flush=True)
            last = now


def chosen(words: list[str]) -> Iterator[Case]:
    return (case for case in every() if all(word in case[0].split() for word in words))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[], help="words that the name of a graph has")
    parser.add_argument("--every", type=int, default=1, help="each how manieth graph (default: all)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--slowest", type=int, default=30)
    parser.add_argument("--growth", type=int, default=0, metavar="COUNT", help="compile and drop COUNT graphs")
    options = parser.parse_args()
    cases = list(chosen(options.only))[::options.every]
    compiled(next(every())[1])
    if options.growth:
        growth(cases, options.growth)
    else:
        measure([(str(f), f) for f in options.files] or cases, options.repeats, options.slowest)


if __name__ == "__main__":
    main()
