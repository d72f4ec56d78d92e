"""Models from strangers: each is read, compiled and run in a process of its own, with limits of tosaic (operators, bytes,
seconds) and of the system (memory, processor time, files), and gives its results, or says why not. Nothing that a model does
there, and no fault of a reader, reaches this process.

    python samples/16_strangers.py [MODEL ...]

Without models it takes a good one and three bombs. This is what a service does that takes models from anybody (SECURITY.md).
"""
from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LIMITS = "nodes=20000,bytes=64M,seconds=20"
MEMORY, PROCESSOR_SECONDS, FILE_BYTES = 4 << 30, 60, 64 << 20
"""Bytes of address space, seconds of all its threads, and bytes of the largest file that the process may have: where a limit of
tosaic does not see something, the system ends the process."""


def confined() -> None:
    """In the child, before it begins: the system's limits, which what it starts has, too (Arm's converter for .tflite)."""
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, PROCESSOR_SECONDS),
                       (resource.RLIMIT_FSIZE, FILE_BYTES), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))


def run(model: Path) -> str:
    """A call of a model on random inputs: its outputs, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder, "TOSAIC_CACHE": "off"}
        environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        try:
            said = subprocess.run([sys.executable, "-m", "tosaic", "run", str(model.resolve()), "--limits", LIMITS, "--json"],
                                  env=environment, cwd=folder, preexec_fn=confined, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return "refused: it took longer than two minutes"
    if said.returncode:
        return f"refused: {next(iter(said.stderr.splitlines()), f'ended by signal {-said.returncode}')}"
    return ", ".join(f"{output['name']}: {output['dtype']}{output['shape']}" for output in json.loads(said.stdout)["outputs"])


T = "tensor<4xf32>"
SPLAT = """func.func @main() -> tensor<268435456xf32> {
  %c = "tosa.const"() <{values = dense<1.0> : tensor<268435456xf32>}> : () -> tensor<268435456xf32>
  return %c : tensor<268435456xf32> }"""
CALLS = "\n".join(
    [f'func.func private @f0(%x: {T}) -> {T} {{ %r = "tf.AddV2"(%x, %x) : ({T}, {T}) -> {T} return %r : {T} }}',
     *(f"func.func {'private @f' + str(n) if n < 30 else '@main'}(%x: {T}) -> {T} {{ "
       f"%a = func.call @f{n - 1}(%x) : ({T}) -> {T} %r = func.call @f{n - 1}(%a) : ({T}) -> {T} return %r : {T} }}"
       for n in range(1, 31))])


def main() -> None:
    models = list(map(Path, sys.argv[1:]))
    with tempfile.TemporaryDirectory() as folder:
        if not models:
            bombs = {"a constant of a gigabyte": SPLAT.encode(), "calls that double thirty times": CALLS.encode(),
                     "a picture": b"\x89PNG\r\n\x1a\n"}
            for name, data in bombs.items():
                Path(folder, name).write_bytes(data)
            models = [Path(__file__).parent / "models" / "lstm.mlir", *(Path(folder, name) for name in bombs)]
        for model in models:
            print(f"{model.name}: {run(model).replace(folder + os.sep, '')}")


if __name__ == "__main__":
    main()
