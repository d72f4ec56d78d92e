"""MATMUL_T, and products of two types of floats in MATMUL."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tosa.matmul import MatMul, MatMulT, Product
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Apply, Buffer, Cast, Load, Reduce
from tosaic.lowering.elements.tensor import stored
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I8, I16, I32, I48, Array, ElementType, TensorType
from tosaic.runtime.errors import Problem

from ..native.machines import runs_here
from ..schedule.kernels import TARGETS
from .dot_product import dot_product_bound
from .harness import Given, check, unknown
from .test_elementwise_native import check as check_native

SHAPES = [(1, 1, 1, 1, 1), (1, 5, 7, 3, 1), (3, 4, 2, 6, 3), (3, 4, 2, 6, 1), (2, 1, 9, 4, 2)]  # N, H, C, W, D
SMALL = (F8E4M3, F8E5M2, F16, BF16)
MIXED = [*((a, b, F32) for a, b in itertools.product((*SMALL, F32), repeat=2)),
         *((a, b, BF16) for a, b in itertools.product(SMALL, repeat=2) if (a, b) != (F16, F16)), (F16, F16, F16)]
"""What the specification has for floats."""
PLAIN = [*((a, b, to) for a, b in itertools.product((F8E4M3, F8E5M2), repeat=2) for to in (F16, F32)),
         (F16, F16, F16), (F16, F16, F32), (BF16, BF16, F32), (F32, F32, F32)]
ELEMENTS = (*SMALL, F32, I8, I16, I32, I48)
WHOLE = {(I8, I8, I32), (I16, I16, I48), (I32, I32, I32)}


def integers(shape: tuple[int, ...], element: ElementType, seed: int) -> Array:
    return np.random.default_rng(seed).integers(element.minimum, element.maximum, shape, endpoint=True).astype(element.dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("element", [I8, I16], ids=str)
@pytest.mark.parametrize("constants", [(2, 3), ()], ids=["known zero points", "zero points from data"])
def test_rows_meet_rows(shape: tuple[int, ...], element: ElementType, constants: tuple[int, ...]) -> None:
    n, h, c, w, d = shape
    a, b = integers((n, h, c), element, 0), integers((d, w, c), element, 1)
    points = [np.array([p if element == I8 else 0], element.dtype) for p in (-128, 7)]
    out = check(MatMulT(), a, b, *points, constants=constants)
    assert out.dtype == (np.int32 if element == I8 else np.int64)
    for i, j, k in np.ndindex(n, h, w):
        rows = zip(a[i, j].tolist(), b[i if d > 1 else 0, k].tolist())
        assert out[i, j, k] == sum((x - points[0].item()) * (y - points[1].item()) for x, y in rows)


@pytest.mark.parametrize(("first", "second", "to"), MIXED, ids=str)
def test_floats_of_two_types_are_within_the_dot_product_bound(first: ElementType, second: ElementType, to: ElementType
                                                              ) -> None:
    random = np.random.default_rng(2)
    for n, h, c, w, d in SHAPES:
        a, b = random.normal(size=(n, h, c)).astype(first.dtype), random.normal(size=(d, w, c)).astype(second.dtype)
        op = MatMulT(to=to)
        check(op, a, b, np.zeros(1, first.dtype), np.zeros(1, second.dtype), constants=(2, 3),
              bound=dot_product_bound(op, c, to, to))


@pytest.mark.parametrize(("first", "second", "to"), PLAIN, ids=str)
def test_matmul_takes_two_types_of_bytes(first: ElementType, second: ElementType, to: ElementType) -> None:
    random = np.random.default_rng(3)
    a, b = random.normal(size=(2, 3, 5)).astype(first.dtype), random.normal(size=(2, 5, 4)).astype(second.dtype)
    op = MatMul(to=to)
    check(op, a, b, np.zeros(1, first.dtype), np.zeros(1, second.dtype), constants=(2, 3),
          bound=dot_product_bound(op, 5, to, to))


def given(element: ElementType, *shape: int | None) -> Given:
    return unknown(*shape, element=element)


def zero(element: ElementType, value: int = 0) -> Given:
    return Given(TensorType((1,), element), np.array([value], element.dtype))


@pytest.mark.parametrize(("operator", "allowed"), [
    (MatMulT, {*MIXED, *WHOLE}), (MatMul, {*PLAIN, *WHOLE})],
    ids=["matmul_t", "matmul"])
def test_no_other_types_go_together(operator: type[Product], allowed: set[Any]) -> None:
    for a, b, to in itertools.product(ELEMENTS, repeat=3):
        operands = [given(a, 2, 3, 3), given(b, 2, 3, 3), zero(a), zero(b)]
        if (a, b, to) in allowed:
            assert operator(to=to).result_types(operands) == (TensorType((2, 3, 3), to),)
        else:
            with pytest.raises(Problem, match="may not be"):
                operator(to=to).result_types(operands)


@pytest.mark.parametrize(("a", "b", "result"), [(F16, F16, F16), (F8E4M3, F8E5M2, F32), (BF16, BF16, F32), (I8, I8, I32)])
def test_the_result_has_a_usual_type(a: ElementType, b: ElementType, result: ElementType) -> None:
    found = MatMulT().result_types([given(a, None, 2, None), given(b, 1, 4, 3), zero(a), zero(b)])
    assert found == (TensorType((None, 2, 4), result),)


BAD: list[tuple[list[Given], str]] = [
    ([given(I8, 2, 3), given(I8, 1, 4, 3), zero(I8), zero(I8)], "the first operand must have rank 3"),
    ([given(I8, 1, 2, 3), given(I8, 4, 3), zero(I8), zero(I8)], "the second operand must have rank 3"),
    ([given(I8, 1, 2, 3), given(I8, 1, 4, 2), zero(I8), zero(I8)], "the last extents of .* differ"),
    ([given(I8, 4, 2, 3), given(I8, 2, 4, 3), zero(I8), zero(I8)], "neither 1 nor that of"),
    ([given(I8, 1, 2, 3), given(I8, 2, 4, 3), zero(I8), zero(I8)], "neither 1 nor that of"),
    ([given(F16, 1, 2, 3), given(BF16, 1, 4, 3), zero(F16), zero(F16)], "the zero point of the second operand must be bf16"),
    ([given(F32, 1, 2, 3), given(BF16, 1, 4, 3), zero(F32, 1), zero(BF16)], "must be 0 for f32, it is 1"),
    ([given(I16, 1, 2, 3), given(I16, 1, 4, 3), zero(I16), zero(I16, 2)], "must be 0 for i16, it is 2"),
]


@pytest.mark.parametrize(("operands", "message"), BAD, ids=[message for _, message in BAD])
def test_matmul_t_refuses(operands: list[Given], message: str) -> None:
    with pytest.raises(Problem, match=message):
        MatMulT().result_types(operands)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", [
    pytest.param(t, marks=pytest.mark.skipif(not runs_here(t), reason="this processor lacks its instructions"), id=key)
    for key, t in TARGETS.items() if key in ("512 bits", "256 bits, no masks", "128 bits", "scalar")])
@pytest.mark.parametrize("is_constant", [False, True], ids=["b from data", "b is known"])
def test_products_in_native_code(is_constant: bool, target: Any) -> None:
    constants = (1, 2, 3) if is_constant else (2, 3)
    for n, h, c, w, d in (*SHAPES, (2, 9, 33, 40, 1), (2, 9, 33, 40, 2)):
        points = np.array([3], np.int8), np.zeros(1, np.int8)
        check_native(target, MatMulT(), integers((n, h, c), I8, 4), integers((d, w, c), I8, 5), *points, constants=constants)
        random = np.random.default_rng(6)
        for first, second, to in ((F32, F32, F32), (F8E4M3, F16, BF16), (BF16, F8E5M2, F32), (F16, F16, F16)):
            a, b = random.normal(size=(n, h, c)).astype(first.dtype), random.normal(size=(d, w, c)).astype(second.dtype)
            op = MatMulT(to=to)
            check_native(target, op, a, b, np.zeros(1, first.dtype), np.zeros(1, second.dtype), constants=constants,
                         bound=dot_product_bound(op, c, to, to))


def test_the_element_is_one_sum_of_products() -> None:
    """The pattern that schedules know as a contraction."""
    types = TensorType((2, 8, 16), I8), TensorType((1, 32, 16), I8), TensorType((1,), I8), TensorType((1,), I8)
    tensors = [stored(t, Buffer("x", t.element.storage, t.dims, "constant" if t.dims == (1,) else "argument",
                                np.zeros(1, np.int8) if t.dims == (1,) else None)) for t in types]
    out, = MatMulT().result_types([Given(t.type, t.constant) for t in tensors])
    assert isinstance(out, TensorType)
    found = MatMulT().element(out, *tensors)(*(Affine.of(Axis("i", n)) for n in out.dims))
    assert isinstance(found, Reduce) and len(found.axes) == 1 and isinstance(found.body, Apply)
    assert found.body.primitive == "mul" and all(isinstance(f, Cast) and isinstance(f.arg, Load) for f in found.body.args)


def test_matmul_t_of_a_traced_function_agrees_with_its_reference() -> None:
    random = np.random.default_rng(7)
    a, b = random.normal(size=(4, 17, 40)).astype(np.float32), random.normal(size=(1, 50, 40)).astype(np.float32)
    traced = tosaic.jit(lambda x, y: tosaic.tosa.matmul_t(x, y)).trace(a, b)
    assert traced.check([[a, b]]).agrees
    assert "contraction" in traced.lower().show("schedule")
    np.testing.assert_allclose(traced.compile()(a, b), a @ b.swapaxes(1, 2), rtol=1e-4, atol=1e-4)
