"""What a user waits for: `import tosaic`, a model's first start, its second one from the cache, in milliseconds of processors.

    python tests/bench/starts.py MODEL...                  .tflite, .mlir, .tosa, .onnx
    python tests/bench/starts.py --repeats 9 MODEL...      processes of each kind (default: 5)

Each start is a process of its own, which imports NumPy before the clock starts. A first start has an empty cache; of a second
one LLVM compiles nothing. Times are of the processor, the least of several, so that a busy machine changes little; `children`
are the processes that convert the file and compile kernels at the same time.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tosaic

RESTED_SECONDS = 2.1
"""Until a file that has been written counts as one that does not change."""
PROGRAM = """
import json, resource, sys, time
import numpy as np

def clock():
    times.append([u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))])

times = []
clock()
import tosaic
clock()
entry = tosaic.load(sys.argv[1]).main
clock()
compiled = entry.compile()
clock()
arrays = [np.ones(t.shape, t.dtype) for t in compiled.inputs]
compiled(*arrays)
clock()
compiled(*arrays)
clock()
time.sleep(float(sys.argv[2]))
found = [[1e3 * (b - a) for a, b in zip(before, after)] for before, after in zip(times, times[1:])]
print(json.dumps({"own": [own for own, _ in found], "children": sum(others for _, others in found),
                  "modules": sum(m.startswith("tosaic") for m in sys.modules), "llvm": "llvmlite" in sys.modules}))
"""
PARTS = ("import", "load", "compile", "first call", "next call")


def start(model: Path, cache: Path, pause: float = 0.0) -> dict[str, float]:
    """One process: the milliseconds of each part, of its children, and how many modules of tosaic it has imported."""
    environment = {**os.environ, "TOSAIC_CACHE": str(cache), "PYTHONPATH": str(Path(tosaic.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(model.absolute()), str(pause)], env=environment, check=True,
                          stdout=subprocess.PIPE, text=True, cwd=cache)
    answer = json.loads(done.stdout)
    return {**dict(zip(PARTS, answer["own"], strict=True)), "children": answer["children"], "modules": answer["modules"],
            "llvm": answer["llvm"]}


def starts(model: Path, repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """The least of several first starts, and of several second ones."""
    first, second = list[dict[str, float]](), list[dict[str, float]]()
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            first.append(start(model, Path(folder), RESTED_SECONDS))
            second.append(start(model, Path(folder)))
    return least(first), least(second)


def least(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: min(each[name] for each in found) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{'model':24} {'start':7}" + "".join(f"{name:>11}" for name in (*PARTS, "children", "modules", "llvm")))
    for model in options.models:
        for kind, found in zip(("first", "second"), starts(model, options.repeats), strict=True):
            shown = [f"{value:11.{0 if name in ('modules', 'llvm') else 1}f}" for name, value in found.items()]
            print(f"{model.stem[:24]:24} {kind:7}{''.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
