"""Compile time and time of a call beside LiteRT's, in one run: `python tests/bench/peers.py [--batches N] [FILE.tflite...]`,
by default of three models that packages of PyPI have. Random inputs; batches of any size have size 1.

Calls of the two are interleaved, in batches of a few milliseconds; the figures are medians over the batches, with the
quartiles, and the ratio of each pair of batches. LiteRT runs one thread, with XNNPACK where it takes the model, and is timed
at `invoke` alone (no tensor copied); tosaic at its Python call with `out=` arrays.
"""
from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import tosaic
from ai_edge_litert.interpreter import Interpreter

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from models.sources import face_detection_front, wake_word_model


def batch(call: Callable[[], None], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def size(call: Callable[[], None], seconds: float) -> int:
    """Calls that take about `seconds`."""
    call()
    return max(1, int(seconds / batch(call, 3)))


def quartiles(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle * 1e6:9.1f} us  ({low * 1e6:.1f} to {high * 1e6:.1f})"


def random_input(model: bytes, rng: np.random.Generator) -> np.ndarray:
    """For the model's only input."""
    (tensor,) = Interpreter(model_content=model).get_input_details()
    if tensor["dtype"] == np.int8:
        return rng.integers(-128, 128, tensor["shape"]).astype(np.int8)
    return rng.uniform(-1, 1, tensor["shape"]).astype(tensor["dtype"])


def litert(model: bytes, x: np.ndarray) -> Callable[[], None]:
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return interpreter.invoke


def compare(name: str, model: bytes, x: np.ndarray, batches: int) -> None:
    entry = tosaic.load(model, name=name).main  # the converter's time is not ours
    if entry.is_dynamic:
        entry = entry.specialize({entry.trace().function.arguments[0].name: x.shape})
    source = entry.trace()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        compiled = source.lower().compile(tosaic.Context(name))
        times.append(time.perf_counter() - start)
    results = compiled(x)
    out = tuple(np.empty_like(r) for r in (results if isinstance(results, tuple) else (results,)))
    target = out if len(out) > 1 else out[0]

    def ours() -> None:
        compiled(x, out=target)

    start = time.perf_counter()
    theirs = litert(model, x)
    theirs()
    prepared = time.perf_counter() - start
    counts = size(ours, 0.01), size(theirs, 0.01)
    pairs = [(batch(ours, counts[0]), batch(theirs, counts[1])) for _ in range(batches)]
    report = compiled.report()
    print(f"{name}\n  compile   tosaic {statistics.median(times) * 1e3:7.1f} ms")
    print(f"            LiteRT {prepared * 1e3:7.1f} ms, load and first call")
    print(f"  a call    tosaic {quartiles([a for a, _ in pairs])}\n            LiteRT {quartiles([b for _, b in pairs])}")
    print(f"  LiteRT / tosaic {statistics.median(b / a for a, b in pairs):.2f}")
    print(f"  arena {report.arena} bytes, lower bound {report.lower_bound}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=101)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="models with one input, instead of the default ones")
    options = parser.parse_args()
    batches, rng = options.batches, np.random.default_rng(0)
    for file in options.files:
        compare(file.stem, file.read_bytes(), random_input(file.read_bytes(), rng), batches)
    if options.files:
        return
    for name in ("okay_nabu", "alexa"):
        compare(name, wake_word_model(name), rng.integers(-128, 128, (1, 3, 40)).astype(np.int8), batches)
    compare("face_detection_front", face_detection_front(), rng.uniform(-1, 1, (1, 128, 128, 3)).astype(np.float32), batches)


if __name__ == "__main__":
    main()
