"""VARIABLE, VARIABLE_READ, VARIABLE_WRITE: tensors that outlive a run. TOSA 1.0, variable operators.

Their effects are not implemented here: the interpreter and the compiled program implement them, by the class'
`variable_effect`.
"""
from __future__ import annotations

from ....runtime.errors import require
from ...graph.operator import Op, Operand, attribute
from ...graph.types import Array, TensorType
from .operands import tensor


class Variable(Op, name="tosa.variable"):
    """Declares variable `symbol`; the first declaration of a process gives it `initial`, if there is one."""
    symbol: str = attribute("symbol")
    type: TensorType = attribute("tensor")
    initial: Array | None = attribute("dense", default=None)
    variable_effect = "declare"

    def infer(self) -> tuple[()]:
        if self.initial is not None:
            holds = self.initial.shape == self.type.shape and self.initial.dtype.name == self.type.element.storage
            require(holds, f"variable @{self.symbol} is {self.type}, its initial value has shape "
                    f"{list(self.initial.shape)} of {self.initial.dtype}", kind="variable")
        return ()


class VariableRead(Op, name="tosa.variable_read", aliases=("tosa.variable.read",)):
    """The value that was last written to variable `symbol`."""
    symbol: str = attribute("symbol")
    type: TensorType = attribute("tensor")
    variable_effect = "read"

    def infer(self) -> TensorType:
        return self.type


class VariableWrite(Op, name="tosa.variable_write", aliases=("tosa.variable.write",)):
    """Gives variable `symbol` a value."""
    symbol: str = attribute("symbol")
    variable_effect = "write"

    def infer(self, x: Operand) -> tuple[()]:
        tensor(x, f"what is written to @{self.symbol}")
        return ()
