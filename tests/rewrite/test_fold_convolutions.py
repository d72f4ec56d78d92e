"""What stands beside a convolution and is constant becomes part of it, and the results stay."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.dialects.tosa.control_flow import CondIf
from tosaic.lowering.graph.graph import Function, Module, Value
from tosaic.lowering.graph.types import F16, F32, I1, Array, ElementType, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.fold_convolutions import fold_convolutions
from tosaic.lowering.rewrite.prune import prune
from tosaic.runtime.interpreter import Interpreter

SHAPE = (1, 6, 5, 4)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def constant(e: Emitter, *shape: int, seed: int = 0, element: ElementType = F32) -> Value:
    return e.constant(numbers(*shape, seed=seed).astype(element.dtype), element)


def convolution(e: Emitter, x: Value, name: str = "conv2d", pad: tuple[int, ...] = (1, 1, 1, 1)) -> Value:
    """Four channels to six (eight, if each has its own)."""
    element = x.tensor.element
    zero = e.constant(np.zeros(1, element.dtype), element)
    weight = constant(e, *((3, 3, 4, 2) if name == "depthwise_conv2d" else (6, 3, 3, 4)), element=element)
    window = {"out_pad": pad} if name == "transpose_conv2d" else {"pad": pad, "dilation": (1, 1)}
    return e(name, x, weight, zero, zero, zero, stride=(1, 1), acc_type=F32, **window)


def module(build: Callable[[Emitter, Value], Value | tuple[Value, ...]], element: ElementType = F32) -> Module:
    e = Emitter()
    found = build(e, e.blocks[0].argument(TensorType(SHAPE, element), "x"))
    results = found if isinstance(found, tuple) else (found,)
    return Module((Function("f", e.blocks[0].finish(*results), tuple(v.type for v in results)),))


def folded(build: Callable[[Emitter, Value], Value | tuple[Value, ...]], element: ElementType = F32) -> list[str]:
    """The operators that are left, after a check that results stay, interpreted and compiled."""
    before = module(build, element)
    after = prune(fold_convolutions(before))
    verify(after)
    x = numbers(*SHAPE, seed=5).astype(element.dtype)
    native = Traced(after, "f").compile()(x)
    expected = Interpreter(before)(x)
    for results in (Interpreter(after)(x), native if isinstance(native, tuple) else (native,)):
        for found, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=0, atol=(1e-5 if element == F32 else 4e-3) * np.abs(right).max())
    return operators(after)


def operators(found: Module) -> list[str]:
    return [o.op.name.removeprefix("tosa.") for o in found.functions[0].body.operations if "const" not in o.op.name]


@pytest.mark.parametrize(("name", "channels"), [("conv2d", 6), ("depthwise_conv2d", 8), ("transpose_conv2d", 6)])
def test_factors_and_terms_of_the_channels_go_into_weights_and_bias(name: str, channels: int) -> None:
    def build(e: Emitter, x: Value) -> Value:
        y = e.sum(convolution(e, x, name), constant(e, 1, 1, 1, channels, seed=1))
        y = e.product(e.difference(y, constant(e, 1, 1, 1, channels, seed=2)), constant(e, 1, 1, 1, channels, seed=3))
        return e.sum(e.product(y, e.splat(0.5, y)), constant(e, 1, 1, 1, channels, seed=4))
    assert folded(build) == [name]


def test_constants_on_the_left_fold_too_unless_the_convolution_is_taken_from_them() -> None:
    assert folded(lambda e, x: e.sum(constant(e, 1, 1, 1, 6), convolution(e, x))) == ["conv2d"]
    assert folded(lambda e, x: e.difference(constant(e, 1, 1, 1, 6), convolution(e, x))) == ["conv2d", "sub"]


def test_zeros_around_the_input_become_padding() -> None:
    def padded(e: Emitter, x: Value, amounts: list[int], pad_value: float = 0) -> Value:
        wide = e("pad", x, e.shape(amounts), e.constant(np.full(1, pad_value, np.float32)))
        return convolution(e, wide, pad=(0, 0, 1, 0)) if not any(amounts[-2:]) else wide
    assert folded(lambda e, x: padded(e, x, [0, 0, 1, 2, 0, 3, 0, 0])) == ["conv2d"]
    assert folded(lambda e, x: padded(e, x, [1, 0, 1, 2, 0, 3, 0, 0])) == ["pad", "conv2d"]
    assert folded(lambda e, x: padded(e, x, [0, 0, 1, 2, 0, 3, 0, 0], 2.0)) == ["pad", "conv2d"]


def test_a_result_that_something_else_reads_stays() -> None:
    def build(e: Emitter, x: Value) -> tuple[Value, ...]:
        y = convolution(e, x)
        return e.product(y, constant(e, 1, 1, 1, 6)), y
    assert folded(build) == ["conv2d", "mul"]


def test_what_is_no_number_per_channel_stays() -> None:
    assert folded(lambda e, x: e.sum(convolution(e, x), constant(e, 1, 1, 5, 6))) == ["conv2d", "add"]
    assert folded(lambda e, x: e.sum(convolution(e, x), constant(e, 1, 6, 1, 1))) == ["conv2d", "add"]
    assert folded(lambda e, x: e.product(convolution(e, x), constant(e, 2, 1, 1, 6))) == ["conv2d", "mul"]


def test_half_floats_stay_as_they_are() -> None:
    assert folded(lambda e, x: e.product(convolution(e, x), constant(e, 1, 1, 1, 6, element=F16)), F16) == ["conv2d", "mul"]


def test_weights_that_would_overflow_stay() -> None:
    def build(e: Emitter, x: Value) -> Value:
        return e.product(convolution(e, x), e.constant(np.full((1, 1, 1, 1), 3e38, np.float32)))
    assert operators(prune(fold_convolutions(module(build)))) == ["conv2d", "mul"]


def test_a_convolution_does_not_move_into_a_region() -> None:
    def build(e: Emitter, x: Value) -> tuple[Value, ...]:
        y, condition = convolution(e, x), e("equal", e.constant(np.float32(1)), e.reshape(e.slice(x, (0,) * 4, (1,) * 4), ()))
        assert condition.tensor.element == I1
        regions = []
        for factor in (1.0, 2.0):
            with e.region("branch") as builder:
                regions.append(builder.finish(e.product(y, e.splat(factor, y)) if factor == 2 else constant(e, 1, 6, 5, 6)))
        return e.add(CondIf(), condition, regions=regions)

    assert folded(build)[0] == "conv2d"
