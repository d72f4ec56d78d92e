"""AVG_POOL2D_ADAPTIVE and MAX_POOL2D_ADAPTIVE: the pools of `pooling.py`, with their window from operands of type shape that
are known at compile time, so that it may be computed from the input's own extents. TOSA 1.1, tensor operators.
"""
from __future__ import annotations

from ....runtime.errors import require
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute
from ...graph.types import Array, ElementType, ShapeType, TensorType
from .operands import integers
from .pooling import AvgPool2D, MaxPool2D

Window = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
ANY: Window = (1, 1), (1, 1), (0, 0, 0, 0)
"""Placeholder for an unknown window in type checks: it fits any image."""


def known_window(kernel: Operand, stride: Operand, pad: Operand) -> Window | None:
    """Return the numbers of the three operands, which must be shapes; None if they depend on unknown extents."""
    parts = (kernel, "the kernel", 2), (stride, "the stride", 2), (pad, "the pad", 4)
    for operand, what, length in parts:
        check_shape(operand, what, length)
    if any(operand.constant is None for operand in (kernel, stride, pad)):
        return None
    first, second, third = (known_shape(*part) for part in parts)
    return first, second, third


def check_shape(operand: Operand, what: str, length: int) -> None:
    require(operand.type == ShapeType(length), f"{what} must be {ShapeType(length)}, it is {operand.type}")


def known_shape(operand: Operand, what: str, length: int) -> tuple[int, ...]:
    """Return the numbers of an operand that must be a shape known at compile time."""
    check_shape(operand, what, length)
    return integers(operand, what, length)


def window_of(kernel: Array, stride: Array, pad: Array) -> Window:
    """Return the window from the reference's arrays."""
    first, second, third = (tuple(map(int, a.tolist())) for a in (kernel, stride, pad))
    return first, second, third


def without_places(found: TensorType) -> TensorType:
    """Return the type of a pool with an unknown window."""
    batch, _, _, channels = found.shape or (None,) * 4
    return TensorType((batch, None, None, channels), found.element)


class AvgPool2DAdaptive(Op, name="tosa.avg_pool2d_adaptive"):
    """The mean of a window; `kernel`, `stride` and `pad` are operands."""
    acc_type: ElementType = attribute("type")

    def fixed(self, window: Window) -> AvgPool2D:
        """Return the pool with that window."""
        return AvgPool2D(*window, acc_type=self.acc_type)

    def infer(self, x: Operand, input_zp: Operand, output_zp: Operand, kernel: Operand, stride: Operand, pad: Operand
              ) -> TensorType:
        window = known_window(kernel, stride, pad)
        found = self.fixed(window or ANY).infer(x, input_zp, output_zp)
        return found if window else without_places(found)

    def reference(self, x: Array, input_zp: Array, output_zp: Array, kernel: Array, stride: Array, pad: Array) -> Array:
        return self.fixed(window_of(kernel, stride, pad)).reference(x, input_zp, output_zp)

    def element(self, out: TensorType, x: Tensor, input_zp: Tensor, output_zp: Tensor, kernel: Tensor, stride: Tensor,
                pad: Tensor) -> Element:
        window = kernel.integers, stride.integers, pad.integers
        return self.fixed(window).element(out, x, input_zp, output_zp)


class MaxPool2DAdaptive(Op, name="tosa.max_pool2d_adaptive"):
    """The greatest value of a window; `kernel`, `stride` and `pad` are operands."""
    nan_mode: str = attribute("nan_mode", default="PROPAGATE")

    def fixed(self, window: Window) -> MaxPool2D:
        """Return the pool with that window."""
        return MaxPool2D(*window, nan_mode=self.nan_mode)

    def infer(self, x: Operand, kernel: Operand, stride: Operand, pad: Operand) -> TensorType:
        window = known_window(kernel, stride, pad)
        found = self.fixed(window or ANY).infer(x)
        return found if window else without_places(found)

    def reference(self, x: Array, kernel: Array, stride: Array, pad: Array) -> Array:
        return self.fixed(window_of(kernel, stride, pad)).reference(x)

    def element(self, out: TensorType, x: Tensor, kernel: Tensor, stride: Tensor, pad: Tensor) -> Element:
        return self.fixed((kernel.integers, stride.integers, pad.integers)).element(out, x)
