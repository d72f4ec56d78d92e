"""Sample 1: a streaming wake-word model (int8, six state buffers) as native code.

Takes the model `okay_nabu` of the package pymicro-wakeword, compiles it, streams a spoken "okay nabu" through it (silence,
the words, silence), and prints the probability of each step, the time of a step, and the memory that it needs.

    python samples/1_wake_word.py [MODEL] [SOUND.wav]
"""
from __future__ import annotations

import importlib.resources
import pathlib
import sys
import time
import wave

import numpy as np
import tosaic
from pymicro_features import MicroFrontend

RATE, CHUNK = 16000, 160  # samples a second, samples in 10 ms


def sound(path: pathlib.Path) -> np.ndarray:
    """The sound with a second of silence on both sides, int16."""
    with wave.open(str(path)) as file:
        assert file.getframerate() == RATE and file.getsampwidth() == 2 and file.getnchannels() == 1
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    silence = np.zeros(RATE, np.int16)
    return np.concatenate([silence, samples, silence])


def features(samples: np.ndarray) -> np.ndarray:
    """40 spectral features for each 10 ms: float32[n, 40]."""
    frontend, data, rows = MicroFrontend(), samples.tobytes(), []
    while len(data) >= 2 * CHUNK:
        output = frontend.process_samples(data[:2 * CHUNK])
        data = data[2 * output.samples_read:]
        if output.features:
            rows.append(output.features)
    return np.array(rows, np.float32)


def main() -> None:
    here = pathlib.Path(__file__).parent
    name = sys.argv[1] if len(sys.argv) > 1 else "okay_nabu"
    path = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else here / "sounds" / f"{name}.wav"
    model = importlib.resources.files("pymicro_wakeword") / "models" / f"{name}.tflite"

    start = time.perf_counter()
    entry = tosaic.load(model.read_bytes(), name=name).main
    step = entry.compile()
    print(f"{name}: read and compiled in {time.perf_counter() - start:.2f} s")

    rows = entry.quantize(features(sound(path)))  # int8, by the scale and the zero point that the model says
    steps = [np.ascontiguousarray(rows[i:i + 3][None]) for i in range(0, len(rows) - 2, 3)]
    result = step.outputs[0]
    out, best = np.empty(result.shape, result.dtype), 0.0
    for number, x in enumerate(steps):
        step(x, out=out)
        probability = float(entry.dequantize(out)[0, 0])
        best = max(best, probability)
        if probability > 0.05:
            print(f"{number * 0.03:5.2f} s  {probability:.2f}  {'#' * round(probability * 40)}")
    print(f"heard it: {best > 0.9} (highest probability {best:.2f})")

    times = []
    for _ in range(20):
        start = time.perf_counter()
        for x in steps:
            step(x, out=out)
        times.append((time.perf_counter() - start) / len(steps))
    print(f"{np.median(times) * 1e6:.1f} us a step, for 30 ms of sound")
    report = step.report()
    state = sum(variable.nbytes for variable in report.variables)
    print(f"arena {report.arena} bytes ({report.live_bytes} live at once), state {state}, constants {report.constants}")


if __name__ == "__main__":
    main()
