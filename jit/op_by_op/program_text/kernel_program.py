"""A kernel program: functions whose bodies are kernels, in SSA form. Immutable; every node knows its source position.

A kernel runs when its operands are ready, so the order of kernels in a body means nothing: chains order effects. Both
spellings, that of the design document and the newer one, are read to one normal form:

    corert.executeop      (handler, tensor handles...) -> tensor handles    attributes op_name, op_attrs, op_func_attrs
    corert.executeop.seq  (handler, chain, tensor handles...) -> (chain, tensor handles...)    the same attributes
    corert.get_op_handler (chain) -> handler; if the document gives no chain, a new one precedes it
    corert.const_dense_tensor and the like have their data in the attribute `value`
    tfrt.call, corert.cond, ... name the functions that they call in attributes, as symbols
    tfrt.if, tfrt.repeat.i32  have regions, whose arguments are the operands after the first one
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from ....lowering.text.attributes import Attribute
from ....runtime.errors import Position, Problem
from ....runtime.records import dataclass

CHAIN, HANDLE, HANDLER = "!tfrt.chain", "!corert.tensorhandle", "!corert.ophandler"
ATTRIBUTES, FROZEN_ATTRIBUTES = "!corert.opattrs", "!corert.opattrs_ref"
COMPOSITE, STRING, SHAPE, TENSOR = "!corert.op", "!corert.string", "!ts.shape", "!t.tensor"
DIALECT_TYPES = frozenset({CHAIN, HANDLE, HANDLER, ATTRIBUTES, FROZEN_ATTRIBUTES, COMPOSITE, STRING, SHAPE, TENSOR})
SCALARS = ("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f32", "f64")
"""Types of values that are numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A result of a kernel or an argument of a function; its name is None if the text has none."""
    name: str | None
    type: str
    position: Position


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One use of a kernel."""
    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    regions: tuple[Body, ...]
    position: Position

    @property
    def result_types(self) -> tuple[str, ...]:
        return tuple(v.type for v in self.results)

    @property
    def operand_types(self) -> tuple[str, ...]:
        return tuple(v.type for v in self.operands)


def pairs_of(attributes: Mapping[str, Attribute], name: str) -> list[tuple[str, Attribute]]:
    """Return the names and values of `op_attrs` or `op_func_attrs`, which have been verified."""
    pairs = attributes.get(name, ())
    assert isinstance(pairs, tuple)
    return [(str(pair[0]), pair[1]) for pair in pairs if isinstance(pair, tuple)]


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Arguments, kernels, and the operands of `tfrt.return`."""
    arguments: tuple[Value, ...]
    kernels: tuple[Kernel, ...]
    returned: tuple[Value, ...]
    position: Position
    end: Position
    """Position of `tfrt.return`."""

    def walk(self) -> Iterator[Kernel]:
        """Yield every kernel of the body and its regions."""
        for kernel in self.kernels:
            yield kernel
            for region in kernel.regions:
                yield from region.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function. `result_types` are the declared ones."""
    name: str
    body: Body
    result_types: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    position: Position

    @property
    def argument_types(self) -> tuple[str, ...]:
        return tuple(v.type for v in self.body.arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The functions of a text, in its order."""
    functions: tuple[Function, ...]
    by_name: Mapping[str, Function] = field(repr=False)

    def function(self, name: str) -> Function:
        """Return the function of that name. Raise a Problem if there is none."""
        if name not in self.by_name:
            raise Problem(f"the program has no function {name}", kind="argument",
                          help=f"it has {', '.join(self.by_name) or 'none'}")
        return self.by_name[name]
