"""The common base of elementwise operators: element types, broadcasting, and the arithmetic of floats.

A concrete operator defines `results` (the element type of the result for each type of the operands), `exact` (its result in
NumPy, floats in float64) and `scalar` (its result as an expression; half floats arrive as float32). Both sides round once, to
the type of the result.
"""
from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ....runtime.errors import Problem, require
from ...elements.affine import Affine
from ...elements.expression import Expr, cast, is_float
from ...elements.tensor import Element
from ...graph.operator import Op, Operand
from ...graph.types import BF16, F16, F32, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64, Array, ElementType, TensorType
from .operands import written

Results = dict[ElementType, ElementType]
Shape = tuple[int | None, ...]


def alike(*elements: ElementType) -> Results:
    """Return a mapping of each operand type to the same result type."""
    return {e: e for e in elements}


EXTENSION = alike(F64)
"""Element types that are tosaic's own extension: no version of TOSA has f64, and other tools refuse it. Graphs of TensorFlow
and PyTorch have it; its arithmetic is that of IEEE 754, and a .tosa file cannot hold it. CLAMP, REDUCE_PRODUCT and the products
of matrices also take i32 and i64 (`WHOLE`), and their results wrap; CAST and SELECT take unsigned numbers."""
WHOLE = alike(I32, I64)
UNSIGNED = alike(UI8, UI16, UI32, UI64)
FLOATS = alike(F16, F32, BF16) | EXTENSION
BITS = alike(I8, I16, I32, I64)
"""Integer types. i64 is of EXT-INT64, which specification 1.1 drafts and converters from PyTorch use."""
NUMBERS = WHOLE | FLOATS
BOOLS = alike(I1)


def broadcast_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Return the broadcast shape of two operands: an extent of 1 takes the other's; None is an unknown extent."""
    if a is None or b is None:
        return None
    require(len(a) == len(b), f"operands of shapes {written(a)} and {written(b)} have ranks {len(a)} and {len(b)}",
            kind="shape", help="reshape one of them to the rank of the other; an axis of extent 1 is broadcast")
    return tuple(broadcast_extent(m, n, a, b) for m, n in zip(a, b))


def broadcast_extent(m: int | None, n: int | None, a: Shape, b: Shape) -> int | None:
    """Return one extent of `broadcast_shape`."""
    require(None in (m, n) or m == n or 1 in (m, n),
            f"shapes {written(a)} and {written(b)} do not broadcast: {m} and {n}", kind="shape",
            help="extents must be equal, or one of them 1")
    if m is None or n is None:
        known = n if m is None else m
        return known if known != 1 else None
    return n if m == 1 else m


def tensor(operand: Operand) -> TensorType:
    """Return the type of an operand, which must be a tensor."""
    found = operand.type
    if not isinstance(found, TensorType):
        raise Problem(f"an operand must be a tensor, not {found}", kind="type")
    return found


def names(elements: Any) -> str:
    return ", ".join(map(str, elements))


class Elementwise(Op):
    """An operator that computes each element from one element of each operand."""
    results: ClassVar[Results] = {}

    def result(self, first: Operand, *others: Operand) -> TensorType:
        """Return the type of the result for operands of one element type that broadcast together."""
        types = [tensor(first), *map(tensor, others)]
        element, shape = types[0].element, types[0].shape
        require(element in self.results, f"{self.name} does not take {element}", help=f"it takes {names(self.results)}")
        for other in types[1:]:
            require(other.element == element,
                    f"{self.name} takes operands of one type, not {element} and {other.element}")
            shape = broadcast_shape(shape, other.shape)
        return TensorType(shape, self.results[element])

    def reference(self, *arrays: Any) -> Array:
        storage = self.storage(arrays[-1].dtype)
        with np.errstate(all="ignore"):
            return rounded(self.exact(*map(widened, arrays)), storage)

    def storage(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the reference's result for operands of `dtype`."""
        return dtype

    def exact(self, *arrays: Any) -> Array:
        """Return the result, floats in float64; an integer may be wider than the result and wraps into it."""
        raise Problem(f"{self.name} has no reference", kind="unsupported")

    def element(self, out: TensorType, *tensors: Any) -> Element:
        def element(*index: Affine) -> Expr:
            value = self.scalar(*(as_number(x.broadcast(index)) for x in tensors))
            return cast(value, out.element.storage)

        return element

    def scalar(self, *arguments: Any) -> Expr:
        """Return the result's element from the operands' elements."""
        raise Problem(f"{self.name} cannot be compiled", kind="unsupported")


class Unary(Elementwise):
    """An elementwise operator of one operand."""

    def infer(self, x: Operand) -> TensorType:
        return self.result(x)


class Binary(Elementwise):
    """An elementwise operator of two operands."""

    def infer(self, a: Operand, b: Operand) -> TensorType:
        return self.result(a, b)


def arithmetic(dtype: str) -> str:
    """Return the dtype in which values of `dtype` are computed."""
    return "float32" if is_float(dtype) and dtype != "float64" else dtype


def as_number(x: Expr) -> Expr:
    """Return x in a type that has arithmetic."""
    return cast(x, arithmetic(x.dtype))


def is_integer(x: Array | Expr) -> bool:
    """True if the arithmetic of x is that of integers."""
    return not is_float(x.dtype if isinstance(x, Expr) else x.dtype.name)


def widened(x: Array) -> Array:
    """Return floats in float64, anything else unchanged. The product quiets signalling NaNs, which C's fmax, and so NumPy's,
    would return."""
    if x.dtype.kind in "biu":
        return x
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64) * 1.0


def rounded(x: Any, dtype: np.dtype[Any]) -> Array:
    """Return x in `dtype`: floats to the nearest, ties to even; integers wrap."""
    x = np.asarray(x)
    if x.dtype.kind in "iu" and x.itemsize == 8 and dtype.isbuiltin == 2:
        x = whole_to_odd(x)
    if x.dtype == np.float64 and dtype.isbuiltin == 2:
        x = rounded_to_odd(x)  # ml_dtypes converts by way of float32
    return np.asarray(x.astype(dtype))


def rounded_to_odd(x: Array) -> Array:
    """Return the float32 below in magnitude, with its last bit set if it differs from x: a second rounding is then correct."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = x.astype(np.float32)
    bits = near.view(np.int32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    odd = np.where(near == x, bits, (bits - beyond) | 1).astype(np.int32)
    return np.where(np.isfinite(x), odd.view(np.float32), near)


def whole_to_odd(x: Array) -> Array:
    """Return 64-bit integers as float64, with the last of 53 bits set if a large one has more: a second rounding is then
    correct."""
    rest = x % 2048
    large = x - rest | np.where(rest == 0, 0, 2048).astype(x.dtype)
    bound = x.dtype.type(1 << 53)
    return np.where((x < bound) & (x > (0 if x.dtype.kind == "u" else -bound)), x, large).astype(np.float64)
