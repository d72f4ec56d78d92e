"""Oracle: the object file, or the C source, does what the graph means, called through its C interface, and writes nothing
outside its outputs and its pools.
"""
from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tosaic.jit.aot import ArtifactForm, write
from tosaic.jit.stages import Lowered
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.types import Array
from tosaic.lowering.memory.plan import names_of
from tosaic.lowering.native.c_object.pools import CPool
from tosaic.runtime.c_symbols import variable_symbols
from tosaic.runtime.errors import Problem

from .native import Guarded
from .reference import Outcome, Requirement

C_FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-fPIC", "-fsanitize=undefined",
           "-fsanitize=float-cast-overflow", "-fno-sanitize-recover=all")
"""C source does nothing that C does not define, whatever the graph."""


def check_artifact(lowered: Lowered, calls: Sequence[Sequence[Array]], expected: Requirement, folder: Path,
                   emit: str = "object") -> None:
    """Write the object (or C source) to `folder`, make a library of it, and call it, with the pools that its plan has."""
    library = Library(lowered, folder, emit)
    results: list[tuple[Array, ...]] = []
    states: list[dict[str, Array | None]] = []
    problem = None
    for inputs in calls:
        status, found = library.call(inputs)
        if status:
            problem = Problem(lowered.program.faults[status - 1].message)
            break
        results.append(found)
        states.append(library.state())
    expected.check(Outcome(tuple(results), tuple(states), problem), "artifact")


class Library:
    """The object of a program as a library that is loaded here."""

    def __init__(self, lowered: Lowered, folder: Path, emit: str = "object") -> None:
        artifact = write(lowered.program, lowered.plan, folder, "fuzz", lowered.target, lowered.elements(),
                         form=ArtifactForm(emit=emit))
        path = folder / "fuzz.so"
        command = ["gcc", *C_FLAGS] if emit == "c" else ["gcc"]
        done = subprocess.run([*command, "-shared", "-o", str(path), str(artifact.object), "-lm"], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr[:2000]
        self.lowered, self.code = lowered, ctypes.CDLL(str(path))
        self.code.tosaic_fuzz_run.restype = ctypes.c_int32
        if lowered.program.variables:
            self.code.tosaic_fuzz_reset()
        self.outputs = [np.zeros(b.shape, dtype_of(b.dtype)) for b in lowered.program.outputs]
        self.workspaces = [p for p in artifact.pools if p.kind == "workspace"]
        self.constants = Guarded([np.frombuffer(p.data, np.uint8) for p in artifact.pools if p.kind == "constant"])

    def call(self, inputs: Sequence[Array]) -> tuple[int, tuple[Array, ...]]:
        """The status of a call, and its results."""
        memory = Guarded([np.full(p.nbytes, 0xA5, np.uint8) for p in self.workspaces])
        at = mapped(self.lowered, self.workspaces, memory)
        given = [] if at else [Guarded(inputs), Guarded(self.outputs)]
        for buffer, array in zip(self.lowered.program.inputs, inputs) if at else ():
            at[buffer][...] = array
        groups = (*given, memory, self.constants)
        status: int = self.code.tosaic_fuzz_run(*[structure(g.arrays) for g in groups if g.arrays])
        for guarded in groups:
            guarded.check("artifact")
        assert status >= 0, f"artifact: status {status}"
        found = [at[b] for b in self.lowered.program.outputs] if at else given[1].arrays
        return status, tuple(a.copy() for a in found)

    def state(self) -> dict[str, Array | None]:
        """Every variable, None for one that is not written."""
        return {v.buffer.name: variable(self.code, v.buffer.name, v.buffer.shape, v.buffer.dtype)
                for v in self.lowered.program.variables}


def mapped(lowered: Lowered, pools: Sequence[CPool], memory: Guarded) -> dict[Buffer, Array]:
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
    symbols = variable_symbols("fuzz", name)
    if not ctypes.c_uint8.in_dll(library, symbols.flag).value:
        return None
    kind = dtype_of(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    raw = (ctypes.c_uint8 * (count * kind.itemsize)).in_dll(library, symbols.data)
    return np.frombuffer(bytes(raw), kind).reshape(shape)


def dtype_of(name: str) -> np.dtype:
    import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
    return np.dtype(name)
