"""Runs functions of the loop IR as C source, compiled by a compiler of this machine, over arrays with a margin."""
from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.ir import Function, buffers_written
from tosaic.lowering.native.c_source.helpers import Helpers
from tosaic.lowering.native.c_source.kernel_function import Memory
from tosaic.lowering.native.c_source.kernels import Kernels
from tosaic.lowering.native.c_source.prologue import prologue

from ..native.harness import margins

Array = np.ndarray[Any, Any]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


def source(functions: Sequence[Function], is_shared: bool = False, has_fma: bool = False) -> str:
    """A file with an external function for each."""
    kernels, entries = Kernels(Helpers(), has_fma), []
    for f in functions:
        written = buffers_written(f)
        buffers = (*f.params, *f.scratch)
        memory = [Memory(is_shared, b in written) for b in buffers]
        names = [f"b{i}" for i in range(len(buffers))]
        name = kernels.add(f, memory, f"kernel_{len(entries)}", names, "/* */")
        parameters = [f"void *{n}" for n in names] + ["int64_t low", "int64_t high"] * bool(f.rows)
        passed = ", ".join([*names, *["low", "high"] * bool(f.rows)])
        entries.append(f"void run_{len(entries)}({', '.join(parameters)});\n"
                       f"void run_{len(entries)}({', '.join(parameters)}) {{ {name}({passed}); }}")
    text = "\n\n".join([*kernels.lines(), *entries])
    return "\n\n".join([*prologue(text, kernels.helpers), text]) + "\n"


def compiled(text: str, folder: Path, *command: str) -> Path:
    """A shared library."""
    (folder / "functions.c").write_text(text)
    command = command or ("gcc", *STRICT, "-O1")
    done = subprocess.run([*command, "-shared", "-fPIC", "functions.c", "-lm", "-o", "functions.so"], capture_output=True,
                          text=True, cwd=folder)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / "functions.so"


class InC:
    """Functions as C source in this process."""

    def __init__(self, functions: Sequence[Function], folder: Path, *command: str, is_shared: bool = False,
                 has_fma: bool = False) -> None:
        self.numbers = {f: i for i, f in enumerate(functions)}
        self.library = ctypes.CDLL(str(compiled(source(functions, is_shared, has_fma), folder, *command)))

    def run(self, f: Function, data: dict[Buffer, Array], rows: tuple[int, int] | None = None,
            shift: int = 0) -> dict[Buffer, Array]:
        """What the parameters hold afterwards."""
        room = {b: margins(b, data.get(b), shift) for b in (*f.params, *f.scratch)}
        code = getattr(self.library, f"run_{self.numbers[f]}")
        code(*[ctypes.c_void_p(inner.ctypes.data) for _, inner in room.values()], *[ctypes.c_int64(n) for n in rows or ()])
        for b, (raw, inner) in room.items():
            start = inner.ctypes.data - raw.ctypes.data
            before, after = raw[:start], raw[start + inner.nbytes:]
            assert (before == 0x5B).all() and (after == 0x5B).all(), f"{f.name} writes outside {b!r}"
        return {b: inner.copy() for b, (_, inner) in room.items()}
