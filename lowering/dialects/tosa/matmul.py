"""MATMUL: a batch of products of matrices, [N, H, C] times [N, C, W]."""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis
from ...elements.expression import Expr, cast, reduce
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, from_result
from ...graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I8, I16, I32, I48, Array, ElementType, TensorType
from .convolution import accumulator, centred, exact
from .operands import known, one_of, ranked, same, tensor, zero_point

RESULTS: dict[ElementType, tuple[ElementType, ...]] = {
    I8: (I32,), I16: (I48,), F8E4M3: (F16, F32), F8E5M2: (F16, F32), F16: (F16, F32), BF16: (F32,), F32: (F32,)}
"""Types of the result for operands of one type, the usual one first."""


class MatMul(Op, name="tosa.matmul"):
    """Products of matrices. `to` is the result's type where the operands leave a choice. TOSA 1.0, tensor operators."""
    to: ElementType | None = from_result(default=None)

    def infer(self, a: Operand, b: Operand, a_zp: Operand, b_zp: Operand) -> TensorType:
        batch, height, inner = ranked(a, 3, "the first operand")
        other, rows, width = ranked(b, 3, "the second operand")
        require(same(batch, other), f"the batches of {a.type} and {b.type} differ", kind="shape")
        require(same(inner, rows), f"the inner extents of {a.type} and {b.type} differ", kind="shape",
                help="transpose one of them")
        element = one_of(tensor(a, "the first operand").element, tuple(RESULTS), "an operand of a matmul")
        one_of(tensor(b, "the second operand").element, (element,), f"the second operand, beside {element},")
        result = RESULTS[element][0] if self.to is None else one_of(self.to, RESULTS[element],
                                                                    f"a product of {element}")
        zero_point(a_zp, element, "the zero point of the first operand")
        zero_point(b_zp, element, "the zero point of the second operand")
        return TensorType((known(batch, other), height, width), result)

    def reference(self, a: Array, b: Array, a_zp: Array, b_zp: Array) -> Array:
        if a.dtype == np.int16:
            return a.astype(np.int64) @ b.astype(np.int64) if a.shape[2] >= 1 << 23 else product(a, b).astype(np.int64)
        if a.dtype == np.int8:
            return (exact(a, a_zp) @ exact(b, b_zp)).astype(np.int64).astype(np.int32)
        if a.dtype == np.float64:
            return product(a, b)
        usual = next(RESULTS[e][0] for e in RESULTS if e.storage == a.dtype.name)
        return product(a, b).astype((self.to or usual).dtype)

    def element(self, out: TensorType, a: Tensor, b: Tensor, a_zp: Tensor, b_zp: Tensor) -> Element:
        dtype = accumulator(out.element)

        def element(n: Affine, h: Affine, w: Affine) -> Expr:
            c = Axis("c", a.type.dims[2])
            terms = centred(a[n, h, c], a_zp.scalar(), dtype) * centred(b[n, c, w], b_zp.scalar(), dtype)
            return cast(reduce("add", (c,), terms), out.element.storage)

        return element


def product(a: Array, b: Array) -> Array:
    """a times b in float64; exact for fewer than 2**23 products of 30 bits."""
    return np.asarray(a.astype(np.float64) @ b.astype(np.float64))
