"""Sample 5: a graph of TensorFlow 1 with its dead values and frames, as a loop of TOSA, compiled.

    python samples/5_tensorflow_graph.py
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
import tosaic

MODEL = Path(__file__).parent / "models" / "countdown.mlir"


def main() -> None:
    model = tosaic.load(MODEL)
    print(model.countdown.show("graph"))
    for start in (1, 5, 100):
        print(f"{start} counts down to {model.countdown(np.int32(start))}")
    print(model.countdown.check([[np.int32(7)]]))


if __name__ == "__main__":
    main()
