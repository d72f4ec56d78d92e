"""Requirements of TOSA's type rules on operands: ranks, extents, constant shapes, zero points.

Each function returns the checked fact and raises a Problem otherwise. An extent may be None if it is unknown.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from ....runtime.errors import Problem, require
from ...graph.operator import Operand
from ...graph.types import F32, I8, BlockScaled, ElementType, ShapeType, TensorType

Shape = tuple[int | None, ...]


def tensor(operand: Operand, what: str) -> TensorType:
    """Return the type of an operand that must be a tensor of known rank."""
    found = operand.type
    require(isinstance(found, TensorType), f"{what} must be a tensor, not {found}")
    require(found.shape is not None, f"the rank of {what} must be known when compiling, it is {found}",
            kind="unsupported")
    assert isinstance(found, TensorType)
    return found


def ranked(operand: Operand, rank: int, what: str) -> Shape:
    """Return the shape of an operand that must have that rank."""
    found = tensor(operand, what)
    require(found.rank == rank, f"{what} must have rank {rank}, it is {found}", kind="shape")
    assert found.shape is not None
    return found.shape


def axis_of(operand: Operand, axis: int) -> Shape:
    """Return the shape of an operand that must have an axis of that number."""
    found = tensor(operand, "the input")
    require(0 <= axis < found.rank, f"axis {axis} is outside the {found.rank} axes of {found}", kind="shape")
    assert found.shape is not None
    return found.shape


def one_of(found: ElementType, allowed: Sequence[ElementType], what: str) -> ElementType:
    require(found in allowed, f"{what} may not be {found}", help=f"it may be {', '.join(map(str, allowed))}")
    return found


def integers(operand: Operand, what: str, length: int | None = None) -> tuple[int, ...]:
    """Return the numbers of an operand that must be known at compile time; `length` is the required number of them."""
    if operand.constant is None:
        raise Problem(f"{what} must be known when compiling", kind="unsupported",
                      help="make it the result of tosa.const_shape or tosa.const")
    found = tuple(int(x) for x in operand.constant.reshape(-1))
    require(length in (None, len(found)), f"{what} has {len(found)} numbers, {length} are needed", kind="shape")
    return found


def extents(operand: Operand, what: str, length: int | None = None) -> Shape:
    """Return `integers`, or as many None if they are computed from unknown extents."""
    if operand.constant is not None or not isinstance(operand.type, ShapeType):
        return integers(operand, what, length)
    rank = operand.type.rank
    require(length in (None, rank), f"{what} has {rank} numbers, {length} are needed", kind="shape")
    return (None,) * rank


def one_element(operand: Operand, element: ElementType, what: str) -> TensorType:
    """Return the type of an operand that must be a single number of that type, as a tensor of rank 1."""
    found = tensor(operand, what)
    require(found.element == element, f"{what} must be {element}, it is {found}", help=f"make it tensor<1x{element}>")
    require(found.rank == 1 and found.shape in ((1,), (None,)), f"{what} must have one element, it is {found}",
            help=f"make it tensor<1x{element}>", kind="shape")
    return found


def zero_point(operand: Operand, element: ElementType, what: str) -> None:
    """Check a zero point of values of type `element`: one number of their type (f32 for block-scaled ones), 0 unless they are
    i8."""
    one_element(operand, F32 if isinstance(element, BlockScaled) else element, what)
    if element != I8 and operand.constant is not None:
        value = operand.constant.reshape(-1)[0].item()
        require(value == 0, f"{what} must be 0 for {element}, it is {value}", kind="attribute",
                help="only i8 has a zero point that is not 0")


def same(a: int | None, b: int | None) -> bool:
    """True if two extents can be equal."""
    return a is None or b is None or a == b


def same_shape(a: Sequence[int | None], b: Sequence[int | None]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def known(a: int | None, b: int | None) -> int | None:
    """Return one of two equal extents, a known one if there is any."""
    return b if a is None else a


def product(shape: Sequence[int | None]) -> int | None:
    """Return the number of elements, None if an extent is unknown."""
    return None if None in shape else math.prod(n for n in shape if n is not None)


def written(shape: Sequence[int | None]) -> str:
    """Return a shape in MLIR's notation."""
    return "x".join("?" if n is None else str(n) for n in shape)
