"""The end of a row that is one element longer than whole vectors."""
from __future__ import annotations

import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load, cast, clamp, extreme

from ..schedule.kernels import check, kernel


@pytest.mark.parametrize("size", [5, 9, 17, 33])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_one_lane_that_is_narrowed_writes_one_element(dtype: str, size: int) -> None:
    """LLVM's masked store of it would write the bytes of the wider type."""
    axis = Axis("i", size)
    x = Load(Buffer("x", "int32", (size,), "argument"), (Affine.of(axis),))
    for value in (x, clamp(x, extreme(dtype, "min"), extreme(dtype, "max"))):
        check([kernel(Buffer("out", dtype, (size,), "result"), (axis,), cast(value, dtype))])
