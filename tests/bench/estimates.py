"""`python tests/bench/estimates.py`: how far the estimates by which kernels go to the work queue
(`jit/op_by_op/cost_estimate.py`) are from what kernels take, the least of some runs in the caller's thread."""
from __future__ import annotations

import time

import numpy as np
import tosaic
from tosaic import OpAttrs
from tosaic.jit.op_by_op import compilers

CASES = (("add", [(3000, 1000)] * 2, {}), ("exp", [(600, 600)], {}), ("matmul", [(512, 512)] * 2, {}),
         ("sum", [(2000, 2000)], {}), ("softmax", [(1000, 1000)], {}),
         ("tosa.conv2d", [(1, 56, 56, 64), (64, 3, 3, 64), (64,)], {"pad": [1, 1, 1, 1]}))
RUNS = 20


def least(rt: tosaic.CoreRuntime, op: str, arrays: list[tosaic.TensorHandle], attributes: OpAttrs) -> int:
    """Nanoseconds of the quickest run."""
    times = []
    for _ in range(RUNS):
        start, results = time.perf_counter_ns(), [None]
        rt.execute(op, "cpu", None, list(arrays), attributes, results)
        results[0].wait()
        times.append(time.perf_counter_ns() - start)
    return min(times)


def main() -> None:
    rt = tosaic.CoreRuntime(threads=0)
    print(f"{'operator':<14} {'estimate us':>12} {'least us':>10} {'ratio':>6}")
    for op, shapes, fields in CASES:
        arrays = [rt.tensor(np.random.default_rng(1).random(s).astype(np.float32)) for s in shapes]
        attributes = OpAttrs(fields)
        estimate = compilers.cpu.trace(op, attributes.freeze(), [a.metadata for a in arrays], {}).nanoseconds
        found = least(rt, op, arrays, attributes)
        print(f"{op:<14} {estimate / 1e3:>12.0f} {found / 1e3:>10.0f} {estimate / found:>6.2f}")


if __name__ == "__main__":
    main()
