"""MATMUL."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.matmul import MatMul
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I8, I16, I32, I48, ElementType, TensorType
from tosaic.runtime.errors import Problem

from .dot_product import dot_product_bound
from .harness import Given, check, unknown

SHAPES = [(1, 1, 1, 1), (1, 5, 7, 3), (3, 4, 2, 6), (2, 1, 9, 4)]  # N, H, C, W
FLOATS = [(F32, F32), (F16, F16), (F16, F32), (BF16, F32), (F8E4M3, F16), (F8E5M2, F16), (F8E4M3, F32)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("constants", [(2, 3), ()], ids=["known zero points", "zero points from data"])
def test_i8_matmul_is_its_reference(shape: tuple[int, int, int, int], constants: tuple[int, ...]) -> None:
    n, h, c, w = shape
    random = np.random.default_rng(0)
    arrays = [random.integers(-128, 128, s).astype(np.int8) for s in ((n, h, c), (n, c, w), (1,), (1,))]
    out = check(MatMul(), *arrays, constants=constants)
    a, b, za, zb = (x.astype(np.int64) for x in arrays)
    assert out.dtype == np.int32 and (out == (a - za) @ (b - zb)).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_i16_matmul_is_its_reference(shape: tuple[int, int, int, int]) -> None:
    n, h, c, w = shape
    random = np.random.default_rng(1)
    a, b = (random.integers(-32768, 32768, s).astype(np.int16) for s in ((n, h, c), (n, c, w)))
    zero = np.zeros(1, np.int16)
    out = check(MatMul(), a, b, zero, zero, constants=(2, 3))
    assert out.dtype == np.int64 and (out == a.astype(np.int64) @ b.astype(np.int64)).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("element", "to"), FLOATS, ids=str)
def test_float_matmul_is_within_the_dot_product_bound(shape: tuple[int, int, int, int], element: ElementType,
                                                      to: ElementType) -> None:
    n, h, c, w = shape
    random = np.random.default_rng(2)
    a, b = (random.normal(size=s).astype(element.dtype) for s in ((n, h, c), (n, c, w)))
    zero = np.zeros(1, element.dtype)
    op = MatMul(to=to)
    check(op, a, b, zero, zero, constants=(2, 3), bound=dot_product_bound(op, c, to, to))


def test_an_i8_sum_wraps_at_32_bits() -> None:
    a = np.full((1, 1, 1 << 16), 127, np.int8)
    low, zero = np.array([-128], np.int8), np.zeros(1, np.int8)
    total = 255 * 255 * (1 << 16)
    out = check(MatMul(), a, a.reshape(1, -1, 1), low, low, constants=(2, 3))
    assert out.item() == total - (1 << 32)
    assert check(MatMul(), a, a.reshape(1, -1, 1), zero, zero, constants=(2, 3)).item() == 127 * 127 * (1 << 16)


def typed(shape: tuple[int | None, ...], element: ElementType) -> Given:
    return unknown(*shape, element=element)


def zero(element: ElementType, value: int = 0) -> Given:
    return Given(TensorType((1,), element), np.array([value], element.dtype))


@pytest.mark.parametrize(("a", "b", "za", "zb", "to", "message"), [
    (typed((2, 3), I8), typed((1, 3, 4), I8), zero(I8), zero(I8), None, "the first operand must have rank 3"),
    (typed((1, 2, 3), I8), typed((3, 4), I8), zero(I8), zero(I8), None, "the second operand must have rank 3"),
    (typed((1, 2, 3), I8), typed((1, 4, 4), I8), zero(I8), zero(I8), None, "the inner extents of .* differ"),
    (typed((1, 2, 3), I8), typed((2, 3, 4), I8), zero(I8), zero(I8), None, "the batches of .* differ"),
    (typed((1, 2, 3), I8), typed((1, 3, 4), I16), zero(I8), zero(I16), None, "may not be i16"),
    (typed((1, 2, 3), I48), typed((1, 3, 4), I48), zero(I48), zero(I48), None, "may not be i48"),
    (typed((1, 2, 3), I8), typed((1, 3, 4), I8), zero(I16), zero(I8), None, "the first operand must be i8"),
    (typed((1, 2, 3), I16), typed((1, 3, 4), I16), zero(I16, 3), zero(I16), None, "must be 0 for i16, it is 3"),
    (typed((1, 2, 3), F32), typed((1, 3, 4), F32), zero(F32), zero(F32, 1), None, "must be 0 for f32, it is 1"),
    (typed((1, 2, 3), F32), typed((1, 3, 4), F32), zero(F32), zero(F32), F16, "a product of f32 and f32 may not be f16"),
])
def test_matmul_refuses(a: Given, b: Given, za: Given, zb: Given, to: ElementType | None, message: str) -> None:
    with pytest.raises(Problem, match=message):
        MatMul(to=to).result_types([a, b, za, zb])


def test_the_result_type_follows_the_operands() -> None:
    for element, result in ((I8, I32), (I16, I48), (F32, F32), (BF16, F32), (F16, F16), (F8E5M2, F16)):
        operands = [typed((1, 2, None), element), typed((None, 3, 4), element), zero(element), zero(element)]
        assert MatMul().result_types(operands) == (TensorType((1, 2, 4), result),)
