"""Microseconds per operation, one element: the op-by-op runtime beside NumPy, PyTorch and TensorFlow.

    python tests/bench/op_by_op.py [--rounds 60] [--python INTERPRETER ...]

PyTorch and TensorFlow are those of this environment, of an interpreter that is named, or of the environments that
`python tests/bench/peers` has made; in another environment a process of its own times their calls. All ways take turns, round
by round, so that a machine that slows down slows all of them; printed are the median of the rounds' times and the least.
Asynchronous: a row of 1,000 additions behind a value that comes last, until the end is there. A region is recorded once, and
called beside the same function under `tosaic.jit`. Then how long `execute` takes to return from a product of 1536 x 1536, and
how long four of them take until all are there.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

Way = tuple[Callable[[int], float], int]
"""A function that makes a given number of calls and returns the seconds they took, and how many operations a call is."""
BATCH = 200


def timed(call: Callable[[], object]) -> Callable[[int], float]:
    """The function from a number of calls to the seconds that they take."""
    def measure(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - start
    return measure


def numpy_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    return {"NumPy a + b": (timed(lambda: a + b), 1)}


def tosaic_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    import tosaic
    rt = tosaic.CoreRuntime()
    x, y = rt.tensor(a), rt.tensor(b)
    cpu = rt.get_op_handler("cpu")

    def execute() -> object:
        results: list[tosaic.TensorHandle | None] = [None]
        rt.execute("tosa.add", cpu, "here", [x, y], None, results)
        return results[0]

    def execute_copies() -> object:
        results: list[tosaic.TensorHandle | None] = [None]
        rt.execute("tosa.add", cpu, "here", [x.copy(), y.copy()], None, results)
        return results[0]

    def row(metadata: object) -> object:
        first, resolve = tosaic.TensorHandle.pending(metadata)
        value = rt.run("add", first, y)
        for _ in range(999):
            value = value + y
        resolve.set(a)
        return value.get()

    with rt.capture() as region:
        result = (x + y) * x - y
    recorded, jit = region.compile(result), tosaic.jit(lambda x, y: (x + y) * x - y)
    recorded(a, b)
    return {"tosaic h = a + b": (timed(lambda: x + y), 1), "tosaic execute": (timed(execute), 1),
            "tosaic execute, copies are kept": (timed(execute_copies), 1), "tosaic h.get()": (timed(x.get), 1),
            "tosaic asynchronous, of 1,000": (timed(lambda: row(x.metadata)), 1000),
            "the same, metadata unknown": (timed(lambda: row(None)), 1000),
            "tosaic region of 3": (timed(lambda: recorded(a, b)), 1), "tosaic jit of the same": (timed(lambda: jit(a, b)), 1)}


LARGE = 1536
PRODUCTS = 4


def large_products(rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Microseconds until `execute` of a large product returns, once its types are known; milliseconds until one, and until
    several that were called one after the other, are there."""
    import tosaic
    rt = tosaic.CoreRuntime()
    x = rt.tensor(np.ones((LARGE, LARGE), np.float32))
    cpu = rt.get_op_handler("cpu")
    returned: list[float] = []

    def together(count: int) -> float:
        start, handles = time.perf_counter(), []
        for _ in range(count):
            results: list[tosaic.TensorHandle | None] = [None]
            before = time.perf_counter()
            rt.execute("matmul", cpu, "here", [x, x], None, results)
            returned.append((time.perf_counter() - before) * 1e6)
            handles.append(results[0])
        rt.wait(*[h for h in handles if h is not None])
        return (time.perf_counter() - start) * 1e3

    for _ in range(2):
        together(PRODUCTS)
    returned.clear()
    alone, several = [], []
    for _ in range(rounds):
        alone.append(together(1))
        several.append(together(PRODUCTS))
    rt.shutdown()
    return returned, alone, several


def torch_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    import torch  # type: ignore[import-not-found]
    torch.set_num_threads(1)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    return {"PyTorch a + b": (timed(lambda: x + y), 1)}


def tensorflow_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context
    x, y, current = tf.constant(a), tf.constant(b), context.context()
    current.ensure_initialized()
    fast = pywrap_tfe.TFE_Py_FastPathExecute
    return {"TensorFlow FastPathExecute": (timed(lambda: fast(current, "AddV2", None, x, y)), 1),
            "TensorFlow a + b": (timed(lambda: x + y), 1)}


PEERS = {"torch": torch_ways, "tensorflow": tensorflow_ways}


# ---- peers of other environments: a process that reads `WAY COUNT` and answers with seconds ------------------------------

def interpreters(named: list[str]) -> Iterator[str]:
    """The Python interpreters that may have a peer: those that are named, and those of the comparison's environments."""
    from peers.environment import python
    yield from named
    yield from (str(python(name)) for name in ("peers", "models"))


def elsewhere(peer: str, named: list[str]) -> dict[str, Way]:
    """The ways of a peer in the first other environment that has it; none where there is no such."""
    for interpreter in interpreters(named):
        if not pathlib.Path(interpreter).exists():
            continue
        process = subprocess.Popen([interpreter, __file__, "--serve", peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        names = process.stdout.readline().rstrip("\n")
        if names:
            return {name: (asking(process, name), 1) for name in names.split("\t")}
        process.wait()
    return {}


def asking(process: subprocess.Popen[str], name: str) -> Callable[[int], float]:
    def measure(count: int) -> float:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{name}\t{count}\n")
        process.stdin.flush()
        return float(process.stdout.readline())
    return measure


def serve(peer: str) -> None:
    """Time a peer's calls for another process, as long as it asks."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    ways = PEERS[peer](*operands())
    print("\t".join(ways), file=answers)
    for line in sys.stdin:
        name, count = line.split("\t")
        print(ways[name][0](int(count)), file=answers)


def operands() -> tuple[np.ndarray, np.ndarray]:
    return np.ones(1, np.float32), np.ones(1, np.float32)


def measure(ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    """Microseconds per operation of each way, one figure a round."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 3):
        for name, (timer, operations) in ways.items():
            count = max(1, BATCH // operations)
            seconds = timer(count)
            if number >= 3:
                found[name].append(seconds * 1e6 / count / operations)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--python", nargs="*", default=[], metavar="INTERPRETER", help="of an environment with a peer")
    parser.add_argument("--serve", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    ways = numpy_ways(*operands()) | tosaic_ways(*operands())
    for package, here in PEERS.items():
        found = here(*operands()) if importlib.util.find_spec(package) else elsewhere(package, options.python)
        if not found:
            print(f"{package} is in none of the environments: name its interpreter with --python")
        ways |= found
    print(f"{'microseconds per operation':32} {'median':>8} {'least':>8}")
    for name, times in measure(ways, options.rounds).items():
        print(f"{name:32} {statistics.median(times):8.2f} {min(times):8.2f}")
    returned, alone, several = large_products(max(1, options.rounds // 6))
    print(f"\nexecute of {LARGE} x {LARGE} returns after {statistics.median(returned):.0f} us (least {min(returned):.0f}, most "
          f"{max(returned):.0f}); one is there after {min(alone):.0f} ms, {PRODUCTS} after {min(several):.0f} ms")


if __name__ == "__main__":
    main()
