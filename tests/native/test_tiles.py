"""Tiles of a matrix unit as machine code: the same as the interpreter of loops, and only where the machine lets us."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Function
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.native.llvm.amx import configuration
from tosaic.lowering.target import presets
from tosaic.lowering.target.presets import PRESETS, host, target

from .harness import Native, differences, interpreted

needs_float_tiles = pytest.mark.skipif("bfloat16" not in host().matrix_unit,
                                       reason="this machine has no tiles of bfloat16, or does not let us use them")
needs_tiles = pytest.mark.skipif("int8" not in host().matrix_unit,
                                 reason="this machine has no matrix unit, or does not let us use it")


def product(rows: int, groups: int, columns: int, dtype: str, steps: int) -> Function:
    """c[rows, 2 columns] += x * w by tiles, from what c holds at first; a row of x has some bytes to spare."""
    b, step, depth = Builder("product"), Axis("step", steps), 4 * groups
    x = Buffer("x", dtype, (rows, steps * depth + 3), "argument")
    w = Buffer("w", "int8", (2, steps, groups, columns, 4), "argument")
    c = Buffer("c", "int32", (rows, 2 * columns), "variable")
    b.shape_tiles(((rows, 4 * columns), (rows, 4 * columns), (rows, depth), (groups, 4 * columns)))
    for j in range(2):
        b.load_tile(j, c, Affine.of(j * columns), 2 * columns)

    def body() -> None:
        b.load_tile(2, x, Affine.of(step) * depth + 3, x.shape[1])
        for j in range(2):
            b.load_tile(3, w, (Affine.of(step) + j * steps) * (groups * columns * 4), columns * 4)
            b.multiply_tiles(j, 2, 3, dtype == "int8")

    b.loop(step, body)
    for j in range(2):
        b.store_tile(j, c, Affine.of(j * columns), 2 * columns)
    return b.finish()


@needs_tiles
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("rows", "groups", "columns", "steps"), [(16, 16, 16, 3), (1, 1, 1, 1), (7, 5, 9, 2), (16, 1, 3, 4)])
def test_products_are_what_the_interpreter_says(rows: int, groups: int, columns: int, steps: int, dtype: str) -> None:
    f, rng = product(rows, groups, columns, dtype, steps), np.random.default_rng(rows)
    verify(f)
    data = {b: rng.integers(np.iinfo(b.dtype).min, np.iinfo(b.dtype).max, b.shape, b.dtype, endpoint=True) for b in f.params}
    with Native([f], host()) as native:
        assert not differences(native.run(f, data), interpreted(f, data))


@needs_tiles
def test_shapes_may_change_between_loops() -> None:
    b, x, y = Builder("twice"), Buffer("x", "int8", (4, 8), "argument"), Buffer("y", "int8", (4, 8), "result")
    for first, rows in ((0, 3), (3, 1)):
        b.shape_tiles(((rows, 8),))
        b.load_tile(0, x, Affine.of(8 * first), 8)
        b.store_tile(0, y, Affine.of(8 * first), 8)
    f = b.finish()
    data = {x: np.arange(32, dtype=np.int8)}
    with Native([f], host()) as native:
        assert not differences(native.run(f, data), interpreted(f, data))


def halves(x: np.ndarray) -> np.ndarray:
    import ml_dtypes
    return np.asarray(x).astype(np.float32).astype(ml_dtypes.bfloat16)


def wide(rng: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    return np.ldexp(rng.standard_normal(shape), rng.integers(low, high, shape))


NUMBERS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "of many sizes": lambda rng, shape: wide(rng, shape, -40, 40),
    "with tiny products": lambda rng, shape: wide(rng, shape, -75, -55),
    "around the least normal one": lambda rng, shape: np.where(rng.random(shape) < 0.2, wide(rng, shape, -66, -60), 0),
    "that overflow": lambda rng, shape: wide(rng, shape, 55, 66),
    "of any bits": lambda rng, shape: (rng.integers(0, 1 << 16, shape).astype(np.uint32) << 16).view(np.float32),
}


@needs_float_tiles
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(("rows", "pairs", "columns"), [(16, 16, 16), (5, 7, 3)])
def test_products_of_floats_are_what_the_interpreter_says(rows: int, pairs: int, columns: int, kind: str) -> None:
    b, rng = Builder("floats"), np.random.default_rng(len(kind))
    x, w = Buffer("x", "bfloat16", (rows, 2 * pairs), "argument"), Buffer("w", "bfloat16", (pairs, columns, 2), "argument")
    c = Buffer("c", "float32", (rows, columns), "variable")
    b.shape_tiles(((rows, 4 * columns), (rows, 4 * pairs), (pairs, 4 * columns)))
    b.load_tile(0, c, Affine(), columns)
    b.load_tile(1, x, Affine(), 2 * pairs)
    b.load_tile(2, w, Affine(), 2 * columns)
    b.multiply_float_tiles(0, 1, 2)
    b.store_tile(0, c, Affine(), columns)
    f = b.finish()
    verify(f)
    with Native([f], host()) as native, np.errstate(all="ignore"):
        for _ in range(8):
            numbers = NUMBERS[kind]
            total = wide(rng, c.shape, *((-130, -120) if "tiny" in kind or "least" in kind else (-3, 3))).astype(np.float32)
            data = {x: halves(numbers(rng, x.shape)), w: halves(numbers(rng, w.shape)), c: total}
            found, right = native.run(f, data)[c].reshape(-1), interpreted(f, data).array(c).reshape(-1)
            nan = np.isnan(right)
            np.testing.assert_array_equal(np.isnan(found), nan)
            np.testing.assert_array_equal(found.view(np.uint32)[~nan], right.view(np.uint32)[~nan])


@needs_float_tiles
@pytest.mark.parametrize("feature", ["amx-bf16", "amx-tile", "avx512bw"])
def test_a_feature_that_is_off_takes_tiles_of_floats_away(feature: str) -> None:
    assert "bfloat16" in target("host", features="+amx-bf16").matrix_unit
    assert "bfloat16" not in target("host", features=f"-{feature}").matrix_unit


def test_a_configuration_is_what_the_instruction_loads() -> None:
    data = configuration(((16, 64), (3, 20)))
    assert len(data) == 64 and data[0] == 1 and data[16:20] == b"\x40\x00\x14\x00" and data[48:50] == b"\x10\x03"
    assert sum(data) == 1 + 64 + 20 + 16 + 3


def test_only_a_process_that_may_use_tiles_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(t.matrix_unit for t in PRESETS.values())
    assert "int8" not in target("x86-64-v4", features="+avx512vnni,+amx-tile,+amx-int8").matrix_unit
    monkeypatch.setattr(presets, "may_use_tiles", lambda: False)
    assert not host.__wrapped__().matrix_unit


@needs_tiles
@pytest.mark.parametrize("feature", ["amx-int8", "amx-tile", "avx512vnni"])
def test_a_feature_that_is_off_takes_tiles_away(feature: str) -> None:
    assert "int8" in target("host", features="+amx-int8").matrix_unit
    assert "int8" not in target("host", features=f"-{feature}").matrix_unit
