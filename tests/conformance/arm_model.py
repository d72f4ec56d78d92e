"""Arm's reference model and Arm's serialiser (`tosa-opt`) as functions, for graphs with variables.

The model runs one call and forgets; it cannot write variables to files (tosa-tools 2026.8.0). So calls are chained from
outside: a graph gives its variables' last values as results, and the next call begins with these.
"""
from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from tosaic.lowering.flatbuffer.decode import decode
from tosaic.lowering.graph.file_position import FilePosition
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Source

from . import environment

CRASHED = -11
"""The status of a model that has ended by SIGSEGV."""

ATTEMPTS = 8
"""The model crashes in about a third of its runs where a region reads a variable that is written behind it, whichever
serialiser has made the file (tosa-tools 2026.8.0): 10 of 30 runs with ours, 9 of 30 with Arm's. So often it is tried."""


@cache
def tools() -> Path:
    """The folder of Arm's programs. Raises `environment.Unavailable`."""
    command = [str(environment.ensure()), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()) / "bin"


def serialised(text: str, folder: Path) -> bytes:
    """The .tosa file that Arm's serialiser makes of MLIR text."""
    source, target = folder / "arm.mlir", folder / "arm.tosa"
    source.write_text(text)
    command = [str(tools() / "tosa-opt"), f"--tosa-serialize=tosa-flatbuffer-filename={target}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and target.exists(), done.stderr[-2000:]
    return target.read_bytes()


class Model:
    """A .tosa file in the reference model; `folder` is its own."""

    def __init__(self, data: bytes, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "model.tosa").write_bytes(data)
        block = decode(data, FilePosition(Source("model.tosa"), 0, 0, 0, ())).regions[0].blocks[0]
        self.inputs, self.outputs = block.inputs, block.outputs
        self.variables = {t.variable_name or t.name: t.name for t in block.tensors if t.variable}

    def call(self, inputs: Sequence[Array], variables: Mapping[str, Array] | None = None) -> list[Array] | None:
        """The results; variables begin with these values, or with those of the file. None where the model crashes."""
        for number, array in enumerate(inputs):
            np.save(self.folder / f"in{number}.npy", array)
        outputs = [self.folder / f"out{number}.npy" for number in range(len(self.outputs))]
        options = {"tosa_file": self.folder / "model.tosa", "flatbuffer_dir": self.folder, "output_dir": self.folder,
                   "operator_fbs": tools() / "tosa.fbs", "tosa_level": "EIGHTK",
                   "ifm_name": ",".join(self.inputs), "ifm_file": ",".join(f"in{n}.npy" for n in range(len(inputs))),
                   "ofm_name": ",".join(self.outputs), "ofm_file": ",".join(p.name for p in outputs)}
        if variables is not None:
            for name, array in variables.items():
                np.save(self.folder / f"{name}.npy", array)
            order = [name for name in self.variables if name in variables]
            options |= {"variable_name": ",".join(self.variables[n] for n in order), "initialize_variable_tensor_from_numpy": 1,
                        "variable_file": ",".join(f"{n}.npy" for n in order)}
        command = [str(tools() / "tosa_reference_model"), *(w for k, v in options.items() for w in (f"--{k}", str(v)))]
        for _ in range(ATTEMPTS):
            for path in outputs:
                path.unlink(missing_ok=True)
            done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                                  env={"PATH": ""})  # where it crashes, it calls a debugger
            if done.returncode != CRASHED:
                break
        if done.returncode == CRASHED:
            return None
        said = f"status {done.returncode}: {done.stdout[:1500]} {done.stderr[:1500]}"
        assert done.returncode == 0 and all(p.exists() for p in outputs), said
        return [np.load(path) for path in outputs]
