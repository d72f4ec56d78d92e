"""GATHER, ROW_GATHER and SCATTER: rows of [N, K, C] by their index. The specification leaves the result of an index out of
range unpredictable; here the gathers clamp it and SCATTER writes nothing.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis
from ...elements.expression import Const, Expr, IndexValue, cast, clamp, reduce, select
from ...elements.tensor import Element, Tensor, gathered
from ...graph.operator import Op, Operand
from ...graph.types import I32, I64, Array, TensorType
from .convolution import quotient_and_remainder
from .operands import integers, known, one_element, one_of, ranked, same, tensor


class Gather(Op, name="tosa.gather"):
    """out[n, w] = values[n, indices[n, w]]. TOSA 1.0, scatter and gather operators."""

    def infer(self, values: Operand, indices: Operand) -> TensorType:
        batch, _, channels = ranked(values, 3, "the values")
        other, places = ranked(indices, 2, "the indices")
        require(same(batch, other), f"the batches of {values.type} and {indices.type} differ", kind="shape")
        one_of(tensor(indices, "the indices").element, (I32, I64), "an index")
        return TensorType((known(batch, other), places, channels), tensor(values, "the values").element)

    def reference(self, values: Array, indices: Array) -> Array:
        rows = indices.clip(0, values.shape[1] - 1)
        return values[np.arange(len(values))[:, None], rows]

    def element(self, out: TensorType, values: Tensor, indices: Tensor) -> Element:
        return lambda n, w, c: values[n, gathered(row_number(indices[n, w], values), values.type.dims[1]), c]


class RowGather(Op, name="tosa.row_gather"):
    """out[n, w * row_count + r] = values[n, indices[n, w] + r] for r below row_count, one i32 that is known when
    compiling. TOSA 1.1, scatter and gather operators."""

    def infer(self, values: Operand, indices: Operand, row_count: Operand) -> TensorType:
        found = Gather().infer(values, indices)
        one_element(row_count, I32, "the row count")
        count, = integers(row_count, "the row count", 1)
        require(count > 0, f"the row count must be positive, it is {count}", kind="shape")
        batch, places, channels = found.shape or (None, None, None)
        return TensorType((batch, None if places is None else places * count, channels), found.element)

    def reference(self, values: Array, indices: Array, row_count: Array) -> Array:
        last = values.shape[1] - 1
        first = indices.clip(0, last).astype(np.int64)
        rows = (first[:, :, None] + np.arange(row_count.item())).clip(0, last).reshape(len(first), -1)
        return values[np.arange(len(values))[:, None], rows]

    def element(self, out: TensorType, values: Tensor, indices: Tensor, row_count: Tensor) -> Element:
        count, = row_count.integers
        extent = values.type.dims[1]

        def element(n: Affine, row: Affine, c: Affine) -> Expr:
            w, r = quotient_and_remainder(row, indices.type.dims[1], count)
            first = clamp(row_number(indices[n, w], values), 0, extent - 1)
            return values[n, gathered(first + IndexValue(r), extent), c]

        return element


def row_number(index: Expr, values: Tensor) -> Expr:
    """Return an index as an int32; a 64-bit index is clamped."""
    return cast(clamp(index, 0, values.type.dims[1] - 1), "int32") if index.dtype == "int64" else index


class Scatter(Op, name="tosa.scatter"):
    """values_in, but row indices[n, w] is input[n, w]. TOSA 1.0, scatter and gather operators."""

    def infer(self, values: Operand, indices: Operand, rows: Operand) -> TensorType:
        batch, extent, channels = ranked(values, 3, "the values")
        first, places = ranked(indices, 2, "the indices")
        second, width, depth = ranked(rows, 3, "the rows")
        element = tensor(values, "the values").element
        one_of(tensor(rows, "the rows").element, (element,), f"a row of values of {element}")
        one_of(tensor(indices, "the indices").element, (I32, I64), "an index")
        fits = same(batch, first) and same(batch, second) and same(places, width) and same(channels, depth)
        require(fits, f"{rows.type} are not the rows of {values.type} that {indices.type} names", kind="shape")
        require(None in (extent, places) or (extent or 0) >= (places or 0),
                f"{places} rows are written, there are {extent}, and each may be written once", kind="shape")
        return TensorType((known(known(batch, first), second), extent, known(channels, depth)), element)

    def reference(self, values: Array, indices: Array, rows: Array) -> Array:
        result = values.copy()
        batch, place = np.nonzero((indices >= 0) & (indices < values.shape[1]))
        result[batch, indices[batch, place]] = rows[batch, place]
        return result

    def element(self, out: TensorType, values: Tensor, indices: Tensor, rows: Tensor) -> Element:
        """Return the element: row k is the last of `rows` whose index is k, if there is one: W comparisons for each element."""
        places = indices.type.dims[1]

        def element(n: Affine, k: Affine, c: Affine) -> Expr:
            w = Axis("w", places)
            here = indices[n, w].equals(cast(IndexValue(k), indices.type.element.storage))
            last = reduce("max", (w,), select(here, IndexValue(Affine.of(w)), Const(-1, "int32")))
            return select(last < 0, values[n, k, c], rows[n, gathered(last, places), c])

        return element
