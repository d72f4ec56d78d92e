"""The driver: a few steps are calls in a row, many are rows of a table; both run every kernel, in order."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.lowering.native.driver.driver import MOST_CALLS
from tosaic.lowering.native.process.load import native_text


def sums(count: int) -> str:
    """A chain of `count` sums over rows, each of which is a kernel and an output."""
    lines, last = [], "%x"
    for i in range(count):
        lines += [f'  %s{i} = "tosa.reduce_sum"({last}) <{{axis = 1 : i32}}> : (tensor<3x4xf32>) -> tensor<3x1xf32>',
                  f'  %t{i} = "tosa.add"({last}, %s{i}) : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>']
        last = f"%t{i}"
    names, types = ", ".join(f"%s{i}" for i in range(count)), ", ".join(["tensor<3x1xf32>"] * count)
    return "\n".join([f"func.func @main(%x: tensor<3x4xf32>) -> ({types}) {{", *lines, f"  return {names} : {types}", "}"])


@pytest.mark.parametrize("count", [1, 3, MOST_CALLS])
def test_few_steps_need_no_table_and_many_have_one(count: int) -> None:
    lowered = tosaic.load(sums(count)).main.trace().lower()
    kernels = len(lowered.program.functions)
    assert kernels >= count
    text = native_text(lowered.program, lowered.plan, lowered.target)
    assert ("@program.table" in text) == (kernels > MOST_CALLS)
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 64
    expected, last = [], x
    for _ in range(count):
        expected.append(last.sum(axis=1, keepdims=True))
        last = last + expected[-1]
    found = lowered.compile(tosaic.Context("driver"))(x)
    for a, b in zip(found if count > 1 else (found,), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
