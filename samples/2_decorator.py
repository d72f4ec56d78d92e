"""Sample 2: a Python function of tensors, with state and control flow, compiled; and what its stages look like.

    python samples/2_decorator.py
"""
from __future__ import annotations

from typing import Any

import numpy as np
import tosaic
from tosaic import ops

level = tosaic.Variable("level", initial=np.zeros(1, np.float32))


@tosaic.jit
def compress(x: Any) -> Any:
    """An audio compressor: follows the level of the sound, and turns down what is above it."""
    peak = ops.abs(x).max(keepdims=True)
    following = tosaic.cond(peak[0] > level.read()[0], lambda: peak * 0.9, lambda: level.read() * 0.99)
    level.write(following)
    return x / (following + 1.0)


def main() -> None:
    rng = np.random.default_rng(0)
    for loudness in (0.1, 4.0, 0.1, 0.1):
        y = compress((loudness * rng.standard_normal(256)).astype(np.float32))
        print(f"in {loudness:.1f}  out {np.abs(y).max():.2f}  level {level.read()[0]:.2f}")
    print(compress.lower(tosaic.TensorSpec((256,), "float32")).show("kernels"))


if __name__ == "__main__":
    main()
