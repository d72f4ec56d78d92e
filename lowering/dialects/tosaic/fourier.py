"""FOURIER2D: the operator that FFT2D and RFFT2D become (`rewrite/fourier.py`), with both parts of the result in one tensor.

Its element is the specification's sum, with a table of cosines and sines; `schedule/fft.py` has the fast algorithm.
"""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis, Computed
from ...elements.expression import Buffer, Expr, IndexValue, Load, reduce
from ...elements.roots import roots_buffer
from ...elements.tensor import Element, NotAffine, Tensor, viewed
from ...graph.operator import Op, Operand, attribute
from ...graph.types import F32, Array, TensorType
from ..tosa.fourier import FFT2D, transformed


class Fourier2D(Op, name="tosaic.fourier2d"):
    """The transform of real numbers [N, H, W], or of complex ones given as two parts: [N, 2, H, columns], the first columns of
    the real and of the imaginary part."""
    columns: int = attribute("i32")
    inverse: bool = attribute("bool", default=False)
    stands_alone: ClassVar[bool] = True

    def infer(self, real: Operand, *imaginary: Operand) -> TensorType:
        batch, height, width = transformed(real, "the real part")
        for part in imaginary:
            other = transformed(part, "the imaginary part")
            require(other == (batch, height, width), "the parts differ in shape", kind="shape")
        require(0 < self.columns <= (width or self.columns), f"there are {width} columns, not {self.columns}", kind="shape")
        return TensorType((batch, 2, height, self.columns), F32)

    def reference(self, real: Array, *imaginary: Array) -> Array:
        parts = FFT2D(inverse=self.inverse).reference(real, *(imaginary or (np.zeros_like(real),)))
        return np.stack(parts, 1)[..., :self.columns]

    def element(self, out: TensorType, *parts: Tensor) -> Element:
        height, width = (int(n) for n in parts[0].type.dims[1:])
        turn = max(height, width)
        table = roots_buffer(turn, self.inverse)

        def element(n: Affine, part: Affine, ky: Affine, kx: Affine) -> Expr:
            y, x = Axis("y", height), Axis("x", width)
            read = [in_memory(p)[n, y, x] for p in parts]
            if not all(isinstance(e, Load) for e in read):
                raise NotAffine
            angle = product(ky, y) * (turn // height) + product(kx, x) * (turn // width)
            place = Affine.of(Computed(angle & (turn - 1), turn))
            first, *others = (e * Load(table, (part, Affine.of(q), place)) for q, e in enumerate(read))
            return reduce("add", (y, x), first + others[0] if others else first)

        return element


def in_memory(x: Tensor) -> Tensor:
    """Return an operand that is always read from memory: a constant of one number would otherwise become a literal."""
    if x.constant is None or isinstance(x[(0,) * len(x.type.dims)], Load):
        return x
    return viewed(x.type, Buffer("constant", x.type.element.storage, (x.type.size,), "constant", x.constant.reshape(-1)))


def product(k: Affine, at: Axis) -> Expr:
    """Return a frequency times an index."""
    return IndexValue(k, "int64") * IndexValue(Affine.of(at), "int64")
