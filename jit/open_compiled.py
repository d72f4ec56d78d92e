"""A jitted function compiled for arguments with open extents (`TensorSpec((None, 4))`): code and its memory plan have fixed
shapes, so code is compiled for those of each call, and kept by the function. The arguments of a call must fit the
specification.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..lowering.graph.types import TensorType
from ..runtime.errors import TypeProblem, ValueProblem, printable
from ..runtime.public_names import unknown_name, with_named
from .calls import through
from .compiled import Compiled
from .descriptors import Interface, TensorDescriptor

if TYPE_CHECKING:
    from ..runtime.variables import Context

Typed = Callable[[str, Any], tuple[Any, TensorType]]
"""Converts an argument, by its name, to an array and its type; raises a Problem if it cannot."""


class OpenCompiled(Compiled[Any]):
    """A compiled function with open extents. Call it with arrays of any shapes that fit, in order, by name, or as one mapping;
    `specialize` compiles before a call."""
    if not TYPE_CHECKING:
        __slots__ = ("_name", "_special", "_typed", "_types")

    def __init__(self, name: str, types: Mapping[str, TensorType], typed: Typed,
                 special: Callable[[tuple[TensorType, ...]], Compiled[Any]]) -> None:
        self._name, self._types, self._typed, self._special = name, dict(types), typed, special
        self.__call__ = through(self, "_call")  # type: ignore[method-assign]

    def _call(self, *inputs: Any, out: Any = None, context: Context | None = None, num_threads: int | None = None,
              **named: Any) -> Any:
        given = with_named(self._name, list(self._types), inputs, named)
        for name in given:
            self._known(name)
        found = {name: self._typed(name, given[name]) for name in self._types}
        for name, (_, type) in found.items():
            self._check(name, type)
        compiled = self._special(tuple(type for _, type in found.values()))
        return compiled(*(array for array, _ in found.values()), out=out, context=context, num_threads=num_threads)

    def specialize(self, shapes: Mapping[str, Sequence[int]]) -> Compiled[Any]:
        """Return the compiled function for inputs of these shapes, by name; other inputs keep their shapes."""
        for name in shapes:
            self._known(name)
        types = {n: TensorType(tuple(map(int, shapes[n])), t.element) if n in shapes else t for n, t in self._types.items()}
        for name, type in types.items():
            if not type.is_static:
                raise ValueProblem(f"input {name} of {self._name} is {type}: its shape must be given", kind="argument")
            self._check(name, type)
        return self._special(tuple(types.values()))

    def _known(self, name: str) -> None:
        if name not in self._types:
            raise unknown_name(self._name, "input", name, {"inputs": list(self._types)})

    def _check(self, name: str, type: TensorType) -> None:
        """Raise a Problem unless the type fits that of an input."""
        wanted = self._types[name]
        if type.element != wanted.element:
            raise TypeProblem(f"input {name} of {self._name} must be {wanted}, got {type}", kind="argument",
                              help=f"pass an array of dtype {wanted.element.storage}")
        assert type.shape is not None and wanted.shape is not None
        if len(type.shape) != len(wanted.shape) or any(w not in (None, n) for n, w in zip(type.shape, wanted.shape)):
            raise ValueProblem(f"input {name} of {self._name} must be {wanted}, got {type}", kind="argument",
                               help="extents may differ where the specification has None")

    # ---- what is known -----------------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return self._name

    @property
    def inputs(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the inputs; an open extent is None."""
        return tuple(TensorDescriptor(n, n, t.element.storage, t.shape, t.element.name) for n, t in self._types.items())

    def _open(self, what: str) -> NoReturn:
        raise ValueProblem(f"{self._name} is compiled for open extents: {what} follows from the shapes of a call",
                           kind="argument", help="specialize({name: shape}) gives the compiled function of some shapes")

    @property
    def outputs(self) -> tuple[TensorDescriptor, ...]: self._open("what it gives")
    @property
    def variables(self) -> tuple[TensorDescriptor, ...]: self._open("what it uses")
    @property
    def lowered(self) -> Any: self._open("a plan")
    @property
    def executable(self) -> Any: self._open("machine code")  # type: ignore[override]
    @property
    def calls(self) -> Any: self._open("machine code")  # type: ignore[override]

    def quantize(self, *inputs: Any, **named: Any) -> Any:
        return Interface(self.name, self.inputs, ()).quantized(inputs, named)

    def dequantize(self, *outputs: Any) -> Any: self._open("what it gives")
    def bind(self, context: Context) -> Any: self._open("machine code")
    def close(self) -> None:
        """Do nothing: the code belongs to the function, whose `cache_clear` releases it."""

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {type}" for name, type in self._types.items())
        return printable(f"<Compiled {self._name}({inputs}), for the shapes of each call>")

    def __str__(self) -> str:
        return repr(self)

    def __reduce__(self) -> Any: self._open("a pickle")
