"""Variables: named buffers that belong to the process, not to a program (TOSA's VARIABLE, VARIABLE_READ,
VARIABLE_WRITE).

Two programs that declare the same name share one buffer. The first declaration allocates it and copies its initial value, once;
later ones must agree in type and shape, and keep the value. A `Context` is a namespace of variables: programs in different
contexts never see each other's; the default is the one context `process`. All functions may be called from any thread: every
access to a variable holds its lock, and several locks are taken in the order of their names. A context with a library of
compiled objects shares the variables that those have in the namespace of its name (`shared_library`).
"""
from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from .arena import Array
from .arguments import as_array
from .errors import KeyProblem, Problem, TypeProblem, class_of
from .public_names import public_class
from .variable import Declaration, Lock, Locks, Variable, VariableStatus

if TYPE_CHECKING:
    from .shared_library import LibraryMemory


class ContextState(NamedTuple):
    """The variables of a context with their values at one moment, for transfer to another process or a file."""
    name: str
    variables: tuple[tuple[Declaration, Array | None], ...]


@public_class
class Context:
    """A namespace of variables. `name` is for messages; two contexts of the same name are different. With a `library` of C
    objects, which this process has loaded, the context shares the variables that the library has in the namespace `name`.

    A pickle of a context has no values, as a pickle of a model has no code: in another process it is a namespace that begins
    with the initial values, and repeated unpickling returns the same one as long as anybody there holds it. The process's own
    context is unpickled as the other process's own. To transfer values, pickle `state`; `Context.from_state` begins with them.
    """

    def __init__(self, name: str, library: ctypes.CDLL | None = None) -> None:
        self.name = name
        self.library = library
        if library is not None:
            from .shared_library import check_library
            check_library(library)
        self.generation = 0
        """Incremented when variables are deleted, and when one is declared that was read before: executables then look theirs
        up again."""
        self.generation_word = ctypes.c_int64(0)
        """The generation, at an address for native code."""
        self.watchers: weakref.WeakSet[Context] = weakref.WeakSet()
        """Contexts in which variables of this one are visible (`joined_context`): their generation is incremented with this
        one's."""
        self._variables: dict[str, Variable] = {}
        self._awaited: weakref.WeakValueDictionary[tuple[object, ...], Variable] = weakref.WeakValueDictionary()
        """Placeholders for external variables that no program has declared yet, by name and type, as long as a program reads
        them: not written, not listed."""
        self._lock = threading.Lock()
        self._token: str | None = None
        """The context's identifier in pickles, from the first pickle on."""
        contexts.add(self)

    def __repr__(self) -> str:
        return f"Context({self.name!r})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self is process:
            return "process"
        if self.library is not None:
            raise Problem(f"context {self.name} cannot be pickled: it shares its variables with a library of this process",
                          kind="variable", help="pickle its state, context.state()")
        with self._lock:
            if self._token is None:
                self._token = os.urandom(16).hex()
                travelled[self._token] = self
        return context_of, (self._token, self.name)

    def __copy__(self) -> Context:
        """Return a new namespace that begins with the same values; the process's namespace is returned itself."""
        return self if self is process else Context.from_state(self.state())

    def __deepcopy__(self, memo: object) -> Context:
        return self.__copy__()

    @classmethod
    def from_state(cls, state: ContextState, name: str | None = None) -> Context:
        """Return a namespace that begins with the variables of a `state`, written or not as they were; `reset` restores the
        initial values of the state."""
        context = cls(state.name if name is None else name)
        variables, _ = context.declare([declaration for declaration, _ in state.variables])
        for variable, (_, value) in zip(variables, state.variables):
            variable.put(value)
        return context

    def state(self) -> ContextState:
        """Return all variables with copies of their values at one moment, without the positions of their declarations: a pickle
        of the state has no model's text."""
        variables = self._all()
        with Locks(v for _, v in variables):
            return ContextState(self.name, tuple(
                (v.declaration._replace(external=False, position=None, tensor=replace(v.tensor, name=name)),
                 v.data.copy() if v.is_written else None) for name, v in variables))

    def __bool__(self) -> bool:
        return True

    # ---- what programs do --------------------------------------------------------------------------------------------
    def declare(self, declarations: Sequence[Declaration]) -> tuple[tuple[Variable, ...], int]:
        """Return the variables of a program, creating those that do not exist, and their generation. External variables that do
        not exist are unwritten until another program declares them, which starts a new generation. Raises a Problem, and
        creates none, if one exists with another type or shape."""
        with self._lock:
            for declaration in declarations:
                if declaration.name in self._variables:
                    self._variables[declaration.name].agree(declaration)
            missing = [(d, self._in_library(d)) for d in declarations if d.name not in self._variables]
            new = {d.name: Variable(d, memory) for d, memory in missing if memory is not None or not d.external}
            self._variables.update(new)
            awaited = [key for key, variable in list(self._awaited.items()) if variable.name in new]
            for key in awaited:
                del self._awaited[key]
            if awaited:
                self._grow()
            return tuple(self._variables.get(d.name) or self._stand_in(d) for d in declarations), self.generation

    def _in_library(self, declaration: Declaration) -> LibraryMemory | None:
        """Return the library's memory for a variable, None if it has none; raise a Problem if it has another type there."""
        if self.library is None:
            return None
        from .shared_library import memory_of
        return memory_of(self.library, self.name, declaration.tensor, declaration.position)

    def _stand_in(self, declaration: Declaration) -> Variable:
        """Return the placeholder that a program reads while nothing declares an external variable."""
        tensor = declaration.tensor
        key = tensor.name, tensor.dtype, tensor.element, tensor.shape
        found = self._awaited.get(key)
        if found is None:
            found = self._awaited[key] = Variable(declaration)
        return found

    # ---- what users do -----------------------------------------------------------------------------------------------
    def __contains__(self, name: str) -> bool:
        return name in self._known()

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._known()))

    def list(self) -> tuple[VariableStatus, ...]:
        """Return the status of all variables, by name."""
        return tuple(VariableStatus(name, v.tensor.type, v.tensor.nbytes, v.is_written) for name, v in self._all())

    def read(self, name: str) -> Array:
        """Return a copy of the value; raise a Problem if the variable is not known or not written."""
        variable = self._get(name)
        with variable.lock:
            if not variable.is_written:
                raise Problem(f"variable {name} has not been written", kind="variable",
                              help="run a program that writes it, or set it")
            return variable.data.copy()

    def set(self, name: str, value: Array) -> None:
        """Copy an array of the variable's type and shape into it; the variable counts as written from then on."""
        variable = self._get(name)
        array = as_array(f"the value of variable {name}", value, variable.tensor)
        with variable.lock:
            variable.put(array)

    def reset(self, name: str | None = None) -> None:
        """Reset a variable, or all of them at one moment, to the initial value, or to not written."""
        variables = [v for _, v in self._all()] if name is None else [self._get(name)]
        with Locks(variables):
            for variable in variables:
                variable.reset()

    def snapshot(self) -> dict[str, Array | None]:
        """Return copies of all values at one moment, by name; None for a variable that is not written."""
        variables = self._all()
        with Locks(v for _, v in variables):
            return {name: v.data.copy() if v.is_written else None for name, v in variables}

    def restore(self, snapshot: Mapping[str, Array | None]) -> None:
        """Restore the values of the variables in a snapshot, at one moment; others keep theirs. Raises a Problem, and changes
        none, if one is not known or has another type or shape."""
        checked = []
        for name, value in snapshot.items():
            variable = self._get(name)
            checked.append((variable, None if value is None else
                            as_array(f"the value of variable {name}", value, variable.tensor)))
        with Locks(v for v, _ in checked):
            for variable, array in checked:
                variable.put(array)

    def delete(self, name: str) -> None:
        """Delete a variable. A program that uses it declares it anew, with its initial value, on its next call. A variable that
        a library shares becomes unwritten."""
        with self._lock:
            self._forget([self._get(name)])

    def clear(self) -> None:
        """Delete all variables."""
        with self._lock:
            self._forget(list(self._variables.values()))

    def _forget(self, variables: Sequence[Variable]) -> None:
        for variable in variables:
            del self._variables[variable.name]
            if self._in_library(variable.declaration) is not None:
                with variable.lock:
                    variable.put(None)
        self._grow()

    def _grow(self) -> None:
        self.generation += 1
        self.generation_word.value = self.generation
        for watcher in list(self.watchers):
            watcher._grow()

    def home(self, name: str) -> tuple[Context, str]:
        """Return the context that holds a variable of this one, and its name there."""
        return self, name

    def _known(self) -> Mapping[str, Variable]:
        """Return the existing variables, by name."""
        return self._variables

    def _all(self) -> Sequence[tuple[str, Variable]]:
        with self._lock:
            return sorted(self._known().items(), key=lambda known: known[0])

    def _get(self, name: str) -> Variable:
        variable = self._known().get(name)
        if variable is None:
            known = ", ".join(sorted(self._known())) or "none"
            raise KeyProblem(f"there is no variable {name} in context {self.name}", kind="variable",
                             help=f"a variable exists from when a program that declares it is loaded; known: {known}")
        return variable

    def renew_locks(self) -> None:
        """Create new locks, all free: in the child of a fork no other thread exists that could release one."""
        self._lock = threading.Lock()
        for variable in self._owned():
            variable.lock.renew()

    def _owned(self) -> Sequence[Variable]:
        """Return all variables whose locks calls take, by name."""
        return sorted((*self._variables.values(), *self._awaited.values()), key=lambda v: v.name)


contexts: weakref.WeakSet[Context] = weakref.WeakSet()
"""All existing contexts."""

travelled: weakref.WeakValueDictionary[str, Context] = weakref.WeakValueDictionary()
"""Contexts that have been pickled, here or elsewhere, by their identifier in pickles."""
_travelling = threading.Lock()


def context_of(token: str, name: str) -> Context:
    """Return the context that a pickle names: the existing one, or a new one."""
    with _travelling:
        found = travelled.get(token)
        if found is None:
            found = travelled[token] = Context(name)
            found._token = token
        return found

process = Context("process")
"""The default context of programs."""


def checked_context(given: object) -> Context | None:
    """Return an optional context of a caller; raise a Problem for anything else."""
    if given is None or isinstance(given, Context):
        return given
    raise TypeProblem(f"context is {class_of(given)}, not a tosaic.Context, a namespace of variables", kind="argument",
                      help='make one: tosaic.Context("name"); without one, variables belong to the process')

FORK_WAIT = 0.5
"""Seconds that a fork waits for running calls, so that the child finds consistent variables; then it continues regardless."""

_held: list[Lock] = []


def _hold() -> None:
    end = time.monotonic() + FORK_WAIT
    for context in list(contexts):
        for variable in context._owned():
            if variable.lock.acquire(timeout=max(0.0, end - time.monotonic())):
                _held.append(variable.lock)


def _release() -> None:
    while _held:
        _held.pop().release()


def _renew() -> None:
    global _travelling
    _travelling = threading.Lock()
    _held.clear()
    for context in list(contexts):
        context.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
