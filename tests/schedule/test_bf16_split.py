"""Products of float32 by limbs of bfloat16: the interpreter's bits natively, errors inside the stated bound, values out of
range, and when they are taken."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Expr, Load, apply, reduce
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import MultiplyFloatTiles, walk
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.lowering.schedule import describe, lower, schedule
from tosaic.lowering.schedule.contraction.bf16_split import choose
from tosaic.lowering.schedule.contraction.bf16_split.pack_b import limbs_of
from tosaic.lowering.schedule.contraction.micro_kernels import amx_limbs
from tosaic.lowering.schedule.strategy import Precision
from tosaic.lowering.target.presets import host

from ..fuse.graphs import Graph, conv
from ..native.machines import runs_here
from .costs import every_machine_costs
from .kernels import V4, Native, buffers_of, interpreted, row_count, spans

FEATURES = V4.features + ",+avx512vnni,+amx-tile,+amx-bf16"
TILES = replace(V4, matrix_unit=("bfloat16",), features=FEATURES, block_bytes=1 << 20)


@dataclass(frozen=True)
class Way:
    """How contractions are computed, and where."""
    precision: Precision
    target: Way = TILES


SIX, THREE, PLAIN = Way("bf16x6"), Way("bf16x3"), Way("f32")
CAN_RUN = runs_here(TILES) and "bfloat16" in host().matrix_unit
UNIT = 2.0**-24
Data = Mapping[Buffer, Array]
SHAPES = [(49, 40, 96), (33, 16, 64), (7, 24, 20), (64, 65, 131), (40, 30, 160), (40, 100, 33), (5, 8, 6)]
"""Rows, columns, terms."""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts even where products are too small for them, K in blocks of 64, few columns at a time."""
    for name, value in (("cycles_of_floats", lambda *_: float("inf")), ("MIN_PASSES", 1), ("MAX_DEPTH", 64)):
        monkeypatch.setattr(choose, name, value)
    monkeypatch.setattr(amx_limbs, "MAX_SPLIT_L2_BLOCKS", 1 / 32)


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def product(m: int, n: int, k: int, constant: bool = False, turned: bool = False, after: Callable[[Expr], Expr] | None = None,
            w: Array | None = None) -> Kernel:
    """x[m, k] * w[k, n], or w[n, k]; `after` is done with the sums."""
    i, j, l = Axis("m", m), Axis("n", n), Axis("k", k)
    x = Load(Buffer("x", "float32", (m, k), "argument"), (Affine.of(i), Affine.of(l)))
    shape, index = ((n, k), (j, l)) if turned else ((k, n), (l, j))
    data = normal(n, *shape) if w is None else w
    y = Load(Buffer("w", "float32", shape, "constant", data) if constant else Buffer("w", "float32", shape, "argument"),
             tuple(map(Affine.of, index)))
    value = reduce("add", (l,), x * y)
    return Kernel(Buffer("y", "float32", (m, n), "result"), (i, j), after(value) if after else value)


def data_of(k: Kernel, *arrays: Array) -> dict[Buffer, Array]:
    """Of x, and of w where it is no constant."""
    found = sorted(buffers_of(k), key=lambda b: b.name, reverse=True)
    return {b: np.asarray(a, np.float32).reshape(b.shape) for b, a in zip(found, arrays, strict=True)}


def text_of(k: Kernel, t: Way) -> str:
    return describe(k, t.target, t.precision)


def natively(k: Kernel, t: Way, data: Data, by_rows: bool = False) -> Array:
    """The output of native code; with `by_rows` some rows at a time."""
    f = schedule(k, t.target, by_rows, precision=t.precision)
    verify(f)
    native = Native([f], t.target)
    result = native.call(0, f, k, data, spans(row_count(k), np.random.default_rng(2)) if by_rows else ())
    native.engine.close()
    return result.copy()


def same_bits(actual: Array, expected: Array) -> None:
    """Equal to the bit, but for those of a NaN."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), nan)
    np.testing.assert_array_equal(np.where(nan, 0, actual.view(np.uint32)), np.where(nan, 0, expected.view(np.uint32)))


def value(k: Kernel, t: Way, data: Data) -> Array:
    """The output: of native code where this machine can run it, else of the interpreter, which is slow."""
    assert t is PLAIN or f"contraction: {t.precision}" in text_of(k, t)
    return natively(k, t, data) if CAN_RUN else interpreted(schedule(k, t.target, precision=t.precision), k, data)


def agrees(k: Kernel, t: Way, data: Data) -> Array:
    """The output, of which native code, whole and by rows, and the interpreter have the same bits."""
    right = value(k, t, data)
    if CAN_RUN:
        same_bits(natively(k, t, data, by_rows=True), right)
        same_bits(interpreted(schedule(k, t.target, precision=t.precision), k, data), right)
    return right


def bound(terms: int, total: Array, precision: str) -> Array:
    """What the error is at most, for sums of absolute values."""
    steps = -(-terms // 32)
    units = 17 + 6.2 * steps if precision == "bf16x6" else 528 + 3.1 * steps
    return np.asarray(units * UNIT * total + 224 * steps * 2.0**-126)


def exact(x: Array, w: Array) -> tuple[Array, Array]:
    """A product, and that of absolute values."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    return x @ w, np.abs(x) @ np.abs(w)


# ---- bits ------------------------------------------------------------------------------------------------------------
@pytest.mark.sampled(2)
@pytest.mark.parametrize("t", [SIX, THREE], ids=lambda t: t.precision)
@pytest.mark.parametrize("pattern", ["run time", "turned", "constant"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.usefixtures("always")
def test_native_code_has_the_bits_of_the_interpreter(shape: tuple[int, int, int], pattern: str, t: Way) -> None:
    m, n, k = shape
    kernel = product(m, n, k, pattern == "constant", pattern == "turned")
    x, w = normal(m, m, k), normal(n, *((n, k) if pattern == "turned" else (k, n)))
    right = agrees(kernel, t, data_of(kernel, *((x,) if pattern == "constant" else (x, w))))
    expected, total = exact(x, w.T if pattern == "turned" else w)
    assert (np.abs(right - expected) <= bound(k, total, t.precision)).all()


@pytest.mark.parametrize("shape", [(49, 40, 96), (20, 33, 128), (40, 16, 50)], ids=str)
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.usefixtures("always")
def test_what_is_done_with_sums_is_done_once(shape: tuple[int, int, int], constant: bool) -> None:
    m, n, k = shape
    kernel = product(m, n, k, constant, after=lambda x: apply("max", x * 2.0 + 1.0, 0.0))
    x, w = normal(m, m, k), normal(n, k, n)
    right = agrees(kernel, SIX, data_of(kernel, x) if constant else data_of(kernel, x, w))
    plain = product(m, n, k, constant)
    sums = value(plain, SIX, data_of(plain, x) if constant else data_of(plain, x, w))
    same_bits(right, np.maximum(sums * np.float32(2) + np.float32(1), np.float32(0)))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.usefixtures("always")
def test_bits_do_not_depend_on_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    every_machine_costs(monkeypatch, task_grain_cycles=20, repeated_fill_cycles=30, barrier_cycles=0)
    if not CAN_RUN:
        pytest.skip("this machine has no tiles of bfloat16, or does not let us use them")
    g = Graph()
    value = g.op("matmul", g.input(2, 75, 64), g.input(2, 64, 70), *(np.zeros(1, np.float32),) * 2)
    module = g.module(value)
    kernels = fuse(module, module.function("main"))
    inputs = [normal(1, 2, 75, 64), normal(2, 2, 64, 70)]
    inputs[0][0, 40, 3] = np.inf
    results = []
    for number in (1, threads):
        program = lower(kernels, TILES, threads=number, precision="bf16x6")
        call = load(program, plan(program), TILES)
        results.append(call(*inputs)[0].copy())
        call.close()
    same_bits(*results)


# ---- convolutions ----------------------------------------------------------------------------------------------------
def window(channels: int, out: int, size: tuple[int, int], image: tuple[int, int] = (9, 13), **how: tuple[int, ...]
           ) -> Callable[[Graph], Value]:
    return lambda g: conv(g, g.input(1, *image, channels), normal(out, out, *size, channels), normal(channels, out), **how)


CONVOLUTIONS: dict[str, Callable[[Graph], Value]] = {
    "1x1": window(72, 40, (1, 1)), "1x1 s2": window(64, 33, (1, 1), stride=(2, 2)), "3x3": window(16, 24, (3, 3)),
    "3x3 padded": window(16, 40, (3, 3), pad=(1, 1, 1, 1)),
    "3x3 s2 padded": window(5, 24, (3, 3), (10, 14), pad=(0, 1, 0, 1), stride=(2, 2)),
    "3x3 dilated": window(8, 16, (3, 3), pad=(2, 2, 2, 2), dilation=(2, 2)),
    "1x7 wide": window(4, 16, (1, 7), (2, 70), pad=(0, 0, 3, 3)), "3x1 high": window(16, 16, (3, 1), (40, 1), pad=(1, 1, 0, 0)),
    "3x3 in lines": window(16, 16, (3, 3), (8, 28), pad=(1, 1, 1, 1)),
    "1x1 s2 in lines": window(64, 16, (1, 1), (9, 33), stride=(2, 2)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name, special", [(name, number % 2 == 0) for number, name in enumerate(CONVOLUTIONS)])
@pytest.mark.usefixtures("always")
def test_a_convolution_is_near_the_exact_one(name: str, special: bool) -> None:
    g = Graph()
    module = g.module(CONVOLUTIONS[name](g))
    (kernel,) = fuse(module, module.function("main")).kernels
    (x,) = buffers_of(kernel)
    data = normal(3, *x.shape)
    if special:
        pixels = data[0].reshape(-1, x.shape[-1])
        pixels[2, 1], pixels[4, 0] = 1e-40, 1e37
    right = (agrees if special else value)(kernel, SIX, {x: data})
    in_floats = value(kernel, PLAIN, {x: data})
    np.testing.assert_allclose(right, in_floats, rtol=1e-5, atol=1e-4)
    if special:
        touched = np.abs(right) > 1e30
        same_bits(right[touched], in_floats[touched])
        assert touched.any()


# ---- errors ----------------------------------------------------------------------------------------------------------
def scaled(power: int) -> Callable[[int, Sequence[int]], Array]:
    return lambda seed, shape: np.ldexp(normal(seed, *shape), np.random.default_rng(seed).integers(-power, power, shape))


def cancelling(seed: int, shape: Sequence[int]) -> Array:
    """Halves of rows that are each other's negatives, nearly."""
    x = normal(seed, *shape)
    x[:, x.shape[1] // 2:] = -x[:, :x.shape[1] - x.shape[1] // 2] * np.float32(1 + 1e-6)
    return x


def worst(seed: int, shape: Sequence[int]) -> Array:
    """Numbers whose limbs are as large as they can be, all of one sign."""
    return np.full(shape, 1 + 2.0**-8 + 2.0**-16 - 2.0**-23 * (seed % 3), np.float32)


DATA: dict[str, Callable[[int, Sequence[int]], Array]] = {
    "normal": lambda seed, shape: normal(seed, *shape), "positive": lambda seed, shape: np.abs(normal(seed, *shape)),
    "badly scaled": scaled(30), "tiny": lambda seed, shape: np.ldexp(normal(seed, *shape), -66),
    "nearly out of range": lambda seed, shape: np.ldexp(1 + np.abs(normal(seed, *shape)) / 8, -103),
    "cancelling": cancelling, "worst": worst, "whole numbers": lambda seed, shape: np.rint(normal(seed, *shape) * 3),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name, terms, t", [
    pytest.param(name, terms, t, id=f"{name}-{terms}-{t.precision}")
    for i, name in enumerate(DATA) for j, terms in enumerate((40, 512)) for k, t in enumerate((SIX, THREE))
    if (i + j + k) % 2 == 0])
@pytest.mark.usefixtures("always")
def test_errors_are_inside_the_bound(name: str, terms: int, t: Way) -> None:
    x, w = DATA[name](5, (32, terms)).astype(np.float32), DATA[name](6, (terms, 32)).astype(np.float32)
    kernel = product(32, 32, terms)
    expected, total = exact(x, w)
    error = np.abs(value(kernel, t, data_of(kernel, x, w)) - expected)
    assert (error <= bound(terms, total, t.precision)).all()
    if t is SIX and name == "whole numbers":
        assert not error.any()


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("always")
def test_six_products_are_about_as_exact_as_float32() -> None:
    x, w = normal(1, 64, 256), normal(2, 256, 64)
    kernel = product(64, 64, 256)
    expected, total = exact(x, w)
    errors = {t.precision: (np.abs(value(kernel, t, data_of(kernel, x, w)) - expected) / total).max()
              for t in (PLAIN, SIX, THREE)}
    assert errors["bf16x6"] < errors["f32"] < errors["bf16x3"] < 2.0**-16


def test_three_parts_are_all_of_a_number() -> None:
    rng = np.random.default_rng(0)
    data = np.ldexp(rng.standard_normal((1, 16, 32)), rng.integers(-100, 120, (1, 16, 32))).astype(np.float32)
    np.testing.assert_array_equal(limbs_of(data, 3).astype(np.float64).sum(axis=1), data)


# ---- out of range ----------------------------------------------------------------------------------------------------
SPECIAL = {"infinity": np.inf, "minus infinity": -np.inf, "NaN": np.nan, "greatest": np.finfo(np.float32).max,
           "rounds to infinity": 3.4e38, "subnormal": 1e-40, "least": 1e-45, "part subnormal": 2.0**-104}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name, terms, constant", [
    (name, terms, constant) for i, name in enumerate(SPECIAL) for j, terms in enumerate((70, 128)) for constant in (False, True)
    if (i + j + constant) % 2 == 0])
@pytest.mark.usefixtures("always")
def test_a_row_out_of_range_is_computed_in_float32(name: str, terms: int, constant: bool) -> None:
    x, w = normal(1, 45, terms), normal(40, terms, 40)
    kernel = product(45, 40, terms, constant, w=w)
    others = value(kernel, SIX, data_of(kernel, x) if constant else data_of(kernel, x, w))
    x[11, 33] = SPECIAL[name]
    data = data_of(kernel, x) if constant else data_of(kernel, x, w)
    right = (agrees if name in ("NaN", "subnormal") and terms == 128 else value)(kernel, SIX, data)
    in_floats = value(kernel, PLAIN, data)
    kept = np.arange(45) != 11
    same_bits(right[kept], others[kept])
    if terms == 70:  # K is not cut
        same_bits(right[11], in_floats[11])
    else:
        np.testing.assert_allclose(right[11], in_floats[11], rtol=1e-5, atol=1e-5)
    assert (right[11] != others[11]).any() or abs(SPECIAL[name]) < 1e-30


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.usefixtures("always")
def test_columns_out_of_range_are_computed_in_float32(name: str) -> None:
    x, w = normal(1, 45, 70), normal(40, 70, 60)
    kernel = product(45, 60, 70)
    others = value(kernel, SIX, data_of(kernel, x, w))
    w[69, 21] = SPECIAL[name]
    right = (agrees if name == "least" else value)(kernel, SIX, data_of(kernel, x, w))
    in_floats = value(kernel, PLAIN, data_of(kernel, x, w))
    same_bits(right[:, 16:32], in_floats[:, 16:32])
    same_bits(right[:, :16], others[:, :16])
    same_bits(right[:, 32:], others[:, 32:])


@pytest.mark.usefixtures("always")
def test_zeros_are_in_range() -> None:
    x, w = np.zeros((40, 64), np.float32), normal(3, 64, 40)
    x[3] = -0.0
    x[5, 9] = 1.0
    kernel = product(40, 40, 64)
    right = value(kernel, SIX, data_of(kernel, x, w))
    np.testing.assert_array_equal(right[5], w[9])
    assert not right[np.arange(40) != 5].any()


@pytest.mark.parametrize("value", [np.inf, 1e-40, np.nan, 2.0**126])
@pytest.mark.usefixtures("always")
def test_constants_out_of_range_make_it_a_product_of_float32(value: float) -> None:
    w = normal(3, 64, 40)
    w[5, 6] = value
    assert "float32: its constants are out of range" in text_of(product(40, 40, 64, True, w=w), SIX)


@pytest.mark.usefixtures("always")
def test_sums_do_not_overflow_on_the_way() -> None:
    """Products are near the greatest float32, the sum is not."""
    x, w = np.zeros((40, 64), np.float32), np.full((64, 40), 2.0**60, np.float32)
    x[:, 0], x[:, 1], x[:, 2] = 2.0**67 * 1.99, -(2.0**67) * 1.99, 1
    kernel = product(40, 40, 64, True, w=w)
    assert (value(kernel, SIX, data_of(kernel, x)) == 2.0**60).all()


# ---- when ------------------------------------------------------------------------------------------------------------
def test_without_tiles_it_is_a_product_of_float32() -> None:
    for t in (Way("bf16x6", replace(TILES, matrix_unit=())), Way("bf16x6", V4)):
        kernel = product(256, 256, 256)
        assert "contraction: fma" in text_of(kernel, t)
        assert "float32: this machine has no tiles of bfloat16" in text_of(kernel, t)
        f = schedule(kernel, t.target, precision=t.precision)
        assert not any(isinstance(s, MultiplyFloatTiles) for s in walk(f.body))


def test_by_default_nothing_changes() -> None:
    assert text_of(product(256, 256, 256), PLAIN) == describe(product(256, 256, 256), V4)


@pytest.mark.parametrize(("shape", "why"), [((512, 512, 512), None), ((512, 512, 8), "that is faster"),
                                            ((8, 512, 512), "it has few rows"), ((512, 8, 512), "that is faster")], ids=str)
def test_parts_are_taken_where_they_are_faster(shape: tuple[int, int, int], why: str | None) -> None:
    text = text_of(product(*shape, constant=True), SIX)
    assert ("contraction: bf16x6" in text) == (why is None)
    assert why is None or f"float32: {why}" in text


@pytest.mark.usefixtures("always")
def test_loops_with_parts_read_back() -> None:
    g = Graph()
    module = g.module(g.op("matmul", g.input(1, 64, 64), g.input(1, 64, 64), *(np.zeros(1, np.float32),) * 2))
    program = lower(fuse(module, module.function("main")), TILES, precision="bf16x6")
    assert any(isinstance(s, MultiplyFloatTiles) for f in program.functions for s in walk(f.body))
    text = print_program(program, constants=True)
    assert print_program(read_program(text), constants=True) == text
