"""The table of compiled kernels, which maps an operation, its attributes and its arguments' types to the results' metadata and
the code.

The table is a bounded LRU cache; an evicted kernel lives as long as it is in use. Each kernel is compiled once, and other
threads wait for it.
"""
from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..arena import Array
from .attributes import FrozenOpAttrs
from .metadata import TensorMetadata

Key = tuple[Any, ...]

QUEUED_NANOSECONDS = 40_000
"""Estimated nanoseconds from which a kernel runs in the work queue: twice the cost of the way to another thread and back, and
little enough that `execute` returns within 100 microseconds if the estimate is wrong by a factor of two."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Compiled code. `call` takes arrays and returns one array, or a tuple of several results."""
    call: Callable[..., Any]
    in_place: InPlace | None = None


class InPlace(Protocol):
    """A kernel with one result, which it may write over an argument."""

    def arguments(self) -> Sequence[int]:
        """Return the arguments that allow it: each element is read for the last time before one is written there."""

    def run(self, number: int, arrays: Sequence[Array]) -> None:
        """Run the kernel; the result is in the array of that argument."""


class Compiler(Protocol):
    """Makes kernels; the runtime is passed one."""

    def knows(self, op_name: str) -> bool:
        """True if there is an operation of that name."""

    def names(self) -> Iterable[str]:
        """Return the names of all operations that it knows."""

    def constants(self, op_name: str, count: int) -> Sequence[int]:
        """Return the numbers of the arguments, out of `count`, whose contents must be known at compile time."""

    def version(self, op_name: str, attributes: FrozenOpAttrs) -> Hashable:
        """Return the version of the operation's meaning beyond its name and its attributes; None if its meaning never
        changes."""

    def trace(self, op_name: str, attributes: FrozenOpAttrs, inputs: Sequence[TensorMetadata],
              constants: Mapping[int, Array]) -> Traced:
        """Return the operation on inputs of these types. Raises a Problem if it does not accept them."""


class Traced(Protocol):
    """An operation with known types."""
    @property
    def metadata(self) -> tuple[TensorMetadata, ...]:
        """Metadata of the results."""

    @property
    def nanoseconds(self) -> float:
        """Estimated duration of one run, in nanoseconds."""

    def compile(self) -> Kernel: ...


class TypedOperation:
    """One operation for one set of types. `is_long` is True if the caller does not wait for its kernel. `inputs` are the
    numbers of the arguments that its kernel takes, `fitting` of those whose buffers its only result could use."""
    __slots__ = ("__weakref__", "_kernel", "_lock", "_traced", "fitting", "inputs", "is_long", "metadata")

    def __init__(self, traced: Traced, inputs: Sequence[TensorMetadata | None]) -> None:
        """`inputs` has None for constants of the kernel."""
        self.metadata = traced.metadata
        self.is_long = traced.nanoseconds >= QUEUED_NANOSECONDS
        self.inputs = tuple([n for n, metadata in enumerate(inputs) if metadata is not None])
        self.fitting = tuple([n for n in self.inputs if len(self.metadata) == 1 and inputs[n] is self.metadata[0]])
        self._traced: Traced | None = traced
        self._kernel: Kernel | None = None
        self._lock = threading.Lock()

    @property
    def is_compiled(self) -> bool:
        return self._kernel is not None

    def kernel(self) -> Kernel:
        """Return the code, compiled on first use."""
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    assert self._traced is not None
                    self._kernel, self._traced = self._traced.compile(), None
        return self._kernel


Known = tuple[TensorMetadata, Callable[..., Any] | None, TypedOperation]
"""The quick form of an operation with one result: the result's metadata, the code (None if it is long, and so not run by the
caller), and the table entry of both."""


class Kernels:
    """A table of at most `size` entries."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.compiles = 0
        self._entries: OrderedDict[Key, TypedOperation] = OrderedDict()
        self._making: dict[Key, threading.Event] = {}
        self._lock = threading.RLock()
        _live.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key, make: Callable[[], TypedOperation]) -> TypedOperation:
        """Return the entry of a key, created now if there is none. Of several threads one creates it; if that fails, each
        tries."""
        while True:
            mine: threading.Event | None = None
            try:
                with self._lock:
                    entry = self._entries.get(key)
                    if entry is not None:
                        self._entries.move_to_end(key)
                        return entry
                    making = self._making.get(key)
                    if making is None:
                        making = self._making[key] = mine = threading.Event()
                if mine is not None:
                    return self._put(key, make())
            finally:
                if mine is not None:
                    with self._lock:
                        self._making.pop(key, None)
                    mine.set()
            making.wait()

    def known(self, key: Key) -> TypedOperation | None:
        """Return the entry of a key, None if there is none."""
        return self._entries.get(key)

    def _put(self, key: Key, entry: TypedOperation) -> TypedOperation:
        with self._lock:
            self._entries[key] = entry
            self.compiles += 1
            while len(self._entries) > self.size:
                self._entries.popitem(last=False)
        return entry

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()

    def after_fork(self) -> None:
        """Reset the state in a forked child: no other thread is compiling."""
        self._lock = threading.RLock()
        self._making = {}
        for entry in self._entries.values():
            entry._lock = threading.Lock()


_live: weakref.WeakSet[Kernels] = weakref.WeakSet()


def _after_fork() -> None:
    for kernels in list(_live):
        kernels.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
