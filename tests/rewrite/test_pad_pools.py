"""A border that never decides a maximum becomes the pool's padding, and results stay; any other border stays, too."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.graph.graph import Function, Module, Value
from tosaic.lowering.graph.types import F32, I8, ElementType, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.pad_pools import pad_pools
from tosaic.lowering.rewrite.prune import prune
from tosaic.runtime.interpreter import Interpreter

EVEN, ROWS = (1, 7, 6, 5), (0, 0, 1, 0, 0, 1, 0, 0)


def pooled(e: Emitter, x: Value, amounts: tuple[int, ...], pad_value: float, pad: tuple[int, ...] = (0, 0, 0, 0),
           nan_mode: str = "PROPAGATE") -> Value:
    element = x.tensor.element
    border = e("pad", x, e.shape(amounts), e.constant(np.full(1, pad_value, element.dtype), element))
    return e("max_pool2d", border, kernel=(2, 3), stride=(1, 1), pad=pad, nan_mode=nan_mode)


def clamped(e: Emitter, x: Value, least: float) -> Value:
    return e("clamp", x, min_val=least, max_val=100.0 if x.tensor.element.is_float else 100)


def module(least: float | None, element: ElementType, *how: object) -> Module:
    e = Emitter()
    x = e.blocks[0].argument(TensorType(EVEN, element), "x")
    result = pooled(e, x if least is None else clamped(e, x, least), *how)  # type: ignore[arg-type]
    return Module((Function("f", e.blocks[0].finish(result), (result.type,)),))


def has_pad(before: Module, element: ElementType) -> bool:
    """True if the pad is left, after a check that results stay, interpreted and compiled."""
    after = prune(pad_pools(before))
    verify(after)
    x = (np.random.default_rng(3).standard_normal(EVEN) * 30).astype(element.dtype)
    expected, = Interpreter(before)(x)
    found = Traced(after, "f").compile()(x)
    np.testing.assert_array_equal(Interpreter(after)(x)[0], expected)
    np.testing.assert_array_equal(found[0] if isinstance(found, tuple) else found, expected)
    return any(o.op.name == "tosa.pad" for o in after.functions[0].body.operations)


@pytest.mark.parametrize("least,element,how", [
    (0.0, F32, (ROWS, 0.0)), (0.5, F32, (ROWS, 0.25)), (-2.0, F32, (ROWS, -np.inf)), (None, F32, (ROWS, -np.inf)),
    (None, I8, (ROWS, -128)), (3, I8, (ROWS, 3)), (0.0, F32, ((0, 0, 0, 1, 1, 1, 0, 0), 0.0)),
    (0.0, F32, (ROWS, 0.0, (0, 1, 2, 0)))])
def test_becomes_padding(least: float | None, element: ElementType, how: tuple[object, ...]) -> None:
    assert not has_pad(module(least, element, *how), element)


@pytest.mark.parametrize("least,element,how", [
    (None, F32, (ROWS, 0.0)), (-1.0, F32, (ROWS, 0.0)), (None, F32, (ROWS, -1e38)), (None, I8, (ROWS, -127)),
    (0.0, F32, ((0, 0, 2, 0, 0, 0, 0, 0), 0.0)), (0.0, F32, ((0, 0, 1, 0, 0, 0, 0, 1), 0.0)),
    (0.0, F32, (ROWS, 0.0, (1, 0, 0, 0))), (0.0, F32, (ROWS, 0.0, (0, 0, 0, 0), "IGNORE"))],
    ids=["any", "below", "nearly least", "one above", "wider than the window", "channels", "together", "not a number"])
def test_stays(least: float | None, element: ElementType, how: tuple[object, ...]) -> None:
    assert has_pad(module(least, element, *how), element)
