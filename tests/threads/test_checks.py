"""Checks between kernels that run in parts: the same answers, and the same failures, for any number of threads."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops
from tosaic.lowering.kernels.kernel import CheckTrue, Compute


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_check_between_kernels_in_parts_ends_the_call(number: int) -> None:
    state = tosaic.Variable(f"threads.checked{number}", np.zeros(1, np.float32))

    @tosaic.jit(options=tosaic.CompileOptions(threads=number))
    def product(a: Any, b: Any) -> Any:
        y = ops.tanh(a @ b)
        state.write(state.read() + 1)
        tosaic.check(y.max() + state.read()[0] * 0 < 0.5, "too large")
        return ops.exp(y) @ b

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((192, 192)).astype(np.float32), rng.standard_normal((192, 192)).astype(np.float32)
    small = (a * 1e-4, b)
    program = product.lower(*small).program
    assert any(isinstance(s, CheckTrue) for s in program.steps)
    assert (number > 1) == any(isinstance(s, Compute) and s.tasks > 1 for s in program.steps)
    for iteration in range(3):
        found = product(*small)
        np.testing.assert_allclose(found, np.exp(np.tanh(small[0] @ b)) @ b, rtol=1e-3, atol=1e-3)
        with pytest.raises(tosaic.Problem, match="too large"):
            product(a, b)
        assert state.read().item() == iteration + 1
