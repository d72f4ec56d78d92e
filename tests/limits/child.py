"""A process that loads and compiles bombs, and says as JSON what each came to: `python -m` with their names."""
from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from pathlib import Path

import tosaic
from tosaic.runtime.errors import Problem

from .bombs import BOMBS, LIMITS

MEMORY = 3 << 30
"""Bytes of address space that the process may have above what it has before: a bomb that goes off ends in a MemoryError."""


def run(name: str, limits: tosaic.Limits) -> dict[str, object]:
    data = BOMBS[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    try:
        with limits:
            tosaic.load(data, name).entry().compile()
        kind, message = "compiled", ""
    except Problem as problem:
        kind, message = problem.kind, problem.message
    except BaseException as error:
        kind, message = type(error).__name__, str(error)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"bomb": name, "kind": kind, "message": message[:200], "bytes": len(data),
            "seconds": time.perf_counter() - start, "more_memory": (peak - before) * 1024}


def prepare() -> None:
    """Import what reading and compiling need, and bound the process."""
    import tosaic.lowering.pipeline
    import tosaic.lowering.text.reader  # noqa: F401
    with contextlib.suppress(ImportError):
        import onnx  # noqa: F401
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    prepare()
    for each in sys.argv[2:]:
        print(json.dumps(run(each, tosaic.Limits(LIMITS.nodes, LIMITS.bytes, seconds))), flush=True)
