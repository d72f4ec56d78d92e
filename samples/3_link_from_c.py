"""Sample 3: a model as an object file with a C header, linked into C programs by the system's compiler.

Compiles a stateful LSTM (samples/models/lstm.mlir) in two ways: with variables of its own, for samples/3_main.c, and with the
state in the caller's hands, for samples/3_instances.c, which runs two instances of one object. Builds both programs, runs them,
and shows that their numbers are those of the same model called from Python.

    python samples/3_link_from_c.py [FOLDER]
"""
from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import tosaic

HERE = pathlib.Path(__file__).parent
LSTM = HERE / "models" / "lstm.mlir"


def from_c(compiler: str, folder: pathlib.Path, source: str) -> str:
    """What the program prints that is built of a source and the object in the folder."""
    program = folder / "lstm"
    subprocess.run([compiler, "-O2", "-Wall", f"-I{folder}", str(HERE / source), str(folder / "lstm.o"), "-o", str(program)],
                   check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.strip()


def from_python(instance: str, steps: range) -> str:
    """The last output of these steps, with variables in a context of that name."""
    step = tosaic.load(LSTM, context=tosaic.Context(instance)).main.compile()
    for number in steps:
        y = step(np.full((1, 6), 0.25 * (number + 1), np.float32))
    return " ".join(f"{v:.6f}" for v in y[0])


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    lowered = tosaic.load(LSTM).main.lower()
    lowered.save(folder, "lstm")
    lowered.save(folder / "instances", "lstm", state="caller")
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        print(f"{path.relative_to(folder)}: {path.stat().st_size} bytes")

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("no C compiler here; the objects and the headers are ready to be linked")
        return
    print("from C:     ", from_c(compiler, folder, "3_main.c"))
    print("from Python:", from_python("one", range(3)))
    print("second instance from C:     ", from_c(compiler, folder / "instances", "3_instances.c"))
    print("second instance from Python:", from_python("another", range(1, 3)))


if __name__ == "__main__":
    main()
