"""tosaic on the .tflite (Arm's converter is a part of loading it), timed at its Python call with `out=` arrays. Threads
come from TOSAIC_NUM_THREADS, the cache of machine code lies where TOSAIC_CACHE says."""
from __future__ import annotations

import importlib

import tosaic

from ..task import Loaded, Task

COMPILER = ("lowering.text.reader", "lowering.dialects.tosa", "lowering.rewrite", "lowering.fuse.fuse",
            "lowering.schedule.schedule", "lowering.memory.planner", "lowering.native.load",
            "runtime.executable", "jit.stages", "jit.bridges.tflite")


def imports(task: Task) -> None:
    """The compiler is imported when it is first used: where it will be, that is now."""
    if task.is_cold:
        for name in COMPILER:
            importlib.import_module(f"tosaic.{name}")


def load(task: Task) -> Loaded:
    arrays, entry = task.inputs(), tosaic.load(task.file("tflite")).main
    function = entry if entry.is_dynamic else entry.compile()
    results = function(*arrays)
    outputs = results if isinstance(results, tuple) else (results,)
    target = outputs if isinstance(results, tuple) else results
    return Loaded(lambda: function(*arrays, out=target), lambda: [out.copy() for out in outputs])
