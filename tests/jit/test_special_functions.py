"""`tosaic.ops.special` is what SciPy computes in double, within the bounds that the functions state."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops
from tosaic.lowering.formulas import bessel, error_functions, statistics

from ..formulas.test_formulas import value

scipy_special = pytest.importorskip("scipy.special")
LOT = np.random.default_rng(5)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0]
COUNT = 800


def whole_range(dtype: str = "float32", exponent: float = 37) -> Any:
    """Numbers of every size, many of them of that of 1, and edges."""
    powers = 10.0**LOT.uniform(-exponent, exponent, COUNT) * LOT.choice([-1, 1], COUNT)
    return np.concatenate([powers, LOT.uniform(-12, 12, COUNT), LOT.uniform(-1, 1, COUNT), EDGES]).astype(dtype)


def probabilities(dtype: str = "float32") -> Any:
    """From 0 to 1, near both, too; and edges."""
    small = 10.0**LOT.uniform(-37, 0, COUNT)
    return np.concatenate([small, 1 - 10.0**LOT.uniform(-7.2, 0, COUNT), LOT.uniform(0, 1, COUNT), EDGES]).astype(dtype)


def distance(actual: Any, expected: Any) -> Any:
    """In units in the last place, 0 for the same infinities and NaNs and below the smallest normal number."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(actual.dtype)
    is_same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    is_tiny = (np.abs(actual) <= 2 * np.finfo(actual.dtype).tiny) & (np.abs(rounded) < np.finfo(actual.dtype).tiny)
    with np.errstate(all="ignore"):
        unit = np.abs(np.spacing(rounded)).astype(np.float64)
        return np.where(is_same | is_tiny, 0, np.nan_to_num(np.abs(actual.astype(np.float64) - expected) / unit, nan=np.inf))


X, P = whole_range(), probabilities()
SMALL = np.where(np.abs(X) > 1e4, np.float32(0.25), X)
UNARY: dict[str, tuple[Any, float]] = {
    "erf": (X, 2), "erfc": (X, 5), "erfcx": (X, 5), "erfinv": (np.concatenate([P, -P]), 4), "ndtr": (X, 5), "log_ndtr": (X, 6),
    "erfcinv": (np.concatenate([P, 2 * P]), 5), "ndtri": (P, 5), "expit": (X, 2), "logit": (P, 3), "log_expit": (X, 3),
    "softplus": (X, 3), "expm1": (X, 4), "log1p": (X, 4), "exprel": (X, 4), "cosm1": (SMALL, 4), "entr": (X, 2), "i0": (X, 5),
    "i0e": (X, 5), "i1": (X, 5), "i1e": (X, 5)}
"""Arguments, and the greatest distance from SciPy."""
OTHER = np.roll(SMALL, 333)[:P.size]
BINARY: dict[str, tuple[Any, Any, float]] = {
    "xlogy": (X, np.roll(X, 333), 2), "xlog1py": (X, np.roll(X, 333), 4), "rel_entr": (P, np.roll(P, 333), 4),
    "huber": (np.abs(X), np.roll(X, 333), 2), "pseudo_huber": (np.abs(OTHER), np.roll(OTHER, 55), 8)}


def reference(name: str, *arrays: Any) -> Any:
    with np.errstate(all="ignore"):
        return getattr(scipy_special, name)(*(a.astype(np.float64) for a in arrays))


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """All functions in one graph."""
    @tosaic.jit
    def all_of_them(given: Any) -> Any:
        return {name: getattr(ops.special, name)(*arrays) for name, arrays in given.items()}

    found: dict[str, Any] = all_of_them({name: tuple(arrays) for name, (*arrays, _) in (UNARY | BINARY).items()})
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_a_function_is_that_of_scipy_within_its_bound(results: dict[str, Any], name: str) -> None:
    *arrays, bound = (UNARY | BINARY)[name]  # type: ignore[operator]
    expected = reference(name, *arrays)
    if name in ("i0", "i1"):  # SciPy has NaN at infinity
        expected = np.where(np.isinf(arrays[0]), np.inf if name == "i0" else arrays[0], expected)
    if name == "pseudo_huber":
        expected = np.where(np.abs(expected) < 1e-35, results[name], expected)
    far = distance(results[name], expected)
    worst = int(np.argmax(far))
    assert far[worst] <= bound, (far[worst], [a[worst] for a in arrays], results[name][worst], expected[worst])


def test_the_logarithm_of_gamma_and_its_derivative_are_those_of_scipy() -> None:
    x = np.where(np.abs(X) > 1e4, np.abs(X), X)
    log_gamma, digamma = tosaic.jit(lambda t: (ops.special.gammaln(t), ops.special.psi(t)))(x)
    for actual, name in ((log_gamma, "gammaln"), (digamma, "digamma")):
        expected = reference(name, x)
        with np.errstate(all="ignore"):
            is_near_zero = np.abs(actual - expected) < 1e-6
        assert (is_near_zero | (distance(actual, expected) <= 32)).all(), name


def test_a_divergence_is_accurate_where_both_are_alike() -> None:
    x = np.abs(LOT.uniform(0, 3, 1000)).astype(np.float32)
    y = (x * (1 + LOT.uniform(-0.3, 0.3, 1000))).astype(np.float32)
    u = (y.astype(np.longdouble) - x) / x
    expected = x * (u - np.log1p(u))  # SciPy cancels
    actual = tosaic.jit(ops.special.kl_div)(x, y)
    wide = np.where(np.abs(u) > 1e-3, expected, actual)
    assert distance(actual, wide).max() <= 60
    edges = np.array([0, 0, 1, -1, 0, np.nan, 3], np.float32), np.array([0, 2, 0, 1, -1, 1, 3], np.float32)
    np.testing.assert_array_equal(tosaic.jit(ops.special.kl_div)(*edges), reference("kl_div", *edges))


def test_the_transformations_of_box_and_cox_are_those_of_scipy() -> None:
    x, power = LOT.uniform(0.01, 20, 1000).astype(np.float32), LOT.uniform(-3, 3, 1000).astype(np.float32)
    power[:10], x[10:14] = 0, 0
    names = ("boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p")
    y = (0.3 * x - 1).astype(np.float32)
    inside = np.where(y * power > -0.9, y, np.float32(0))
    found = tosaic.jit(lambda a, b, c: tuple(getattr(ops.special, n)(a if "inv" not in n else c, b) for n in names))(
        x, power, inside)
    for name, actual in zip(names, found):
        expected = reference(name, inside if "inv" in name else x, power)
        growth = np.abs(np.log(np.abs(expected) + 1e-30)) * 2 if "inv" in name else np.abs(power * np.log(x + 1e-30))
        assert (distance(actual, expected) <= growth + 8).all(), name


@pytest.mark.parametrize("axis", [None, 1, -1, (0, 2), (2, 1)])
def test_functions_along_axes_are_those_of_scipy(axis: Any) -> None:
    x = LOT.standard_normal((3, 4, 5)).astype(np.float32)
    weight = LOT.uniform(0.5, 2, (4, 1)).astype(np.float32)

    def functions(special: Any) -> Callable[[Any], Any]:
        return lambda a: (special.softmax(a, axis=axis), special.log_softmax(a, axis=axis), special.logsumexp(a, axis=axis),
                          special.logsumexp(a, axis=axis, b=weight, keepdims=True))

    for actual, expected in zip(tosaic.jit(functions(ops.special))(x), functions(scipy_special)(x.astype(np.float64))):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_along_axes_take_infinities_as_scipy_does() -> None:
    rows = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [-np.inf, 1]], np.float32)
    for name in ("softmax", "log_softmax", "logsumexp"):
        actual = tosaic.jit(lambda t, n=name: getattr(ops.special, n)(t, axis=1))(rows)
        np.testing.assert_array_equal(actual, np.stack([getattr(scipy_special, name)(row) for row in rows]))


def test_functions_of_scipy_may_be_called_on_traced_tensors() -> None:
    x = LOT.uniform(0.1, 0.9, 5).astype(np.float32)

    def functions(t: Any) -> Any:
        return scipy_special.erf(t), scipy_special.xlogy(t, 0.5), scipy_special.ndtri(t), scipy_special.psi(t)

    for actual, expected in zip(tosaic.jit(functions)(x), functions(x)):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_integers_become_f32_and_half_floats_stay() -> None:
    assert tosaic.jit(ops.special.gammaln)(np.array([1, 2, 5], np.int32)).dtype == np.float32
    half = np.linspace(0.1, 0.9, 9).astype(np.float16)
    actual = tosaic.jit(ops.special.logit)(half)
    assert actual.dtype == np.float16
    assert distance(actual, scipy_special.logit(half.astype(np.float64))).max() <= 0.51


DOUBLES: dict[str, tuple[Any, float]] = {
    "erfinv": (error_functions.erfinv, 6), "ndtri": (error_functions.ndtri, 8),
    "i1e": (bessel.i1e, 16), "logit": (statistics.logit, 6), "erfcx": (error_functions.erfcx, 200)}
"""SciPy's erfcx is 130 ulp off itself, its i1e 13."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DOUBLES)
def test_formulas_of_doubles_are_those_of_scipy(name: str) -> None:
    formula, bound = DOUBLES[name]
    x = whole_range("float64", 200)
    x = np.abs(x[np.abs(x) < 1]) if name in ("ndtri", "logit", "erfinv") else x
    far = distance(value(formula, x), reference(name, x))
    worst = int(np.argmax(far))
    assert far[worst] <= bound, (far[worst], x[worst])
