"""The definition of an operator: one class with its attributes, its types, its meaning, and the value of one output element.

A subclass is a frozen dataclass; its fields are the operator's attributes, and an `Operation` of the graph holds an
instance. Subclassing with a name registers the class in `OPERATORS`, so that readers, the tracer, the interpreter and the
tests find the class there:

    class ReduceSum(Op, name="tosa.reduce_sum"):
        axis: int = attribute("i32")

        def infer(self, x: Operand) -> TensorType: ...
        def reference(self, x: Array) -> Array: ...
        def element(self, out: TensorType, x: Tensor) -> Element: ...

Operands that the specification requires to be known when compiling (zero points, shapes, tables) are ordinary operands;
`infer` and `element` find their data in `operand.constant`, `reference` gets them as arrays like the others.
"""
from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, dataclass_transform

from ...runtime.errors import Problem
from ...runtime.records import dataclass, set_constant_state, state
from .quantized import is_quantized, storage_type
from .types import Array, TensorType, Type

if TYPE_CHECKING:
    from .graph import Block, Operation

Element = Callable[..., Any]
"""A function from output indices to the expression of that element (`elements.tensor.Element`; the graph is a lower layer)."""
OPERATORS: dict[str, type[Op]] = {}
"""Every operator by its name in MLIR (`tosa.add`)."""


class Operand(Protocol):
    """The view of an operand in `infer`: a `Value` of the graph or of a trace."""

    @property
    def type(self) -> Any: ...

    @property
    def constant(self) -> Array | None: ...


def attribute(mlir: str, *, default: Any = dataclasses.MISSING, elided: bool = False) -> Any:
    """Return a field that is an attribute; `mlir` is the attribute's kind in MLIR. An `elided` attribute is not printed at
    its default value: older tools do not know the attribute.

    "i32", "i64", "f32" (a number of that type), "bool", "array<i64>", "array<i32>" (tuples of int), "element" (a number of
    the operand's element type, such as CLAMP's bounds), "type" (an ElementType), "string", "symbol", "dense" (an Array),
    or the name of a TOSA enumeration: "nan_mode", "rounding_mode", "resize_mode", whose values are their names as str.
    """
    return dataclasses.field(default=default, metadata={"mlir": mlir, "elided": elided})


FEW = 8
"""Maximum number of elements of an array that a `repr` shows."""


def shown(value: Any) -> str:
    """Return an attribute on one line: an array with many numbers by its type."""
    if getattr(value, "size", 0) > FEW and hasattr(value, "dtype"):
        return f"<{value.dtype}{list(value.shape)}>"
    return " ".join(repr(value).split())


def from_result(result: int | None = 0, *, default: Any = None) -> Any:
    """Return a field that MLIR does not write as an attribute: the element type of the declared result (CAST, RESCALE); with
    None the types of all results (CUSTOM)."""
    return dataclasses.field(default=default, metadata={"mlir": "result", "result": result})


@dataclass_transform(frozen_default=True, field_specifiers=(attribute, from_result))
class Op:
    """An operator with its attributes."""
    name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    regions: ClassVar[int] = 0
    variable_effect: ClassVar[str] = ""
    """"declare", "read" or "write" for the operators of stateful tensors."""
    is_check: ClassVar[bool] = False
    """True if the operator ends the run when its operand is false: it has no results, and is kept all the same."""
    stands_alone: ClassVar[bool] = False
    """True if the operator's loops compute nothing else: its result is stored."""
    foreign: ClassVar[bool] = False
    """True if the operator is of a dialect beside TOSA: its own `verify` has its rules, and TOSA's levels do not apply."""
    terminator: ClassVar[str] = "tosa.yield"
    """Name of the terminator of the blocks of the operator's regions."""
    _fields: ClassVar[tuple[dataclasses.Field[Any], ...]] = ()

    def __init_subclass__(cls, name: str = "", aliases: tuple[str, ...] = (), **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        cls._fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        if name:
            cls.name, cls.aliases = name, aliases
            for key in (name, *aliases):
                OPERATORS[key] = cls

    # The methods of a frozen dataclass, once for all operators: making them for each takes longer than the rest of the import.
    def __init__(self, *values: Any, **named: Any) -> None:
        names = [f.name for f in self._fields]
        given = dict(zip(names, values)) | named
        wrong = [name for name in named if name not in names[len(values):]]
        if len(values) > len(names) or wrong:
            raise TypeError(f"{type(self).__name__} takes {', '.join(names) or 'nothing'}, not {', '.join(wrong) or values}")
        for f in self._fields:
            value = given.get(f.name, f.default)
            if value is dataclasses.MISSING:
                raise TypeError(f"{type(self).__name__} needs {f.name}")
            object.__setattr__(self, f.name, value)

    def __repr__(self) -> str:
        fields = (f"{f.name}={shown(getattr(self, f.name))}" for f in self._fields if f.repr)
        return f"{type(self).__qualname__}({', '.join(fields)})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    __getstate__, __setstate__ = state, set_constant_state

    def infer(self, *operands: Any, **named: Any) -> Any:  # in an operator: its operands, by their names
        """Return the type of the result, or a tuple of types; raise a Problem for each ERROR_IF of the specification."""
        raise Problem(f"{self.name} has no type rule", kind="unsupported")

    def reference(self, *arrays: Any, **named: Any) -> Any:
        """Return the result as arrays, in NumPy, close to the specification's wording."""
        raise Problem(f"{self.name} has no reference", kind="unsupported")

    def element(self, out: TensorType, *operands: Any) -> Element:
        """Return a function from output indices to the expression of that element of the result."""
        raise Problem(f"{self.name} cannot be compiled", kind="unsupported")

    def result_elements(self, outs: Sequence[TensorType], *operands: Any) -> tuple[Element, ...]:
        """Return `element` for each result; an operator with several results overrides this method."""
        return (self.element(outs[0], *operands),)

    def constant(self, operands: Sequence[Operand]) -> Array | None:
        """Return the data of the one result if it is known as soon as the operation is made: constants, and shapes that are
        computed from shapes. None if it is not, or if the operands are wrong, which `infer` reports."""
        return None if operands else getattr(self, "values", None)

    def result_types(self, operands: Sequence[Operand]) -> tuple[Type, ...]:
        """Return the types of `infer` as a tuple; raise a Problem for a wrong number of operands."""
        names, least, most = rule_of(type(self).infer)
        if not least <= len(operands) <= most:
            raise Problem(f"{self.name} does not take {len(operands)} operands", kind="type",
                          help=operand_help(names, len(operands)))
        types = self.infer(*stored_operands(operands))
        return types if isinstance(types, tuple) else (types,)

    def region_types(self, operands: Sequence[Operand], regions: Sequence[Block]) -> tuple[Type, ...]:
        """Return the result types of an operator with regions; check the arguments of the regions and the values they yield."""
        raise Problem(f"{self.name} takes no regions", kind="type")

    def default_of(self, name: str) -> Any:
        """Return the value of an attribute of a foreign operator that the text leaves out; None if it is not known."""
        return None

    def terminator_of(self, region: int) -> str:
        """Return the name of the terminator of the block of one region."""
        return self.terminator

    def region_parents(self) -> Sequence[int] | None:
        """Return, for each region, the one whose values it sees, itself for the first; None if each sees only enclosing
        ones."""
        return None

    def verify(self, operation: Operation, parent: Operation | None) -> None:
        """Check the rules of a foreign operator; `parent` is the operation whose region holds `operation`."""

    def types(self, operands: Sequence[Operand], regions: Sequence[Block] = ()) -> tuple[Type, ...]:
        """Return the types of the results of an operation; a Problem from the operator's rule names the operator."""
        try:
            return self.region_types(operands, regions) if regions else self.result_types(operands)
        except Problem as problem:
            raise problem.of(self.name) from None


@functools.cache
def rule_of(infer: Callable[..., Any]) -> tuple[list[str], int, float]:
    """Return the names of the operands of a type rule, without `self`, and their least and greatest number."""
    import inspect
    _, *operands = inspect.signature(infer).parameters.values()
    several = any(p.kind is p.VAR_POSITIONAL for p in operands)
    needed = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in operands)
    return [p.name for p in operands], needed, math.inf if several else len(operands)


def operand_help(names: Sequence[str], found: int) -> str:
    """Return the help for an operation with a wrong number of operands: those that it should have."""
    takes = f"it takes {len(names)}: {', '.join(names)}" if names else "it takes none"
    return f"{takes}; TOSA before 1.0 had some of them as attributes" if found < len(names) else takes


@dataclass(frozen=True, slots=True)
class StoredOperand:
    """A quantized operand as the operators' type rules see it: with its storage type."""
    type: Any
    constant: Array | None


def stored_operands(operands: Sequence[Operand]) -> Sequence[Operand]:
    """Return the operands, those of quantized types as they are stored."""
    if not any(is_quantized(o.type) for o in operands):
        return operands
    return [StoredOperand(storage_type(o.type), o.constant) for o in operands]


class UnknownOp(Op):
    """An operator that is not in the table: kept, printed, moved and pruned, but not compiled."""
    spelling: str = ""
    properties: Any = dataclasses.field(default=None, metadata={"mlir": "none"})

    def infer(self, *operands: Operand) -> TensorType:
        raise self.problem

    def reference(self, *arrays: Array) -> Array:
        raise self.problem

    def element(self, out: TensorType, *operands: Any) -> Element:
        raise self.problem

    @property
    def problem(self) -> Problem:
        return Problem(f"operator {self.spelling} is not known", kind="unsupported")


class ForeignOp(UnknownOp):
    """An operation of another dialect, kept by its name with its properties. The operation that its dialect spells
    `constant_spelling` is a constant: its property `value` holds the data."""
    foreign = True
    constant_spelling = ""

    def constant(self, operands: Sequence[Operand]) -> Array | None:
        """Return the data of a constant, if it is a tensor of numbers."""
        value = (self.properties or {}).get("value") if self.spelling == self.constant_spelling else None
        data: Array | None = getattr(value, "array", None)
        return data

    def reference(self, *arrays: Array) -> Array:
        """Return the data of a constant; no other operation is known here."""
        data = self.constant(())
        return super().reference(*arrays) if data is None else data
