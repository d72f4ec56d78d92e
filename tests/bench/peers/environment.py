"""The environments of the comparison: one with the peers, one with TensorFlow and what makes the models, made once and found
again.

Everything lies in one folder, `$TOSAIC_BENCH` or `~/.cache/tosaic/bench`: the environments, the models, and what workers
keep between processes. Each peer is installed by a call of pip of its own, so that one that cannot be had is missing
alone; the reason is kept beside it and printed in its column. A change of the versions below installs what changed.
Nothing here needs more than the standard library.
"""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
"""Where PyTorch's builds without CUDA are, if pip's own settings have none: those on PyPI bring 3 GB of it."""

REQUIREMENTS: dict[str, dict[str, str]] = {
    "peers": {
        "numpy": "numpy==2.4.6",
        "litert": "ai-edge-litert==2.3.0",
        "openvino": "openvino==2026.4.1",
        "iree": "iree-base-compiler==3.13.0 iree-base-runtime==3.13.0",
        "onnxruntime": "onnxruntime==1.31.1",
        "torch": "torch==2.13.0+cpu onnx==1.23.2",
        "jax": "jax==0.10.2 keras==3.15.1",
        "tflite-micro": "tflite-micro==0.dev20261023182759",
        "vela": "ethos-u-vela==5.2.0",
    },
    "models": {
        "tensorflow": "tensorflow-cpu==2.21.0 keras==3.15.1",
        "tf2onnx": "tf2onnx==1.17.0 onnx==1.23.2",
    },
}
"""The one place that says which versions: environment, part, what pip is asked for."""

WITHOUT_DEPENDENCIES = {"torch": "onnx2torch==1.5.15"}
"""What a part needs too, with dependencies that it does not."""

RECORD = "parts.json"


def cache() -> Path:
    """The folder of the environments and of the models."""
    chosen = os.environ.get("TOSAIC_BENCH")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "tosaic" / "bench"


def python(environment: str) -> Path:
    """The interpreter of an environment."""
    return cache() / f"{environment}-py{sys.version_info.major}{sys.version_info.minor}" / "bin" / "python"


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Alone, among all processes of this machine, in changing what is called `name`."""
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(environment: str, parts: Iterable[str]) -> dict[str, str]:
    """Install the parts that are not there; the reasons of those that cannot be had, by part."""
    wanted, asked = REQUIREMENTS[environment], set(parts)
    with locked(f"environment-{environment}"):
        record = python(environment).parents[1] / RECORD
        record.parent.mkdir(parents=True, exist_ok=True)
        done: dict[str, list[str]] = json.loads(record.read_text()) if record.exists() else {}
        for part in wanted:
            if part in asked and done.get(part, ["", "never tried"]) != [wanted[part], ""]:
                done[part] = [wanted[part], install(environment, part)]
                record.write_text(json.dumps(done, indent=1))
    return {part: reason for part, (_, reason) in done.items() if reason}


def install(environment: str, part: str) -> str:
    """Install one part; the reason if pip cannot."""
    interpreter = python(environment)
    print(f"installing {REQUIREMENTS[environment][part]} into {interpreter.parents[1]}", flush=True)
    try:
        if not interpreter.exists():
            venv.create(interpreter.parents[1], with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no virtual environment can be made: {error}"
    requirements = REQUIREMENTS[environment][part].split()
    reason = pip(interpreter, requirements)
    if reason and part == "torch":
        reason = pip(interpreter, ["--extra-index-url", TORCH_INDEX, *requirements])
    if not reason and part in WITHOUT_DEPENDENCIES:
        reason = pip(interpreter, ["--no-deps", WITHOUT_DEPENDENCIES[part]])
    return reason


def pip_options() -> list[str]:
    return ["--quiet", "--disable-pip-version-check"]


def pip(interpreter: Path, arguments: list[str]) -> str:
    """Run `pip install`; the reason if it fails."""
    command = [str(interpreter), "-m", "pip", "install", *pip_options(), *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    if not result.returncode:
        return ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or result.stderr.splitlines()
    return f"pip: {lines[-1][:120] if lines else f'exit status {result.returncode}'}"
