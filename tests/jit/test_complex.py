"""Complex arrays as arguments and results of traced functions, and what is computed of them, held against NumPy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops
from tosaic.jit.tracing.pytree import unflatten
from tosaic.runtime.arena import address
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

LOT = np.random.default_rng(3)
EPSILON = 2.0**-23


def numbers(*shape: int, dtype: Any = np.complex64, decades: float = 0) -> Any:
    """Complex numbers of all directions, and of several sizes."""
    size = 10.0**LOT.uniform(-decades, decades, shape)
    return (size * (LOT.standard_normal(shape) + 1j * LOT.standard_normal(shape))).astype(dtype)


def interpreted(functions: dict[str, Callable[..., Any]], given: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Functions of these names, each of its arrays, by the interpreter, which needs no compile."""
    traced = tosaic.jit(lambda all_arrays: {name: functions[name](*arrays) for name, arrays in all_arrays.items()}).trace(given)
    leaves = [x[..., None].view(x.real.dtype) if x.dtype.kind == "c" else x for arrays in given.values() for x in arrays]
    assert traced.results is not None
    return dict(unflatten(traced.results, iter(interpret(traced.module, traced.function, leaves))))


def interpreted_by_name(given: dict[str, Any]) -> dict[str, Any]:
    return interpreted({name: getattr(np, name) for name in given}, {name: (z,) for name, z in given.items()})


Z, W = numbers(3, 4), numbers(3, 4)
X = LOT.standard_normal((3, 4)).astype(np.float32)
MATRIX = numbers(4, 2)

SAME: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add": (lambda a, b: a + b, (Z, W)), "with a row": (lambda a, b: a - b, (Z, W[0])),
    "with a real": (lambda a, b: a * b, (Z, X)), "real first": (lambda a, b: b / a, (Z, X)),
    "with numbers": (lambda a: 2 * a + 1j - a / 3, (Z,)), "imaginary unit": (lambda a: np.exp(1j * a), (X,)),
    "product": (lambda a, b: a * b, (Z, W)), "quotient": (lambda a, b: a / b, (Z, W)),
    "array": (lambda a: a * np.array([1j, 2, 3, 4 - 1j], np.complex64), (Z,)), "negative": (lambda a: -a, (Z,)),
    "square": (np.square, (Z,)), "cube": (lambda a: a**3, (Z,)), "inverse square": (lambda a: a**-2, (Z,)),
    "one": (lambda a: a**0, (Z,)), "reciprocal": (np.reciprocal, (Z,)), "magnitude": (lambda a: abs(a), (Z,)),
    "angle": (np.angle, (Z,)), "degrees": (lambda a: np.angle(a, deg=True), (Z,)), "angle of real": (np.angle, (X,)),
    "conjugate": (np.conj, (Z,)), "method": (lambda a: a.conj() * a.real + a.imag, (Z,)),
    "parts": (lambda a: np.real(a) - np.imag(a), (Z,)), "sign": (np.sign, (Z,)),
    "equal": (lambda a, b: a == b, (Z, np.where(X > 0, Z, W))),
    "not equal": (lambda a, b: a != b, (Z, np.where(X > 0, Z, W))), "isreal": (np.isreal, (np.where(X > 0, Z, Z.real + 0j),)),
    "truth": (lambda a: np.logical_and(a, 1), (np.where(X > 0, Z, 0).astype(np.complex64),)),
    "any": (lambda a: a.any(1), (np.where(X > 1, Z, 0).astype(np.complex64),)), "sum": (lambda a: a.sum(0), (Z,)),
    "sum of all": (np.sum, (Z,)), "mean": (lambda a: np.mean(a, axis=1, keepdims=True), (Z,)),
    "var": (lambda a: np.var(a, axis=1, ddof=1), (Z,)), "std": (np.std, (Z,)), "prod": (lambda a: np.prod(a, axis=0), (Z,)),
    "prod of all": (np.prod, (Z,)), "cumsum": (lambda a: np.cumsum(a, axis=1), (Z,)), "diff": (np.diff, (Z,)),
    "matmul": (lambda a, b: a @ b, (Z, MATRIX)), "matmul with real": (lambda a, b: b @ a.T, (Z, X)),
    "dot": (np.dot, (Z[0], W[1])), "vdot": (np.vdot, (Z, W)), "outer": (np.outer, (Z[0], X[1])),
    "tensordot": (np.tensordot, (Z, W)), "einsum": (lambda a, b: np.einsum("ij,kj->ik", a, b), (Z, W)),
    "trace": (np.trace, (Z,)), "norm": (np.linalg.norm, (Z,)), "index": (lambda a: a[1:, ::-2].T, (Z,)),
    "take": (lambda a: np.take(a, [2, 0], axis=1), (Z,)), "reshape": (lambda a: a.reshape(2, -1), (Z,)),
    "concatenate": (lambda a, b: np.concatenate([a, b], 1), (Z, X)), "stack": (lambda a, b: np.stack([a, b]), (Z, W)),
    "where": (lambda a, b: np.where(b > 0, a, b), (Z, X)), "pad": (lambda a: np.pad(a, 1), (Z,)),
    "roll": (lambda a: np.roll(a, 1, axis=1), (Z,)), "tile": (lambda a: np.tile(a, 2), (Z,)),
    "full_like": (lambda a: np.full_like(a, 2 - 1j) * a, (Z,)), "split": (lambda a: np.split(a, 2, axis=1)[1], (Z,)),
    "row": (lambda a: sum(row for row in a), (Z,)), "isnan": (lambda a: np.isnan(a) | np.isfinite(a), (Z,))}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """All functions in one graph."""
    return interpreted({name: function for name, (function, _) in SAME.items()},
                       {name: arrays for name, (_, arrays) in SAME.items()})


@pytest.mark.parametrize("name", SAME)
def test_a_function_of_complex_tensors_is_that_of_numpy(results: dict[str, Any], name: str) -> None:
    function, arrays = SAME[name]
    expected, actual = np.asarray(function(*arrays)), results[name]
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype == np.bool_:
        np.testing.assert_array_equal(actual, expected)
    else:
        assert np.abs(actual - expected).max() <= 8 * EPSILON * max(1, np.abs(expected).max())


WIDE, NARROW = numbers(400, decades=12), numbers(400, decades=1)
FORMULAS: dict[str, tuple[Any, float]] = {
    "sqrt": (WIDE, 1.5), "log": (WIDE, 2), "log2": (WIDE, 4), "log10": (WIDE, 4), "abs": (WIDE, 1.5), "exp": (NARROW, 2),
    "exp2": (NARROW, 40), "expm1": (NARROW, 3), "sin": (NARROW, 3), "cos": (NARROW, 3), "tan": (NARROW, 4), "sinh": (NARROW, 3),
    "cosh": (NARROW, 3), "tanh": (NARROW, 4), "arcsin": (NARROW, 3), "arccos": (NARROW, 3), "arctan": (NARROW, 3),
    "arcsinh": (NARROW, 3), "arccosh": (NARROW, 3), "arctanh": (NARROW, 3)}
"""Arguments, and the greatest error beside complex128, relative to the magnitude, in units of 2^-23."""


def test_errors_relative_to_the_magnitude_are_within_their_bounds() -> None:
    found = interpreted_by_name({name: z for name, (z, _) in FORMULAS.items()})
    for name, (z, bound) in FORMULAS.items():
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(z.astype(np.complex128))
            error = np.abs(found[name] - expected) / np.abs(expected) / EPSILON
        is_usual = (np.abs(expected) < 1e38) & (np.abs(expected) > 1e-36)
        assert error[is_usual].max() <= bound, name


def test_powers_are_off_by_as_many_units_as_the_logarithm_has() -> None:
    x, y = numbers(300), numbers(300)
    expected = np.power(x.astype(np.complex128), y.astype(np.complex128))
    error = np.abs(tosaic.jit(np.power)(x, y) - expected) / np.abs(expected) / EPSILON
    assert (error <= 4 * np.abs(y * np.log(x)) + 8).all()
    edges = np.array([0, 0, 0, 2j, 3], np.complex64), np.array([0, 2, -1, 0, 0], np.complex64)
    np.testing.assert_array_equal(tosaic.jit(np.power)(*edges)[[0, 1, 3, 4]], [1, 0, 1, 1])


EDGES = np.array([complex(a, b) for a in (0.0, -0.0, 1, -1, np.inf, -np.inf) for b in (0.0, -0.0, 2, -0.5, np.inf, -np.inf)],
                 np.complex64)
FINITE = EDGES[np.isfinite(EDGES)]
LIMITS: dict[str, Any] = {
    "sqrt": EDGES, "log": EDGES, "absolute": EDGES, "exp": EDGES[np.isfinite(EDGES.imag)], "sinh": EDGES,
    "tanh": EDGES[np.isfinite(EDGES.imag)], "arcsin": EDGES, "arccos": EDGES, "arcsinh": EDGES, "arccosh": EDGES,
    "arctanh": FINITE, "sin": FINITE, "cos": FINITE, "cosh": FINITE, "tan": FINITE, "square": EDGES}


def test_limits_and_branch_cuts_are_those_of_numpy_with_their_signs() -> None:
    found = interpreted_by_name(LIMITS)
    for name, z in LIMITS.items():
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(z)
        for part in ("real", "imag"):
            actual, wanted = getattr(found[name], part), getattr(expected, part)
            np.testing.assert_allclose(actual, wanted, rtol=1e-6, err_msg=f"{part} part of {name}")
            is_number = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(actual)[is_number], np.signbit(wanted)[is_number], f"{part} of {name}")


def test_numbers_without_limits_divide_as_in_numpy() -> None:
    x, y = (np.array(v, np.complex64) for v in ([1 + 1j, 0, 1e30 + 1e30j, 1e-30j, 1], [0, 0, 1e30 + 1e30j, 1e-30, np.inf]))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tosaic.jit(lambda a, b: a / b)(x, y), x / y, rtol=1e-6)


# ---- the border --------------------------------------------------------------------------------------------------
def test_complex_arrays_go_in_and_out_without_a_copy() -> None:
    compiled = tosaic.jit(lambda a: a * 2j).compile(Z)
    assert str(compiled.executable.signature.inputs[0]) == "a: tensor<3x4x2xf32>"
    out = np.zeros_like(Z)
    assert compiled(Z, out=out) is out
    np.testing.assert_array_equal(out, Z * 2j)
    result = compiled(Z)
    assert result.dtype == np.complex64 and result.base is not None
    given = compiled.executable.signature.arrays([Z])
    assert address(given[0]) == address(Z)
    np.testing.assert_array_equal(compiled(np.asfortranarray(Z)), Z * 2j)
    with pytest.raises(Problem, match="got tensor<3x4xcomplex128>"):
        compiled(Z.astype(np.complex128))


def test_complex_leaves_stand_in_nests_and_numbers_are_leaves() -> None:
    @tosaic.jit
    def parts(state: Any, number: Any) -> Any:
        return {"sum": state["z"] + number, "both": [state["z"].real, number], "constant": 3j}

    for _ in range(2):
        found = parts({"z": Z}, 1 + 2j)
        np.testing.assert_array_equal(found["sum"], Z + np.complex64(1 + 2j))
        assert found["both"][1] == 1 + 2j and found["both"][0].dtype == np.float32 and found["constant"] == 3j
    assert parts({"z": Z.T}, 1 + 2j)["sum"].shape == (4, 3)
    assert len(parts.cache_info().signatures) == 2
    assert parts({"z": X}, 1.0)["sum"].dtype == np.float32


def test_pairs_of_floats_and_complex_numbers_are_different_arguments() -> None:
    double = tosaic.jit(lambda a: a * a)
    pairs = np.ascontiguousarray(Z[..., None].view(np.float32))
    np.testing.assert_array_equal(double(pairs), pairs * pairs)
    assert double(Z).dtype == np.complex64 and double(Z).shape == Z.shape
    assert double.compile(tosaic.TensorSpec((3, 4), "complex64"))(Z).shape == Z.shape


def test_complex_doubles_have_parts_of_f64() -> None:
    z = Z.astype(np.complex128)
    found = tosaic.jit(lambda a, b: np.exp(a) * a + b)(z, W)
    assert found.dtype == np.complex128
    np.testing.assert_allclose(found, np.exp(z) * z + W, rtol=1e-13)
    assert tosaic.jit(lambda a: a.astype("complex64") + 1j)(z).dtype == np.complex64
    assert tosaic.jit(lambda a: a.astype("complex64") * 1j)(X).dtype == np.complex64


def test_branches_and_loops_carry_complex_tensors() -> None:
    power = tosaic.jit(lambda a: tosaic.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * a), 0, a)[1])
    np.testing.assert_allclose(power(Z), Z**4, rtol=1e-5, atol=1e-5)
    chosen = tosaic.jit(lambda a: tosaic.cond(ops.sum(a.real) > 100, lambda s: s + 1j, lambda s: s * 1j, a))
    np.testing.assert_array_equal(chosen(Z), Z * 1j)


def test_tensors_of_pytorch_may_be_complex() -> None:
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(tosaic.jit(lambda a: a + 1j)(torch.from_numpy(Z)), Z + 1j)


def test_ops_makes_complex_tensors() -> None:
    made = tosaic.jit(lambda a: (ops.complex(a, 2), ops.zeros((2, 3), "complex64") + 1, ops.full((2,), 1 - 1j)))(X)
    np.testing.assert_array_equal(made[0], X + np.complex64(2j))
    assert made[1].dtype == np.complex64 and made[1].tolist() == [[1] * 3] * 2 and made[2].tolist() == [1 - 1j] * 2


@pytest.mark.parametrize(("function", "text"), [
    (lambda a: a < a, "less does not take complex numbers"), (np.floor, "floor does not take complex numbers"),
    (np.sort, "sort does not take complex numbers"), (lambda a: a.max(), "max does not take complex numbers"),
    (lambda a: a.astype("f32"), "astype of tensor<3x4xcomplex64> to f32 would lose the imaginary part"),
    (lambda a: float(a), "a traced tensor has no values"), (lambda a: np.fft.rfft(a), "rfft takes real numbers")])
def test_what_complex_numbers_do_not_have_is_refused(function: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(Problem) as caught:
        tosaic.jit(function)(Z)
    assert text in str(caught.value) and caught.value.help


def test_a_complex_tensor_says_what_it_is() -> None:
    shown: list[Any] = []
    tosaic.jit(lambda a: shown.extend([repr(a), a.dtype, a.shape, a.ndim, a.size, a.nbytes, len(a)]) or a)(Z)
    assert shown == ["ComplexTensor(tensor<3x4xcomplex64>)", np.complex64, (3, 4), 2, 12, 96, 3]
