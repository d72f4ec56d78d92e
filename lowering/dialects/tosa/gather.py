"""GATHER and SCATTER: rows of [N, K, C] by their number. An index that is out of range is unpredictable by the
specification; here GATHER clamps it and SCATTER writes nothing.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis
from ...elements.expression import Const, Expr, IndexValue, cast, reduce, select
from ...elements.tensor import Element, Tensor, gathered
from ...graph.operator import Op, Operand
from ...graph.types import I32, I64, Array, TensorType
from .operands import known, one_of, ranked, same, tensor


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
        return lambda n, w, c: values[n, gathered(indices[n, w], values.type.dims[1]), c]


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
        """Row k is the last of `rows` whose index is k, if there is one: W comparisons for each element."""
        places = indices.type.dims[1]

        def element(n: Affine, k: Affine, c: Affine) -> Expr:
            w = Axis("w", places)
            here = indices[n, w].equals(cast(IndexValue(k), indices.type.element.storage))
            last = reduce("max", (w,), select(here, IndexValue(Affine.of(w)), Const(-1, "int32")))
            return select(last < 0, values[n, k, c], rows[n, gathered(last, places), c])

        return element
