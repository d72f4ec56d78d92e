"""Types of TensorFlow without arithmetic: strings, handles of variables, variants, quantized and reference types.

They are opaque types that also hold the parsed contents of their text, so that shapes and the types of handles need not be
parsed again. `!tf_type.resource<tensor<3xf32>>` is a `TensorFlowType`, `tensor<*x!tf_type.string>` a `TensorFlowTensor`.
"""
from __future__ import annotations

from typing import TypeGuard

from ....runtime.records import dataclass
from ...graph.types import OpaqueType, TensorType, Type

PREFIX = "!tf_type."
Shape = tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True)
class TensorFlowType(OpaqueType):
    """An element type. `name` is its own (`resource`, `variant`, `string`, `qint8`, `f32ref`); `subtypes` are the types that a
    handle may refer to, none if they are unknown."""
    name: str
    subtypes: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorFlowTensor(OpaqueType):
    """A tensor of such elements; `shape` as in `TensorType`."""
    shape: Shape
    element: TensorFlowType


def tensorflow_type(name: str, *subtypes: Type) -> TensorFlowType:
    """`!tf_type.name<subtypes>`"""
    inner = f"<{', '.join(map(str, subtypes))}>" if subtypes else ""
    return TensorFlowType(f"{PREFIX}{name}{inner}", name, subtypes)


def tensorflow_tensor(shape: Shape, element: TensorFlowType) -> TensorFlowTensor:
    """`tensor<shape x element>`"""
    extents = "*x" if shape is None else "".join(f"{'?' if n is None else n}x" for n in shape)
    return TensorFlowTensor(f"tensor<{extents}{element}>", shape, element)


def is_tensor(type: Type) -> bool:
    """True if values of the type are tensors, of numbers or of TensorFlow's own elements."""
    return isinstance(type, TensorType | TensorFlowTensor) or str(type).startswith("tensor<")


def is_string(type: object) -> TypeGuard[TensorFlowTensor]:
    """True if values of the type are tensors of strings."""
    return isinstance(type, TensorFlowTensor) and type.element.name == "string"


def is_resource(type: object) -> TypeGuard[TensorFlowTensor]:
    """True if values of the type are handles of variables or other resources."""
    return isinstance(type, TensorFlowTensor) and type.element.name == "resource"


def is_variant(type: object) -> bool:
    """True if values of the type are lists of tensors, or other objects of TensorFlow's."""
    return isinstance(type, TensorFlowTensor) and type.element.name == "variant"


def variable_type(type: Type) -> TensorType | None:
    """Return the type of the variable that a handle refers to; None if the handle's type lacks it."""
    subtypes = type.element.subtypes if isinstance(type, TensorFlowTensor) else ()
    found = subtypes[0] if len(subtypes) == 1 else None
    return found if isinstance(found, TensorType) else None


def can_be_equal(a: Type, b: Type) -> bool:
    """True if values of both types may be the same value: one type may fix what the other leaves open."""
    match a, b:
        case TensorType(), TensorType():
            return a.element == b.element and shapes_can_be_equal(a.shape, b.shape)
        case TensorFlowTensor(), TensorFlowTensor():
            return elements_can_be_equal(a.element, b.element) and shapes_can_be_equal(a.shape, b.shape)
        case _:
            return a == b


def shapes_can_be_equal(a: Shape, b: Shape) -> bool:
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(n is None or m is None or n == m for n, m in zip(a, b))


def elements_can_be_equal(a: TensorFlowType, b: TensorFlowType) -> bool:
    """True for handles of one kind, if one has no subtypes or both may have the same ones."""
    if a.name != b.name:
        return False
    if not a.subtypes or not b.subtypes:
        return True
    return len(a.subtypes) == len(b.subtypes) and all(map(can_be_equal, a.subtypes, b.subtypes))
