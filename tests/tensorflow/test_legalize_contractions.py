"""Products of matrices and einsums of TensorFlow, as TOSA, against their references."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

from .operation_program import Known, check, operators, program
from .three_ways import tosa_of

BOOLEANS = (False, True)


def random(shape: tuple[int, ...], dtype: object = np.float32, seed: int = 0) -> Array:
    generator = np.random.default_rng((seed, *shape))
    if np.dtype(dtype).kind in "iu":  # type: ignore[call-overload]
        return generator.integers(-50 if np.dtype(dtype).kind == "i" else 0, 100, shape).astype(dtype)  # type: ignore
    return generator.standard_normal(shape).astype(dtype)  # type: ignore[call-overload]


def flags(**values: bool) -> str:
    return ", ".join(f"{name} = {str(value).lower()}" for name, value in values.items())


@pytest.mark.parametrize("known", [(), (0,), (1,)])
@pytest.mark.parametrize("b", BOOLEANS)
@pytest.mark.parametrize("a", BOOLEANS)
def test_matmul_with_transposed_operands(a: bool, b: bool, known: tuple[int, ...]) -> None:
    left, right = random((7, 5) if a else (5, 7)), random((9, 7) if b else (7, 9))
    operands = [Known(x) if i in known else x for i, x in enumerate((left, right))]
    module = check("MatMul", flags(transpose_a=a, transpose_b=b), operands, "f32")
    transposes = operators(module).count("tosa.transpose")
    assert transposes == sum(t for i, t in enumerate((a, b)) if i not in known), "a constant is transposed when compiling"


@pytest.mark.parametrize(("dtype", "element"), [(np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"), (np.int32, "i32"),
                                                (np.int64, "i64"), (np.int8, "i8"), (np.int16, "i16"), (np.uint8, "ui8")])
def test_matmul_of_other_types(dtype: object, element: str) -> None:
    check("MatMul", flags(transpose_b=True), [random((3, 6), dtype), random((4, 6), dtype, 1)], element)


def test_bytes_into_32_bits() -> None:
    module = check("BatchMatMulV3", flags(adj_x=False), [random((2, 3, 6), np.int8), random((6, 4), np.int8)], "i32")
    assert "tosa.matmul" in operators(module)


BATCHES = [((2, 3, 4), (2, 4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((1, 3, 4), (6, 4, 5)),
           ((6, 3, 4), (1, 4, 5)), ((2, 1, 3, 4), (1, 5, 4, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 1, 4), (2, 3, 4, 1))]


@pytest.mark.parametrize("adj", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("a", "b"), BATCHES)
def test_batches_broadcast(a: tuple[int, ...], b: tuple[int, ...], adj: tuple[bool, bool]) -> None:
    left, right = random(a), random(b)
    left = np.ascontiguousarray(left.swapaxes(-1, -2)) if adj[0] else left
    right = np.ascontiguousarray(right.swapaxes(-1, -2)) if adj[1] else right
    check("BatchMatMulV2", flags(adj_x=adj[0], adj_y=adj[1]), [left, right], "f32")


def test_a_right_operand_that_the_batch_shares_is_one_product_of_all_rows() -> None:
    module = tosa_of(program("BatchMatMulV2", flags(adj_x=False), [random((4, 3, 8)), Known(random((8, 5)))], "f32"))
    product = next(o for o in module.functions[0].body.operations if o.op.name == "tosa.matmul")
    assert product.results[0].tensor.dims == (1, 12, 5)
    assert operators(module) == ["tosa.reshape", "tosa.matmul", "tosa.reshape"]


EINSUMS = [("ab,bc->ac", (3, 4), (4, 5)), ("ab,bc->ca", (3, 4), (4, 5)), ("ab,cb->ac", (3, 4), (5, 4)),
           ("ba,bc->ac", (4, 3), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
           ("bthd,bshd->bhts", (2, 3, 4, 5), (2, 6, 4, 5)), ("abc,cde->abde", (2, 3, 4), (4, 5, 6)),
           ("bhts,bshd->bthd", (2, 4, 3, 6), (2, 6, 4, 5)), ("abc,dbc->da", (2, 3, 4), (5, 3, 4)),
           ("a,b->ab", (3,), (4,)), ("a,b->ba", (3,), (4,)), ("ab,ab->ab", (3, 4), (3, 4)), ("ab,ab->", (3, 4), (3, 4)),
           ("a,a->", (4,), (4,)), ("abx,bcy->ac", (2, 3, 4), (3, 5, 6)), ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
           ("...ij,jk->...ik", (2, 6, 3, 4), (4, 5)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
           ("...ij,...jk->k...i", (2, 1, 3, 4), (5, 4, 2)), ("i...,i...->...", (3, 4), (3, 4)), ("ab,->ba", (3, 4), ()),
           ("aab,bc->ac", (3, 3, 4), (4, 5)), ("ij,jkk->ik", (3, 4), (4, 2, 2)), ("...ii,i->...", (2, 3, 3), (3,)),
           ("aa,bb->ab", (3, 3), (2, 2)), ("aa,aa->", (3, 3), (3, 3))]


@pytest.mark.parametrize("known", BOOLEANS)
@pytest.mark.parametrize(("equation", "a", "b"), EINSUMS)
def test_einsums_of_two(equation: str, a: tuple[int, ...], b: tuple[int, ...], known: bool) -> None:
    right = Known(random(b)) if known else random(b)
    check("Einsum", f'equation = "{equation}"', [random(a), right], "f32")


@pytest.mark.parametrize(("equation", "shape"), [
    ("ab->ba", (3, 4)), ("ab->a", (3, 4)), ("abc->", (3, 4, 2)), ("...a->...", (2, 3, 4)), ("a...b->b...a", (2, 3, 4)),
    ("abc->cb", (2, 3, 4)), ("ab->ab", (2, 3)), ("ii->i", (4, 4)), ("ii->", (4, 4)), ("...ii->...i", (2, 3, 4, 4)),
    ("iji->j", (3, 2, 3)), ("iaia->ai", (2, 3, 2, 3)), ("iii->i", (3, 3, 3)), ("i...i->...", (3, 2, 4, 3)), ("ii->i", (1, 1))])
def test_einsums_of_one(equation: str, shape: tuple[int, ...]) -> None:
    check("Einsum", f'equation = "{equation}"', [random(shape)], "f32")


@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_einsums_of_other_types(dtype: object) -> None:
    element = {np.int32: "i32", np.float16: "f16"}[dtype]  # type: ignore[index]
    check("Einsum", 'equation = "bxi,bio->bo"', [random((2, 3, 4), dtype), random((2, 4, 5), dtype)], element)


@pytest.mark.parametrize(("equation", "shapes", "message"), [
    ("a->aa", [(3,)], "axis a stands twice in the result"), ("aa->a", [(3, 4)], "axis a has the extents 3 and 4"),
    ("ab,bc,cd->ad", [(2, 2)] * 3, "does not fit 3 operands"),
    ("ab,bc", [(2, 2)] * 2, "does not fit"), ("ab,bc->ad", [(2, 2)] * 2, "axis d of the result"),
    ("ab,bc->ac", [(2, 3), (2, 3)], "axis b has the extents 3 and 2"), ("abc->ab", [(2, 2)], "does not name the axes"),
    ("...a->a", [(2, 2)], r"the axes that \.\.\. stands for")])
def test_what_an_equation_may_not_be(equation: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        tosa_of(program("Einsum", f'equation = "{equation}"', [random(s) for s in shapes], "f32"))
    assert "tf.Einsum" in str(caught.value)


@pytest.mark.parametrize(("name", "a", "b", "message"), [
    ("MatMul", (2, 3), (2, 3), "the inner extents differ"), ("MatMul", (2, 2, 2), (2, 2), "matrices are needed"),
    ("BatchMatMulV2", (2, 3, 4), (3, 4, 5), "do not broadcast"), ("BatchMatMulV2", (3,), (3, 4), "at least two axes")])
def test_what_a_product_may_not_be(name: str, a: tuple[int, ...], b: tuple[int, ...], message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        tosa_of(program(name, flags(), [random(a), random(b)], "f32"))
    assert f"tf.{name}" in str(caught.value)
