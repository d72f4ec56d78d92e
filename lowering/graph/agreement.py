"""The verifier of quantization: the parameters in a tensor's type are those of the operators that read or write it.

Both may be given: a zero point as an operand (`input_zp`, `output_zp`, `weight_zp`, ...), and one in the type of the tensor
that it belongs to. Where both are known when compiling they must be equal.
"""
from __future__ import annotations

import inspect
from collections.abc import Mapping

from ...runtime.errors import require
from .graph import Operation, Value
from .quantized import Quantized, is_quantized

OUTPUT, INPUT = "output", "input"


def check_agreement(operation: Operation) -> None:
    """Raise a Problem where an operand or a result is quantized otherwise than the operator says."""
    if not any(is_quantized(v.type) for v in (*operation.operands, *operation.results)):
        return
    check_constant(operation)
    operands = dict(zip(inspect.signature(operation.op.infer).parameters, operation.operands))
    for name, zero_point in operands.items():
        owner = owner_of(name, operands, operation) if name.endswith("_zp") else None
        if owner is not None:
            check_zero_point(name, zero_point, owner)
    border = operands.get("pad_const")
    if border is not None and is_quantized(border.type):
        check_border(border, operation.operands[0])


def owner_of(name: str, operands: Mapping[str, Value], operation: Operation) -> Value | None:
    """The tensor that a zero point belongs to: of `weight_zp` the operand `weight`, of `input_zp` the first one."""
    which = name.removesuffix("_zp")
    if which == OUTPUT:
        return operation.results[0] if operation.results else None
    return operands.get(which) or (operation.operands[0] if which.startswith(INPUT) else None)


def check_zero_point(name: str, zero_point: Value, owner: Value) -> None:
    """The number of the operand is that of the type; bits that may be read with a sign or without."""
    element = owner.tensor.element
    if not isinstance(element, Quantized) or zero_point.constant is None or not element.zero_points:
        return
    found = int(zero_point.constant.reshape(-1)[0])
    modulus = 1 << (8 * zero_point.constant.dtype.itemsize)
    wrong = next((z for z in element.zero_points if (z - found) % modulus), None)
    require(wrong is None, f"{name} is {found}, but %{owner.name} is {owner.type}, whose zero point is {wrong}",
            kind="attribute", help="the operator's zero point is the one that is computed with: make both equal")


def check_border(border: Value, x: Value) -> None:
    """A border that is quantized, too, counts in the same steps as what it surrounds."""
    a, b = border.tensor.element, x.tensor.element
    require(not (isinstance(a, Quantized) and isinstance(b, Quantized))
            or (a.scales, a.zero_points) == (b.scales, b.zero_points),
            f"the border is {border.type}, around {x.type}", help="both must have the same scale and zero point")


def check_constant(operation: Operation) -> None:
    """The data of a quantized constant are within the range of its type."""
    for value in operation.results:
        element, data = getattr(value.type, "element", None), value.constant
        if isinstance(element, Quantized) and element.stored.is_integer and data is not None and data.size:
            low, high = data.min().item(), data.max().item()
            require(element.low <= low and high <= element.high,
                    f"%{value.name} has values from {low} to {high}, its type {element} holds {element.low} to {element.high}")
