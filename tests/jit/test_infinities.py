"""Infinities and NaN in array functions that multiply and add: a product that NumPy never takes, with the zeros of a border or
of a mask, must not turn an infinity into NaN. Each function is traced and compared with NumPy on arrays with such elements."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic

I, N = np.inf, np.nan
VALUES: dict[str, list[Any]] = {
    "v": [[1, I, 3, -2], [1, N, 0, 2], [-I, 0, I, 1], [1, 2, 3, 4]],
    "s": [[1, 2], [I, 1], [1, 0], [0, 0, I], [N, 1, 0]],
    "m": [[[1, I, 0], [0, 2, N], [3, -I, 1]], [[I, 0, 0], [0, 1, 0], [2, 0, -I]], [[N, 0, 1], [1, 1, 1], [0, 0, 0]]],
}
PLACES = np.array([0, 2, 1, 1])
FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    **{f"{f.__name__} {mode}": (lambda a, b, f=f, mode=mode: f(a, b, mode), signature)
       for f in (np.convolve, np.correlate) for mode in ("full", "same", "valid") for signature in ("vs",)},
    "convolve of equal sizes": (np.convolve, "vv"), "convolve by the longer": (lambda a, b: np.convolve(b, a, "same"), "vs"),
    "kron": (np.kron, "vs"), "kron of matrices": (np.kron, "mm"), "outer": (np.outer, "vs"), "dot": (np.dot, "vv"),
    "dot of matrices": (np.dot, "mm"), "inner": (np.inner, "mm"), "vdot": (np.vdot, "vv"), "vecdot": (np.vecdot, "vv"),
    "matmul": (np.matmul, "mm"), "matvec": (lambda m, v: np.matmul(m, v[:3]), "mv"),
    "tensordot": (lambda a, b: np.tensordot(a, b, 1), "mm"), "einsum": (lambda a, b: np.einsum("ij,jk->ik", a, b), "mm"),
    "einsum of a diagonal": (lambda a: np.einsum("ii->i", a), "m"), "cross": (lambda a, b: np.cross(a[:3], b[:3]), "vv"),
    "multi_dot": (lambda a, b: np.linalg.multi_dot([a, b, a]), "mm"),
    "multi_dot of four": (lambda a, b: np.linalg.multi_dot([a[0], a, b, a[:, 0]]), "mm"),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, 2), "m"), "trace": (np.trace, "m"),
    "trace above": (lambda a: np.trace(a, 1), "m"), "diag": (np.diag, "v"), "diag above": (lambda a: np.diag(a, 1), "v"),
    "diag of a matrix": (np.diag, "m"), "diagonal": (np.diagonal, "m"), "tril": (np.tril, "m"), "triu": (np.triu, "m"),
    "triu above": (lambda a: np.triu(a, 1), "m"), "cumsum": (np.cumsum, "v"), "cumprod": (np.cumprod, "v"),
    "diff": (np.diff, "v"), "gradient": (np.gradient, "v"), "trapezoid": (np.trapezoid, "v"), "polyval": (np.polyval, "sv"),
    "polymul": (lambda a, b: np.polymul(a, np.append(np.ones(1, np.float32), b)), "vs"), "vander": (np.vander, "v"),
    "roll": (lambda a: np.roll(a, 1), "v"), "take": (lambda a: np.take(a, PLACES), "v"), "index": (lambda a: a[PLACES], "v"),
    **{f"pad {mode}": (lambda a, mode=mode: np.pad(a, 2, mode), "v") for mode in (
        "constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean", "median")},
    "average": (lambda a, b: np.average(a, weights=b), "vv"), "cov": (np.cov, "m"), "corrcoef": (np.corrcoef, "m"),
    **{f"percentile {q}": (lambda a, q=q: np.percentile(a, q), "v") for q in (0, 10, 30, 50, 75, 100)},
    "median": (np.median, "v"), "median of three": (lambda a: np.median(a[1:]), "v"),
    "select": (lambda a: np.select([a > 1, a < 0], [a, a * 2], 0), "v"), "repeat": (lambda a: np.repeat(a, 2), "v"),
    "insert": (lambda a: np.insert(a, 1, 5), "v"), "delete": (lambda a: np.delete(a, 1), "v"),
    "nansum": (np.nansum, "v"), "nancumsum": (np.nancumsum, "v"), "interp": (
        lambda a: np.interp(np.array([0.5, 2], np.float32), np.arange(4, dtype=np.float32), a), "v"),
}


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_are_numpys(name: str) -> None:
    function, kinds = FUNCTIONS[name]
    traced = tosaic.jit(function)
    for values in itertools.product(*(VALUES[kind] for kind in kinds)):
        arrays = [np.array(v, np.float32) for v in values]
        right = np.asarray(function(*arrays), np.float64)
        np.testing.assert_allclose(np.asarray(traced(*arrays), np.float64), right, 1e-4, 1e-5, err_msg=str(values))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_convolutions_are_numpys_for_all_sizes(mode: Any, dtype: str) -> None:
    traced, draw = tosaic.jit(lambda a, b: np.convolve(a, b, mode)), np.random.default_rng(0)
    for n, m in itertools.product((1, 2, 3, 5, 8), repeat=2):
        a, b = (draw.integers(-4, 5, k).astype(dtype) for k in (n, m))
        found = traced(a, b)
        assert np.array_equal(found, np.convolve(a, b, mode)), (n, m)
