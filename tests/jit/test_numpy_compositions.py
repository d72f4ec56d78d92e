"""NumPy's functions that are compositions of others, called on traced tensors: interpolation, derivatives, polynomials,
counts,
covariances, choices, edits, borders, what leaves NaN out."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from numpy.testing.overrides import get_overridable_numpy_array_functions
from tosaic.jit.tracing import refusals
from tosaic.jit.tracing.numpy_protocol import qualified

from .numpy_agreement import agree

RANDOM = np.random.default_rng(11)
F = RANDOM.standard_normal((3, 4)).astype(np.float32)
CUBE = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
I = RANDOM.integers(-9, 9, (3, 4)).astype(np.int32)
RISING = np.array([-2, -0.5, 0, 1, 3], np.float32)
VALUES = np.array([4, 1, -3, 2, 2], np.float32)
AT = np.array([[-9, -2, -1.25, 0], [0.5, 3, 99, np.nan]], np.float32)
WITH_NAN = np.array([[3, np.nan, 1, 5], [0.0, -np.inf, np.nan, np.inf], [2, 7, 1, 8], [np.nan] * 4], np.float32)
PIXELS = RANDOM.integers(0, 256, (4, 5)).astype(np.uint8)


def text(function: Any, *arrays: Any) -> str:
    with pytest.raises(tosaic.Problem) as found:
        tosaic.jit(function)(*arrays or (F,))
    return str(found.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_through_points_are_interpolated(dtype: Any) -> None:
    agree({
        "plain": lambda x, p, v: np.interp(x, p, v), "ends": lambda x, p, v: np.interp(x, p, v, left=-7, right=9.5),
        "one point": lambda x, p, v: np.interp(x[0], p[:1], v[:1], left=5), "two": lambda x, p, v: np.interp(x, p[:2], v[:2]),
        "period": lambda x, p, v: np.interp(x, p * 100, v, period=360), "a number": lambda x, p, v: np.interp(0.25, p, v),
        "known points": lambda x, p, v: np.interp(x, [0, 1, 2], [0.0, 10.0, 0.0]),
        "infinite": lambda x, p, v: np.interp(x, p, [np.inf, np.inf, 1, 2, np.nan])},
        AT.astype(dtype), RISING.astype(dtype), VALUES.astype(dtype))


def test_derivatives_and_integrals_are_those_of_numpy() -> None:
    steps = np.float32([0, 1, 1.5, 4])
    agree({
        "rows": lambda f, i: np.gradient(f)[0], "columns": lambda f, i: np.gradient(f)[1],
        "axis": lambda f, i: np.gradient(f, axis=1),
        "step": lambda f, i: np.gradient(f, 0.5, axis=0), "steps": lambda f, i: np.gradient(f, 2, 0.25)[1],
        "second order": lambda f, i: np.gradient(f, 0.5, axis=1, edge_order=2),
        "coordinates": lambda f, i: np.gradient(f, steps, axis=1), "of both": lambda f, i: np.gradient(
            f, steps, axis=-1, edge_order=2), "integers": lambda f, i: np.gradient(i, axis=1),
        "two elements": lambda f, i: np.gradient(f[:2], axis=0),
        "traced": lambda f, i: np.gradient(f, np.cumsum(abs(i[0]) + 1), axis=1),
        "trapezoid": lambda f, i: np.trapezoid(f), "dx": lambda f, i: np.trapezoid(i, dx=0.5, axis=0),
        "x": lambda f, i: np.trapezoid(f, steps), "x of each": lambda f, i: np.trapezoid(f, np.cumsum(abs(f), 0), axis=0),
        "x of an axis": lambda f, i: np.trapezoid(f, steps[:3], axis=0),
        "one element": lambda f, i: np.trapezoid(f[:, :1])}, F, I)
    assert "needs 3 elements or more" in text(lambda a: np.gradient(a[:2], axis=0, edge_order=2))
    assert "3 spacings for 2 axes" in text(lambda a: np.gradient(a, 1, 2, 3))


def test_angles_are_unwrapped() -> None:
    angles = np.float32([[0, 3, -3, -0.5, 6], [1, 9, 20, -20, np.pi]])
    degrees = np.int32([[0, 170, -170, 350, 10], [5, 185, 5, 0, 720]])
    agree({
        "plain": lambda a, d: np.unwrap(a), "axis": lambda a, d: np.unwrap(a, axis=0),
        "discont": lambda a, d: np.unwrap(a, 4),
        "degrees": lambda a, d: np.unwrap(d, period=360), "odd": lambda a, d: np.unwrap(d, period=359),
        "floats": lambda a, d: np.unwrap(a * 60, period=360), "sinc": lambda a, d: np.sinc(a),
        "of ints": lambda a, d: np.sinc(d / 7)},
        angles, degrees, rtol=1e-5, atol=2e-5)


def test_polynomials_are_those_of_numpy() -> None:
    agree({
        "polyval": lambda p, q, i: np.polyval(p, q), "known": lambda p, q, i: np.polyval([1, 2, 3], i),
        "known floats": lambda p, q, i: np.polyval([1.5, 0, -2], i), "at a number": lambda p, q, i: np.polyval(p, 2.0),
        "none": lambda p, q, i: np.polyval([], q),
        "polyadd": lambda p, q, i: np.polyadd(p, [1, 2]), "polysub": lambda p, q, i: np.polysub(q[0], p),
        "polymul": lambda p, q, i: np.polymul(p, q[0]), "polyder": lambda p, q, i: np.polyder(p),
        "twice": lambda p, q, i: np.polyder(i[0], 2), "all": lambda p, q, i: np.polyder(i[0], 5),
        "polyint": lambda p, q, i: np.polyint(p), "constants": lambda p, q, i: np.polyint(p, 2, [3, 4]),
        "of ints": lambda p, q, i: np.polyint(i[0], k=2), "poly": lambda p, q, i: np.poly(p),
        "vander": lambda p, q, i: np.vander(p), "increasing": lambda p, q, i: np.vander(i[0], 3, increasing=True),
        "no column": lambda p, q, i: np.vander(p, 0)}, VALUES, F, I, rtol=1e-5)


def test_elements_are_counted_between_edges() -> None:
    edges = [-1.0, -0.25, 0, 0.5, 2]
    agree({
        "digitize": lambda f, i, p: np.digitize(f, edges), "right": lambda f, i, p: np.digitize(i, [-5, 0, 3], right=True),
        "left": lambda f, i, p: np.digitize(i, [-5, 0, 3]),
        "falling": lambda f, i, p: np.digitize(i, [5, 0, -3]),
        "falling right": lambda f, i, p: np.digitize(i, [5, 0, -3], right=True),
        "traced": lambda f, i, p: np.digitize(f, np.sort(f[0])),
        "traced falling": lambda f, i, p: np.digitize(f, np.sort(f[0])[::-1]),
        "bytes": lambda f, i, p: np.digitize(p, [64, 128, 256]),
        "histogram": lambda f, i, p: np.histogram(f)[0], "its edges": lambda f, i, p: np.histogram(f, 7)[1],
        "range": lambda f, i, p: np.histogram(p, 16, (0, 256))[0],
        "range edges": lambda f, i, p: np.histogram(p, 16, (0, 256))[1],
        "edges": lambda f, i, p: np.histogram(f, edges)[0],
        "of bytes": lambda f, i, p: np.histogram(p, np.arange(0, 257, 32))[0],
        "same edges": lambda f, i, p: np.histogram(i, [-9, 0, 8])[1],
        "density": lambda f, i, p: np.histogram(f, 5, density=True)[0],
        "weights": lambda f, i, p: np.histogram(f, edges, weights=f * f)[0],
        "one value": lambda f, i, p: np.histogram(f * 0 + 2, 4)[1],
        "bin edges": lambda f, i, p: np.histogram_bin_edges(f, 3)}, F, I, PIXELS)
    assert "depends on the numbers" in text(lambda a: np.histogram(a, "auto"))
    assert "increase or decrease" in text(lambda a: np.digitize(a, [1, 3, 2]))


def test_covariances_and_correlations_are_those_of_numpy() -> None:
    weights = [0.5, 1, 2, 1]
    agree({
        "cov": lambda a, i: np.cov(a), "two": lambda a, i: np.cov(a, i[:1]), "columns": lambda a, i: np.cov(a, rowvar=False),
        "bias": lambda a, i: np.cov(a, bias=True), "ddof": lambda a, i: np.cov(a, ddof=2),
        "vector": lambda a, i: np.cov(a[0]),
        "integers": lambda a, i: np.cov(i), "fweights": lambda a, i: np.cov(a, fweights=np.array([1, 3, 2, 1])),
        "aweights": lambda a, i: np.cov(a, aweights=weights), "both": lambda a, i: np.cov(
            a, fweights=np.array([1, 3, 2, 1]), aweights=weights), "corrcoef": lambda a, i: np.corrcoef(a, i),
        "of one": lambda a, i: np.corrcoef(a[0]), "correlate": lambda a, i: np.correlate(a[0], a[1, :2]),
        "same": lambda a, i: np.correlate(a[0], a[1, :3], "same"), "full": lambda a, i: np.correlate(a[0, :2], a[1], "full"),
        "even": lambda a, i: np.correlate(a[0, :2], a[1], "same")}, F, I, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("array", [I, F, WITH_NAN, (I + 9).astype(np.uint8)], ids=lambda a: str(a.dtype))
def test_sorts_by_places_and_by_several_keys(array: Any) -> None:
    agree({
        "partition": lambda a: np.partition(a, 2)[..., 2], "first axis": lambda a: np.partition(a, (0, 1), 0)[:2],
        "flat": lambda a: np.partition(a, 3, axis=None)[3], "argpartition": lambda a: np.take_along_axis(
            a, np.argpartition(a, -1), -1)[..., -1],
        "lexsort": lambda a: np.lexsort((a[0], a[1] > 2)), "rows": lambda a: np.lexsort(a),
        "axis": lambda a: np.lexsort((a, a < 2), 0)},
        array)


def test_elements_are_inserted_deleted_appended_and_put_together() -> None:
    agree({
        "insert": lambda a, i: np.insert(a, 1, 5), "row": lambda a, i: np.insert(a, 1, 5, axis=0),
        "column": lambda a, i: np.insert(
            a, -1, i[:, 0], axis=1), "places": lambda a, i: np.insert(a, [0, 2], 7, axis=1),
        "each": lambda a, i: np.insert(a, [0, 2, 4], [1, 2, 3], axis=1),
        "slice": lambda a, i: np.insert(a, slice(0, 3), 1, axis=0),
        "several": lambda a, i: np.insert(i[0], 2, [7, 8, 9]), "same place": lambda a, i: np.insert(i[0], [1, 1], [7, 8]),
        "many at one": lambda a, i: np.insert(i[0], [2], [7, 8]),
        "rows of values": lambda a, i: np.insert(a, [1], a[:2], axis=0),
        "delete": lambda a, i: np.delete(a, 2), "delete row": lambda a, i: np.delete(a, -1, 0),
        "delete some": lambda a, i: np.delete(
            i, [0, 2], 1), "delete slice": lambda a, i: np.delete(a, slice(None, None, 2), 1),
        "delete mask": lambda a, i: np.delete(a, [True, False, True], 0),
        "append": lambda a, i: np.append(a, i), "append axis": lambda a, i: np.append(a, i[:1], 0),
        "numbers": lambda a, i: np.append(a, [1, 2]),
        "block": lambda a, i: np.block([[a, i], [i, a]]), "row block": lambda a, i: np.block([a[0], i[0], 3]),
        "deep": lambda a, i: np.block([[[a]], [[i]]]), "alone": lambda a, i: np.block(a),
        "mixed": lambda a, i: np.block([[a, a[:, :1]], [i[:1], 9]]),
        "resize": lambda a, i: np.resize(a, (5, 3)), "smaller": lambda a, i: np.resize(a, 5),
        "hsplit": lambda a, i: np.hsplit(a, 2)[1],
        "vsplit": lambda a, i: np.vsplit(a, [1, 2])[2], "dsplit": lambda a, i: np.dsplit(np.stack([a, i], 2), 2)[0]}, F, I)
    assert "must be known" in text(lambda a: np.delete(a, a[0].astype("int32")))
    assert "out of bounds" in text(lambda a: np.insert(a, 9, 1, axis=0)) and "nested alike" in text(lambda a: np.block([[a],
        a]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("array", [F, I, np.float64(CUBE), I > 0], ids=lambda a: str(a.dtype))
def test_borders_have_every_mode_of_numpy(array: Any) -> None:
    modes: dict[str, Any] = {
        mode: lambda a, mode=mode: np.pad(a, [(0, 0)] * (a.ndim - 2) + [(2, 1), (5, 6)], mode=mode)
        for mode in ("edge", "reflect", "symmetric", "wrap", "maximum", "minimum")}
    if array.dtype != bool:
        modes |= {
            "mean": lambda a: np.pad(a, 2, "mean"), "median": lambda a: np.pad(a, (1, 2), "median"),
            "length": lambda a: np.pad(
                a, 2, "maximum", stat_length=2), "linear_ramp": lambda a: np.pad(a, (3, 2),
                "linear_ramp", end_values=(5, -4))}
    agree({**modes, "constant": lambda a: np.pad(a, 1, constant_values=1), "sides": lambda a: np.pad(
        a, (1, 2), "constant", constant_values=(0, 1)), "by axis": lambda a: np.pad(a, {-1: (1, 2)})}, array)


def test_choices_are_made_among_several() -> None:
    agree({
        "select": lambda a, i: np.select([a > 1, a > 0], [a, i], -1),
        "broadcast": lambda a, i: np.select([i > 2], [a[0]], 0.5),
        "piecewise": lambda a, i: np.piecewise(a, [a < -1, a > 1], [-1, lambda x: x * x, lambda x: x + 10]),
        "without others": lambda a, i: np.piecewise(i, [i > 0], [lambda x: x * 2]),
        "one condition": lambda a, i: np.piecewise(
            a[0], a[0] > 0, [1, 2]), "choose": lambda a, i: np.choose(abs(i) % 3, [a, i, 7]),
        "wrap": lambda a, i: np.choose(i, [a, i], mode="wrap"), "clip": lambda a, i: np.choose(i, [a, i, 5], mode="clip"),
        "along": lambda a, i: np.apply_along_axis(lambda v: v * v.sum(), 1, a),
        "to a number": lambda a, i: np.apply_along_axis(
            np.max, 0, a), "to a matrix": lambda a, i: np.apply_along_axis(lambda v: np.outer(v, v), 0, a),
        "over": lambda a, i: np.apply_over_axes(np.sum, np.stack([a, a]), (0, 2))}, F, I)
    assert "calls its function 300 times" in text(lambda a: np.apply_along_axis(np.sum, 1, a), np.zeros((300, 2), np.float32))


def test_whole_tensors_are_compared() -> None:
    agree({
        "equal": lambda a, n: np.array_equal(a, a * 1), "shapes": lambda a, n: np.array_equal(a, a[:1]),
        "unequal": lambda a, n: np.array_equal(a, a + 1), "nan": lambda a, n: np.array_equal(n, n),
        "equal nan": lambda a, n: np.array_equal(n, n, equal_nan=True),
        "equiv": lambda a, n: np.array_equiv(a, np.stack([a, a])),
        "not equiv": lambda a, n: np.array_equiv(a, a[:, :2]), "allclose": lambda a, n: np.allclose(a, a + 1e-7),
        "not close": lambda a, n: np.allclose(a, a + 1e-2), "close nan": lambda a, n: np.allclose(n, n, equal_nan=True),
        "shape": lambda a, n: np.zeros(np.shape(a)) + np.size(a) + np.size(a, 1) + np.ndim(a),
        "copy": lambda a, n: np.copy(a),
        "isposinf": lambda a, n: np.isposinf(n), "isneginf": lambda a, n: np.isneginf(n),
        "triangle": lambda a, n: a[np.tril_indices_from(a)], "upper": lambda a, n: a[np.triu_indices_from(a, 1)],
        "diagonal": lambda a, n: n[np.diag_indices_from(n)]}, F, WITH_NAN)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_leaves_nan_out_agrees() -> None:
    agree({
        "nanmedian": lambda a: np.nanmedian(a), "axis": lambda a: np.nanmedian(a, 1), "nanquantile": lambda a: np.nanquantile(
            a[::2], 0.3, axis=0, keepdims=True), "nanpercentile": lambda a: np.nanpercentile(a[:, :1], 90, axis=0),
        "nanvar": lambda a: np.nanvar(a[::2], 1), "nanstd": lambda a: np.nanstd(a[::2], ddof=1),
        "cumsum": lambda a: np.nancumsum(a, 1),
        "cumprod": lambda a: np.nancumprod(a[::2]), "argmax": lambda a: np.nanargmax(a[:3], 1),
        "argmin": lambda a: np.nanargmin(a)},
        WITH_NAN, rtol=1e-5)
    agree({"quantiles": lambda a: np.quantile(a, [0, 0.25, 1], axis=1), "percentiles": lambda a: np.percentile(a, (10, 50)),
           "nan": lambda a: np.nanpercentile(a, [[5], [95]], axis=0)}, F)
    agree({"two axes": lambda a: np.median(a, axis=(0, 2)), "kept": lambda a: np.quantile(a, 0.4, axis=(-1, 0), keepdims=True),
           "nan": lambda a: np.nanmedian(a, axis=(1, 2)), "of a number": lambda a: np.pad(a[0, 0, 0], 1)}, CUBE)


def test_compositions_take_complex_tensors_where_they_only_move_them() -> None:
    z = (F + 1j * F[::-1]).astype(np.complex64)
    functions: list[Any] = [
        lambda a: np.delete(a, 1, 0), lambda a: np.pad(a, 1, "reflect"), lambda a: np.append(a, a, 1),
        lambda a: np.append(a, [1.0, 2]), lambda a: np.copy(a)]
    for function in functions:
        np.testing.assert_array_equal(tosaic.jit(function)(z), function(z))
    assert tosaic.jit(lambda a: a * np.size(a) * np.iscomplexobj(a))(z).shape == z.shape


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_are_decomposed_as_lapack_does_and_fitted(dtype: Any) -> None:
    tall, wide = (RANDOM.standard_normal(shape).astype(dtype) for shape in ((2, 6, 3), (3, 5)))
    agree({
        "q": lambda a, b: np.linalg.qr(a).Q, "r": lambda a, b: np.linalg.qr(a)[1], "complete": lambda a, b: np.linalg.qr(
            a, "complete")[0], "of a wide one": lambda a, b: np.linalg.qr(b)[0], "its r": lambda a, b: np.linalg.qr(b, "r"),
        "square": lambda a, b: np.linalg.qr(a[:, :3]).R, "without a step": lambda a, b: np.linalg.qr(a[0, :1, :1] * 0 - 2)[0],
        "pinv": lambda a, b: np.linalg.pinv(a), "wide": lambda a, b: np.linalg.pinv(b), "cond": lambda a, b: np.linalg.cond(
            a[:, :3], 1), "fro": lambda a, b: np.linalg.cond(b[:, :3], "fro"),
        "fit": lambda a, b: np.polyfit(a[0, :, 0], a[0, :, 1], 2),
        "fits": lambda a, b: np.polyfit(a[0, :, 0], a[0], 1), "weights": lambda a, b: np.polyfit(
            b[0], b[1], 2, w=abs(b[2]))}, tall, wide, rtol=2e-4, atol=1e-4)
    assert "needs singular values" in text(lambda a: np.linalg.cond(a[:, :3]))


# ---- what is refused ---------------------------------------------------------------------------------------------
OTHERS = ("numpy.strings", "numpy.char", "numpy.polynomial", "numpy.ma")


def functions_of_numpy() -> list[str]:
    """Those of NumPy's own namespace, `linalg` and `fft`; other modules add theirs to the list when they are imported."""
    return sorted({qualified(f) for f in get_overridable_numpy_array_functions()
                   if f.__module__.startswith("numpy") and not f.__module__.startswith(OTHERS)})


def is_there(name: str) -> bool:
    place, _, last = name.rpartition(".")
    namespaces = [getattr(tosaic.ops, place)] if place else [tosaic.ops, tosaic.ops.special]
    return any(last in namespace.__all__ for namespace in namespaces)


def test_every_function_of_numpy_is_there_or_refused_with_a_reason_and_what_to_write_instead() -> None:
    missing = [name for name in functions_of_numpy() if not is_there(name)]
    assert [name for name in missing if name.rpartition(".")[2] not in refusals.INSTEAD] == []
    listed = [name for row in refusals.TABLE for name in row.names.split()]
    assert len(listed) == len(set(listed)) and len(missing) < len(functions_of_numpy()) / 2


def test_what_is_written_instead_computes_the_same() -> None:
    numbers = np.int32([1, 3, 3, 0, 1, 1])
    tall = RANDOM.standard_normal((6, 3)).astype(np.float32)

    def instead(x: Any, a: Any) -> Any:
        s = tosaic.ops.sort(x, axis=None)
        bits = (x[:, None] >> tosaic.ops.arange(7, -1, -1)) & 1
        counts = (x[:, None] == tosaic.ops.arange(4)).sum(0)
        return counts, np.where(s[1:] != s[:-1], s[1:], 0), np.linalg.pinv(a) @ a[:, 0], bits

    counts, firsts, solution, bits = tosaic.jit(instead)(numbers, tall)
    np.testing.assert_array_equal(counts, np.bincount(numbers, minlength=4))
    np.testing.assert_array_equal(firsts[firsts != 0], np.unique(numbers)[1:])
    np.testing.assert_allclose(solution, np.linalg.lstsq(tall, tall[:, 0])[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(bits, np.unpackbits(numbers.astype(np.uint8)[:, None], axis=1))


def test_refusals_name_what_to_use() -> None:
    assert "tosaic.ops.where(mask, x, 0)" in text(lambda a: np.where(a > 0))
    assert "tosaic.ops.arange(n)).sum(0)" in text(lambda a: np.bincount(a))
    assert "tosaic.ops.sort" in text(lambda a: np.unique(a)) and "ops.where(mask, x, 0)" in text(lambda a: np.nonzero(a))
    assert "mode= one of 'constant'" in text(lambda a: tosaic.ops.pad(a, 1, "reflect101"))
