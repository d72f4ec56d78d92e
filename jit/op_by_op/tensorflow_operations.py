"""TensorFlow's operations in the op-by-op runtime, by their names in the dialect (`tf.AddV2`): functions of traced tensors that
record the operation's TOSA, so that it is compiled once for its operands' types and its attributes, alone or in a region.

Attributes are TensorFlow's, with its names: `{"transpose_b": True}`, `{"DstT": np.dtype("int32")}`, `{"num_split": 2}`.
Operands that give shapes and axes are part of a kernel's lookup key: new contents are compiled anew.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lowering.graph.types import BY_STORAGE, F64, I64, tensor_type
from ...lowering.text.attributes import Dense, Number, Text
from ...runtime.errors import Problem
from ..tracing.tensor import Tensor
from ..tracing.trace import caller, constant, current, usable

PREFIX = "tf."


def knows(name: str) -> bool:
    """True if there is an operation of that name."""
    from ...lowering.rewrite.tensorflow.one_operation import is_function
    return is_function(name)


def names() -> tuple[str, ...]:
    """Return the names of legalizations, including those of operations that are not functions."""
    from ...lowering.dialects.tf.legalizations import LEGALIZATIONS
    return tuple(LEGALIZATIONS)


def constants(name: str, count: int) -> tuple[int, ...]:
    """Return the operands, of `count`, whose contents must be known when compiling."""
    from ...lowering.rewrite.tensorflow.one_operation import constant_operands
    return constant_operands(name, count)


def function(name: str) -> Callable[..., tuple[Tensor, ...]]:
    """Return the operation as a function of tensors, with its attributes by keyword."""
    def call(*operands: Tensor, **attributes: Any) -> tuple[Tensor, ...]:
        from ...lowering.rewrite.tensorflow.one_operation import emit
        scope, position = current(), caller()
        properties = {key: in_mlir(key, value) for key, value in attributes.items()}
        found = emit(name, properties, [usable(x if isinstance(x, Tensor) else constant(np.array(x)), scope, position)
                                         for x in operands], scope.builder, position)
        return tuple(Tensor(value, scope) for value in found)

    return call


def in_mlir(name: str, value: Any) -> Any:
    """Return an attribute as in the dialect's text."""
    match value:
        case bool() | str():
            return value
        case int():
            return Number(value, I64)
        case float():
            return Number(value, F64)
        case np.dtype():
            return BY_STORAGE[value.name]
        case np.ndarray():
            return Dense(value, tensor_type(value))
        case None:
            return Text("#tf_type.shape<*>")
        case tuple() if None in value:
            return Text(f"#tf_type.shape<{'x'.join('?' if n is None else str(n) for n in value)}>")
        case tuple():
            return tuple(in_mlir(name, item) for item in value)
    raise Problem(f"attribute '{name}' is {value!r}, which no operation of TensorFlow's takes here", kind="attribute")
