"""References round their exact results once: a sum that is a tie but for its last term is none."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.convolution import Conv2D, DepthwiseConv2D, TransposeConv2D
from tosaic.lowering.dialects.tosa.matmul import MatMulT
from tosaic.lowering.dialects.tosa.pooling import AvgPool2D
from tosaic.lowering.dialects.tosa.reduction import ReduceSum
from tosaic.lowering.dialects.tosa.resize import Resize
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import BF16, F32, Array

TERMS = (1.0, 2.0**-8, 2.0**-40)
"""Half a unit of bf16 and a little more above 1."""
ABOVE = 1 + 2.0**-7


def array(values: Any, *shape: int) -> Array:
    return np.array(values, BF16.dtype).reshape(shape)


ZERO = array(0, 1)
CONVOLUTION = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1), "acc_type": F32}
CASES: list[tuple[Op, list[Array]]] = [
    (ReduceSum(axis=0), [array(TERMS, 3)]),
    (AvgPool2D(kernel=(2, 2), stride=(1, 1), pad=(0, 0, 0, 0), acc_type=F32),
     [array([4, 2.0**-6, 2.0**-38, 0], 1, 2, 2, 1), ZERO, ZERO]),
    (MatMulT(to=BF16), [array(TERMS, 1, 1, 3), array([1, 1, 1], 1, 1, 3), ZERO, ZERO]),
    (Conv2D(**CONVOLUTION), [array(TERMS, 1, 1, 1, 3), array([1, 1, 1], 1, 1, 1, 3), ZERO, ZERO, ZERO]),
    (DepthwiseConv2D(**CONVOLUTION), [array(TERMS, 1, 3, 1, 1), array([1, 1, 1], 3, 1, 1, 1), ZERO, ZERO, ZERO]),
    (TransposeConv2D(out_pad=(0, 0, 0, 0), stride=(1, 1), acc_type=F32),
     [array(TERMS, 1, 1, 1, 3), array([1, 1, 1], 1, 1, 1, 3), ZERO, ZERO, ZERO]),
    (Resize(mode="BILINEAR"), [array([2 + 2.0**-6, 2, 2.0**-38, 2.0**-38], 1, 2, 2, 1), np.array([2, 1, 2, 1]),
                               np.array([1, 1]), np.array([-1, -1])]),
]


@pytest.mark.parametrize(("op", "arrays"), CASES, ids=lambda x: getattr(x, "name", ""))
def test_a_sum_just_above_a_tie_is_rounded_up(op: Op, arrays: list[Array]) -> None:
    result = op.reference(*arrays)
    assert result.dtype == BF16.dtype and result.reshape(-1).astype(np.float64).tolist() == [ABOVE]
