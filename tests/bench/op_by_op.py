"""Microseconds per operation, one element: the op-by-op runtime beside NumPy; PyTorch and TensorFlow where they are there.

    python tests/bench/op_by_op.py [--rounds 60]

All ways take turns, round by round, so that a machine that slows down slows all of them; printed are the median of the rounds'
times and the least. Asynchronous: a row of 1,000 additions behind a value that comes last, until the end is there. A region
is recorded once, and called beside the same function under `tosaic.jit`.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import tosaic

Way = tuple[Callable[[], object], int]
"""A call, and how many operations it is."""
BATCH = 200


def numpy_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    return {"NumPy a + b": (lambda: a + b, 1)}


def tosaic_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    rt = tosaic.CoreRuntime()
    x, y = rt.tensor(a), rt.tensor(b)
    cpu = rt.get_op_handler("cpu")

    def execute() -> object:
        results: list[tosaic.TensorHandle | None] = [None]
        rt.execute("tosa.add", cpu, "here", [x, y], None, results)
        return results[0]

    def row() -> object:
        first, resolve = tosaic.TensorHandle.pending(x.metadata)
        value = rt.run("add", first, y)
        for _ in range(999):
            value = value + y
        resolve.set(a)
        return value.get()

    with rt.capture() as region:
        result = (x + y) * x - y
    recorded, jit = region.compile(result), tosaic.jit(lambda x, y: (x + y) * x - y)
    recorded(a, b)
    return {"tosaic h = a + b": (lambda: x + y, 1), "tosaic execute": (execute, 1),
            "tosaic asynchronous, of 1,000": (row, 1000),
            "tosaic region of 3": (lambda: recorded(a, b), 1), "tosaic jit of the same": (lambda: jit(a, b), 1)}


def torch_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    import torch  # type: ignore[import-not-found]
    torch.set_num_threads(1)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    return {"PyTorch a + b": (lambda: x + y, 1)}


def tensorflow_ways(a: np.ndarray, b: np.ndarray) -> dict[str, Way]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context
    x, y, current = tf.constant(a), tf.constant(b), context.context()
    current.ensure_initialized()
    fast = pywrap_tfe.TFE_Py_FastPathExecute
    return {"TensorFlow FastPathExecute": (lambda: fast(current, "AddV2", None, x, y), 1),
            "TensorFlow a + b": (lambda: x + y, 1)}


def measure(ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    """Microseconds per operation of each way, one figure a round."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 3):
        for name, (call, operations) in ways.items():
            count = max(1, BATCH // operations)
            start = time.perf_counter()
            for _ in range(count):
                call()
            if number >= 3:
                found[name].append((time.perf_counter() - start) * 1e6 / count / operations)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    a, b = np.ones(1, np.float32), np.ones(1, np.float32)
    ways = numpy_ways(a, b) | tosaic_ways(a, b)
    for package, more in (("torch", torch_ways), ("tensorflow", tensorflow_ways)):
        if importlib.util.find_spec(package):
            ways |= more(a, b)
    print(f"{'microseconds per operation':32} {'median':>8} {'least':>8}")
    for name, times in measure(ways, rounds).items():
        print(f"{name:32} {statistics.median(times):8.2f} {min(times):8.2f}")


if __name__ == "__main__":
    main()
