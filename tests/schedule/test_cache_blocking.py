"""Products of matrices in blocks: right for every shape, with caches so small that little products have blocks; sums in the
order that they have without blocks."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Const, Expr, Load, apply, cast, reduce
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.ir import Function, If, Let, Prefetch, walk
from tosaic.lowering.loops.text import print_function
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.schedule.contraction.cache_blocking import even, most_in_a_set
from tosaic.lowering.target.costs import COSTS
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..native.machines import runs_here
from .kernels import INTERPRETED, TARGETS, V2, V3, V4, Native, check, interpreted, random_data

SMALL = {name: replace(t, l1_bytes=1 << 10, block_bytes=1 << 11, l2_bytes=3 << 10) for name, t in TARGETS.items()
         if t.vector_bytes >= 16}
"""Machines with vectors, and caches for which a product of a few thousand terms is large."""
RNG = np.random.default_rng(11)


def product(m: int, n: int, k: int, dtype: str = "float32", turned: str = "", constant: bool = False, batch: int = 1,
            epilogue: bool = False, computed: bool = False) -> Kernel:
    """a[batch, m, k] * b[batch, k, n]; `turned` says of which operands ("a", "b") the last two axes are the other way
    round."""
    p, i, j, l = Axis("p", batch), Axis("m", m), Axis("n", n), Axis("k", k)

    def operand(name: str, axes: tuple[Axis, Axis], data: bool) -> Expr:
        axes = (axes[1], axes[0]) if name in turned else axes
        shape = (batch, axes[0].extent, axes[1].extent)
        values = random_data(shape, dtype, RNG) if data else None
        buffer = Buffer(name, dtype, shape, "constant" if data else "argument", values)
        return Load(buffer, tuple(map(Affine.of, (p, *axes))))

    wide = dtype if dtype in ("float32", "int32") else "float32" if dtype.startswith(("float", "bf")) else "int32"
    a, b = cast(operand("a", (i, l), False), wide), cast(operand("b", (l, j), constant), wide)
    value = reduce("add", (l,), (apply("max", a, Const(0, wide)) if computed else a) * b)
    if epilogue:
        bias = Load(Buffer("bias", wide, (n,), "argument"), (Affine.of(j),))
        value = apply("max", value + bias, Const(0, wide))
    return Kernel(Buffer("y", wide, (batch, m, n), "result"), (p, i, j), value)


def blocked(k: Kernel, t: Target) -> bool:
    return "blocks of" in describe(k, t)


def some(f: Function, kind: type) -> int:
    return sum(isinstance(s, kind) for s in walk(f.body))


CASES = {
    "one tile more": product(15, 33, 70),
    "odd": product(47, 53, 61, epilogue=True),
    "whole blocks": product(28, 64, 48),
    "turned a": product(37, 45, 50, turned="a"),
    "turned b": product(37, 45, 50, turned="b"),
    "both turned": product(37, 45, 50, turned="ab", epilogue=True),
    "batches": product(17, 40, 30, batch=2),
    "batches, turned b": product(17, 40, 30, batch=2, turned="b"),
    "constant": product(90, 40, 40, constant=True, epilogue=True),
    "constant, turned": product(90, 40, 40, constant=True, turned="ab"),
    "computed a": product(35, 45, 50, computed=True),
    "half floats": product(35, 45, 50, "float16"),
    "half floats, turned": product(35, 45, 50, "float16", turned="ab"),
    "int32": product(35, 45, 50, "int32", turned="b"),
    "int16": product(35, 45, 50, "int16"),
    "one row": product(1, 150, 64),
    "one row, odd": product(1, 150, 61, epilogue=True),
    "three rows": product(3, 75, 50),
    "one column": product(80, 1, 90),
    "one term": product(40, 90, 1),
    "few terms": product(40, 300, 3),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_a_product_in_blocks_is_right(name: str) -> None:
    check([CASES[name]], targets=SMALL)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("one column", "one term")])
def test_the_cases_have_blocks(name: str) -> None:
    assert blocked(CASES[name], SMALL["512 bits"])


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 60), st.integers(1, 70), st.integers(1, 60), st.sampled_from(["", "a", "b", "ab"]), st.booleans(),
       st.booleans(), st.integers(1, 2))
def test_products_of_any_shape_are_right(m: int, n: int, k: int, turned: str, constant: bool, epilogue: bool, batch: int
                                         ) -> None:
    kernel = product(m, n, k, turned=turned, constant=constant, epilogue=epilogue, batch=batch)
    check([kernel], targets={n: SMALL[n] for n in ("512 bits", "256 bits, no masks")})


def results(k: Kernel, t: Target, data: dict[Buffer, Array]) -> Sequence[Array]:
    """What the interpreter of loops and, if this machine can run it, native code give."""
    f = schedule(k, t)
    found = [interpreted(f, k, data)]
    if runs_here(t):
        native = Native([f], t)
        found.append(native.call(0, f, k, data).copy())
        native.engine.close()
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("turned", ["", "a", "b"])
@pytest.mark.parametrize("name", ["512 bits", "256 bits, no masks"])
def test_blocks_change_no_bit_of_a_sum(name: str, turned: str) -> None:
    k = product(31, 37, 45, turned=turned)
    data = {x.buffer: RNG.normal(size=x.buffer.shape).astype(np.float32) for x in loads_of(k)}
    assert blocked(k, SMALL[name]) and not blocked(k, TARGETS[name])
    first, *others = [*results(k, SMALL[name], data), *results(k, TARGETS[name], data)]
    for x in others:
        np.testing.assert_array_equal(x.view(np.uint32), first.view(np.uint32))


def loads_of(k: Kernel) -> list[Load]:
    from tosaic.lowering.elements.traverse import loads
    return loads(k.value)


# ---- choices -----------------------------------------------------------------------------------------------------
HOST_LIKE = replace(V4, l1_bytes=48 << 10, block_bytes=1 << 20)


@pytest.mark.parametrize(("shape", "expected"), [
    ((512, 512, 512), "blocks of 512 terms by 16 panels"),
    ((1024, 1024, 1024), "blocks of 512 terms by 16 panels, rows copied along k"),
    ((1000, 1000, 1000), "blocks of 512 terms by 16 panels"),
    ((600, 1100, 513), "blocks of 528 terms by 12 panels"),
    ((1, 2048, 2048), "not packed, blocks of 8 terms by 16 panels"),
    ((128, 128, 64), "packed while running, rows outermost"),
])
def test_blocks_are_chosen_by_size(shape: tuple[int, int, int], expected: str) -> None:
    assert describe(product(*shape), HOST_LIKE).endswith(expected)


def test_rows_that_share_cache_sets_are_copied() -> None:
    assert "copied" in describe(product(600, 600, 1024), V4)
    assert "copied" in describe(product(600, 600, 1025), V4)
    assert "copied" not in describe(product(600, 600, 1000), V4)
    assert "rows copied along m" in describe(product(600, 600, 1000, turned="a"), V4)
    assert "rows copied along k" in describe(product(600, 600, 1000, "float16"), V4)


def test_scratch_of_a_large_product_is_a_block_of_each() -> None:
    f = schedule(product(1024, 1024, 2048), HOST_LIKE)
    sizes = {b.name: b.size for b in f.scratch}
    assert sizes == {"y.packed": 512 * 512, "y.rows": 14 * (512 + 16), "y.sums": 1024 * 512}


@pytest.mark.parametrize("name", ["thumbv7em", "riscv32", "riscv64"])
def test_machines_without_vectors_or_caches_have_no_blocks(name: str) -> None:
    k = product(600, 600, 600)
    assert not blocked(k, target(name))
    assert not some(schedule(k, target(name)), Prefetch)


@pytest.mark.parametrize("t", [V2, V3, V4, target("aarch64")], ids=["v2", "v3", "v4", "aarch64"])
def test_every_vector_machine_gets_blocks(t: Target) -> None:
    assert blocked(product(700, 700, 700), t)


def test_blocks_that_come_out_even_need_no_bounds_at_run_time() -> None:
    f = schedule(product(1024, 1024, 1024), HOST_LIKE)
    assert not any(isinstance(s, Let) and s.op == "min" for s in walk(f.body))
    one = schedule(product(512, 512, 512), HOST_LIKE)
    assert not some(one, If)


def test_the_code_of_a_large_product_is_small() -> None:
    f = schedule(product(1031, 1033, 1037), HOST_LIKE)
    assert len(print_function(f).splitlines()) < 1100


# ---- arithmetic --------------------------------------------------------------------------------------------------
@given(st.integers(1, 5000), st.integers(1, 600), st.sampled_from([1, 4, 8, 16]))
def test_even_parts_are_as_few_as_there_must_be(extent: int, most: int, step: int) -> None:
    size = even(extent, most, step)
    assert size % step == 0 and size < most + step
    assert math.ceil(extent / size) <= math.ceil(extent / most)


@pytest.mark.parametrize(("stride", "most"), [(4096, 14), (8192, 14), (4100, 14), (2048, 7), (1024, 4), (4032, 1), (4, 1)])
def test_lines_in_a_set_are_counted(stride: int, most: int) -> None:
    assert most_in_a_set(stride, 14, COSTS) == most


def test_blocks_are_interpreted_too() -> None:
    assert len(INTERPRETED & set(SMALL)) == 2
