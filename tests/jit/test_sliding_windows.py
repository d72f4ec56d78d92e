"""Windows that slide along axes of traced tensors are NumPy's."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from numpy.lib.stride_tricks import sliding_window_view as windows

from .numpy_agreement import agree

CUBE = np.random.default_rng(3).standard_normal((5, 4, 3)).astype(np.float32)
I = np.arange(20, dtype=np.int8).reshape(4, 5)


def test_windows_are_those_of_numpy() -> None:
    agree({
        "all axes": lambda a, i: windows(a, (2, 3, 1)), "one": lambda a, i: windows(a, 2, 0),
        "last": lambda a, i: windows(i, 3, axis=-1), "two": lambda a, i: windows(a, (2, 2), axis=(2, 0)),
        "twice the same": lambda a, i: windows(a, (2, 2), axis=(0, 0)), "whole": lambda a, i: windows(i, (4, 5)),
        "a filter": lambda a, i: windows(a[:, 0, 0], 3) @ np.float32([1, 2, 1]),
        "least of each": lambda a, i: windows(i, (2, 2)).min(axis=(-1, -2))}, CUBE, I)


@pytest.mark.parametrize(("shape", "axis", "message"), [
    (6, 0, r"a window of 6 elements does not fit axis 0 of tensor<5x4x3xf32>"),
    (2, None, r"a window of 1 extents slides along 3 axes"), ((2, 2), 0, r"a window of 2 extents slides along 1 axes")])
def test_what_does_not_fit_is_a_problem(shape: object, axis: object, message: str) -> None:
    with pytest.raises(tosaic.Problem, match=message):
        tosaic.jit(lambda a: windows(a, shape, axis))(CUBE)  # type: ignore[call-overload]
