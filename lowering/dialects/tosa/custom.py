"""CUSTOM: operators outside the specification, named by a domain and a name in it, and their registration by users.

A graph may hold any of them: it is read, kept, verified as far as its declared types go, and printed. To run, it needs an
implementation, a class like that of every other operator:

    @tosaic.custom("my_domain", "leaky_relu")
    class LeakyRelu(tosaic.Op):
        def infer(self, x): ...
        def reference(self, x): ...
        def element(self, out, x): ...
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ....runtime.errors import Problem
from ....runtime.public_names import public
from ...elements.tensor import Element
from ...graph.operator import Op, Operand, attribute, from_result
from ...graph.types import Array, TensorType, Type

IMPLEMENTATIONS: dict[tuple[str, str], type[Custom]] = {}
"""Classes that users have registered, by domain and operator name."""


class Custom(Op, name="tosa.custom"):
    """An operator outside the specification; `implementation_attrs` is a text for its implementation. TOSA 1.0, custom
    operators.

    `Custom(...)` is an instance of the registered implementation where there is one. Without one, the types of the results
    are those that the graph declares.
    """
    operator_name: str = attribute("string")
    domain_name: str = attribute("string")
    implementation_attrs: str = attribute("string", default="")
    declared: tuple[Type, ...] | None = from_result(None, default=None)

    def __new__(cls, operator_name: str = "", domain_name: str = "", *others: Any, **attributes: Any) -> Custom:
        implementation = IMPLEMENTATIONS.get((domain_name, operator_name)) if cls is Custom else None
        return object.__new__(implementation or cls)

    def infer(self, *operands: Operand) -> tuple[Type, ...]:
        if self.declared is None:
            raise self.problem("type rule")
        return self.declared

    def reference(self, *arrays: Array) -> Any:
        raise self.problem("reference")

    def element(self, out: TensorType, *operands: Any) -> Element:
        raise self.problem("element")

    def result_elements(self, outs: Sequence[TensorType], *operands: Any) -> tuple[Element, ...]:
        if len(outs) > 1:
            raise self.problem("result_elements")
        return (self.element(outs[0], *operands),)

    def problem(self, what: str) -> Problem:
        """Return the Problem of a missing implementation, or of a missing part of one."""
        name = f"operator {self.operator_name} of domain {self.domain_name}"
        if type(self) is not Custom:
            return Problem(f"the implementation of custom {name} has no {what}", kind="unsupported",
                           help=f"give {type(self).__name__} a method of that name")
        return Problem(f"no implementation of custom {name} is registered", kind="unsupported",
                       help=f'register a class before the graph is read: @tosaic.custom("{self.domain_name}", '
                            f'"{self.operator_name}") above a subclass of tosaic.Op with infer, reference and element')


@public("tosaic.custom")
def custom(domain_name: str, operator_name: str) -> Callable[[type[Op]], type[Custom]]:
    """A class decorator that registers an implementation of a custom operator, for graphs that are read from then on.

    The class derives from `tosaic.Op`. Its `infer` returns the type of the result (or a tuple), `reference` its value in NumPy,
    `element` the expression of one of its elements (`result_elements` those of several results), as for TOSA's own operators.
    Each method is only needed for its own use. Its instances have `implementation_attrs`, the text in the graph. A second class
    for the same name replaces the first.
    """
    def register(implementation: type[Op]) -> type[Custom]:
        if not (isinstance(implementation, type) and issubclass(implementation, Op)):
            raise Problem(f"{implementation!r} is no class that derives from tosaic.Op", kind="argument")
        if issubclass(implementation, Custom):  # registered under another name, too
            IMPLEMENTATIONS[domain_name, operator_name] = implementation
            return implementation
        if implementation.name:
            raise Problem(f"{implementation.__name__} is {implementation.name} already", kind="argument",
                          help="derive from tosaic.Op without name=")
        own: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(implementation)  # type: ignore[arg-type]
        if own:
            raise Problem(f"{implementation.__name__} has the attribute {own[0].name}, which no graph can hold",
                          kind="argument", help="a custom operator has one text, implementation_attrs: read it from there")
        found = type(implementation.__name__, (implementation, Custom), {
            "__doc__": implementation.__doc__, "__module__": implementation.__module__,
            "__qualname__": implementation.__qualname__})
        IMPLEMENTATIONS[domain_name, operator_name] = found
        return found

    return register
