"""A large matrix by one vector: some rows at a time, on every target, for all shapes."""
from __future__ import annotations

from dataclasses import replace

import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Const, Expr, Load, apply, cast, reduce
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.schedule import describe
from tosaic.lowering.target.presets import target

from .kernels import TARGETS, V4, check

SMALL = {name: replace(t, l2_bytes=1 << 10) for name, t in TARGETS.items() if t.vector_bytes >= 16}


def product(m: int, k: int, dtype: str = "float32", batch: int = 1, epilogue: bool = False, last: bool = False) -> Kernel:
    """a[batch, m, k] * x[batch, k], or x first."""
    p, i, l = Axis("p", batch), Axis("m", m), Axis("k", k)
    wide = "int32" if dtype.startswith("int") else "float32"
    a = cast(Load(Buffer("a", dtype, (batch, m, k), "argument"), tuple(map(Affine.of, (p, i, l)))), wide)
    x: Expr = cast(Load(Buffer("x", dtype, (batch, k), "argument"), (Affine.of(p), Affine.of(l))), wide)
    value = reduce("add", (l,), x * a if last else a * x)
    if epilogue:
        value = apply("max", value + Load(Buffer("bias", wide, (m,), "argument"), (Affine.of(i),)), Const(0, wide))
    return Kernel(Buffer("y", wide, (batch, m), "result"), (p, i), value)


CASES = {
    "whole": product(16, 64),
    "odd": product(19, 117, epilogue=True),
    "one row less": product(7, 130),
    "two rows": product(2, 200),
    "batches": product(9, 83, batch=3),
    "x first": product(11, 70, last=True),
    "half floats": product(11, 83, "float16"),
    "int32": product(11, 83, "int32"),
    "int16": product(20, 83, "int16"),
    "a tail alone behind pairs": product(11, 65),
}


@pytest.mark.parametrize("name", CASES)
def test_a_matrix_by_a_vector_is_right(name: str) -> None:
    k = CASES[name]
    assert "gemv" in describe(k, SMALL["512 bits"])
    check([k], targets=SMALL)


def test_rows_are_read_together_where_terms_fill_vectors() -> None:
    for size in (64, 1024):
        assert "gemv: 8 rows, 2 vectors of 16 terms" in describe(product(size, size), V4)
    assert "elementwise" in describe(product(64, 20), V4)
    assert "elementwise" in describe(product(1024, 1024), target("thumbv7em"))


def test_rows_of_integers_are_read_together_where_memory_takes_the_time() -> None:
    assert "gemv: 8 rows, 2 vectors of 16 terms" in describe(product(1024, 1024, "int32"), V4)
    assert "elementwise" in describe(product(64, 64, "int32"), V4)
