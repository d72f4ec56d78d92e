"""tosaic on the .tflite (Arm's converter is a part of loading it), timed at its Python call with `out=` arrays. Threads
come from TOSAIC_NUM_THREADS, the cache of machine code lies where TOSAIC_CACHE says."""
from __future__ import annotations

import importlib
import pkgutil

import tosaic

from ..task import Loaded, Task

COMPILER = ("jit", "lowering", "runtime")


def imports(task: Task) -> None:
    """The compiler is imported when it is first used: where it will be, that is now."""
    if task.is_cold:
        import llvmlite.binding  # noqa: F401
        for name in COMPILER:
            package = importlib.import_module(f"tosaic.{name}")
            for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                importlib.import_module(found.name)


def load(task: Task) -> Loaded:
    arrays, entry = task.inputs(), tosaic.load(task.file("tflite")).main
    function = entry if entry.is_dynamic else entry.compile()
    results = function(*arrays)
    outputs = results if isinstance(results, tuple) else (results,)
    target = outputs if isinstance(results, tuple) else results
    return Loaded(lambda: function(*arrays, out=target), lambda: [out.copy() for out in outputs])
