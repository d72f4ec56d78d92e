"""A signalling NaN is a NaN like any other: where NaN are ignored, a number beside one is the result. C's fmax, and so NumPy's,
gives NaN for it in the last lanes of a loop.
"""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.binary import Maximum, Minimum
from tosaic.lowering.dialects.tosa.pooling import MaxPool2D
from tosaic.lowering.dialects.tosa.reduction import ReduceMax, ReduceMin
from tosaic.lowering.graph.types import BF16, F16, F32, Array, ElementType

from .harness import check, wide

BITS = {F16: 0x7D57, BF16: 0x7FA1, F32: 0x7FA00001}


def signalling(element: ElementType, *shape: int) -> Array:
    size = element.dtype.itemsize
    return np.full(shape, BITS[element], f"u{size}").view(element.dtype)


@pytest.mark.parametrize("extent", (1, 2, 3, 7, 8, 17, 33))
@pytest.mark.parametrize("element", BITS, ids=str)
def test_a_number_beside_a_signalling_nan_is_the_result(element: ElementType, extent: int) -> None:
    numbers, nan = np.full((1, extent), 1.5).astype(element.dtype), signalling(element, 1, extent)
    for a, b in ((numbers, nan), (nan, numbers)):
        results = [check(op("IGNORE"), a, b) for op in (Maximum, Minimum)]
        both = np.concatenate([a, b])
        for axis, x in ((0, both), (1, np.ascontiguousarray(both.T))):
            results += [check(op(axis=axis, nan_mode="IGNORE"), x) for op in (ReduceMax, ReduceMin)]
        pool = MaxPool2D(kernel=(2, 1), stride=(1, 1), pad=(0, 0, 0, 0), nan_mode="IGNORE")
        results.append(check(pool, both.reshape(1, 2, extent, 1)))
        assert all((wide(r) == 1.5).all() for r in results)
