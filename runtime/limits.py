"""Resource limits of reading and compiling a model: `tosaic.Limits`, and the limits that always apply.

All code that expands, reads or compiles checks its bounds with this module. Limits apply in a `with` block of one thread; inner
ones narrow outer ones. Operators and bytes are counted where they are created; time is checked between steps that take well
below a second, and LLVM, which cannot be stopped, runs in a separate process while a limit of seconds applies.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from .errors import Position, Problem, ValueProblem
from .progress import report_progress
from .public_names import checked_fields
from .records import dataclass

Number = TypeVar("Number", int, float)
EXPANDED = 100_000
"""Default maximum of operators to which calls, branches and loops may expand, beside the model's own: functions that call
another one twice would double at each level. Each takes 10 to 30 microseconds; graphs of users need a tenth of the maximum."""
TENSOR_BYTES = (1 << 31) - 1
"""Maximum bytes of a tensor, with or without other limits: from TOSA's levels."""
NESTED = 6
"""Maximum nesting depth of control flow: from TOSA's levels."""
FEWER = "raise the limit if you trust the model: tosaic.Limits, --limits"


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a model: `nodes` operators of its graph, with calls, branches and loops expanded; `bytes` of its file,
    of each tensor, of all constants and of the arena; `seconds` for reading and compiling it. None: the limit of every model
    (calls that expand to 100,000 operators, 2^31 - 1 bytes a tensor). Exceeding a limit is a Problem of kind "limit".

        with tosaic.Limits(nodes=10_000, bytes=1 << 28, seconds=10):
            model = tosaic.load(path)
            compiled = model.main.compile()
    """
    nodes: int | None = None
    bytes: int | None = None
    seconds: float | None = None

    def __new__(cls, *values: Any, **named: Any) -> Limits:
        checked_fields("tosaic.Limits", cls, values, named)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name in ("nodes", "bytes", "seconds"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
                raise ValueProblem(f"a limit of {value!r} {name}", kind="option", help="a number above 0, or None")

    def __enter__(self) -> Limits:
        outer = here.scope or Scope()
        deadline = None if self.seconds is None else time.monotonic() + self.seconds
        is_nearer = deadline is not None and (outer.deadline is None or deadline < outer.deadline)
        here.scope = Scope(lower(self.nodes, outer.nodes), lower(self.bytes, outer.bytes), lower(deadline, outer.deadline),
                           self.seconds if is_nearer else outer.seconds, here.scope, outer.iterations)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert here.scope is not None
        here.scope = here.scope.outer


@dataclass(frozen=True, slots=True)
class Scope:
    """The limits that apply in a block; `seconds` describes the deadline in messages."""
    nodes: int | None = None
    bytes: int | None = None
    deadline: float | None = None
    seconds: float | None = None
    outer: Scope | None = None
    iterations: int | None = None


class Here(threading.local):
    """The innermost block of this thread."""
    scope: Scope | None = None


here = Here()


def lower(own: Number | None, outer: Number | None) -> Number | None:
    """Return the lower of two bounds, each of which may be missing."""
    return outer if own is None else own if outer is None else min(own, outer)


# ---- time ------------------------------------------------------------------------------------------------------------
def checkpoint() -> None:
    """Raise a Problem if the time is over: called frequently in loops."""
    scope = here.scope
    if scope is not None and scope.deadline is not None and time.monotonic() > scope.deadline:
        raise overtime()


def seconds_left() -> float | None:
    """Return the seconds left, a small positive number at least; None if there is no deadline."""
    scope = here.scope
    return None if scope is None or scope.deadline is None else max(0.001, scope.deadline - time.monotonic())


class OutOfTime(Problem):
    """The Problem that the time is over. Code that tolerates the failure of an attempt must propagate it: the attempt is not at
    fault."""


def overtime() -> OutOfTime:
    scope = here.scope
    given = "" if scope is None or scope.seconds is None else f" of {scope.seconds:g} seconds"
    return OutOfTime(f"the model takes longer to read and compile than the limit{given}", kind="limit", help=FEWER)


# ---- iterations of interpreted loops ---------------------------------------------------------------------------------------
class TooManyIterations(Problem):
    """The Problem that the loops of an interpreted call have reached their limit of iterations."""


@contextmanager
def bounded_iterations(most: int | None) -> Iterator[None]:
    """Limit the total iterations of all loops of an interpreted call; None keeps the current limit."""
    before = here.scope
    if most is not None:
        outer = before or Scope()
        here.scope = replace(outer, iterations=lower(most, outer.iterations), outer=before)
    try:
        yield
    finally:
        here.scope = before


class Iterations:
    """The count of iterations of all loops of one interpreted call, checked against the current bound and reported as
    progress."""
    __slots__ = ("count", "most")
    REPORTED = 1024

    def __init__(self) -> None:
        self.count, self.most = 0, None if here.scope is None else here.scope.iterations

    def next(self) -> None:
        """Begin an iteration; raise a Problem if it exceeds the limit, or the time is over."""
        checkpoint()
        self.count += 1
        if self.most is not None and self.count > self.most:
            raise TooManyIterations(f"loops run more than {self.most:,} times in one call", kind="limit")
        if self.count % self.REPORTED == 0:
            report_progress(f"{self.count:,} iterations")


# ---- operators -------------------------------------------------------------------------------------------------------
def most_nodes() -> int | None:
    """Return the number of operators that a graph may have; None for any number."""
    return None if here.scope is None else here.scope.nodes


def most_expanded(own: int) -> int:
    """Return the number of operators to which a graph with `own` may expand."""
    most = most_nodes()
    return own + EXPANDED if most is None else min(own + EXPANDED, most)


def check_nodes(count: int, position: Position | None = None) -> None:
    """Raise a Problem if a graph has more operators than it may have, or the time is over."""
    checkpoint()
    most = most_nodes()
    if most is not None and count > most:
        raise Problem(f"the model has more than {most:,} operators, which is the limit", position, kind="limit", help=FEWER)


def expanded(what: str, help: str, position: Position | None = None) -> Problem:
    """Return the Problem that `what` (calls, branches, loops) expands to more than the limit."""
    most = most_nodes()
    said = f"{EXPANDED:,} operations beside the model's own" if most is None else f"{most:,} operations, which is the limit"
    return Problem(f"{what} expand to more than {said}", position, kind="level" if most is None else "limit", help=help)


# ---- bytes -----------------------------------------------------------------------------------------------------------
def most_bytes() -> int:
    """Return the number of bytes that a tensor may have."""
    most = None if here.scope is None else here.scope.bytes
    return TENSOR_BYTES if most is None else min(TENSOR_BYTES, most)


def check_tensor(nbytes: int) -> None:
    """Raise a Problem if a tensor would have more bytes than a tensor may have: called before it is created."""
    if nbytes > most_bytes():
        raise Problem(f"a tensor of {nbytes:,} bytes, {most_bytes():,} is the most", kind="limit",
                      help="TOSA's tensors have at most 2^31 - 1 bytes; tosaic.Limits may allow less")


def check_bytes(nbytes: int, what: str, position: Position | None = None) -> None:
    """Raise a Problem if something has more bytes than a limit, if there is one, allows."""
    scope = here.scope
    if scope is not None and scope.bytes is not None and nbytes > scope.bytes:
        raise Problem(f"{what} {nbytes:,} bytes, the limit is {scope.bytes:,}", position, kind="limit", help=FEWER)
