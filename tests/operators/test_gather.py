"""GATHER, ROW_GATHER and SCATTER."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.gather import Gather, RowGather, Scatter
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import BF16, F8E5M2, F16, F32, I1, I8, I16, I32, I64, ElementType, TensorType
from tosaic.runtime.errors import Problem

from .harness import Given, check, unknown

ELEMENTS = [I1, I8, I16, I32, I64, F16, BF16, F32, F8E5M2]
SHAPES = [(1, 1, 1, 1), (1, 5, 3, 4), (3, 4, 4, 1), (2, 7, 2, 3)]  # N, K, W, C


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("index", [I32, I64])
@pytest.mark.parametrize("constants", [(), (1,)], ids=["indices from data", "known indices"])
def test_gather_takes_rows(shape: tuple[int, ...], element: ElementType, index: ElementType,
                           constants: tuple[int, ...]) -> None:
    n, k, w, c = shape
    random = np.random.default_rng(0)
    values = random.integers(0, 2 if element == I1 else 99, (n, k, c)).astype(element.dtype)
    indices = random.integers(0, k, (n, w)).astype(index.dtype)
    out = check(Gather(), values, indices, constants=constants)
    for batch, place in np.ndindex(n, w):
        assert (out[batch, place] == values[batch, indices[batch, place]]).all()


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("index", [I32, I64])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_row_gather_takes_neighbouring_rows(shape: tuple[int, ...], element: ElementType, index: ElementType, count: int
                                            ) -> None:
    n, k, w, c = shape
    k += count - 1
    random = np.random.default_rng(0)
    values = random.integers(0, 2 if element == I1 else 99, (n, k, c)).astype(element.dtype)
    indices = random.integers(0, k - count + 1, (n, w)).astype(index.dtype)
    out = check(RowGather(), values, indices, np.array([count], np.int32), constants=(2,))
    assert out.shape == (n, w * count, c)
    for batch, place, row in np.ndindex(n, w, count):
        assert (out[batch, place * count + row] == values[batch, indices[batch, place] + row]).all()


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("index", [I32, I64])
def test_scatter_writes_rows(shape: tuple[int, ...], element: ElementType, index: ElementType) -> None:
    n, k, w, c = shape
    random = np.random.default_rng(1)
    values, rows = (random.integers(0, 2 if element == I1 else 99, s).astype(element.dtype)
                    for s in ((n, k, c), (n, w, c)))
    indices = np.array([random.permutation(k)[:w] for _ in range(n)], index.dtype)
    before = values.copy()
    out = check(Scatter(), values, indices, rows)
    expected = values.copy()
    for batch, place in np.ndindex(n, w):
        expected[batch, indices[batch, place]] = rows[batch, place]
    assert (out == expected).all() and (values == before).all()


def test_an_index_out_of_range_stays_inside_the_tensors() -> None:
    values = np.arange(6, dtype=np.int32).reshape(1, 3, 2)
    indices = np.array([[-5, 7, 1]], np.int32)
    assert check(Gather(), values, indices).tolist() == [[[0, 1], [4, 5], [2, 3]]]
    assert check(Scatter(), values, indices, values + 10).tolist() == [[[0, 1], [14, 15], [4, 5]]]
    rows = check(RowGather(), values, indices, np.array([2], np.int32), constants=(2,))
    assert rows.tolist() == [[[0, 1], [2, 3], [4, 5], [4, 5], [2, 3], [4, 5]]]
    assert check(RowGather(), values, indices[:, 1:2], np.array([5], np.int32), constants=(2,)).tolist() == [[[4, 5]] * 5]
    far = np.array([[np.iinfo(np.int32).max]], np.int32)
    assert check(RowGather(), values, far, np.array([2], np.int32), constants=(2,)).tolist() == [[[4, 5], [4, 5]]]


def count(*numbers: int) -> Given:
    return Given(TensorType((len(numbers),), I32), np.array(numbers, np.int32))


@pytest.mark.parametrize(("op", "operands", "message"), [
    (RowGather(), [unknown(4, 3, element=I8), unknown(1, 2, element=I32), count(1)], "the values must have rank 3"),
    (RowGather(), [unknown(1, 4, 3, element=I8), unknown(2, 2, element=I32), count(1)], "the batches of .* differ"),
    (RowGather(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I16), count(1)], "an index may not be i16"),
    (RowGather(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), count(0)], "must be positive, it is 0"),
    (RowGather(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), count(1, 1)], "must have one element"),
    (RowGather(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), unknown(1, element=I64)], "must be i32"),
    (RowGather(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), unknown(1, element=I32)],
     "the row count must be known when compiling"),
    (RowGather(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32)], "does not take 2 operands"),
    (Gather(), [unknown(4, 3, element=I8), unknown(1, 2, element=I32)], "the values must have rank 3"),
    (Gather(), [unknown(1, 4, 3, element=I8), unknown(2, element=I32)], "the indices must have rank 2"),
    (Gather(), [unknown(1, 4, 3, element=I8), unknown(2, 2, element=I32)], "the batches of .* differ"),
    (Gather(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I8)], "an index may not be i8"),
    (Scatter(), [unknown(4, 3, element=I8), unknown(1, 2, element=I32), unknown(1, 2, 3, element=I8)], "rank 3"),
    (Scatter(), [unknown(1, 4, 3, element=I8), unknown(1, element=I32), unknown(1, 2, 3, element=I8)], "rank 2"),
    (Scatter(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), unknown(1, 2, element=I8)], "rank 3"),
    (Scatter(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), unknown(1, 2, 4, element=I8)],
     "are not the rows"),
    (Scatter(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), unknown(1, 3, 3, element=I8)],
     "are not the rows"),
    (Scatter(), [unknown(1, 4, 3, element=I8), unknown(2, 2, element=I32), unknown(1, 2, 3, element=I8)],
     "are not the rows"),
    (Scatter(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=I32), unknown(1, 2, 3, element=I16)],
     "a row of values of i8 may not be i16"),
    (Scatter(), [unknown(1, 4, 3, element=I8), unknown(1, 2, element=F32), unknown(1, 2, 3, element=I8)],
     "an index may not be f32"),
    (Scatter(), [unknown(1, 1, 3, element=I8), unknown(1, 2, element=I32), unknown(1, 2, 3, element=I8)],
     "2 rows are written, there are 1"),
])
def test_gather_and_scatter_refuse(op: Op, operands: list[Given], message: str) -> None:
    with pytest.raises(Problem, match=message):
        op.result_types(operands)


def test_an_extent_is_known_if_one_operand_knows_it() -> None:
    gathered = Gather().result_types([unknown(None, 4, None, element=I8), unknown(2, None, element=I32)])
    assert gathered == (TensorType((2, None, None), I8),)
    for places, extent in ((None, None), (3, 6)):
        operands = [unknown(None, 4, None, element=I8), unknown(2, places, element=I32), count(2)]
        assert RowGather().result_types(operands) == (TensorType((2, extent, None), I8),)
    operands = [unknown(None, 4, None, element=I8), unknown(2, None, element=I32), unknown(None, 3, 5, element=I8)]
    assert Scatter().result_types(operands) == (TensorType((2, 4, 5), I8),)
