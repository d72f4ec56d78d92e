"""x * 2**n: one instruction where there is one, else two products; the same results, beyond the normal numbers too."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.target.presets import target

from .harness import Native
from .test_emit_operations import TARGETS, check, elementwise, native_x86

NUMBERS = np.array([1.0, 1.4142135, 0.70710677, 1.9999999, 0.5000001, 1.3333334, np.nan, 1.0000001], np.float32)
EXPONENTS = np.arange(-176, 144, dtype=np.float32)


def grid(lanes: int) -> tuple[np.ndarray, np.ndarray]:
    x, n = (a.reshape(-1) for a in np.meshgrid(NUMBERS, EXPONENTS, indexing="ij"))
    return x[:x.size // lanes * lanes], n[:x.size // lanes * lanes]


@native_x86
@pytest.mark.parametrize("name", [*TARGETS, "x86-64-v4"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_numbers_times_powers_of_two(name: str, lanes: int) -> None:
    x, n = grid(lanes)
    f = elementwise("scaleb", "float32", 2, lanes, x.size)
    check([f], {f.name: {0: x, 1: n}}, name)


@native_x86
def test_small_results_are_rounded_once() -> None:
    x, n = grid(16)
    f = elementwise("scaleb", "float32", 2, 16, x.size)
    with Native([f], target("x86-64-v3")) as native, np.errstate(over="ignore"):
        found = native.run(f, dict(zip(f.params, (x, n))))[f.params[-1]]
        exact = (x.astype(np.float64) * 2.0 ** n.astype(np.float64)).astype(np.float32)
    assert np.array_equal(found, exact, equal_nan=True)
    assert (np.abs(found[np.isfinite(found)]) < 2.0**-126).any() and np.isinf(found).any()
