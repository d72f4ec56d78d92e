"""One variable of a context (`variables`): its declaration, its memory, and the lock that serializes calls that share it.
`Locks` takes the locks of several variables in the order of their names.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .arena import Array, address, empty
from .arguments import Tensor, as_array
from .errors import Label, Position, Problem, TypeProblem, printable

if TYPE_CHECKING:
    from .shared_library import LibraryMemory


class Declaration(NamedTuple):
    """A program's declaration of a variable: its type, its initial value if it has one, and the position. An `external`
    variable is only read, and declared by another program: it is looked up, never created."""
    tensor: Tensor
    initial: Array | None = None
    position: Position | None = None
    external: bool = False

    @property
    def name(self) -> str:
        return self.tensor.name


class VariableStatus(NamedTuple):
    """Status of a variable, for a list of variables."""
    name: str
    type: str
    nbytes: int
    is_written: bool

    def __str__(self) -> str:
        return f"{printable(self.name)}: {self.type}, {self.nbytes} bytes, {'written' if self.is_written else 'not written'}"


class Lock:
    """The lock of the variable `name`, which native code can inspect: `word` is 1 while a thread holds it."""
    __slots__ = ("_lock", "name", "owner", "word")

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self.name = name
        self.word = ctypes.c_int64(0)
        self.owner = 0

    def acquire(self, timeout: float = -1) -> bool:
        taken = self._lock.acquire(timeout=timeout)
        if taken:
            self.word.value = 1
            self.owner = threading.get_ident()
        return taken

    def release(self) -> None:
        self.word.value = self.owner = 0
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def renew(self) -> None:
        """Free the lock, whoever held it; the word stays at its address."""
        self._lock = threading.Lock()
        self.word.value = self.owner = 0

    def enter(self) -> None:
        """Take the lock; raise a Problem in a signal handler that has interrupted the call that holds it."""
        if self.owner == threading.get_ident():
            raise Problem(f"variable {self.name} is in use by the call that the handler of a signal has interrupted",
                          kind="variable", help="note in the handler that the signal has come, and use the variable when the "
                          "call has returned")
        self.acquire()

    __enter__ = enter

    def __exit__(self, *exception: object) -> None:
        self.release()


class Variable:
    """A variable of one context. `data` and the byte `written` stay at their addresses as long as anyone refers to them; code
    that reads or writes them holds `lock`, or the interpreter's lock while nobody holds `lock`. The `memory` is the variable's
    own, or a library's, where it may have been written already."""
    __slots__ = ("__weakref__", "data", "declaration", "lock", "written")

    def __init__(self, declaration: Declaration, memory: LibraryMemory | None = None) -> None:
        tensor, initial = declaration.tensor, declaration.initial
        if initial is not None:
            kept = np.array(as_array(f"the initial value of variable {tensor.name}", initial, tensor))
            kept.flags.writeable = False
            declaration = Declaration(tensor, kept, declaration.position)
        self.declaration = declaration
        self.data: Array = memory.data if memory else empty(tensor.shape, tensor.numpy_dtype)
        self.written: Array = memory.written if memory else np.zeros(1, np.uint8)
        self.lock = Lock(tensor.name)
        if not self.is_written:
            self.reset()

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def tensor(self) -> Tensor:
        return self.declaration.tensor

    @property
    def is_written(self) -> bool:
        return bool(self.written[0])

    @property
    def addresses(self) -> tuple[int, int]:
        """Addresses of the data, and of the byte that is set once the variable has been written."""
        return address(self.data), address(self.written)

    def reset(self) -> None:
        """Return to the initial value, or to not written."""
        self.put(self.declaration.initial)

    def put(self, value: Array | None) -> None:
        """Copy a value of the right type in; None makes the variable unwritten."""
        self.data[...] = np.zeros((), self.data.dtype) if value is None else value
        self.written[0] = value is not None

    def agree(self, other: Declaration) -> None:
        """Raise a Problem unless `other` has the same type and shape."""
        mine, tensor = self.tensor, other.tensor
        if (mine.element, mine.dtype, mine.shape) != (tensor.element, tensor.dtype, tensor.shape):
            raise TypeProblem(f"variable {self.name} is {'read' if other.external else 'declared'} as {tensor.type}, but it is "
                              f"{mine.type} in this process",
                              other.position, kind="variable", help="give one of them another name, load them in different "
                              "contexts, or delete the variable first",
                              labels=(Label(self.declaration.position, f"{self.name} was declared first as {mine.type}"),))


class Locks:
    """The locks of several variables, which `Executable.__call__` takes for the variables of a call, in the order of their
    names, and of identity among those of the same name. Native code that calls a program
    (`native.process.function_object_code`) only checks whether one of `words` is set, and then leaves the call to
    `Executable.__call__`."""
    __slots__ = ("_variables",)

    def __init__(self, variables: Iterable[Variable]) -> None:
        self._variables = tuple(sorted(variables, key=lambda v: (v.name, id(v))))

    @property
    def words(self) -> tuple[int, ...]:
        """Addresses of the words that are 1 while the locks are held."""
        return tuple(ctypes.addressof(v.lock.word) for v in self._variables)

    def __enter__(self) -> None:
        taken: list[Lock] = []
        try:
            for variable in self._variables:
                variable.lock.enter()
                taken.append(variable.lock)
        except BaseException:
            for lock in taken:
                lock.release()
            raise

    def __exit__(self, *exception: object) -> None:
        for variable in self._variables:
            variable.lock.release()
