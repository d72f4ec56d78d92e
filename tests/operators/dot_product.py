"""TOSA's bound on the error of a sum of products, for operators whose reference is given absolute values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, Array, ElementType

FRACTION = {F64: 52, F32: 23, F16: 10, BF16: 7, F8E4M3: 3, F8E5M2: 2}
NORMAL_MINIMUM = {F64: 2.0**-1022, F32: 2.0**-126, F16: 2.0**-14, BF16: 2.0**-126, F8E4M3: 2.0**-6, F8E5M2: 2.0**-14}


def dot_product_bound(op: Op, terms: int, out: ElementType, accumulator: ElementType, has_bias: bool = False
                      ) -> Callable[..., Array]:
    """2 * ksb error units of each output, from the operator's sums of absolute values."""
    ksb = np.ceil(terms / 2 ** ((FRACTION[accumulator] - FRACTION[out]) / 2)) + has_bias

    def bound(expected: Array, *inputs: Array) -> Array:
        total: Any = op.reference(*map(np.abs, inputs))
        return np.asarray(2 * ksb * np.maximum(total * 2.0 ** -(1 + FRACTION[out]), NORMAL_MINIMUM[out]))

    return bound
