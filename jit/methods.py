"""Jitted methods: a method bound to an object is compiled for the values that it reads from the object, compiled again if they
change, and lives as long as the object (`followed` defines what is read, and detects changes).
"""
from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..runtime.errors import Problem, TypeProblem, ValueProblem, class_of
from .followed import Names, Snapshot, names_read
from .tracing import trace as tracing

STATES = 8
"""Maximum number of states of one object whose code a method keeps: a state that recurs is not compiled again."""


class MethodsOf:
    """The code of a jitted method for each object, by identity: an object may have no hash, or may equal others."""

    def __init__(self, function: Callable[..., Any], jit: Callable[[Callable[..., Any]], Any]) -> None:
        self.function, self.jit = function, jit
        self._of: dict[int, tuple[weakref.ref[Any], ObjectCode]] = {}
        self._names: dict[type, Names] = {}
        self._lock = threading.Lock()

    def of(self, owner: object) -> ObjectCode:
        """Return the code for an object."""
        key = id(owner)
        found = self._of.get(key)
        if found is not None and found[0]() is owner:
            return found[1]
        with self._lock:
            found = self._of.get(key)
            if found is None or found[0]() is not owner:
                found = self._of[key] = self._reference(owner, key), ObjectCode(self, self.names(owner))
            return found[1]

    def names(self, owner: object) -> Names:
        """Return the attributes that the method reads from objects of that class."""
        classes = owner if isinstance(owner, type) else type(owner)
        if classes not in self._names:
            self._names[classes] = names_read(self.function, classes)
        return self._names[classes]

    def _reference(self, owner: object, key: int) -> weakref.ref[Any]:
        of = self._of

        def gone(reference: weakref.ref[Any]) -> None:
            if key in of and of[key][0] is reference:
                del of[key]

        try:
            return weakref.ref(owner, gone)
        except TypeError:
            raise TypeProblem(f"a jitted method of {class_of(owner)} cannot follow the object, which has no weak "
                              "references", tracing.caller(), kind="argument",
                              help='put "__weakref__" into its __slots__') from None


class ObjectCode:
    """The code of a method for one object, in each of its most recent states."""

    def __init__(self, methods: MethodsOf, names: Names) -> None:
        self._methods, self._names = methods, names
        self._states: list[tuple[Snapshot, Any]] = []
        self._lock = threading.Lock()

    def now(self, owner: object) -> Any:
        """Return the jitted function for the current state of the object."""
        for number, (snapshot, function) in enumerate(self._states):
            if snapshot.matches(owner):
                if number:
                    self._first((snapshot, function))
                return function
        snapshot = self._snapshot(owner)
        found = snapshot, self._methods.jit(self._bound(owner, snapshot))
        self._first(found)
        return found[1]

    def _first(self, state: tuple[Snapshot, Any]) -> None:
        with self._lock:
            self._states = [state, *(s for s in self._states if s is not state and s[0] is not state[0])][:STATES]

    def _snapshot(self, owner: object) -> Snapshot:
        try:
            return Snapshot(owner, self._names)
        except Problem as problem:
            raise problem.of(f"method {self._methods.function.__name__}").at(tracing.caller()) from None

    def _bound(self, owner: object, snapshot: Snapshot) -> Callable[..., Any]:
        """Return the method as a function of its other arguments, which does not keep the object alive."""
        reference, function, classes = weakref.ref(owner), self._methods.function, type(owner)

        @functools.wraps(function)
        def method(*arguments: Any, **named: Any) -> Any:
            alive = reference()
            if alive is None:
                raise ValueProblem(f"the {classes.__name__} that {function.__name__} is a method of exists no more",
                                   tracing.caller(), kind="argument", help="keep the object as long as its method is compiled")
            result = function(alive, *arguments, **named)
            snapshot.take_cached(alive)
            if not snapshot.matches(alive):
                raise ValueProblem(f"{function.__name__} changes what it reads of its object while it is traced: that happens "
                                   "once, and not at each call", tracing.caller(), kind="argument",
                                   help="state that each call changes is a tosaic.Variable")
            return result

        signature = inspect.signature(function)
        method.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]
        return method

    @property
    def states(self) -> int:
        """Number of states whose code is kept."""
        return len(self._states)


class BoundMethod:
    """A jitted method of an object, like Python's bound methods: it is called without the object, and holds it."""
    __slots__ = ("__func__", "__self__", "_code")

    def __init__(self, function: Any, code: ObjectCode, owner: object) -> None:
        self.__func__, self._code, self.__self__ = function, code, owner

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if tracing.is_tracing():
            return self.__func__.function(self.__self__, *arguments, **named)
        return self._code.now(self.__self__)(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the jitted function (`trace`, `lower`, `compile`, `cache_info`) for the current state of the
        object."""
        if name.startswith("__") and name.endswith("__"):
            return getattr(self.__func__.function, name)
        return getattr(self._code.now(self.__self__), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self.__func__.__name__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundMethod) and self.__self__ is other.__self__ and self.__func__ is other.__func__

    def __hash__(self) -> int:
        return hash((id(self.__self__), id(self.__func__)))

    def __repr__(self) -> str:
        return f"<tosaic.jit of {self.__func__.name}, of {class_of(self.__self__)}>"
