"""Operators of ONNX: one class each, with its attributes, its reference in NumPy, and its lowering to TOSA.

    @operator("Gather")
    class Gather(Operator):
        axis: int = 0

        def reference(self, data: Array, indices: Array) -> Array: ...
        def lower(self, e: Emitter, data: Value, indices: Value) -> Value: ...

Annotated fields are the attributes of the node, with their defaults; a field without a default is required. `version` is that
of the operator set which the model imports: an operator that changed between versions checks it. Omitted operands are None.
Both methods give one result or a tuple, of which a node may omit the last ones; they share no code. Types and shapes follow
from the lowering: an `Emitter` has static types everywhere, and the data of values that are known at compile time.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ....runtime.errors import Problem
from ...graph.graph import Operation, Value
from ..data import Datum, described

if TYPE_CHECKING:
    from ..emitter import Emitter

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Strings = tuple[str, ...]
Inside = Callable[[int, Sequence[Any]], Sequence[Any]]
"""A function that returns the results of a region of the node (by its number) for these arguments."""
REQUIRED = object()
RESERVED = ("onnx.node", "onnx.line")
"""Properties of nodes that are not attributes of their operators."""


def no_regions(number: int, arguments: Sequence[Any]) -> Sequence[Any]:
    raise Problem("the node has no subgraph", kind="model")


class Operator:
    """One node's operator, with the node's attributes."""
    name: ClassVar[str] = ""
    fields: ClassVar[Mapping[str, tuple[str, Any]]] = {}
    """Kind and default of each attribute."""
    is_random: ClassVar[bool] = False
    """True if the results differ at each evaluation: the operator is never computed at compile time."""
    open_ended_results: ClassVar[bool] = False
    """True if the operator gives as many results as the node asks for."""

    def __init__(self, operation: Operation, version: int, inside: Inside = no_regions) -> None:
        self.operation, self.version, self.inside = operation, version, inside
        given = dict(getattr(operation.op, "properties", None) or {})
        for key in RESERVED:
            given.pop(key, None)
        for name, (kind, default) in self.fields.items():
            if name in given:
                setattr(self, name, attribute_value(name, kind, given.pop(name)))
            elif default is REQUIRED:
                raise Problem(f"it needs the attribute {name}", kind="attribute")
            else:
                setattr(self, name, default)
        if given:
            raise Problem(f"it has no attribute {next(iter(given))}", kind="attribute",
                          help=f"its attributes: {', '.join(self.fields) or 'none'}")

    @property
    def results(self) -> int:
        """Number of the node's results."""
        return len(self.operation.results)

    def reference(self, *arrays: Any) -> Any:
        """Return the results in NumPy, close to the specification's text."""
        raise Problem("it cannot be interpreted", kind="unsupported")

    def lower(self, e: Emitter, *values: Any) -> Any:
        """Emit TOSA for the results, and return them."""
        raise Problem("it cannot be compiled", kind="unsupported")


def attribute_value(name: str, kind: str, value: Any) -> Any:
    """Return the attribute of a node as a Python object, of the kind that the operator's class declares."""
    plain = kind.removesuffix(" | None")
    match plain, value:
        case "str", str():
            return value
        case "Array", _ if getattr(value, "array", None) is not None or hasattr(value, "values"):
            return value.array if hasattr(value, "array") else value
        case "int", _ if isinstance(getattr(value, "value", None), int):
            return int(value.value)
        case "float", _ if isinstance(getattr(value, "value", None), int | float):
            return float(value.value)
        case "Ints", _ if all(isinstance(n, int) for n in listed(value)):
            return tuple(int(n) for n in listed(value))
        case "Floats", _ if all(isinstance(n, int | float) for n in listed(value)):
            return tuple(float(n) for n in listed(value))
        case "Strings", tuple() if all(isinstance(s, str) for s in value):
            return value
        case "Any", _:
            return value
    raise Problem(f"its attribute {name} must be {KINDS.get(plain, plain)}", kind="attribute")


KINDS = {"int": "an integer", "float": "a number", "str": "a string", "Ints": "a list of integers",
         "Floats": "a list of numbers", "Strings": "a list of strings", "Array": "a tensor"}


def listed(value: Any) -> Sequence[Any]:
    """Return the numbers of a list; an object that is not a number if the value is not a list of numbers."""
    found = getattr(value, "values", None)
    if isinstance(found, tuple):
        return found
    return () if value == () else ("no number",)


OPERATORS: dict[str, type[Operator]] = {}
"""The classes, by the names of their operators: `Gather`, `com.microsoft.Gelu`."""
C = TypeVar("C", bound=type[Operator])


def operator(*names: str) -> Callable[[C], C]:
    """Register the class for these operators."""
    def add(cls: C) -> C:
        cls.fields = fields_of(cls)
        for name in names:
            assert name not in OPERATORS, f"{name} has two classes"
            OPERATORS[name] = cls
        cls.name = names[0]
        return cls
    return add


def fields_of(cls: type[Operator]) -> dict[str, tuple[str, Any]]:
    """Return the annotated fields of a class and of its base classes, up to `Operator`."""
    found: dict[str, tuple[str, Any]] = {}
    for base in reversed(cls.__mro__[:cls.__mro__.index(Operator)]):
        for name, kind in inspect.get_annotations(base).items():
            if not str(kind).startswith("ClassVar"):
                found[name] = str(kind), getattr(cls, name, REQUIRED)
    return found


# ---- calls -----------------------------------------------------------------------------------------------------------
ERRORS = (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError)


def lowered(found: Operator, e: Emitter, operands: Sequence[Datum]) -> tuple[Datum, ...]:
    """Return the node's results in the new graph, as many as the node has; raise a Problem if its operands are not those that
    the operator takes."""
    kinds = checked_count(found.lower, len(operands), skip=1)
    for number, operand in enumerate(operands):
        kind = kinds[min(number, len(kinds) - 1)] if kinds else ""
        if kind in ("Value", "Value | None") and not isinstance(operand, Value) and not (operand is None and "None" in kind):
            what = "left out" if operand is None else described(operand)
            raise Problem(f"operand {number} is {what}, a tensor of numbers is needed", kind="type")
    try:
        return counted(found, found.lower(e, *operands))
    except ERRORS as error:
        given = ", ".join("nothing" if o is None else described(o) for o in operands) or "nothing"
        raise Problem(f"operands that are {given} do not fit together or to the attributes: {error}", kind="shape") from error


def interpreted(found: Operator, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the node's results in NumPy, as many as the node has."""
    kinds = checked_count(found.reference, len(arrays))
    for number, array in enumerate(arrays):
        if array is None and kinds and kinds[min(number, len(kinds) - 1)] == "Array":
            raise Problem(f"operand {number} is left out, a tensor of numbers is needed", kind="type")
    try:
        return counted(found, found.reference(*arrays))
    except ERRORS as error:
        raise Problem(f"operands do not fit together or to the attributes: {error}", kind="shape") from error


def counted(found: Operator, results: Any) -> tuple[Any, ...]:
    """Return as many results as the node has, which may omit the last ones."""
    own = results if isinstance(results, tuple) else (results,)
    if len(own) < found.results:
        raise Problem(f"it has {found.results} results, its operator gives {len(own)}", kind="model")
    return own[:found.results]


def checked_count(method: Callable[..., Any], count: int, skip: int = 0) -> tuple[str, ...]:
    """Return the kinds of a method's operands; raise a Problem if the method does not take that number."""
    kinds, least, most = parameters(method.__func__, skip)  # type: ignore[attr-defined]
    if not least <= count <= most:
        more = "" if most == least else " or more" if most > 999 else f" to {most}"
        raise Problem(f"{count} operands are not what it takes", kind="type", help=f"it takes {least}{more}")
    return kinds


@functools.cache
def parameters(function: Callable[..., Any], skip: int) -> tuple[tuple[str, ...], int, int]:
    """Return the annotation of each operand, and the minimum and maximum number of operands."""
    own = list(inspect.signature(function).parameters.values())[1 + skip:]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in own)
    needed = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in own)
    return tuple(str(p.annotation) for p in own), needed, 1 << 30 if open_ended else len(own)
