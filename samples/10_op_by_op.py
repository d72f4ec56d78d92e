"""Sample 10: one operator at a time: results before they are computed, errors where they belong, a region as one graph.

    python samples/10_op_by_op.py
"""
from __future__ import annotations

import numpy as np
import tosaic


def main() -> None:
    rt = tosaic.CoreRuntime()
    x, w = rt.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)), rt.tensor(np.ones((3, 2), np.float32))
    y = x @ w + 1.0
    print(y.metadata, y.get().tolist())

    try:
        x + rt.tensor(np.ones(4, np.float32))  # shapes are known before anything runs: an error at this line
    except tosaic.Problem as problem:
        print(problem.message)

    found = rt.run("unique", rt.tensor(np.array([3, 1, 3, 2], np.int32)))  # its shape depends on the data
    print(found.get().tolist())

    with rt.capture() as region:
        h = (x @ w) * 0.5
        h = h + 1.0
    step = region.compile(h, inputs=[x, w])
    print("a region as one graph:", np.array_equal(step(x.get(), w.get()), h.get()))
    rt.shutdown()


if __name__ == "__main__":
    main()
