"""Oracle: the object file does what the graph means, called through its C interface, and writes nothing outside its
outputs and its pools.
"""
from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tosaic.jit.aot import write
from tosaic.jit.stages import Lowered
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.types import Array
from tosaic.lowering.memory.plan import names_of
from tosaic.lowering.native.pools_c import Pool
from tosaic.runtime.errors import Problem

from .native import Guarded
from .reference import Outcome, Requirement


def check_artifact(lowered: Lowered, calls: Sequence[Sequence[Array]], expected: Requirement, folder: Path) -> None:
    """Write the object to `folder`, link it to a library, and call it, with the pools that its plan has."""
    artifact = write(lowered.program, lowered.plan, folder, "fuzz", lowered.target, lowered.elements())
    path = folder / "fuzz.so"
    subprocess.run(["gcc", "-shared", "-o", str(path), str(artifact.object)], check=True, capture_output=True)
    library = ctypes.CDLL(str(path))
    library.tosaic_fuzz_run.restype = ctypes.c_int32
    if lowered.program.variables:
        library.tosaic_fuzz_reset()
    expected.check(outcome(library, lowered, artifact.pools, calls), "artifact")


def outcome(library: ctypes.CDLL, lowered: Lowered, pools: Sequence[Pool], calls: Sequence[Sequence[Array]]) -> Outcome:
    results: list[tuple[Array, ...]] = []
    states: list[dict[str, Array | None]] = []
    outputs = [np.zeros(b.shape, dtype_of(b.dtype)) for b in lowered.program.outputs]
    workspaces = [p for p in pools if p.kind == "workspace"]
    constants = Guarded([np.frombuffer(p.data, np.uint8) for p in pools if p.kind == "constant"])
    for inputs in calls:
        memory = Guarded([np.full(p.nbytes, 0xA5, np.uint8) for p in workspaces])
        at = mapped(lowered, workspaces, memory)
        given = [] if at else [Guarded(inputs), Guarded(outputs)]
        for buffer, array in zip(lowered.program.inputs, inputs) if at else ():
            at[buffer][...] = array
        status = library.tosaic_fuzz_run(*[structure(g.arrays) for g in (*given, memory, constants) if g.arrays])
        for guarded in (*given, memory, constants):
            guarded.check("artifact")
        assert status >= 0, f"artifact: status {status}"
        if status:
            return Outcome(tuple(results), tuple(states), Problem(lowered.program.faults[status - 1].message))
        found = [at[b] for b in lowered.program.outputs] if at else given[1].arrays
        results.append(tuple(a.copy() for a in found))
        states.append({v.buffer.name: variable(library, v.buffer.name, v.buffer.shape, v.buffer.dtype)
                       for v in lowered.program.variables})
    return Outcome(tuple(results), tuple(states))


def mapped(lowered: Lowered, pools: Sequence[Pool], memory: Guarded) -> dict[Buffer, Array]:
    """Inputs and outputs that lie in the workspace, as arrays there."""
    arrays, found = {p.title: a for p, a in zip(pools, memory.arrays)}, {}
    for buffer, name in names_of(lowered.program).items():
        place = lowered.plan.allocations.get(name)
        if place is not None and buffer.role in ("argument", "result"):
            raw = arrays[place.pool][place.byte_offset:place.byte_offset + buffer.nbytes]
            found[buffer] = raw.view(dtype_of(buffer.dtype)).reshape(buffer.shape)
    return found


def structure(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_size_t]:
    """A structure of the C interface: pointer and size of each array."""
    words = [word for a in arrays for word in ((a.ctypes.data, a.nbytes) if a.nbytes else (0, 0))]
    return (ctypes.c_size_t * len(words))(*words)


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
