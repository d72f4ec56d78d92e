"""`numpy.fft` of traced tensors is NumPy's, within units of the greatest frequency."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops
from tosaic.runtime.errors import Problem

LOT = np.random.default_rng(4)
X = LOT.standard_normal((4, 6, 8)).astype(np.float32)
Z = (X + 1j * LOT.standard_normal(X.shape)).astype(np.complex64)
LONG = LOT.standard_normal((2, 300)).astype(np.float32)
FROM_COMPLEX, FROM_REAL = ("fft", "ifft", "irfft", "hfft"), ("fft", "ifft", "rfft", "ihfft")
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    *((name, Z, {"axis": axis}) for name in FROM_COMPLEX for axis in (1, -1)),
    *((name, X, {"axis": axis}) for name in FROM_REAL for axis in (1, -1)),
    *((name, Z, {"norm": norm}) for name, norm in zip(FROM_COMPLEX, ("ortho", "forward", "forward", "ortho"))),
    *((name, X, {"norm": norm}) for name, norm in (("rfft", "forward"), ("ihfft", "ortho"))),
    *((name, Z, {"n": n}) for name in ("fft", "irfft") for n in (5, 16)), ("rfft", X, {"n": 5}), ("rfft", X, {"n": 16}),
    *((name, Z, {}) for name in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn")), ("rfft2", X, {}), ("rfftn", X, {}),
    ("fftn", Z, {"s": (4, 5), "axes": (0, 2)}), ("irfftn", Z, {"s": (4, 5), "axes": (0, 2)}),
    ("fftshift", Z, {}), ("ifftshift", X, {"axes": 1}),
    ("ifft", (LONG * (1 - 2j)).astype(np.complex64), {}), ("rfft", LONG, {"norm": "ortho"}),
    ("irfft", (LONG * (1 - 2j)).astype(np.complex64), {"n": 599}), ("fft", X[0, 0].astype(np.float64), {}),
    ("fft", np.arange(12, dtype=np.int32), {})]


@pytest.fixture(scope="module")
def results() -> list[Any]:
    """All transforms in one graph."""
    found: list[Any] = tosaic.jit(lambda given: [getattr(np.fft, name)(x, **options) for x, (name, _, options) in zip(
        given, CASES)])([x for _, x, _ in CASES])
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{CASES[i][0]}{CASES[i][2]}")
def test_a_transform_is_that_of_numpy(results: list[Any], number: int) -> None:
    name, x, options = CASES[number]
    expected, actual = getattr(np.fft, name)(x.astype(np.float32) if x.dtype == np.int32 else x, **options), results[number]
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    unit = np.finfo(actual.dtype).eps * np.abs(expected).max()
    assert np.abs(actual - expected).max() <= 4 * unit


def test_there_and_back_is_where_one_was() -> None:
    back = tosaic.jit(lambda x: ops.fft.irfft(ops.fft.rfft(x)))(X)
    assert np.abs(back - X).max() < 1e-6


def test_frequencies_are_those_of_numpy() -> None:
    found = tosaic.jit(lambda x: (ops.fft.fftfreq(9, 0.5) + 0 * x, ops.fft.rfftfreq(8) + 0 * x))(np.float32(0))
    np.testing.assert_allclose(found[0], np.fft.fftfreq(9, 0.5), rtol=1e-7)
    np.testing.assert_allclose(found[1], np.fft.rfftfreq(8), rtol=1e-7)


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: ops.fft.fft(x, norm="double"), "norm 'double' is none of backward, ortho and forward"),
    (lambda x: ops.fft.fft(x, 0), "0 elements cannot be transformed"), (lambda x: ops.fft.fft(x, axis=3), "axis 3 is outside"),
    (lambda x: ops.fft.fftn(x, (2, 2), (0,)), "2 lengths for 1 axes"),
    (lambda x: ops.fft.fft(x.astype("f64"), 5000), "a transform of 5000 elements of float64")])
def test_what_cannot_be_transformed_is_refused(call: Any, text: str) -> None:
    with pytest.raises(Problem, match=text):
        tosaic.jit(call)(X)
