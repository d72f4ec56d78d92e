"""All of NumPy's universal functions, called on traced tensors, compute what NumPy computes: over types, shapes and edge
values."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops

from .numpy_agreement import distance, values

NAMES = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
"""As NumPy has them, aliases too."""
PRODUCTS = ("matmul", "matvec", "vecdot", "vecmat")
REFUSED = ("isnat",)
ELEMENTWISE = [name for name in NAMES if name not in (*PRODUCTS, *REFUSED)]

ULPS = 4
"""Units in the last place that a float may be off NumPy's."""
EXACT = {"add", "subtract", "multiply", "negative", "positive", "absolute", "abs", "fabs", "sign", "square", "reciprocal",
"maximum",
         "minimum", "fmax", "fmin", "floor", "ceil", "trunc", "rint", "copysign", "nextafter", "spacing", "modf", "frexp",
         "ldexp",
         "heaviside", "conj", "conjugate", "fmod", "remainder", "mod"}
"""Functions whose floats are NumPy's to the bit, but for the sign of a zero."""
LARGEST_ANGLE = {np.dtype(np.float16): 1e5, np.dtype(np.float32): 2.0**20, np.dtype(np.float64): 2.0**30}
"""Beyond it sin, cos and tan are not computed."""
LARGEST_QUOTIENT = {np.dtype(np.float16): 2.0**31, np.dtype(np.float32): 2.0**31, np.dtype(np.float64): 2.0**69}
"""Beyond it a remainder of floats is not computed."""
DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
          np.float64]


def edges(dtype: Any) -> Any:
    """Numbers at which functions go wrong: around zero, powers of two, widths of types, the ends of the range."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        inside = [0, 1, 2, 3, 7, 8, 31, 32, 33, 64, -1, -2, -3, -7, -64, info.max, info.max - 1, info.max // 2 + 1, info.min,
            info.min + 1]
        return np.array(sorted({n for n in inside if info.min <= n <= info.max}), dtype)
    info = np.finfo(dtype)
    tiny, least, most = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    return np.array([0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3, -7, 49, 100, 1024, np.pi, 0.1, -1e-3, most, -most, tiny,
        -tiny, least,
                     1.5 * tiny, 1 + float(info.eps), 1 - float(info.eps) / 2, np.inf, -np.inf, np.nan], dtype)


def operands(name: str, dtype: Any) -> tuple[Any, ...]:
    """Every edge, or every pair of edges; exponents that the function is defined for."""
    numbers = edges(dtype)
    if getattr(np, name).nin == 1:
        return (numbers,)
    a, b = (x.ravel().copy() for x in np.meshgrid(numbers, numbers))
    if name == "ldexp":
        return a, np.resize(np.array([0, 1, -1, 5, 100, -100, 140, -149, 300, -300, 2000, -2000], np.int32), a.shape)
    if name in ("power", "pow") and np.dtype(dtype).kind == "i":
        b = np.where(b < 0, 5, b)
    return a, b


def defined(name: str, given: tuple[Any, ...]) -> Any:
    """Where the function promises NumPy's result."""
    if name in ("sin", "cos", "tan") and given[0].dtype.kind != "b":
        as_float = given[0].astype(np.float32 if given[0].dtype.kind in "iu" else given[0].dtype)
        return ~(np.abs(as_float) > LARGEST_ANGLE[as_float.dtype]) | np.isinf(as_float)
    if name in ("fmod", "remainder", "mod", "divmod", "floor_divide") and given[0].dtype.kind == "f":
        with np.errstate(all="ignore"):
            quotient = np.abs(given[0].astype(np.longdouble) / given[1].astype(np.longdouble))
        return ~(quotient > LARGEST_QUOTIENT[given[0].dtype]) | np.isinf(quotient)
    if name == "reciprocal" and given[0].dtype.kind in "iu":
        return given[0] != 0  # NumPy converts an infinity, which is not defined
    if name == "spacing" and given[0].dtype == np.float16:
        return given[0] >= 0  # of these alone NumPy's has no sign
    return np.ones(given[0].shape, bool)


def in_its_type(name: str, given: tuple[Any, ...], dtypes: list[Any]) -> list[Any]:
    """NumPy's results; where tosaic makes f32 of integers, those of NumPy for f32."""
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        found = function(*given)
        found = list(found) if isinstance(found, tuple) else [found]
        if any(f.dtype != d for f, d in zip(found, dtypes)):
            floats = [x if name == "ldexp" and i else x.astype(np.float32) for i, x in enumerate(given)]
            found = function(*floats)
            found = list(found) if isinstance(found, tuple) else [found]
    return [f.astype(d) for f, d in zip(found, dtypes)]


def allowed(name: str, given: tuple[Any, ...], expected: Any) -> Any:
    """How many units in the last place a result may be off. Logarithms of sums cancel: theirs are units of the operands."""
    if name in EXACT:
        return 0.0
    if name in ("logaddexp", "logaddexp2") and expected.dtype.kind == "f":
        size = np.maximum(*(np.abs(x.astype(np.longdouble)) for x in given))
        with np.errstate(all="ignore"):
            return np.where(np.isfinite(size), ULPS * np.maximum(1, np.maximum(size, 1) / np.maximum(np.abs(expected),
                1e-300)), ULPS)
    return float(ULPS)


def hold(names: list[str], dtype: Any, engine: str) -> None:
    """These functions against NumPy's, in one graph."""
    taken = [name for name in names if takes(name, dtype)]
    given = {name: operands(name, dtype) for name in taken}
    arrays = [x for name in taken for x in given[name]]

    def function(*tensors: Any) -> Any:
        rest = iter(tensors)
        results = []
        for name in taken:
            found = getattr(np, name)(*(next(rest) for _ in given[name]))
            results += list(found) if isinstance(found, tuple) else [found]
        return tuple(results)
    found = iter(values(function, arrays, engine))
    for name in taken:
        actual = [next(found) for _ in range(getattr(np, name).nout)]
        inside = defined(name, given[name])
        for result, expected in zip(actual, in_its_type(name, given[name], [a.dtype for a in actual])):
            if expected.dtype.kind != "f":
                np.testing.assert_array_equal(result[inside], expected[inside], err_msg=f"{name} of {dtype}")
                continue
            wrong = (distance(result, expected) > allowed(name, given[name], expected)) & inside
            assert not wrong.any(), (name, [x[wrong] for x in given[name]], result[wrong], expected[wrong])


def takes(name: str, dtype: Any) -> bool:
    """True if NumPy's function takes arrays of a type."""
    try:
        with np.errstate(all="ignore"):
            getattr(np, name)(*(x[:1] for x in operands(name, dtype)))
    except TypeError:
        return False
    return True


def test_numpy_has_106_universal_functions_and_tosaic_all_but_one_of_them() -> None:
    assert len(NAMES) == 106 and {name for name in NAMES if name not in ops.__all__} == {*REFUSED}
    with pytest.raises(tosaic.Problem, match="no tensor holds dates"):
        tosaic.jit(lambda x: np.isnat(x))(np.ones(3, np.float32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_every_function_is_numpys_for_edge_values_of_every_type(dtype: Any) -> None:
    hold([name for name in ELEMENTWISE if name not in ("gcd", "lcm")], dtype, "interpreted")


COMPILED = {np.float32: slice(None), np.float64: slice(None), np.int32: slice(0, None, 2), np.uint64: slice(1, None, 2)}
"""Which functions of each type: those of integers in one of the two."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", COMPILED, ids=lambda d: d.__name__)
def test_every_function_is_numpys_compiled_too(dtype: Any) -> None:
    once = sorted({getattr(np, name): name for name in ELEMENTWISE}.values())
    hold(once[COMPILED[dtype]], dtype, "compiled")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64], ids=lambda d: d.__name__)
def test_divisors_in_common_are_those_of_numpy(dtype: Any) -> None:
    hold(["gcd", "lcm"], dtype, "interpreted")


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ()), ((3, 1), (4,)), ((2, 3), ()), ((0, 3), (3,)), ((1, 0), (2,
    1))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_every_function_broadcasts_and_takes_tensors_of_rank_0_and_without_elements(shapes: Any) -> None:
    generator = np.random.default_rng(3)
    for kind in ("f", "i"):
        names = [name for name in ELEMENTWISE if takes(name, np.float32 if kind == "f" else np.int32)]
        arrays = [generator.uniform(1, 5, shape).astype(np.float32 if kind == "f" else np.int32) for shape in shapes]

        def function(a: Any, b: Any, names: list[str] = names) -> Any:
            results = []
            for name in names:
                given = (a, b.astype(np.int32)) if name == "ldexp" else (a, b)[:getattr(np, name).nin]
                found = getattr(np, name)(*given)
                results += list(found) if isinstance(found, tuple) else [found]
            return tuple(results)
        actual = values(function, arrays, "interpreted")
        with np.errstate(all="ignore"):
            expected = function(*arrays)
        for result, wanted in zip(actual, expected, strict=True):
            assert result.shape == np.shape(wanted)
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32, np.bool_], ids=lambda d: d.__name__)
def test_products_of_matrices_and_vectors_are_those_of_numpy(dtype: Any) -> None:
    generator = np.random.default_rng(4)
    matrix, other, vector = (generator.integers(0, 3, shape).astype(dtype) for shape in ((2, 3, 4), (4, 3), (4,)))

    def function(m: Any, n: Any, v: Any) -> Any:
        return np.matmul(m, n), np.matvec(m, v), np.vecmat(v, n), np.vecdot(m, v)
    for result, expected in zip(values(function, [matrix, other, vector],
    "compiled"), function(matrix, other, vector), strict=True):
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)
