"""NumPy's functions called on traced tensors are those of NumPy: what they compute, their shapes and types."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic

from .numpy_agreement import agree

RANDOM = np.random.default_rng(7)
F = RANDOM.standard_normal((3, 4)).astype(np.float32)
CUBE = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
I = RANDOM.integers(-9, 9, (3, 4)).astype(np.int32)
SQUARE = (RANDOM.standard_normal((2, 4, 4)) + 3 * np.eye(4)).astype(np.float32)
VECTOR = np.array([3, 1, 2, 1, -5, 7], np.float32)
WITH_NAN = np.array([[3, np.nan, 1, -0.0], [0.0, -np.inf, np.nan, np.inf]], np.float32)


def test_elements_are_rolled_repeated_turned_and_cut() -> None:
    agree({
        "roll": lambda a, v: np.roll(a, 2), "roll axis": lambda a, v: np.roll(a, -1, 1),
        "roll axes": lambda a, v: np.roll(a, (1, 2), (0, 1)), "repeat": lambda a, v: np.repeat(a, 2),
        "repeat axis": lambda a, v: np.repeat(a, 3, axis=1), "repeat each": lambda a, v: np.repeat(a, [2, 0, 1], axis=0),
        "tril": lambda a, v: np.tril(a), "triu": lambda a, v: np.triu(a, 1), "tril below": lambda a, v: np.tril(a, -1),
        "diagonal": lambda a, v: np.diagonal(a), "diagonal above": lambda a, v: np.diagonal(a, 2),
        "diagonal below": lambda a, v: np.diagonal(a, -1), "diagonal beyond": lambda a, v: np.diagonal(a, 9),
        "diag": lambda a, v: np.diag(v), "diag above": lambda a, v: np.diag(v, 2), "diag below": lambda a, v: np.diag(v, -1),
        "diag of a matrix": lambda a, v: np.diag(a, 1), "rot90": lambda a, v: np.rot90(a),
        "rot270": lambda a, v: np.rot90(a, 3),
        "fliplr": lambda a, v: np.fliplr(a), "flipud": lambda a, v: np.flipud(a), "trace": lambda a, v: np.trace(a),
        "array_split": lambda a, v: np.array_split(v, 4)[1], "rollaxis": lambda a, v: np.rollaxis(a, 1),
        "take": lambda a, v: np.take(a, [5, -1, 0])}, F, VECTOR)


def test_tensors_are_joined_by_rows_columns_and_depth() -> None:
    agree({
        "vstack": lambda a, b: np.vstack([a, b[0]]), "hstack": lambda a, b: np.hstack([a, b]),
        "hstack of vectors": lambda a, b: np.hstack([a[0], b[1]]), "dstack": lambda a, b: np.dstack([a, b]),
        "column_stack": lambda a, b: np.column_stack([a[:, 0], b]), "mixed": lambda a, b: np.concatenate([a, b[:1] * 2, a], 0),
        "all elements": lambda a, b: np.concatenate([a, b], axis=None), "stack": lambda a, b: np.stack([a, b, a], 2),
        "empty": lambda a, b: np.concatenate([a[:0], b, a[3:]]), "atleast_3d": lambda a, b: np.atleast_3d(a[0]),
        "meshgrid": lambda a, b: np.meshgrid(a[0], b[:, 0])[1], "kron": lambda a, b: np.kron(a, b[:2, :2]),
        "moveaxis": lambda a, b: np.moveaxis(np.stack([a, b]), (0, 1), (2, 0)),
        "expand_dims": lambda a, b: np.expand_dims(a, (0, 2)),
        "broadcast": lambda a, b: np.broadcast_arrays(a, b[:1])[1]}, F, -F)


@pytest.mark.parametrize("array", [VECTOR, I, WITH_NAN, I.astype(np.int8), (I + 9).astype(np.uint64), I > 2,
                                   VECTOR.astype(np.float64), WITH_NAN.astype(np.float16)], ids=lambda a: str(a.dtype))
def test_sorts_are_stable_and_put_nan_last(array: Any) -> None:
    agree({"sort": lambda a: np.sort(a), "argsort": lambda a: np.argsort(a, kind="stable"),
           "all": lambda a: np.sort(a, axis=None), "first axis": lambda a: np.argsort(a, 0, kind="stable"),
           "argmax": lambda a: np.argmax(a, 0), "argmin": lambda a: np.argmin(a, -1)}, array)


def test_places_in_sorted_vectors_and_sets_are_found() -> None:
    agree({
        "left": lambda a, v: np.searchsorted(np.sort(v), a), "right": lambda a, v: np.searchsorted(np.sort(v), a, side="right"),
        "isin": lambda a, v: np.isin(a, v), "not in": lambda a, v: np.isin(a, v, invert=True),
        "take_along_axis": lambda a, v: np.take_along_axis(a, np.argsort(a, 1, kind="stable"), 1),
        "one place of a row": lambda a, v: np.take_along_axis(a, np.argmax(a, 1, keepdims=True), 1),
        "count_nonzero": lambda a, v: np.count_nonzero(a, 1)}, I, VECTOR.astype(np.int32))


def test_running_sums_and_differences_are_those_of_numpy() -> None:
    agree({
        "cumsum": lambda a, i: np.cumsum(a), "cumsum axis": lambda a, i: np.cumsum(a, 1),
        "cumprod": lambda a, i: np.cumprod(a, 0),
        "cumsum of integers": lambda a, i: np.cumsum(i.astype("int8"), 1), "cumulative": lambda a, i: np.cumulative_sum(
            i, axis=0, include_initial=True), "diff": lambda a, i: np.diff(a), "diff twice": lambda a, i: np.diff(i, 2, 0),
        "diff with ends": lambda a, i: np.diff(a, prepend=0, append=a[:, :1]), "ediff1d": lambda a, i: np.ediff1d(i),
        "diff of bools": lambda a, i: np.diff(i > 0)}, F, I)


def test_statistics_are_those_of_numpy() -> None:
    agree({
        "std": lambda a: np.std(a), "std axis": lambda a: a.std(1), "var ddof": lambda a: np.var(a, 0, ddof=1),
        "correction": lambda a: np.std(a, axis=1, correction=1), "mean of integers": lambda a: (a * 9).astype("int32").mean(0),
        "average": lambda a: np.average(a, 0, weights=abs(a)), "weights of an axis": lambda a: np.average(
            a, axis=1, weights=np.float32([1, 2, 3, 4])), "median": lambda a: np.median(a),
            "even median": lambda a: np.median(a, 0),
        "quantile": lambda a: np.quantile(a, 0.3, axis=1), "percentile": lambda a: np.percentile(a, 90, axis=0, keepdims=True),
        "ptp": lambda a: np.ptp(a, 1), "round": lambda a: np.round(a, 2), "around": lambda a: np.around(a * 100, -1),
        "round method": lambda a: a.round(1), "fix": lambda a: np.fix(a * 3), "isclose": lambda a: np.isclose(a, a + 1e-6),
        "sum of bools": lambda a: (a > 0).sum(1), "max initial": lambda a: np.maximum.reduce(a, axis=1, initial=0.5)}, F)


def test_nan_is_left_out_where_the_name_says_so() -> None:
    agree({"nansum": lambda a: np.nansum(a), "nanmean": lambda a: np.nanmean(a[:1]), "nanmax": lambda a: np.nanmax(a, 0),
           "nanmin": lambda a: np.nanmin(a, 1), "nanprod": lambda a: np.nanprod(a[:, :2], 1),
           "median": lambda a: np.median(a, 0),
           "nan_to_num": lambda a: np.nan_to_num(a, nan=2.0)}, WITH_NAN)


def test_products_along_axes_are_those_of_numpy() -> None:
    agree({
        "tensordot": lambda a, c: np.tensordot(c, a, axes=([1, 2], [0, 1])), "one axis": lambda a, c: np.tensordot(c, a.T, 1),
        "no axis": lambda a, c: np.tensordot(a, c, 0), "inner": lambda a, c: np.inner(c, a), "dot": lambda a, c: np.dot(a, a.T),
        "dot of rank 3": lambda a, c: np.dot(a.T, c), "vdot": lambda a, c: np.vdot(a, a), "outer": lambda a, c: np.outer(a, a),
        "vecdot": lambda a, c: np.vecdot(c, a), "vecdot axis": lambda a, c: np.linalg.vecdot(c, a, axis=0 - 2),
        "matvec": lambda a, c: np.matvec(c, a[0]), "vecmat": lambda a, c: np.vecmat(a[:, 0], c),
        "cross": lambda a, c: np.linalg.cross(c[..., :3], a[..., 1:]), "convolve": lambda a, c: np.convolve(a[0], c[0, 0, :2]),
        "same": lambda a, c: np.convolve(a[0], c[0, 0, :3], "same"), "valid": lambda a, c: np.convolve(a[0], c[0, 0, :3],
        "valid")},
        F, CUBE, rtol=1e-5, atol=1e-5)


def test_einsum_reads_every_form_of_an_equation() -> None:
    agree({
        "product": lambda a, c: np.einsum("ij,kj->ik", a, a), "implicit": lambda a, c: np.einsum("ij,jk", a, a.T),
        "transpose": lambda a, c: np.einsum("ji", a), "trace": lambda a, c: np.einsum("ii", a[:, :3]),
        "diagonal": lambda a, c: np.einsum("ii->i", a[:, :3]), "sum": lambda a, c: np.einsum("ij->j", a),
        "batch": lambda a, c: np.einsum("bij,bkj->bik", c, c), "dots": lambda a, c: np.einsum("...j,ij->...i", c, a),
        "three": lambda a, c: np.einsum("bij,ij,bkj->bk", c, a, c), "outer": lambda a, c: np.einsum("i,j->ji", a[0], a[1]),
        "all": lambda a, c: np.einsum("ij,ij->", a, a)}, F, CUBE, rtol=1e-5, atol=1e-5)


def test_linear_algebra_of_batches_is_that_of_numpy() -> None:
    positive = SQUARE @ SQUARE.transpose(0, 2, 1)
    agree({
        "det": lambda s, p: np.linalg.det(s), "inv": lambda s, p: np.linalg.inv(s),
        "solve": lambda s, p: np.linalg.solve(s, p[..., :2]), "solve a vector": lambda s, p: np.linalg.solve(s[0], p[0, 0]),
        "cholesky": lambda s, p: np.linalg.cholesky(p), "sign": lambda s, p: np.linalg.slogdet(-s)[0],
        "logarithm": lambda s, p: np.linalg.slogdet(s).logabsdet,
        "matrix_power": lambda s, p: np.linalg.matrix_power(s, 3), "inverse power": lambda s, p: np.linalg.matrix_power(s, -1),
        "multi_dot": lambda s, p: np.linalg.multi_dot([s[0], p[0], s[1]]), "trace": lambda s, p: np.linalg.trace(s),
        "diagonal": lambda s, p: np.linalg.diagonal(s, offset=1)}, SQUARE, positive, rtol=2e-4, atol=2e-4)


def test_norms_are_those_of_numpy() -> None:
    agree({
        "all": lambda a, c: np.linalg.norm(c), "vectors": lambda a, c: np.linalg.norm(a, axis=1),
        "fro": lambda a, c: np.linalg.norm(a),
        "one": lambda a, c: np.linalg.norm(a, 1), "inf": lambda a, c: np.linalg.norm(a, np.inf),
        "least": lambda a, c: np.linalg.norm(a, -1), "axes": lambda a, c: np.linalg.norm(c, axis=(0, 2), keepdims=True),
        "order": lambda a, c: np.linalg.norm(a, 3, axis=0),
        "vector_norm": lambda a, c: np.linalg.vector_norm(c, axis=(0, 1), ord=np.inf),
        "matrix_norm": lambda a, c: np.linalg.matrix_norm(c, ord=1), "zero": lambda a, c: np.linalg.norm(a[0], 0)}, F, CUBE)


def test_matrices_are_exchanged_and_chosen_where_a_pivot_is_zero() -> None:
    agree({"det": lambda m: np.linalg.det(m), "inv": lambda m: np.linalg.inv(m)}, np.float32([[0, 2, 1], [1, 0, 0], [3, 0, 1]]))
    singular = tosaic.jit(lambda m: tosaic.ops.linalg.inv(m))(np.ones((2, 2), np.float32))
    assert not np.isfinite(singular).any()


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_, np.uint64])
def test_tensors_without_elements_have_results(dtype: Any) -> None:
    empty = np.zeros((0, 3), dtype)
    agree({
        "sum": lambda a: a.sum(0), "prod": lambda a: np.prod(a, axis=1), "all": lambda a: a.all(),
        "any": lambda a: np.any(a, 0),
        "reshape": lambda a: a.reshape(3, 0), "transpose": lambda a: a.T, "slice": lambda a: a[:, 1:],
        "sort": lambda a: np.sort(a),
        "concatenate": lambda a: np.concatenate([a, a], 1), "stack": lambda a: np.stack([a, a]), "flip": lambda a: np.flip(a),
        "take": lambda a: np.take(a, [2, 0], axis=1), "roll": lambda a: np.roll(a, 1), "repeat": lambda a: np.repeat(a, 2, 0),
        "where": lambda a: np.where(a, a, a), "pad": lambda a: np.pad(a, 1), "tile": lambda a: np.tile(a, (2, 1)),
        "equal": lambda a: a == a, "broadcast": lambda a: np.broadcast_to(a, (2, 0, 3)),
        "squeeze": lambda a: np.squeeze(a[:, :1], 1),
        "matmul": lambda a: a.astype("float32") @ np.ones((3, 2), np.float32),
        "reduce": lambda a: np.bitwise_or.reduce((a > 0), axis=0), "products of none": lambda a: a.T.astype(
            "float32") @ a.astype("float32"), "cumsum": lambda a: np.cumsum(a, 0),
            "argsort": lambda a: np.argsort(a, 0)}, empty)


def test_what_is_chosen_of_nothing_is_a_problem() -> None:
    for function in (np.max, np.argmin, np.median):
        with pytest.raises(tosaic.Problem, match="no elements"):
            tosaic.jit(lambda a: function(a))(np.zeros((0,), np.float32))


def test_options_that_numpy_has_and_a_traced_tensor_has_not_are_refused() -> None:
    def text(function: Any) -> str:
        with pytest.raises(tosaic.Problem) as found:
            tosaic.jit(function)(F)
        return str(found.value)

    out = np.empty_like(F)
    assert "numpy.sin with out=: a traced tensor cannot be changed" in text(lambda a: np.sin(a, out=out))
    assert "tosaic.ops.where(mask" in text(lambda a: np.add(a, a, where=a > 0))
    assert "numpy.add.at cannot be traced" in text(lambda a: np.add.at(a, 0, 1))
    assert "the shape of its result depends on the numbers" in text(lambda a: np.unique(a))
    assert "the shape of its result depends on the numbers" in text(lambda a: np.nonzero(a))
    assert "iterates until it converges" in text(lambda a: np.linalg.svd(a))
    assert "no tensor holds dates" in text(lambda a: np.isnat(a))
    assert "has fewer options" in text(lambda a: np.mean(a, where=a > 0)) or "where=" in text(lambda a: np.mean(a, where=a > 0))
    assert "must be known" in text(lambda a: np.repeat(a, a.astype("int32")[0]))


def test_a_ufunc_reduces_accumulates_and_has_outer_products() -> None:
    agree({
        "add": lambda a, i: np.add.reduce(a), "axes": lambda a, i: np.add.reduce(a, axis=(0, 1)),
        "none": lambda a, i: np.multiply.reduce(
            i, axis=None), "keepdims": lambda a, i: np.minimum.reduce(a, 1, keepdims=True),
            "xor": lambda a, i: np.bitwise_xor.reduce(i, 1),
        "subtract": lambda a, i: np.subtract.reduce(a, 1), "or": lambda a, i: np.logical_or.reduce(i),
        "gcd": lambda a, i: np.gcd.reduce(
            i, axis=1), "hypot": lambda a, i: np.hypot.reduce(a, 0), "accumulate": lambda a, i: np.maximum.accumulate(a, 1),
        "sums": lambda a, i: np.add.accumulate(a, axis=1), "differences": lambda a, i: np.subtract.accumulate(a),
        "outer": lambda a, i: np.subtract.outer(i, a[0].astype(np.int32)),
        "dtype": lambda a, i: np.add.reduce(i, dtype=np.float32),
        "initial": lambda a, i: np.add.reduce(i, initial=5)}, F, I)
