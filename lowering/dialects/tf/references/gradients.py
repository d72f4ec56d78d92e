"""Gradients of elementwise functions, as TensorFlow's operations of that name define them: from the operand or the result of
the function, whichever is cheaper."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....graph.foreign import find, number
from ....graph.graph import Operation
from ....graph.types import Array
from .activations import SELU_ALPHA, SELU_SCALE
from .table import REFERENCES, reference

FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "ReluGrad": lambda g, x: np.where(x > 0, g, 0),
    "Relu6Grad": lambda g, x: np.where((x > 0) & (x < 6), g, 0),
    "EluGrad": lambda g, y: np.where(y < 0, (y + 1) * g, g),
    "SeluGrad": lambda g, y: np.where(y < 0, g * (y + SELU_SCALE * SELU_ALPHA), g * SELU_SCALE),
    "SoftplusGrad": lambda g, x: g / (np.exp(-x) + 1),
    "SoftsignGrad": lambda g, x: g / np.square(1 + np.abs(x)),
    "SigmoidGrad": lambda y, g: g * y * (1 - y),
    "TanhGrad": lambda y, g: g * (1 - y * y),
    "SqrtGrad": lambda y, g: g * 0.5 / y,
    "RsqrtGrad": lambda y, g: g * -0.5 * y * y * y,
    "ReciprocalGrad": lambda y, g: -g * y * y,
    "InvGrad": lambda y, g: -g * y * y}
"""Gradients in 64 bits; the order of the operands is TensorFlow's."""


def gradient(function: Callable[[Array, Array], Array], name: str) -> None:
    def apply(operation: Operation, a: Array, b: Array) -> Array:
        return np.asarray(function(a.astype(np.float64), b.astype(np.float64))).astype(a.dtype)
    REFERENCES[f"tf.{name}"] = apply


for name, function in FUNCTIONS.items():
    gradient(function, name)


@reference("tf.LeakyReluGrad")
def leaky_relu_gradient(operation: Operation, g: Array, x: Array) -> Array:
    return np.where(x > 0, g, g * np.asarray(number(operation, "alpha"), g.dtype))


@reference("tf.BiasAddGrad")
def bias_add_gradient(operation: Operation, g: Array) -> Array:
    """Return the sum over all axes but the channels."""
    channels = 1 if str(find(operation, "data_format", "NHWC")).startswith("NC") else g.ndim - 1
    return np.asarray(g.astype(np.float64).sum(tuple(a for a in range(g.ndim) if a != channels))).astype(g.dtype)
