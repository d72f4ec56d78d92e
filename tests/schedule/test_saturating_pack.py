"""Outputs of one byte that are clipped are packed, two or four vectors at a time, and are what they were."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tosaic.rescaled_sum import RescaledSum
from tosaic.lowering.elements.expression import Expr, cast, clamp
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import Function, Let, walk
from tosaic.lowering.schedule import schedule
from tosaic.lowering.schedule.contraction import choose
from tosaic.lowering.schedule.contraction.micro_kernels import dot4
from tosaic.lowering.schedule.contraction.register_tile import Tile
from tosaic.lowering.schedule.nest.tile_axis import pieces
from tosaic.lowering.schedule.vectorize.saturating_pack import unclipped, units
from tosaic.lowering.target.target import Target

from ..fuse.graphs import Graph, conv, rescale
from .kernels import TARGETS, check

DOT4 = {name: TARGETS[name] for name in ("512 bits, dot4", "256 bits, no masks, dot4")}
PACKING = DOT4 | {"512 bits": TARGETS["512 bits"]}


def kernel_of(g: Graph, value: Value) -> Kernel:
    module = g.module(value)
    (kernel,) = fuse(module, module.function("main")).kernels
    return kernel


def product(columns: int, depth: int = 40, least: int = -128, most: int = 127, per_channel: bool = True) -> Kernel:
    """A product of bytes, rescaled exactly."""
    g, rng = Graph(), np.random.default_rng(columns)
    weight = rng.integers(-127, 128, (columns, 1, 1, depth)).astype(np.int8)
    bias = rng.integers(-500, 500, columns).astype(np.int32)
    x = rescale(g, conv(g, g.input(1, 3, 5, depth, dtype="int8"), weight, bias, 3), columns if per_channel else 1, rng)
    return kernel_of(g, g.op("clamp", x, min_val=least, max_val=most) if (least, most) != (-128, 127) else x)


def packs(function: Function) -> int:
    return sum(isinstance(s, Let) and s.op == "pack" for s in walk(function.body))


@pytest.fixture(autouse=True)
def wide_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of many vectors even where there are few rows."""
    for module in (choose, dot4):
        monkeypatch.setattr(module, "choose_tile", lambda *_: Tile(3, 6))


@pytest.mark.parametrize(("vectors", "is_packed"), [(1, False), (2, True), (3, True), (4, True), (5, True), (6, True)])
@pytest.mark.parametrize("target", PACKING.values(), ids=PACKING)
def test_whole_vectors(vectors: int, is_packed: bool, target: Target) -> None:
    k = product(vectors * target.lanes(4))
    assert (packs(schedule(k, target)) > 0) == is_packed
    check([k], targets={"this": target})


@pytest.mark.parametrize("columns", [33, 47, 70, 100])
def test_vectors_in_part(columns: int) -> None:
    k = product(columns)
    assert all(packs(schedule(k, target)) for target in DOT4.values())
    check([k], targets=PACKING)


@pytest.mark.parametrize("bounds", [(-128, 100), (-5, 127), (-3, 3)])
def test_other_bounds(bounds: tuple[int, int]) -> None:
    """They are tested before."""
    k = product(64, 40, *bounds, per_channel=False)
    check([k], targets=PACKING)


@pytest.mark.parametrize("columns", [64, 96, 100])
def test_in_loops(columns: int) -> None:
    """What is done with the sums is a loop over four vectors, then over those that are left."""
    k = product(columns, 400)
    for target in DOT4.values():
        function = schedule(k, target)
        assert any(b.name.endswith(".sums") for b in function.scratch) and packs(function)
    check([k], targets=DOT4)


def test_nothing_is_packed_where_vectors_are_smaller_than_groups() -> None:
    assert not packs(schedule(product(64), TARGETS["4 bytes"]))


def test_elements() -> None:
    """Without a product, too."""
    g = Graph()
    k = kernel_of(g, g.add(RescaledSum(1.25, 0.75, 3.5), *(g.input(300, 530, dtype="int8") for _ in range(2)))[0])
    assert packs(schedule(k, PACKING["512 bits"]))
    check([k], targets=PACKING, interpret=False)


def test_what_is_clipped_by_packing() -> None:
    x: Expr = product(16).value
    inner = unclipped(x)
    assert inner is not None and inner.dtype == "int32"
    assert unclipped(cast(clamp(inner, -128, 127), "int8")) is inner
    assert unclipped(cast(clamp(inner, -100, 127), "int8")) is not inner
    assert unclipped(cast(clamp(inner, -129, 127), "int8")) is None
    assert unclipped(cast(inner, "int8")) is None and unclipped(cast(clamp(inner, 0, 255), "uint8")) is None


def test_units() -> None:
    def sizes(size: int, lanes: int = 16) -> list[int]:
        return [len(unit) for unit in units(pieces(size, lanes, True), lanes)]

    assert sizes(16) == [1] and sizes(32) == [2] and sizes(48) == [2, 1] and sizes(64) == [4] and sizes(112) == [4, 2, 1]
    assert sizes(70) == [4, 1] and sizes(8) == [1] and sizes(40) == [2, 1] and sizes(64, 8) == [4, 4]
