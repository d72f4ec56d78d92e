"""Gradients of elementwise functions; the position of the gradient among the operands differs between operations."""
from __future__ import annotations

from ....formulas.division import divided
from ....formulas.reductions import operator, reduced
from ....formulas.term import Term, absolute, select, sigmoid
from ....formulas.working_types import working_type
from ....graph.foreign import find, number
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .activations import SELU_ALPHA, SELU_SCALE
from .formula import formula
from .table import legalization


@formula("tf.ReluGrad")
def relu_gradient(gradient: Term, x: Term) -> Term:
    return select(x > 0, gradient, 0)


@formula("tf.Relu6Grad")
def relu6_gradient(gradient: Term, x: Term) -> Term:
    return select((x > 0) & (x < 6), gradient, 0)


@formula("tf.EluGrad")
def elu_gradient(gradient: Term, y: Term) -> Term:
    return select(y < 0, (y + 1) * gradient, gradient)


@formula("tf.SeluGrad")
def selu_gradient(gradient: Term, y: Term) -> Term:
    return gradient * select(y < 0, y + SELU_SCALE * SELU_ALPHA, SELU_SCALE)


@formula("tf.SoftplusGrad")
def softplus_gradient(gradient: Term, x: Term) -> Term:
    return gradient * sigmoid(x)


@formula("tf.SoftsignGrad")
def softsign_gradient(gradient: Term, x: Term) -> Term:
    root = absolute(x) + 1
    return gradient / (root * root)


@formula("tf.SigmoidGrad")
def sigmoid_gradient(y: Term, gradient: Term) -> Term:
    return gradient * y * (1 - y)


@formula("tf.TanhGrad")
def tanh_gradient(y: Term, gradient: Term) -> Term:
    return gradient * (1 - y * y)


@formula("tf.SqrtGrad")
def root_gradient(y: Term, gradient: Term) -> Term:
    return divided(gradient * 0.5, y)


@formula("tf.RsqrtGrad")
def reciprocal_root_gradient(y: Term, gradient: Term) -> Term:
    return gradient * -0.5 * y * (y * y)


@formula("tf.ReciprocalGrad", "tf.InvGrad")
def reciprocal_gradient(y: Term, gradient: Term) -> Term:
    return -gradient * y * y


@legalization("tf.LeakyReluGrad")
def leaky_relu_gradient(e: Emitter, operation: Operation, gradient: Value, x: Value) -> Value:
    g = Term(e, gradient)
    return select(Term(e, x) > 0, g, g * number(operation, "alpha")).value


@legalization("tf.BiasAddGrad")
def bias_add_gradient(e: Emitter, operation: Operation, gradient: Value) -> Value:
    """Return the sum over all axes but the channels."""
    type = gradient.tensor
    channels = 1 if str(find(operation, "data_format", "NHWC")).startswith("NC") else type.rank - 1
    wide = e.cast(gradient, working_type(type.element, True, True))
    total = reduced(e, wide, [axis for axis in range(type.rank) if axis != channels], operator("reduce_sum"), 0)
    return e.cast(e.reshape(total, [type.dims[channels]]), type.element)
