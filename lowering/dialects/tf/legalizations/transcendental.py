"""TensorFlow's exponentials, logarithms, hyperbolic and trigonometric functions."""
from __future__ import annotations

from ....formulas.transcendental import acosh, asinh, atanh, cosh, expm1, log1p, sinh, tan, xlog1py, xlogy
from ....formulas.working_types import working_type
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .formula import formula
from .table import legalization

formula("tf.Expm1")(expm1)
formula("tf.Log1p")(log1p)
formula("tf.Xlogy")(xlogy)
formula("tf.Xlog1py")(xlog1py)
formula("tf.Sinh")(sinh)
formula("tf.Cosh")(cosh)
formula("tf.Asinh")(asinh)
formula("tf.Acosh")(acosh)
formula("tf.Atanh")(atanh)
formula("tf.Tan")(tan)


def direct(operator: str, *names: str) -> None:
    """Register one operator of TOSA, which takes half floats, too, for these operations."""
    @legalization(*names)
    def emit(e: Emitter, operation: Operation, x: Value) -> Value:
        working_type(x.tensor.element, False, True)
        return e(operator, x)


for operator, name in {"exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tanh": "Tanh", "erf": "Erf",
                       "sigmoid": "Sigmoid", "rsqrt": "Rsqrt"}.items():
    direct(operator, f"tf.{name}")
