"""Casts, native: every pattern of the small floats, and pairs of the other dtypes, against NumPy and ml_dtypes."""
from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Function, Type
from tosaic.lowering.target.presets import host, target

from .harness import Native, differences, in_one_step, interpreted, named
from .test_emit_operations import elementwise

Array = np.ndarray[Any, Any]
HALVES = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
          "float4_e2m1fn")
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}
NUMBERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
TARGETS = ("host", "x86-64")
pytestmark = pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")


def cast(source: str, result: str, count: int, lanes: int) -> Function:
    b = Builder(f"cast_{source}_{result}")
    x, out, axis = Buffer("x", source, (count,), "argument"), Buffer("out", result, (count,), "result"), Axis(
        "i", count // lanes)
    b.loop(axis, lambda: b.store(out, Affine.of(axis) * lanes, b.op(
        "cast", b.load(x, Affine.of(axis) * lanes, lanes), type=Type(result, lanes))))
    return b.finish()


def native_cast(x: Array, result: str, lanes: int, name: str) -> Array:
    """The cast array; x is padded to whole vectors."""
    count = -(-len(x) // lanes) * lanes
    padded = np.concatenate([x, np.zeros(count - len(x), x.dtype)])
    f = cast(x.dtype.name, result, count, lanes)
    with Native([f], target(name)) as native:
        return native.run(f, {f.params[0]: padded})[f.params[1]][:len(x)]


def same(ours: Array, want: Array, source: Array | None = None) -> bool:
    """Bit for bit, but any NaN is one; where `source` is a NaN and the format has none, any zero is right."""
    bits = f"u{want.dtype.itemsize}"
    equal = ours.view(bits) == want.view(bits)
    if source is not None and want.dtype.name in BITS:
        equal |= (source != source) & (ours.astype(np.float32) == 0)
    return bool((equal | ((ours != ours) & (want != want))).all())


def patterns(dtype: str) -> Array:
    """Every value of a small float."""
    size = np.dtype(dtype).itemsize
    return np.arange(1 << BITS.get(dtype, 8 * size), dtype=f"u{size}").view(dtype)


def floats() -> Array:
    """Float32 values of every size, those halfway between two small floats, and their neighbours."""
    rng = np.random.default_rng(0)
    random = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32)
    near = (rng.standard_normal(50_000) * 2.0 ** rng.integers(-28, 18, 50_000)).astype(np.float32)
    found = [random, near]
    for dtype in HALVES:
        exact = patterns(dtype).astype(np.float32)
        exact = np.sort(exact[np.isfinite(exact)])
        middle = ((exact[1:].astype(np.float64) + exact[:-1]) / 2).astype(np.float32)
        top = exact[-1:] + (exact[-1:] - exact[-2:-1]) / 2  # where rounding up overflows
        for x in (exact, middle, top):
            found += [x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))]
    return np.concatenate(found)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", HALVES)
def test_every_small_float_becomes_its_float32(dtype: str, lanes: int, name: str) -> None:
    x = patterns(dtype)
    assert same(native_cast(x, "float32", lanes, name), x.astype(np.float32))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", HALVES)
def test_float32_rounds_to_the_nearest_small_float(dtype: str, lanes: int, name: str) -> None:
    x = floats()
    with np.errstate(all="ignore"):
        assert same(native_cast(x, dtype, lanes, name), x.astype(dtype), x)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", HALVES)
def test_float64_rounds_once_to_a_small_float(dtype: str, name: str) -> None:
    with np.errstate(invalid="ignore"):
        exact = patterns(dtype).astype(np.float32).astype(np.float64)
    exact = np.sort(exact[np.isfinite(exact)])
    middle = (exact[1:] + exact[:-1]) / 2
    x = np.concatenate([exact, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf),
                        [np.inf, -np.inf, np.nan, 1e300, -1e-300]])
    with np.errstate(all="ignore"):
        want = x.astype(dtype)
        if dtype != "float16":  # ml_dtypes goes by way of float32, and rounds twice
            single = x.astype(np.float32)
            bits = single.view(np.int32)
            low = np.where(np.abs(single.astype(np.float64)) > np.abs(x), bits - 1, bits)
            want = np.where(single == x, bits, low | 1).view(np.float32)
            want[np.isnan(x)] = np.nan
            want = want.astype(dtype)
    assert same(native_cast(x, dtype, 4, name), want, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("source", "result"), list(itertools.permutations(HALVES, 2)))
def test_a_small_float_becomes_another(source: str, result: str, name: str) -> None:
    x = patterns(source)
    with np.errstate(all="ignore"):
        assert same(native_cast(x, result, 16, name), x.astype(np.float32).astype(result), x)


def numbers(source: str, result: str) -> Array:
    """Values of one dtype that fit the other; any, between integers."""
    rng = np.random.default_rng(1)
    if source == "bool":
        return np.arange(64) % 3 == 0
    if source.startswith("float"):
        info = np.finfo(source)
        special = [0, -0.0, 0.5, -0.5, 1e-9, 2.5, np.inf, -np.inf, np.nan, info.max, info.smallest_subnormal]
        x = np.concatenate([rng.standard_normal(200) * 10.0 ** rng.integers(-5, 6, 200), special]).astype(source)
        if result.startswith(("int", "uint")):
            low, high = np.iinfo(result).min, np.iinfo(result).max
            x = x[(x > low - 1) & (x < float(high))]
            x = np.concatenate([x, np.array([low, high // 2], source)])
        return x
    limits = np.iinfo(source)
    some = rng.integers(limits.min, limits.max, 200, dtype=source, endpoint=True)
    return np.concatenate([some, np.array([0, 1, limits.min, limits.max, limits.max // 2 + 1], source)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("source", NUMBERS)
def test_numbers_become_any_other_type(source: str, name: str) -> None:
    """Scalars in full; vectors of each length for every other type."""
    faults = []
    for place, lanes in enumerate((1, 4, 16)):
        cases = []
        for result in (*NUMBERS, *HALVES)[max(0, place - 1)::2 if place else 1]:
            x = numbers(source, result)
            if result in BITS:  # which zero a NaN becomes is free
                x = x[x == x]
            if result == "float8_e8m0fnu":  # ml_dtypes goes by way of float32, where the smallest float64 is 0
                x = x[np.abs(x) != 5e-324]
            x = np.concatenate([x, np.ones(-len(x) % lanes, x.dtype)])
            cases.append((cast(source, result, len(x), lanes), x))
        with Native([f for f, _ in cases], target(name)) as native:
            for f, x in cases:
                data, wide = {f.params[0]: x}, cast(source, f.params[1].dtype, len(x), len(x))
                faults += [f"{f.name}: {d}" for d in differences(native.run(f, data), in_one_step(f, wide, data))]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("lanes", [1, 4])
def test_code_for_32_bit_registers_converts_and_divides_64_bit_integers(lanes: int) -> None:
    """What a 32-bit processor runs, on this machine."""
    longs = [*(1 << np.arange(63, dtype=np.int64)), *((1 << np.arange(1, 63, dtype=np.int64)) - 1),
             *(int(x) * 0x180000001 % (1 << 63) >> i for i, x in enumerate(range(1, 60))), 0, (1 << 63) - 1, -1 << 63]
    longs += [(1 << 40) + (1 << 16), (3 << 40) + (3 << 17), (1 << 62) + (1 << 38), (1 << 62) + (1 << 38) + 1]
    signed = np.array([*longs, *(-x for x in longs if x > 0)] * 4, np.int64)
    signed = signed[:len(signed) // 4 * 4]
    cases: list[tuple[Function, dict[int, Array]]] = []
    for kind, real in itertools.product(("int64", "uint64"), ("float32", "float64")):
        x = signed.astype(kind)
        y = np.concatenate([numbers(real, kind), np.array([0.99, 1, 2 ** 30, 2 ** 62, 2 ** 52 + 1, 2 ** 24 + 1], real)])
        y = np.resize(y[np.isfinite(y)], 1000)
        cases += [(cast(kind, real, len(x), lanes), {0: x}), (cast(real, kind, len(y), lanes), {0: y})]
    for kind in ("int64", "uint64"):
        x, y = signed.astype(kind), np.roll(signed, 37).astype(kind)
        cases.append((elementwise("div", kind, 2, lanes, len(x)), {0: x, 1: y}))
    faults = []
    with Native([f for f, _ in cases], *named("32 bits")) as native:
        for f, inputs in cases:
            data = dict(zip(f.params, inputs.values()))
            faults += [f"{f.name}: {d}" for d in differences(native.run(f, data), interpreted(f, data))]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("result", ["int8", "int32", "int64", "uint8", "uint32"])
def test_a_float_that_does_not_fit_an_integer_does_not_trap(result: str, name: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e19, 300, -300] * 2, np.float32)
    for lanes in (1, 16):
        assert native_cast(x, result, lanes, name).shape == (16,)
