"""A model over a thousand inputs on processes of this machine, on a Dask cluster of this machine and on Ray, with one worker
and with two; of two, one is killed in the middle.

    python tests/bench/many_machines.py [--systems local dask ray] [--workers 1 2] [--items 1000] [--calls 100] [--model FILE]

Each item is a file with a sequence of calls: of the wake word okay_nabu (speech and noise), or of a model with random inputs.
What must come out is computed in this process first. It prints, for each run, seconds, calls a second, the pid that was killed,
the largest resident size of a worker and of this process, and whether every result is there once, with the bytes of this
process's; it ends with 1 where one is not. (Extras dask and ray; psutil comes with Dask.)
"""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tosaic
from tosaic.jit.many.journal import LINES
from tosaic.jit.many.local_workers import LocalWorkers
from tosaic.jit.many.map_inputs import map_inputs
from tosaic.jit.many.scheduler import workers_for
from tosaic.jit.many.workers import ATTEMPTS, Outcome, Workers, attempted
from tosaic.jit.tools.random_array import random_array

SAMPLE_SECONDS = 0.25
"""Between two looks at how much memory the processes have."""


# ---- inputs, and what must come out ------------------------------------------------------------------------------------------
def write_inputs(folder: Path, expected: Path, model: tosaic.Model, items: int, calls: int,
                 windows: np.ndarray | None) -> None:
    """Files of sequences of calls, and what this process computes of them."""
    entry, function = model.entry(), model.entry().trace().interface
    context = tosaic.Context("here")
    entry.compile(context=context)
    generator = np.random.default_rng(0)
    for item in range(items):
        if windows is not None:
            start = int(generator.integers(len(windows) - calls))
            arrays = [windows[start:start + calls]]
        else:
            arrays = [np.stack([random_array(function, v, n, item * calls + call) for call in range(calls)])
                      for n, v in enumerate(function.arguments)]
        name = f"{item:05}"
        np.savez(folder / f"{name}.npz", **dict(zip(entry.input_names, arrays)))
        context.reset()
        found = [entry(*call, context=context) for call in zip(*arrays)]
        results = [np.stack(each) for each in zip(*(f if isinstance(f, tuple) else (f,) for f in found))]
        np.savez(expected / f"{name}.npz", *results)


def wrong_results(output: Path, expected: Path) -> list[str]:
    """Items whose result is not there once, or has other bytes."""
    lines = [json.loads(line)[0] for line in (output / LINES).read_text().splitlines()]
    wrong = [name for name in set(lines) if lines.count(name) != 1]
    for path in sorted(expected.iterdir()):
        found = [output / f"{path.stem}{ending}" for ending in (".npy", ".npz") if (output / f"{path.stem}{ending}").exists()]
        with np.load(path) as right:
            if len(found) != 1 or path.stem not in lines or not equal(np.load(found[0]), right):
                wrong.append(path.stem)
    return wrong


def equal(found: Any, right: Any) -> bool:
    arrays = [found] if isinstance(found, np.ndarray) else [found[name] for name in found.files]
    return len(arrays) == len(right.files) and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(arrays, (right[name] for name in right.files)))


# ---- systems -----------------------------------------------------------------------------------------------------------------
@contextmanager
def local(count: int) -> Iterator[tuple[Workers, Callable[[], list[int]]]]:
    with LocalWorkers(count) as workers:
        yield workers, lambda: workers.pids


@contextmanager
def dask(count: int) -> Iterator[tuple[Workers, Callable[[], list[int]]]]:
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client, \
            workers_for(cluster.scheduler_address, None) as workers:
        yield workers, lambda: list(client.run(os.getpid).values())


class RayWorkers:
    """Actors of Ray that have the function; one that goes away is made again, and what it had is run again."""

    def __init__(self, count: int) -> None:
        self.count, self.pids = count, list[int]()
        self.description = f"{count} actors of Ray"

    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        import ray

        class Actor:
            def __init__(self, function: Callable[[Any], Any]) -> None:
                self.function = function

            def pid(self) -> int:
                return os.getpid()

            def do(self, item: Any) -> tuple[Any, str | None]:
                return attempted(self.function, item)

        made = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=ATTEMPTS)(Actor)
        kept = ray.put(function)  # as long as an actor may be made again
        actors = [made.remote(kept) for _ in range(self.count)]
        self.pids = ray.get([actor.pid.remote() for actor in actors])
        coming, running, load = iter(enumerate(items)), dict[Any, tuple[int, int]](), [0] * self.count
        while True:
            while min(load) < 2 and (found := next(coming, None)) is not None:
                actor = load.index(min(load))
                load[actor] += 1
                running[actors[actor].do.remote(found[1])] = found[0], actor
            if not running:
                return
            (done,), _ = ray.wait(list(running), num_returns=1)
            number, actor = running.pop(done)
            load[actor] -= 1
            yield Outcome(number, *ray.get(done))


@contextmanager
def ray(count: int) -> Iterator[tuple[Workers, Callable[[], list[int]]]]:
    import ray
    ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False)
    try:
        workers = RayWorkers(count)
        yield workers, lambda: workers.pids
    finally:
        ray.shutdown()


SYSTEMS = {"local": local, "dask": dask, "ray": ray}


# ---- a run -------------------------------------------------------------------------------------------------------------------
class Memory:
    """The largest resident sizes that were seen: of this process, and of one of its workers."""

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self.pids, self.own, self.worker = pids, 0, 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self.is_over.wait(SAMPLE_SECONDS):
            self.own = max(self.own, psutil.Process().memory_info().rss)
            for child in psutil.Process().children(recursive=True):
                try:
                    if "raylet" not in child.name() and "gcs_server" not in child.name():
                        self.worker = max(self.worker, child.memory_info().rss)
                except psutil.Error:
                    continue

    def __enter__(self) -> Memory:
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.is_over.set()
        self.thread.join()


def one_run(system: str, count: int, model: Any, folders: tuple[Path, Path, Path], items: int) -> bool:
    inputs, expected, output = folders
    killed: list[int] = []
    with SYSTEMS[system](count) as (workers, pids), Memory(pids) as memory:

        def told(done: int, of: int) -> None:
            if count > 1 and not killed and done >= items // 3:
                killed.append(pids()[0])
                os.kill(killed[0], signal.SIGKILL)

        start = time.perf_counter()
        found = map_inputs(model, model.entry(), [str(inputs)], str(output), workers, told)
        seconds = time.perf_counter() - start
    wrong = [*found.errors, *wrong_results(output, expected)]
    victim = f"pid {killed[0]}" if killed else "none"
    print(f"{system:6} {count:7} {victim:>12} {seconds:9.2f} {found.calls / seconds:10.0f} {memory.worker >> 20:11} "
          f"{memory.own >> 20:9}   {'all there once, equal' if not wrong else f'{len(wrong)} wrong: {wrong[:3]}'}", flush=True)
    return not wrong and found.items == items


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=100, help="of each item")
    parser.add_argument("--model", type=Path, help="a model of static shapes (default: the wake word okay_nabu)")
    chosen = parser.parse_args(arguments)
    windows = None
    if chosen.model is None:
        from importlib.resources import files
        sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
        from sources import stream  # type: ignore[import-not-found]
        windows = stream("okay_nabu", 20 * chosen.calls)
        model = tosaic.load(files("pymicro_wakeword").joinpath("models", "okay_nabu.tflite").read_bytes(), name="okay_nabu")
    else:
        model = tosaic.load(chosen.model)
    with tempfile.TemporaryDirectory() as place:
        inputs, expected = Path(place, "in"), Path(place, "expected")
        inputs.mkdir(), expected.mkdir()
        start = time.perf_counter()
        write_inputs(inputs, expected, model, chosen.items, chosen.calls, windows)
        seconds = time.perf_counter() - start
        print(f"{chosen.items} items of {chosen.calls} calls; here, inputs made and results written, {seconds:.2f} s\n"
              "system workers       killed   seconds    calls/s  worker MiB  here MiB   results", flush=True)
        right = [one_run(system, count, model, (inputs, expected, Path(place, f"{system}{count}")), chosen.items)
                 for system in chosen.systems for count in chosen.workers]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
