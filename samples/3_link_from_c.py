"""Sample 3: a model as an object file with a C header, linked into a C program by the system's compiler.

Compiles a stateful LSTM (samples/models/lstm.mlir), writes the object and the header, builds samples/3_main.c against them,
runs it, and shows that its numbers are those of the same model called from Python.

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


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    tosaic.load(HERE / "models" / "lstm.mlir").main.lower().save(folder, "lstm")
    for path in sorted(folder.iterdir()):
        print(f"{path.name}: {path.stat().st_size} bytes")

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("no C compiler here; the object and the header are ready to be linked")
        return
    program = folder / "lstm"
    subprocess.run([compiler, "-O2", "-Wall", f"-I{folder}", str(HERE / "3_main.c"), str(folder / "lstm.o"), "-o",
                    str(program)], check=True)
    from_c = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    print("from C:     ", from_c.strip())

    step = tosaic.load(HERE / "models" / "lstm.mlir").main.compile()
    for number in range(3):
        y = step(np.full((1, 6), 0.25 * (number + 1), np.float32))
    print("from Python:", " ".join(f"{v:.6f}" for v in y[0]))


if __name__ == "__main__":
    main()
