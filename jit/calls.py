"""Calls of compiled functions from Python: the ordinary one, which takes any argument, and the quick one, a built-in function
object, if the program allows it.

Callable objects store their call in a slot named `__call__`, which Python's own lookup finds: first a function of this module
and, after the first successful call, the built-in one.
"""
from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..runtime.errors import printable
from ..runtime.executable import MAX_LOCKED_STEPS
from ..runtime.public_names import with_named
from ..runtime.variables import checked_context

if TYPE_CHECKING:
    from ..lowering.graph.types import Array
    from ..runtime.executable import Executable
    from ..runtime.variables import Context
    from .tracing.inlined_models import ModelGraph
    from .tracing.pytree import Structure

CONTEXTS = 64
"""Maximum number of contexts for which a compiled function keeps a binding of its variables."""

Call = Callable[..., Any]
Results: TypeAlias = "Array | tuple[Array, ...] | Any"
"""The results of a call: an array, or a tuple of several. A type checker cannot know the number of results; `Any` lets code
take them as either."""
Numbers: TypeAlias = "Array | tuple[Array, ...] | dict[str, Array] | Any"
"""The result of a conversion: an array, a tuple of several, or a dict for a mapping by name."""


def not_yet(*arguments: Any, **named: Any) -> Any:
    """A marker: there will be a quick call, but not yet after this call."""
    raise AssertionError("it is never called")



class Calls:
    """The calls of an executable; results are returned as one array, as a tuple of several, or in the nest `structure`."""

    def __init__(self, executable: Executable, structure: Structure | None) -> None:
        self.executable = executable
        single = len(executable.signature.outputs) == 1
        self._rebuild: Callable[[Sequence[Array]], Any] = (lambda arrays: arrays[0]) if single else tuple
        self.graph: Callable[[], ModelGraph] | None = None
        """Returns the graph of the code, which is inlined into a function that is being traced if that function makes the
        call."""
        self._bound: dict[Context, Executable] = {}
        self._in_tuple: bool | None = not single
        """True if results come in a tuple; None for another nest."""
        if structure is not None:
            from .tracing.pytree import LEAF, rebuild
            self._rebuild = rebuild(structure)
            is_flat = structure.form == "tuple" and all(child.form == "leaf" for child in structure.children)
            self._in_tuple = False if structure == LEAF else True if is_flat else None

    def ordinary(self, *inputs: Any, out: Any = None, context: Context | None = None, num_threads: int | None = None,
                 **named: Any) -> Any:
        """Run the executable. Raises a Problem for a wrong argument, or an error that only a run detects (then no variable has
        changed). Inputs may be `named`."""
        if self.graph is not None and are_traced(inputs, named):
            from .tracing.inlined_models import inlined
            return inlined(self.graph(), self.executable.context if context is None else context, inputs, named)
        if named:
            signature = self.executable.signature
            inputs = (with_named(printable(signature.name), [t.name for t in signature.inputs], inputs, named),)
        run = self.executable if context is None else self.bound(context)
        return self._rebuild(run(*inputs, out=out, num_threads=num_threads))

    def quick(self, slow: Call | None = None, gate: ctypes.c_int64 | None = None) -> Call | None:
        """Return the built-in function, which delegates to `slow` all calls that it cannot handle, and all calls while `gate`
        is not 0; None if the program cannot be called this way."""
        if self._in_tuple is None or self.executable.code.steps > MAX_LOCKED_STEPS:
            return None
        from ..runtime.function_object import NEVER, function_object
        return function_object(self.executable, slow or self.ordinary, self._in_tuple, NEVER if gate is None else gate)

    def bound(self, context: Context) -> Executable:
        """Return the code with the variables of `context`; raise a Problem if `context` is no context."""
        if context is self.executable.context:
            return self.executable
        checked_context(context)
        found = self._bound.get(context)
        if found is None:
            if len(self._bound) >= CONTEXTS:
                self._bound = {}
            found = self._bound[context] = self.executable.bind(context)
        return found


def are_traced(inputs: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """True if an input is a tensor of a function that is being traced, rather than an array."""
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        inputs = list(inputs[0].values())
    return any(map(is_traced, (*inputs, *named.values())))


def is_traced(value: Any) -> bool:
    """True if a value is a tensor of a function that is being traced."""
    return getattr(type(value), "_is_traced", False)


def until_quick(owner: Any, call: Call, quick: Callable[[], Call | None]) -> Call:
    """Return the first `__call__` of an owner: `call`, which does not keep the owner alive. After `call` returns, the owner's
    `__call__` becomes the result of `quick`, or `call` if that is None. If the result is `not_yet`, the next call asks
    again."""
    reference = weakref.ref(owner)

    def first(*arguments: Any, **named: Any) -> Any:
        result = call(*arguments, **named)
        if (alive := reference()) is not None and (found := quick()) is not not_yet:
            alive.__call__ = found or call
        return result

    return first


def through(owner: Any, method: str) -> Call:
    """Return a method of the owner that does not keep the owner alive."""
    reference = weakref.ref(owner)

    def call(*arguments: Any, **named: Any) -> Any:
        if (alive := reference()) is None:
            raise ReferenceError("what this call belongs to has gone")
        return getattr(alive, method)(*arguments, **named)

    return call
