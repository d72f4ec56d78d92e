"""Convolutions of quantized images, summed in 32 bits: ConvInteger, QLinearConv.

The padding is the zero point. If the zero points of filters differ between channels, they are subtracted from the sums: each
times the sum of the window's elements.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...formulas.quantization import as_signed, factor_of, one_number, requantized
from ...formulas.term import Term
from ...formulas.windows import Window
from ...graph.graph import Value
from ...graph.types import I8, I32, Array, TensorType
from ..convolutions import grouped
from ..emitter import Emitter
from .convolutions import Grouped, channelwise, check_bias
from .operator import operator
from .quantize import BYTES
from .quantized_products import in_steps
from .windows import channels_first, channels_last, filter_last, spatial_axes


class QuantizedConv(Grouped):
    """A convolution of bytes."""

    def total(self, x: Array, w: Array, x_zero: Array | None, w_zero: Array | None) -> Array:
        """Return the sums in 32 bits, in NumPy."""
        wide = x.astype(np.float64) - (0 if x_zero is None else x_zero.astype(np.float64).reshape(()))
        zeros = np.zeros(1) if w_zero is None else w_zero.astype(np.float64)
        filters = w.astype(np.float64) - zeros.reshape(-1, *(1,) * (w.ndim - 1))
        return self.sums(wide, filters).astype(np.int64).astype(np.int32)

    def dims(self, x: Value, w: Value) -> tuple[int, ...]:
        """Return the extents of the result; raise a Problem if those of the operands do not fit together."""
        self.check_groups(x.tensor.dims, w.tensor.dims)
        window, _ = self.window(x.tensor.dims[2:], self.kernel(spatial_axes(x.tensor.dims), w.tensor.dims[2:]))
        return x.tensor.dims[0], w.tensor.dims[0], *window.places(x.tensor.dims[2:])

    def emitted_total(self, e: Emitter, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None,
                      b: Value | None = None) -> Value:
        """Return the same in TOSA, channels last, with an axis of extent 1 before a single spatial one."""
        for operand, zero in ((x, x_zero), (w, w_zero)):
            require(operand.tensor.element in BYTES and (zero is None or zero.tensor.element == operand.tensor.element),
                    f"it takes bytes and zero points of their type, not {operand.type}", kind="type")
        image, filters = as_signed(e, channels_last(e, x)), as_signed(e, filter_last(e, w))
        window, _ = self.window(x.tensor.dims[2:], self.kernel(spatial_axes(x.tensor.dims), w.tensor.dims[2:]))
        window, zero = window.of_plane(), self.signed_zero(e, x_zero, x)
        known = one_number(w_zero)
        if known is not None or (w_zero is not None and w_zero.tensor.size == 1):
            own = w_zero if known is None else e.constant(np.full(1, known, w.tensor.element.dtype))
            return grouped(e, image, filters, window, self.group, b, (zero, self.signed_zero(e, own, w)))
        assert w_zero is not None
        require(w_zero.tensor.dims == (w.tensor.dims[0],), "there is not one zero point for each filter", kind="shape")
        found = grouped(e, image, filters, window, self.group, b, (zero, e.zero_point(I8)))
        return (Term(e, found) - self.seen_sums(e, image, w, window, zero) * Term(e, e.cast(as_signed(e, w_zero), I32))).value

    def signed_zero(self, e: Emitter, zero: Value | None, of: Value) -> Value:
        """Return a zero point of one element, for signed bytes."""
        found = e.constant(np.zeros(1, of.tensor.element.dtype)) if zero is None else e.reshape(zero, (1,))
        return as_signed(e, found)

    def seen_sums(self, e: Emitter, image: Value, w: Value, window: Window, zero: Value) -> Term:
        """Return the sum of a window's elements in its group of channels, for each output channel."""
        outputs, inputs, *_ = w.tensor.dims
        ones = e.constant(np.ones((self.group, *window.kernel, inputs), np.int8))
        found = grouped(e, image, ones, window, self.group, None, (zero, e.zero_point(I8)))
        *places, groups = found.tensor.dims
        each = e.tile(e.reshape(found, (*places, groups, 1)), (*(1,) * len(places), 1, outputs // groups))
        return Term(e, e.reshape(each, (*places, outputs)))


@operator("ConvInteger")
class ConvInteger(QuantizedConv):
    def reference(self, x: Array, w: Array, x_zero_point: Array | None = None, w_zero_point: Array | None = None) -> Array:
        return self.total(x, w, x_zero_point, w_zero_point)

    def lower(self, e: Emitter, x: Value, w: Value, x_zero_point: Value | None = None, w_zero_point: Value | None = None
              ) -> Value:
        if 0 in (dims := self.dims(x, w)):
            return e.zeros(TensorType(dims, I32))
        return channels_first(e, self.emitted_total(e, x, w, x_zero_point, w_zero_point), spatial_axes(x.tensor.dims))


@operator("QLinearConv")
class QLinearConv(QuantizedConv):
    """QLinearConv. The bias has 32 bits, and its scale is that of the products."""

    def reference(self, x: Array, x_scale: Array, x_zero_point: Array, w: Array, w_scale: Array, w_zero_point: Array,
                  y_scale: Array, y_zero_point: Array, b: Array | None = None) -> Array:
        total = self.total(x, w, x_zero_point, w_zero_point)
        total = total if b is None else total + channelwise(b, total)
        factor = np.asarray(x_scale * w_scale / y_scale, np.float32)
        return in_steps(total, channelwise(factor, total), y_zero_point)

    def lower(self, e: Emitter, x: Value, x_scale: Value, x_zero_point: Value, w: Value, w_scale: Value, w_zero_point: Value,
              y_scale: Value, y_zero_point: Value, b: Value | None = None) -> Value:
        element = y_zero_point.tensor.element
        require(element in BYTES, f"it makes bytes, not {element}", kind="type")
        if 0 in (dims := self.dims(x, w)):
            return e.zeros(TensorType(dims, element))
        check_bias(b, dims[1])
        total = self.emitted_total(e, x, w, x_zero_point, w_zero_point, b)
        factor = factor_of(e, (x_scale, w_scale), y_scale)
        return channels_first(e, requantized(e, total, factor, y_zero_point, element), spatial_axes(x.tensor.dims))
