"""Data of a front end's graph while it becomes TOSA: values of the new graph, or objects that are known at compile time.

A tensor of numbers is a `Value`. A handle of a variable is its name, a list of tensors one tensor of all its elements, and a
string is kept only for messages.
"""
from __future__ import annotations

from dataclasses import replace

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..graph.graph import Value
from ..graph.types import ElementType, TensorType


@dataclass(frozen=True, slots=True)
class VariableHandle:
    """A variable, by its symbol."""
    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A constant of strings, or of anything else that arithmetic does not take."""
    value: object


@dataclass(frozen=True, slots=True)
class ListOfTensors:
    """`count` tensors of type `element` (None: not known yet), as one tensor [count, ...]. Without `items` no element was ever
    set: all are zeros."""
    count: int
    element: TensorType | None
    items: Value | None = None

    @property
    def type(self) -> TensorType:
        """Type of all items together."""
        if self.element is None:
            raise Problem("the shape of the list's elements is not known", kind="shape",
                          help="give it when the list is made, or set an element before this")
        return TensorType((self.count, *self.element.dims), self.element.element)

    def with_items(self, items: Value) -> ListOfTensors:
        return ListOfTensors(items.tensor.dims[0], TensorType(items.tensor.dims[1:], items.tensor.element), items)


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """Tensors of one element type, each of any shape; their number is known at compile time."""
    items: tuple[Value, ...]
    element: ElementType | None = None


@dataclass(frozen=True, slots=True)
class ComplexTensor:
    """A tensor of complex numbers, as two tensors of one type. Few operations take it; the others use the attributes of a
    `Value`."""
    real: Value
    imaginary: Value

    @property
    def tensor(self) -> TensorType:
        raise self.problem

    @property
    def constant(self) -> None:
        return None

    @property
    def problem(self) -> Problem:
        return Problem("complex numbers have no place in TOSA", kind="unsupported",
                       help="transforms, Complex, Real, Imag, Conj, ComplexAbs, arithmetic and what moves elements take them")


Datum = Value | VariableHandle | Text | ListOfTensors | TensorSequence | ComplexTensor | None
"""The data of a value. None: nothing is known of it yet, as of a loop's results before its first iteration; it may be
anything."""


def leaves(datum: Datum) -> tuple[Value, ...]:
    """Return the tensors in a datum: the values that a loop carries, or that are results of a branch."""
    match datum:
        case Value():
            return (datum,)
        case ListOfTensors(items=Value() as items):
            return (items,)
        case ComplexTensor():
            return (datum.real, datum.imaginary)
        case TensorSequence():
            return datum.items
        case _:
            return ()


def rebuilt(datum: Datum, tensors: tuple[Value, ...]) -> Datum:
    """Return the same datum with other tensors in it."""
    match datum, tensors:
        case Value(), (one,):
            return one
        case ListOfTensors(), (one,):
            return replace(datum, items=one)
        case ComplexTensor(), (real, imaginary):
            return ComplexTensor(real, imaginary)
        case TensorSequence(), _:
            return replace(datum, items=tensors)
        case _:
            return datum


def described(datum: Datum) -> str:
    """Return the kind of a datum, for messages."""
    match datum:
        case Value():
            return str(datum.type)
        case VariableHandle():
            return f"the handle of variable {datum.name}"
        case ListOfTensors():
            return f"a list of {datum.count} tensors"
        case TensorSequence():
            return f"a sequence of {len(datum.items)} tensors"
        case ComplexTensor():
            return f"complex numbers, each part a {datum.real.type}"
        case None:
            return "not known"
        case _:
            return "a string"
