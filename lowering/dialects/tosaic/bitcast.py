"""BITCAST: the bits of a number as a number of another type, of as many bytes. TOSA has no such operator; TensorFlow's Bitcast
and ONNX's BitCast become it, and it gives access to the bytes of types without arithmetic."""
from __future__ import annotations

from ....runtime.errors import require
from ...elements.expression import Const, cast
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, from_result
from ...graph.types import I4, I48, Array, ElementType, TensorType
from ..tosa.elementwise import tensor


def has_bits(element: ElementType) -> bool:
    """True if every pattern of its bytes is a number of that type."""
    return (element.is_integer or element.is_float) and element not in (I4, I48)


class Bitcast(Op, name="tosaic.bitcast"):
    """Every bit stays: payloads of NaN, signs of zeros. A float of fewer than 8 bits is in the lower ones of its byte."""
    to: ElementType | None = from_result()

    def infer(self, x: Operand) -> TensorType:
        found = tensor(x)
        require(self.to is not None, f"{self.name} needs the element type of its result")
        assert self.to is not None
        for element in (found.element, self.to):
            require(has_bits(element), f"{self.name} does not take the bits of {element}",
                    help="it takes floats, and integers of 8 bits or more")
        require(found.element.itemsize == self.to.itemsize, f"{found.element} has {found.element.itemsize} bytes, "
                f"{self.to} has {self.to.itemsize}", help="both must have as many")
        return found.with_element(self.to)

    def reference(self, x: Array) -> Array:
        assert self.to is not None
        return x.view(self.to.dtype)

    def element(self, out: TensorType, x: Tensor) -> Element:
        if x.constant is not None and x.constant.size == 1:  # a literal float is a number: a NaN would lose its payload
            whole = f"int{8 * x.type.element.itemsize}"
            code = Const(int(x.constant.reshape(-1).view(whole)[0]), whole)
            return lambda *index: cast(code, out.element.storage, bits=True)
        return lambda *index: cast(x[index], out.element.storage, bits=True)
