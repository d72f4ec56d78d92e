"""Arithmetic of float16 in place of float32 that is rounded: the bits of all numbers alone, of hostile pairs and of many by
lot; and which arithmetic stays."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Apply, Buffer, Cast, Const, Expr, Load
from tosaic.lowering.elements.interpret import evaluate
from tosaic.lowering.elements.traverse import nodes
from tosaic.lowering.fuse.half_arithmetic import CHOSEN, ROUNDED, in_halves
from tosaic.lowering.graph.types import Array
from tosaic.lowering.loops.lane_operations import apply

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
HOSTILE = np.array([0.0, -0.0, 6e-8, -6e-8, 6.1e-5, 6.104e-5, 1.0, -1.0, 0.3333, 2048.0, 2049.0, 65504.0, -65504.0, np.inf,
                    -np.inf, np.nan], np.float16)
"""Zeros, the least subnormal number, the largest and the least that is none, and the ends."""


def single(x: Expr) -> Expr:
    return Cast(x, "float32")


def half(x: Expr) -> Expr:
    return Cast(x, "float16")


def same_bits(x: Array, y: Array) -> None:
    """Of each number that is one; NaN where there is NaN."""
    missing = np.isnan(x)
    np.testing.assert_array_equal(missing, np.isnan(y))
    np.testing.assert_array_equal(x[~missing].view(np.uint16), y[~missing].view(np.uint16))


def pairs(seed: int) -> tuple[Array, Array]:
    """Every number with one of the hostile ones, and others by lot."""
    g = np.random.default_rng(seed)
    lot = g.integers(0, 1 << 16, (2, 1 << 17)).astype(np.uint16).view(np.float16)
    x, y = (a.reshape(-1) for a in np.meshgrid(EVERY, HOSTILE))
    return np.concatenate([x, lot[0]]), np.concatenate([y, lot[1]])


@pytest.mark.parametrize("primitive", sorted(ROUNDED | CHOSEN))
def test_it_has_the_same_bits(primitive: str) -> None:
    arrays = (EVERY,) if primitive in ("sqrt", "abs") else pairs(0)
    i = Axis("i", len(arrays[0]))
    loads = tuple(Load(Buffer(f"x{n}", "float16", a.shape, "constant", a), (Affine.of(i),)) for n, a in enumerate(arrays))
    wide = half(Apply(primitive, tuple(map(single, loads)), "float32"))
    narrow = in_halves(wide)
    assert not any(isinstance(e, Cast) for e in nodes(narrow)) and narrow.dtype == "float16"
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(narrow, (i,)), evaluate(wide, (i,)))
        right = apply(primitive, len(arrays[0]), [a.astype(np.float32) for a in arrays]).astype(np.float16)
        same_bits(apply(primitive, len(arrays[0]), list(arrays)), right)


X, Y = (Load(Buffer(name, "float16", (8,), "argument"), (Affine.of(Axis("i", 8)),)) for name in "xy")


def add(x: Expr, y: Expr) -> Expr:
    return Apply("add", (x, y), "float32")


@pytest.mark.parametrize(("e", "stays"), [
    (lambda: half(add(add(single(X), single(Y)), single(X))), True),
    (lambda: half(add(single(X), Const(0.1, "float32"))), True),
    (lambda: half(add(single(X), Const(65520.0, "float32"))), True),
    (lambda: Cast(add(single(X), single(Y)), "bfloat16"), True),
    (lambda: add(single(X), single(Y)), True), (lambda: half(add(single(Cast(X, "bfloat16")), single(Y))), True),
    (lambda: half(add(single(X), Const(0.5, "float32"))), False),
    (lambda: half(Apply("max", (single(half(add(single(X), single(Y)))), Const(-1.0, "float32")), "float32")), False)],
    ids=["sums of sums", "0.1", "infinite once it is rounded", "bfloat16", "float32", "rounded before", "0.5", "a maximum"])
def test_what_stays_in_float32(e: Callable[[], Expr], stays: bool) -> None:
    value = e()
    found = in_halves(value)
    assert any(isinstance(n, Apply) and n.dtype == "float32" for n in nodes(found)) == stays
    assert stays == any(isinstance(n, Cast) and n.dtype == "float32" for n in nodes(found))


def test_long_chains_need_no_recursion() -> None:
    value: Expr = X
    for _ in range(5000):
        value = half(add(single(value), single(Y)))
    found = in_halves(value)
    assert sum(isinstance(n, Apply) for n in nodes(found)) == 5000 and not any(isinstance(n, Cast) for n in nodes(found))
