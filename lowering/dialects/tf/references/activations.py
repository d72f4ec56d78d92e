"""Activation functions."""
from __future__ import annotations

import numpy as np

from ....graph.foreign import number
from ....graph.graph import Operation
from ....graph.types import Array
from .table import reference

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


@reference("tf.Relu")
def relu(operation: Operation, x: Array) -> Array:
    return np.maximum(x, np.zeros((), x.dtype))


@reference("tf.Relu6")
def relu6(operation: Operation, x: Array) -> Array:
    return np.minimum(np.maximum(x, np.zeros((), x.dtype)), np.asarray(6, x.dtype))


@reference("tf.LeakyRelu")
def leaky_relu(operation: Operation, x: Array) -> Array:
    return np.where(x > 0, x, x * np.asarray(number(operation, "alpha"), x.dtype))


@reference("tf.Elu")
def elu(operation: Operation, x: Array) -> Array:
    return np.where(x < 0, np.expm1(x), x)


@reference("tf.Selu")
def selu(operation: Operation, x: Array) -> Array:
    scale, alpha = np.asarray(SELU_SCALE, x.dtype), np.asarray(SELU_SCALE * SELU_ALPHA, x.dtype)
    return np.where(x < 0, alpha * np.expm1(x), scale * x)


@reference("tf.Sigmoid")
def sigmoid(operation: Operation, x: Array) -> Array:
    wide = x.astype(np.float64)
    return (1 / (1 + np.exp(-wide))).astype(x.dtype)


@reference("tf.Softplus")
def softplus(operation: Operation, x: Array) -> Array:
    return np.logaddexp(x.astype(np.float64), 0).astype(x.dtype)


@reference("tf.Softsign")
def softsign(operation: Operation, x: Array) -> Array:
    return x / (np.abs(x) + np.asarray(1, x.dtype))


@reference("tf.Softmax")
def softmax(operation: Operation, x: Array) -> Array:
    """Return the softmax along the last axis."""
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(x.dtype)


@reference("tf.LogSoftmax")
def log_softmax(operation: Operation, x: Array) -> Array:
    wide = x.astype(np.float64)
    shifted = wide - wide.max(axis=-1, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))).astype(x.dtype)
