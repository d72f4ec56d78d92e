"""`tosaic.Variable`: a named tensor that outlives a call, used inside traced functions and from outside.

Inside, `read` and `write` become VARIABLE_READ and VARIABLE_WRITE in the order in which Python runs them. Outside, they act on
the process's variable of that name, which all compiled functions that name it share.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...lowering.graph.graph import Operation
from ...lowering.graph.types import BY_STORAGE, F32, I32, Array, ElementType, TensorType
from ...runtime.errors import AttributeProblem, Problem, TypeProblem, class_of
from ...runtime.public_names import public_class
from ...runtime.variable import Declaration
from ...runtime.variables import process
from .conversion import element_type, extents, is_number, tensor
from .tensor import Tensor
from .trace import apply, caller, current, frozen, is_tracing, operator, problem, record


@public_class
class Variable:
    """A variable by name, of `shape` and `dtype`, or those of its `initial` value. Any number of functions and threads may use
    it.

    An initial number fills the shape. Without an initial value the variable must be written before it is read. Two variables of
    one name are the same variable; they must agree in type.
    """
    __slots__ = ("initial", "name", "position", "type")

    def __init__(self, name: str, initial: Any = None, shape: Sequence[int] | int | None = None, dtype: Any = None) -> None:
        if not isinstance(name, str) or not name:
            raise problem(f"the name of a variable is a string, not {name!r}", "argument", raised=TypeProblem)
        self.name, self.position = name, caller()
        element = element_type(dtype) if dtype is not None else None
        self.initial: Array | None = None
        if initial is None:
            if shape is None:
                raise problem(f"variable {name} has neither an initial value nor a shape", "argument")
            self.type = TensorType(extents(shape), element or F32)
            return
        value, element = initial_value(name, initial, element)
        if shape is not None:
            try:
                value = np.broadcast_to(value, extents(shape))
            except ValueError:
                raise problem(f"the initial value of variable {name} has shape {list(value.shape)}, not {shape}",
                              "shape") from None
        self.type, self.initial = TensorType(value.shape, element), frozen(np.array(value, order="C"))

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.type})"

    def __eq__(self, other: object) -> bool:
        """True if it is the same object. Numbers are refused: the comparison would be a constant of the compiled function."""
        if isinstance(other, Tensor | np.ndarray) or is_number(other):
            raise self._no_tensor()
        return self is other

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"a tosaic.Variable has no {name}")
        raise problem(f"variable {self.name} has no {name}, its value has", "variable", f"variable.read().{name}",
                      AttributeProblem)

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._no_tensor()
        return str(self)

    def _no_tensor(self) -> Problem:
        """Return the Problem of a use in place of a tensor."""
        return problem(f"variable {self.name} is no tensor", "variable", raised=TypeProblem, help="its value is what read() "
                       "returns: variable.read() + 1; write(value) changes it")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.dims

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.element.dtype

    def read(self) -> Tensor | Any:
        """Return the value: a tensor inside a traced function, outside a copy as an array."""
        if is_tracing():
            return apply("variable_read", symbol=self._declare(), type=self.type)
        self._exist()
        return process.read(self.name)

    def write(self, value: Any) -> None:
        """Set the variable to a value of its type; a number fills it."""
        if not is_tracing():
            self._exist()
            value = np.asarray(value, self.dtype) if is_number(value) or isinstance(value, list) else np.asarray(value)
            process.set(self.name, np.full(self.shape, value) if value.ndim == 0 else value)
            return
        from .layout import broadcast_to
        symbol = self._declare()
        given = tensor(value, self.type.element)
        if given.ndim == 0:
            given = broadcast_to(given, self.shape) if self.shape else given
        if given.type != self.type:
            raise problem(f"variable {self.name} is {self.type}, what is written is {given.type}", "variable",
                          help="astype, reshape or broadcast_to bring it there")
        record(operator("variable_write")(symbol=symbol), given)

    set = write

    @property
    def value(self) -> Tensor | Any:
        return self.read()

    @value.setter
    def value(self, value: Any) -> None:
        self.write(value)

    def reset(self) -> None:
        """Reset to the initial value, or to not written; only outside of traced functions."""
        if is_tracing():
            raise problem(f"variable {self.name} cannot be reset inside a function that is compiled", "variable",
                          help="write the value that it should have")
        self._exist()
        process.reset(self.name)

    def _exist(self) -> None:
        """Ensure that the variable exists in the process."""
        from ...runtime.arguments import Tensor as TensorArgument
        element = self.type.element
        described = TensorArgument(self.name, element.storage, self.shape, element.name)
        process.declare([Declaration(described, self.initial, self.position)])

    def _declare(self) -> str:
        """Ensure that the module being traced declares the variable, and return its symbol there."""
        trace = current().trace
        symbol = trace.symbol(self.name, process)
        known: Any = trace.declarations.get(symbol)
        if known is None:
            op = operator("variable")(symbol=symbol, type=self.type, initial=self.initial)
            trace.declarations[symbol] = Operation(op, (), (), position=self.position)
        elif known.op.type != self.type:
            raise problem(f"variable {self.name} is {self.type} here and {known.op.type} before", "variable",
                          help="give one of them another name")
        return symbol


def refuse_operators() -> None:
    """Give `Variable` each operator and protocol of `Tensor` that it lacks, as a refusal that says how to read its value."""
    def refuse(self: Variable, *others: Any, **options: Any) -> NoReturn:
        raise self._no_tensor()

    own = {*vars(object), *vars(Variable)} - {"__lt__", "__le__", "__gt__", "__ge__"}
    of_tensors = [name for name, member in vars(Tensor).items() if name.startswith("__") and callable(member)]
    in_place = [f"__i{name[3:]}" for name in of_tensors if name.startswith("__r") and f"__{name[3:]}" in of_tensors]
    for name in (*of_tensors, *in_place):
        if name not in own and name not in ("__getattr__", "__hash__"):
            setattr(Variable, name, refuse)


refuse_operators()


def initial_value(name: str, initial: Any, element: ElementType | None) -> tuple[Array, ElementType]:
    """Return an array, and its element type: numbers and NumPy's default dtypes become i32 and f32."""
    try:
        value = np.asarray(initial)
        if element is None:
            plain = is_number(initial) or isinstance(initial, list | tuple) or value.dtype in (np.float64, np.int64)
            default = {"f": F32, "i": I32}.get(value.dtype.kind) if plain else None
            element = default or BY_STORAGE[value.dtype.name]
        return value.astype(element.dtype), element
    except Problem:
        raise
    except (KeyError, ValueError, TypeError):
        raise problem(f"the initial value of variable {name} is {class_of(initial)} that is no tensor",
                      "argument") from None
