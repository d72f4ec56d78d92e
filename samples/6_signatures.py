"""Sample 6: a .tflite with three signatures that share their state.

The model keeps a moving mean and variance of four readings. `observe` says how unusual a reading is, and learns it unless it is
far off (a write inside a branch); `statistics` reads the state, `restart` begins anew. Compiles all three, watches 200 readings
in which two are wrong, and writes one object file with three functions for C.

    python samples/6_signatures.py [FOLDER]
"""
from __future__ import annotations

import pathlib
import sys
import tempfile

import numpy as np
import tosaic


def main() -> None:
    model = tosaic.from_tflite(pathlib.Path(__file__).parent / "models" / "monitor.tflite")
    for entry in model:
        print(f"{entry.name}({', '.join(entry.inputs)}) -> {', '.join(entry.outputs)}")

    usual, rng = np.array([20, 1, -5, 300], np.float32), np.random.default_rng(0)
    readings = (usual + rng.standard_normal((200, 4))).astype(np.float32)
    readings[[120, 170], 2] += 40
    model.restart({"reading": usual})
    for number, reading in enumerate(readings):
        score = float(model.observe(reading))
        if score > 6:
            print(f"reading {number} is unusual: {score:.0f} deviations")
    deviation, mean, count = model.statistics()
    print(f"learned {count} readings: mean {np.round(mean, 1)}, deviation {np.round(deviation, 1)}")
    print("the same variable from Python:", np.round(model.context.read("monitor.mean"), 1))

    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    artifact = model.save(folder, "monitor", tosaic.CompileOptions(tosaic.target("cortex-m7")))
    functions = [f"tosaic_monitor_{entry.name}_run" for entry in model]
    print(f"{artifact.object.name}: {', '.join(functions)}; {artifact.variable_bytes} bytes of state")


if __name__ == "__main__":
    main()
