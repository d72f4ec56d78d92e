"""Models as C source in this process: compiled to a shared library by a compiler of this machine, and called through their C
interface.
"""
from __future__ import annotations

import ctypes
import itertools
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tosaic
from tosaic.jit.stages import Lowered
from tosaic.lowering.loops.interpret import dtype_of
from tosaic.lowering.native.c_object.header import header, header_checksum
from tosaic.lowering.native.c_object.interface import CEntry, CInterface
from tosaic.lowering.native.c_source.source import source_text
from tosaic.lowering.options import for_object
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

Array = np.ndarray[Any, Any]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
GCC = ("gcc", *STRICT, "-O1")
QUICK = ("gcc", "-std=c99", "-O0", "-w")
"""Compiles in the shortest time."""
NUMBERS = itertools.count()


def lowered_for_c(model: Any, options: tosaic.CompileOptions | None = None) -> list[Lowered]:
    """The entries of a model for any machine."""
    return [entry.lower(for_object(options, "c")) for entry in model]


def scalar_host() -> Target:
    """This machine without vectors and fused products: as what C source is made for by default, but with code here."""
    plain = target("x86-64")
    return replace(target("any"), triple=plain.triple, cpu=plain.cpu, features=plain.features)


class Library:
    """Entry functions of one model as C source; variables are the library's own."""

    def __init__(self, entries: Sequence[Lowered], folder: Path, command: Sequence[str] = GCC, **form: Any) -> None:
        programs = [(e.program, e.plan) for e in entries]
        self.interface = CInterface("model", programs, entries[0].target, **form)
        self.folder, checksum = folder, header_checksum(self.interface)
        (folder / "model.c").write_text(source_text(self.interface, checksum).text)
        (folder / "tosaic_model.h").write_text(header(self.interface, checksum, ()))
        name = f"model{next(NUMBERS)}.so"  # a process keeps a library by its name
        done = subprocess.run([*command, "-shared", "-fPIC", "model.c", "-lm", "-o", name], cwd=folder, capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr[:4000]
        self.library = ctypes.CDLL(str(folder / name))
        self.pools = [aligned(p.nbytes, p.alignment, p.data) for p in self.interface.memories.pools]

    def __call__(self, *inputs: Array, entry: int = 0) -> list[Array]:
        """The outputs of a run; a Problem of its fault where it fails."""
        which = self.interface.entries[entry]
        status, outputs = self.run(which, inputs)
        if status > 0:
            raise which.program.faults[status - 1].problem
        assert status == 0, f"run returns {status}"
        return outputs

    def run(self, entry: CEntry, inputs: Sequence[Array]) -> tuple[int, list[Array]]:
        program, pools = entry.program, self.interface.memories.pools
        for pool, memory in zip(pools, self.pools):
            if pool.kind == "workspace":
                memory[:] = 0xA5
        taken = [np.asarray(x, order="C") for x in inputs]
        for b, x in zip(program.inputs, taken, strict=True):
            if x.dtype != dtype_of(b.dtype) or x.shape != b.shape:
                raise tosaic.Problem(f"input {b.name} is {x.dtype}{list(x.shape)}, not {b!r}", kind="argument")
        given = [np.empty(b.shape, dtype_of(b.dtype)) for b in program.outputs]
        arguments: dict[str, list[Array]] = {"inputs": taken, "outputs": given}
        if entry.is_mapped:
            for b, x in zip(program.inputs, taken):
                self.pools[entry.places[b].number][entry.places[b].offset:][:x.nbytes] = x.reshape(-1).view(np.uint8)
        for kind in ("workspace", "constant"):
            arguments[f"{kind}_pools"] = [m for p, m in zip(pools, self.pools) if p.kind == kind]
        structures = [structure(arguments[s]) if s in arguments else None for s in self.interface.arguments(entry)]
        status = int(getattr(self.library, f"{entry.name}_run")(*structures))
        if entry.is_mapped:
            for b, x in zip(program.outputs, given):
                held = self.pools[entry.places[b].number][entry.places[b].offset:][:x.nbytes]
                x.reshape(-1).view(np.uint8)[:] = held
        return status, given


def structure(arrays: Sequence[Array]) -> Any:
    """Pairs of a pointer and a size."""
    return (ctypes.c_size_t * (2 * max(len(arrays), 1)))(*[n for a in arrays for n in (a.ctypes.data, a.nbytes)])


def aligned(nbytes: int, alignment: int, data: bytes = b"") -> Array:
    """Memory that begins at a multiple of the alignment, and at no multiple of twice as much."""
    whole = np.zeros(nbytes + 4 * alignment, np.uint8)
    start = (alignment - whole.ctypes.data) % (2 * alignment)
    memory = whole[start:start + nbytes]
    memory[:len(data)] = np.frombuffer(data, np.uint8)
    return memory
