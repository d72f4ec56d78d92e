"""How tests hold functions of traced tensors against NumPy's: the same Python functions on arrays and, in one graph, on
tensors."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tosaic
from tosaic.runtime.interpreter import interpret

WIDER = {np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.int64): np.dtype(np.int32),
         np.dtype(np.uint64): np.dtype(np.uint32)}
"""What tosaic makes where NumPy widens to its default types."""


def values(function: Callable[..., Any], arrays: Sequence[Any], engine: str) -> list[Any]:
    """The results of a function that returns a tuple, compiled or interpreted."""
    jitted = tosaic.jit(function)
    if engine == "compiled":
        return list(jitted(*arrays))
    traced = jitted.trace(*arrays)
    found = iter(interpret(traced.module, traced.function, [a for a in arrays if np.size(a)]))
    results = traced.results
    assert results is not None
    return [np.empty(*child.names) if child.form == "empty" else next(found) for child in results.children]


def agree(functions: Mapping[str, Callable[..., Any]], *arrays: Any, ulps: float = 0, rtol: float = 3e-6, atol: float = 3e-6,
          engine: str = "compiled") -> None:
    """All functions mean the same on tensors as on arrays; floats within `ulps` units in the last place, or else nearly."""
    names = list(functions)
    actual = values(lambda *tensors: tuple(functions[name](*tensors) for name in names), arrays, engine)
    for name, result in zip(names, actual, strict=True):
        with np.errstate(all="ignore"):
            expected = np.asarray(functions[name](*arrays))
        if result.dtype != expected.dtype:
            assert WIDER.get(expected.dtype) == result.dtype, f"{name}: {result.dtype} for {expected.dtype}"
            expected = expected.astype(result.dtype)
        assert result.shape == expected.shape, f"{name}: {result.shape} for {expected.shape}"
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(result, expected, err_msg=name)
        elif ulps:
            assert distance(result, expected).max(initial=0) <= ulps, name
        else:
            np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol, err_msg=name)


def distance(actual: Any, expected: Any) -> Any:
    """How many units in the last place two arrays of floats differ; zeros are equal, NaN is NaN, all else infinitely far."""
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(expected), np.finfo(expected.dtype).tiny)
        found = np.abs(actual.astype(np.longdouble) - expected.astype(np.longdouble)) / np.spacing(size)
    found = np.where(np.isfinite(actual) & np.isfinite(expected), found, np.inf)
    return np.where(same, 0, found).astype(np.float64)
