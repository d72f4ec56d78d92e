"""Oracle: the object file does what the graph means, called through its C interface, and writes nothing outside its
outputs and its workspace.
"""
from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tosaic.jit.aot import write
from tosaic.jit.stages import Lowered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.native.load import arena_layout
from tosaic.runtime.errors import Problem

from .native import Guarded
from .reference import Outcome, Requirement


def check_artifact(lowered: Lowered, calls: Sequence[Sequence[Array]], expected: Requirement, folder: Path) -> None:
    """Write the object to `folder`, link it to a library, and call it."""
    artifact = write(lowered.program, lowered.plan, folder, "fuzz", lowered.target, lowered.elements())
    path = folder / "fuzz.so"
    subprocess.run(["gcc", "-shared", "-o", str(path), str(artifact.object)], check=True, capture_output=True)
    library = ctypes.CDLL(str(path))
    library.tosaic_fuzz_run.restype = ctypes.c_int32
    if lowered.program.variables:
        library.tosaic_fuzz_reset()
    expected.check(outcome(library, lowered, calls), "artifact")


def outcome(library: ctypes.CDLL, lowered: Lowered, calls: Sequence[Sequence[Array]]) -> Outcome:
    results: list[tuple[Array, ...]] = []
    states: list[dict[str, Array | None]] = []
    nbytes = max(arena_layout(lowered.program, lowered.plan)[1], 1)
    outputs = [np.zeros(b.shape, dtype_of(b.dtype)) for b in lowered.program.outputs]
    for inputs in calls:
        given, out, workspace = Guarded(inputs), Guarded(outputs), Guarded([np.full(nbytes, 0xA5, np.uint8)])
        tables = [(ctypes.c_void_p * len(g.arrays))(*[a.ctypes.data for a in g.arrays]) for g in (given, out) if g.arrays]
        status = library.tosaic_fuzz_run(*tables, ctypes.c_void_p(workspace.arrays[0].ctypes.data))
        for guarded in (given, out, workspace):
            guarded.check("artifact")
        assert status >= 0, f"artifact: status {status}"
        if status:
            return Outcome(tuple(results), tuple(states), Problem(lowered.program.faults[status - 1].message))
        results.append(tuple(a.copy() for a in out.arrays))
        states.append({v.buffer.name: variable(library, v.buffer.name, v.buffer.shape, v.buffer.dtype)
                       for v in lowered.program.variables})
    return Outcome(tuple(results), tuple(states))


def variable(library: ctypes.CDLL, name: str, shape: tuple[int, ...], dtype: str) -> Array | None:
    """What a variable of the library holds, if it has been written."""
    if not ctypes.c_uint8.in_dll(library, f"tosaic_variable_{name}_is_written").value:
        return None
    kind = dtype_of(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    raw = (ctypes.c_uint8 * (count * kind.itemsize)).in_dll(library, f"tosaic_variable_{name}")
    return np.frombuffer(bytes(raw), kind).reshape(shape)


def dtype_of(name: str) -> np.dtype:
    import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
    return np.dtype(name)
