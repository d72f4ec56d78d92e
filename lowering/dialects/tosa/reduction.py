"""REDUCE_ALL, ANY, MAX, MIN, PRODUCT, SUM and ARGMAX: one axis becomes one number, or its index."""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis
from ...elements.expression import Const, Expr, IndexValue, apply, cast, extreme, is_float, reduce, select
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute, from_result
from ...graph.types import F8E4M3, F8E5M2, I1, I8, I16, I32, I64, Array, ElementType, TensorType
from .binary import check_nan_mode
from .elementwise import FLOATS, WHOLE, arithmetic, as_number, rounded, widened
from .operands import axis_of, one_of, tensor


class Reduction(Op):
    """A reduction of one axis, which stays with extent 1. TOSA 1.0, reduction operators."""
    axis: int = attribute("i32")
    elements: ClassVar[tuple[ElementType, ...]] = ()

    def infer(self, x: Operand) -> TensorType:
        shape = axis_of(x, self.axis)
        element = one_of(tensor(x, "the input").element, self.elements, f"the input of {self.name}")
        return TensorType((*shape[:self.axis], 1, *shape[self.axis + 1:]), element)

    def primitive(self, element: ElementType) -> str:
        raise AssertionError(self.name)

    def element(self, out: TensorType, x: Tensor) -> Element:
        primitive = self.primitive(out.element)
        dtype = arithmetic(out.element.storage)

        def element(*index: Affine) -> Expr:
            k = Axis("k", x.type.dims[self.axis])
            value = cast(x[*index[:self.axis], k, *index[self.axis + 1:]], dtype)
            return cast(reduce(primitive, (k,), value), out.element.storage)

        return element


class ReduceAll(Reduction, name="tosa.reduce_all"):
    """True if all are true."""
    elements = (I1,)

    def primitive(self, element: ElementType) -> str:
        return "and"

    def reference(self, x: Array) -> Array:
        return np.logical_and.reduce(x, axis=self.axis, keepdims=True)


class ReduceAny(Reduction, name="tosa.reduce_any"):
    """True if any is true."""
    elements = (I1,)

    def primitive(self, element: ElementType) -> str:
        return "or"

    def reference(self, x: Array) -> Array:
        return np.logical_or.reduce(x, axis=self.axis, keepdims=True)


class Extremum(Reduction):
    """The greatest or the least number; a NaN is the result (PROPAGATE) or is ignored (IGNORE)."""
    nan_mode: str = attribute("nan_mode", default="PROPAGATE")
    elements = (I8, I16, I32, I64, *FLOATS)
    which: ClassVar[str] = ""

    def infer(self, x: Operand) -> TensorType:
        check_nan_mode(self.nan_mode)
        return super().infer(x)

    def primitive(self, element: ElementType) -> str:
        if not element.is_float:
            return self.which
        return f"{self.which}num" if self.nan_mode == "IGNORE" else f"{self.which}imum"


class ReduceMax(Extremum, name="tosa.reduce_max"):
    """The greatest."""
    which = "max"

    def reference(self, x: Array) -> Array:
        combine = np.fmax if self.nan_mode == "IGNORE" else np.maximum
        return narrowed(combine.reduce(widened(x), axis=self.axis, keepdims=True), x)


class ReduceMin(Extremum, name="tosa.reduce_min"):
    """The least."""
    which = "min"

    def reference(self, x: Array) -> Array:
        combine = np.fmin if self.nan_mode == "IGNORE" else np.minimum
        return narrowed(combine.reduce(widened(x), axis=self.axis, keepdims=True), x)


class ReduceProduct(Reduction, name="tosa.reduce_product", aliases=("tosa.reduce_prod",)):
    """The product; integers, which TOSA does not multiply so, wrap."""
    elements = tuple(FLOATS | WHOLE)

    def primitive(self, element: ElementType) -> str:
        return "mul"

    def reference(self, x: Array) -> Array:
        return narrowed(widened(x).prod(axis=self.axis, keepdims=True, dtype=widened(x).dtype), x)


class ReduceSum(Reduction, name="tosa.reduce_sum"):
    """The sum; integers wrap."""
    elements = (I32, I64, *FLOATS)

    def primitive(self, element: ElementType) -> str:
        return "add"

    def reference(self, x: Array) -> Array:
        wide = widened(x)
        return narrowed(wide.sum(axis=self.axis, keepdims=True, dtype=wide.dtype), x)


class ArgMax(Op, name="tosa.argmax"):
    """The place of the first greatest value along an axis, which goes. PROPAGATE takes a NaN for greatest, IGNORE for
    least. TOSA 1.0, tensor operators."""
    axis: int = attribute("i32")
    nan_mode: str = attribute("nan_mode", default="PROPAGATE")
    to: ElementType | None = from_result(default=None)

    def infer(self, x: Operand) -> TensorType:
        check_nan_mode(self.nan_mode)
        shape = axis_of(x, self.axis)
        one_of(tensor(x, "the input").element, (I8, I16, I32, I64, F8E4M3, F8E5M2, *FLOATS), "the input of an argmax")
        require(self.to in (None, I32, I64), f"the result of an argmax may not be {self.to}", help="it is i32 or i64")
        return TensorType((*shape[:self.axis], *shape[self.axis + 1:]), self.to or I32)

    def reference(self, x: Array) -> Array:
        wide = widened(x)
        if wide.dtype.kind == "f":
            wide = np.where(np.isnan(wide), -np.inf, wide) if self.nan_mode == "IGNORE" else wide
            place = np.argmax(wide, axis=self.axis)  # the first NaN, if there is one
            if self.nan_mode == "IGNORE":
                place = first_number(x, place, self.axis)
        else:
            place = np.argmax(wide, axis=self.axis)
        return np.asarray(place).astype((self.to or I32).dtype)

    def element(self, out: TensorType, x: Tensor) -> Element:
        """Return the element: the greatest of keys with a value's order in the high bits and its distance from the end in the
        low bits."""
        extent = x.type.dims[self.axis]
        if x.type.element.bits == 64:
            return self.element_of_long(out, x)
        half = x.type.element in (I8, I16) and extent <= 1 << 16
        dtype, bits = ("int32", 16) if half else ("int64", 32)

        def element(*index: Affine) -> Expr:
            k = Axis("k", extent)
            value = self.order(x[*index[:self.axis], k, *index[self.axis:]])
            from_end = IndexValue(Affine.of(k) * -1 + (extent - 1), dtype)
            key = reduce("max", (k,), (cast(value, dtype) << bits) + from_end)
            return cast(Const(extent - 1, dtype) - (key & ((1 << bits) - 1)), out.element.storage)

        return element

    def element_of_long(self, out: TensorType, x: Tensor) -> Element:
        """Return the element for 64-bit values, which leave no room for an index in a key: the first index of the greatest
        value."""
        def element(*index: Affine) -> Expr:
            k, place = Axis("k", x.type.dims[self.axis]), Axis("place", x.type.dims[self.axis])
            greatest = reduce("max", (k,), self.order(x[*index[:self.axis], k, *index[self.axis:]]))
            here = self.order(x[*index[:self.axis], place, *index[self.axis:]]).equals(greatest)
            first = reduce("min", (place,), select(here, IndexValue(Affine.of(place)), Const(place.extent - 1, "int32")))
            return cast(first, out.element.storage)

        return element

    def order(self, value: Expr) -> Expr:
        """Return an int32, or for 64 bits an int64, that compares as the value does: a float's bits, with the sign turned into
        a subtraction."""
        dtype = "int64" if value.dtype in ("int64", "float64") else "int32"
        if not is_float(value.dtype):
            return cast(value, dtype)
        wide = as_number(value)
        bits = cast(wide, dtype, bits=True)
        least, greatest = extreme(dtype, "min"), extreme(dtype, "max")
        signed = select(bits < 0, Const(least, dtype) - bits, bits)
        return select(apply("eq", wide, wide), signed, least if self.nan_mode == "IGNORE" else greatest)


# ---- NumPy -------------------------------------------------------------------------------------------------------
def narrowed(result: Array, x: Array) -> Array:
    """Return the result in the type of x, rounded once."""
    return rounded(result, x.dtype)


def first_number(x: Array, place: Array, axis: int) -> Array:
    """Return `place`, except where it is a NaN that was treated as -inf: then the first true -inf, or 0 if all are NaN."""
    numbers = ~np.isnan(x.astype(np.float64))
    found = np.take_along_axis(numbers, np.expand_dims(place, axis), axis).squeeze(axis)
    return np.asarray(np.where(found, place, np.argmax(numbers, axis=axis)))
