"""MATMUL and MATMUL_T: a batch of products of matrices, [N, H, C] times [N, C, W], or times [D, W, C] transposed."""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis
from ...elements.expression import Expr, cast, reduce
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, from_result
from ...graph.types import Array, ElementType, TensorType
from .block_scaling import real
from .convolution import accumulator, centred, exact
from .elementwise import rounded
from .operands import known, one_of, ranked, same, tensor, zero_point
from .product_types import PRODUCTS, TRANSPOSED_PRODUCTS, Table, checked, usual_result


class Product(Op):
    """The common base of both products. `to` is the result's type if the operands leave a choice."""
    to: ElementType | None = from_result(default=None)
    combinations: ClassVar[Table] = {}

    def result_element(self, a: Operand, b: Operand, a_zp: Operand, b_zp: Operand) -> ElementType:
        """Return the element type of the result, after checking the types of the operands and the zero points."""
        names = "the first operand", "the second operand"
        types = [tensor(operand, name).element for operand, name in zip((a, b), names)]
        checked(self.combinations, types, names)
        zero_point(a_zp, types[0], "the zero point of the first operand")
        zero_point(b_zp, types[1], "the zero point of the second operand")
        if self.to is None:
            return usual_result(self.combinations, *types)
        return one_of(self.to, [c for a, b, c in self.combinations if [a, b] == types],
                      f"a product of {' and '.join(map(str, types))}")

    def multiplied(self, a: Array, b: Array, a_zp: Array, b_zp: Array) -> Array:
        """Return [N, H, C] times [N or 1, C, W] in NumPy."""
        if a.dtype == np.int16:  # a zero point known only at run time may be wrong, and is subtracted
            x, y = a.astype(np.int64) - a_zp.item(), b.astype(np.int64) - b_zp.item()
            return x @ y if a.shape[2] >= MAX_EXACT_TERMS else product(x, y).astype(np.int64)
        if a.dtype == np.int8:
            return (exact(a, a_zp) @ exact(b, b_zp)).astype(np.int64).astype(np.int32)
        if a.dtype in (np.int32, np.int64):
            return (a - a_zp.item()) @ (b - b_zp.item())
        if a.dtype == np.float64:
            return product(a, b)
        names = a.dtype.name, b.dtype.name
        result = self.to or next(c for x, y, c in self.combinations if (x.storage, y.storage) == names)
        return rounded(product(a, b), result.dtype)


class MatMul(Product, name="tosa.matmul"):
    """Products of matrices. TOSA 1.0, tensor operators."""
    combinations: ClassVar[Table] = PRODUCTS

    def infer(self, a: Operand, b: Operand, a_zp: Operand, b_zp: Operand) -> TensorType:
        batch, height, inner = ranked(a, 3, "the first operand")
        other, rows, width = ranked(b, 3, "the second operand")
        require(same(batch, other), f"the batches of {a.type} and {b.type} differ", kind="shape")
        require(same(inner, rows), f"the inner extents of {a.type} and {b.type} differ", kind="shape",
                help="transpose one of them")
        return TensorType((known(batch, other), height, width), self.result_element(a, b, a_zp, b_zp))

    def reference(self, a: Array, b: Array, a_zp: Array, b_zp: Array) -> Array:
        return self.multiplied(a, b, a_zp, b_zp)

    def element(self, out: TensorType, a: Tensor, b: Tensor, a_zp: Tensor, b_zp: Tensor) -> Element:
        dtype = accumulator(out.element)

        def element(n: Affine, h: Affine, w: Affine) -> Expr:
            c = Axis("c", a.type.dims[2])
            terms = centred(a[n, h, c], a_zp.scalar(), dtype) * centred(b[n, c, w], b_zp.scalar(), dtype)
            return cast(reduce("add", (c,), terms), out.element.storage)

        return element


class MatMulT(Product, name="tosa.matmul_t"):
    """Products with transposed matrices, rows of one with rows of the other; a batch of one goes with any batch.
    TOSA 1.1, tensor operators."""
    combinations: ClassVar[Table] = TRANSPOSED_PRODUCTS

    def infer(self, a: Operand, b: Operand, a_zp: Operand, b_zp: Operand) -> TensorType:
        batch, height, inner = ranked(a, 3, "the first operand")
        other, width, depth = ranked(b, 3, "the second operand")
        require(other == 1 or same(batch, other), f"the batch of {b.type} is neither 1 nor that of {a.type}",
                kind="shape")
        require(same(inner, depth), f"the last extents of {a.type} and {b.type} differ", kind="shape")
        batch = known(batch, other if other != 1 else None)
        return TensorType((batch, height, width), self.result_element(a, b, a_zp, b_zp))

    def reference(self, a: Array, b: Array, a_zp: Array, b_zp: Array) -> Array:
        return self.multiplied(a, b.swapaxes(1, 2), a_zp, b_zp)

    def element(self, out: TensorType, a: Tensor, b: Tensor, a_zp: Tensor, b_zp: Tensor) -> Element:
        dtype, shared = accumulator(out.element), b.type.dims[0] == 1

        def element(n: Affine, h: Affine, w: Affine) -> Expr:
            c, d = Axis("c", a.type.dims[2]), Affine() if shared else n
            terms = centred(a[n, h, c], a_zp.scalar(), dtype) * centred(b[d, w, c], b_zp.scalar(), dtype)
            return cast(reduce("add", (c,), terms), out.element.storage)

        return element


MAX_EXACT_TERMS = 1 << 21
"""Number of products of 32 bits from which a float64 may not hold their sum."""


def product(a: Array, b: Array) -> Array:
    """Return a times b in float64."""
    return np.asarray(real(a) @ real(b))
