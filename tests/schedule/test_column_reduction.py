"""Sums over an outer axis: rows are read as they lie in memory, and every sum is right, whatever is left over."""
from __future__ import annotations

from dataclasses import replace

import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Expr, Load, apply, cast, reduce
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import For, LoadFrom, walk
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.schedule.schedule import describe, divided, schedule
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.schedule.window.column_reduction import MAX_SUM_BYTES, ROWS_AT_A_TIME
from tosaic.lowering.target.presets import target

from .kernels import TARGETS, V4, check

SMALL = {name: replace(TARGETS[name], l2_bytes=1 << 10)
         for name in ("512 bits, dot4", "512 bits", "256 bits, no masks", "256 bits, no masks, dot4", "128 bits")}
"""Machines whose caches hold nothing, so that a test needs no large tensor."""


def sums(rows: int, columns: int, primitive: str = "add", dtype: str = "float32", outer: int = 1, weight: bool = False,
         pitch: int = 2048) -> Kernel:
    """Over the middle axis of a tensor whose rows are `pitch` elements apart."""
    o, n, k = Axis("o", outer), Axis("n", columns), Axis("k", rows)
    wide = "int32" if dtype == "int8" else dtype
    x = Load(Buffer("x", dtype, (outer, rows, pitch), "argument"), (Affine.of(o), Affine.of(k), Affine.of(n)))
    term: Expr = cast(x, wide)
    if weight:
        term = term * Load(Buffer("w", wide, (rows,), "argument"), (Affine.of(k),))
    body = reduce(primitive, (k,), term)
    return Kernel(Buffer("y", wide, (outer, columns), "result"), (o, n), apply("add", body, body))


@pytest.mark.parametrize("rows", [2 * ROWS_AT_A_TIME, 2 * ROWS_AT_A_TIME + 1, 29])
@pytest.mark.parametrize("columns", [64, 77, 100])
def test_rows_and_columns_that_are_left_over_are_added_too(rows: int, columns: int) -> None:
    k = sums(rows, columns)
    assert "column reduction" in describe(k, SMALL["512 bits"])
    check([k], targets=SMALL)


@pytest.mark.parametrize(("primitive", "dtype"), [("maximum", "float32"), ("min", "int32"), ("add", "int8")])
def test_sums_of_other_kinds(primitive: str, dtype: str) -> None:
    k = sums(20, 70, primitive, dtype, pitch=4096)
    assert "column reduction" in describe(k, SMALL["512 bits"])
    check([k], targets=SMALL)


def test_weighted_rows_of_several_tensors() -> None:
    k = sums(18, 80, outer=3, weight=True)
    check([k], targets=SMALL)


def test_sums_of_more_columns_than_wait_at_a_time() -> None:
    columns = MAX_SUM_BYTES // 4 + 40
    k = sums(17, columns, pitch=columns)
    assert "column reduction" in describe(k, SMALL["512 bits"])
    check([k], targets=SMALL, interpret=False)


def test_rows_are_read_from_left_to_right() -> None:
    """The innermost loop goes along the rows."""
    f = schedule(sums(64, 2048), SMALL["512 bits"])
    loops = [s for s in walk(f.body) if isinstance(s, For) and not any(isinstance(x, For) for x in walk(s.body))]
    read = [[x.address.offset for x in s.body if isinstance(x, LoadFrom) and x.address.buffer.name == "x"] for s in loops]
    assert max(map(len, read)) == 2 * ROWS_AT_A_TIME
    assert all(s.high.value == 2048 // 32 for s in loops)


@pytest.mark.parametrize("kernel", [sums(8, 64), sums(40, 16), sums(40, 64, pitch=512)], ids=["few", "narrow", "near"])
def test_other_shapes_keep_their_sums_in_registers(kernel: Kernel) -> None:
    assert "column reduction" not in describe(kernel, SMALL["512 bits"])


def test_tensors_that_a_cache_holds_and_machines_without_one() -> None:
    k = sums(40, 64)
    assert "column reduction" not in describe(k, V4)
    assert "column reduction" not in describe(k, target("cortex-m7"))


def test_threads_share_the_columns() -> None:
    _, shared = divided(sums(64, 8 * MAX_SUM_BYTES, pitch=8 * MAX_SUM_BYTES), ScheduleRequest(SMALL["512 bits"]), 2)
    assert shared is not None and shared.tasks.count == 2
    verify(shared.function)
