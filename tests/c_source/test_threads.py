"""C source that divides steps into tasks: with the caller's pool, which may run them in any order, and with none."""
from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.target.presets import target

from .functions import needs_gcc
from .library import Library

pytestmark = needs_gcc
SHAPES = (96, 256), (256, 192)
TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, TASK, ctypes.c_void_p, ctypes.c_int64)


class Pool(ctypes.Structure):
    """`struct tosaic_thread_pool`."""
    _fields_ = [("parallel", PARALLEL), ("context", ctypes.c_void_p)]


@pytest.mark.parametrize("machine", ["any", "x86-64-v3"])
def test_tasks_in_any_order_give_the_same_bytes(machine: str, tmp_path: Path) -> None:
    a, b = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in SHAPES)
    specs = [tosaic.TensorSpec(s) for s in SHAPES]
    results = []
    for threads in (1, 4):
        f = tosaic.jit(lambda a, b: tosaic.ops.tanh(a @ b), options=tosaic.CompileOptions(target(machine), threads))
        folder = tmp_path / f"{threads}"
        folder.mkdir()
        library = Library([f.lower(*specs)], folder)
        results.append(library(a, b)[0])
    parts: list[int] = []

    def backwards(context: object, task: TASK, argument: int, count: int) -> None:
        parts.append(count)
        for part in reversed(range(count)):
            task(argument, part)

    library.pool = Pool(PARALLEL(backwards), None)
    results.append(library(a, b)[0])
    assert parts and max(parts) > 1
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
