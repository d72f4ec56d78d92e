"""Graph -> graph: f64 between the inputs and the results becomes f32, because TOSA has no f64.

torch-mlir computes the variance of f32 in f64, and compares with constants in f64, where PyTorch and ONNX compute in f32. A
finite constant stays finite: a value beyond f32 becomes the largest f32 number, as with masks of -1.8e308.
"""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...runtime.errors import Problem
from ..dialects.tosa.conversion import Cast
from ..dialects.tosa.data import Identity
from ..graph.graph import Module, Value
from ..graph.operator import Op
from ..graph.types import F32, F64, Array, ElementType, TensorType, Type
from .strip_quantized import types
from .substitute import ValueSubstitution

LARGEST = float(np.finfo(np.float32).max)


def narrow_doubles(module: Module) -> Module:
    """Return the module with f32 for f64; unchanged (the same object) if it has none. Raise a Problem if a function takes or
    gives f64, or a variable holds it: types that the caller sees do not change."""
    if not any(map(is_double, types(module))):
        return module
    for what in seen_from_outside(module):
        raise Problem(f"{what} is of f64, which TOSA does not have", kind="unsupported", help="make the model one of f32")
    return ValueSubstitution(narrowed_value, narrowed_op, narrowed_type).module(module)


def is_double(type: Any) -> bool:
    return isinstance(type, TensorType) and type.element == F64


def seen_from_outside(module: Module) -> Iterator[str]:
    """Yield descriptions of the f64 inputs, results and variables that callers see."""
    for function in module.functions:
        yield from (f"input {v.name} of {function.name}" for v in function.arguments if is_double(v.type))
        yield from (f"result {n} of {function.name}" for n, t in enumerate(function.result_types) if is_double(t))
    for operation in module.declarations:
        if is_double(getattr(operation.op, "type", None)):
            yield f"variable {getattr(operation.op, 'symbol', '')}"


def narrowed_type(type: Type) -> Type:
    return type.with_element(F32) if isinstance(type, TensorType) and type.element == F64 else type


def narrowed_value(value: Value) -> Value:
    if not is_double(value.type):
        return value
    constant = None if value.constant is None else narrowed(value.constant)
    return replace(value, type=narrowed_type(value.type), constant=constant)


def narrowed_op(op: Op, operands: tuple[Value, ...]) -> Op:
    """Return the operator for f32. A conversion of f32 to f32 becomes an identity."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(op):  # type: ignore[arg-type]  # each subclass of Op is made a dataclass
        match getattr(op, field.name):
            case np.ndarray(dtype=np.dtype(name="float64")) as array:
                changed[field.name] = narrowed(array)
            case float() as number if field.metadata.get("mlir") == "element":
                changed[field.name] = nearest(number)
            case ElementType() as element if element == F64:
                changed[field.name] = F32
            case TensorType() as type if is_double(type):
                changed[field.name] = narrowed_type(type)
    new = replace(op, **changed) if changed else op  # type: ignore[type-var]
    if isinstance(new, Cast) and new.to == F32 and all(v.tensor.element == F32 for v in operands):
        return Identity()
    return new


def narrowed(array: Array) -> Array:
    """Return the nearest numbers of f32, read-only; finite numbers stay finite."""
    found = np.where(np.isfinite(array), np.clip(array, -LARGEST, LARGEST), array).astype(np.float32)
    found.flags.writeable = False
    return found


def nearest(number: float) -> float:
    return float(np.float32(min(max(number, -LARGEST), LARGEST))) if math.isfinite(number) else number
