"""How much a model may take while it is read and compiled: `tosaic.Limits`, and the limits that hold without any.

Whoever expands, reads or compiles asks here, so that there is one place for all bounds. Limits hold in a `with` block of one
thread; inner ones narrow outer ones. Operators and bytes are counted where they are made; time is looked at between steps that
take well below a second, and LLVM, which cannot be stopped, works in a process of its own as long as a limit of seconds holds.
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
"""Operators that calls, branches and loops may expand to beside the model's own, where no limit says otherwise: functions that
call another one twice would double at each level. Each takes 10 to 30 microseconds; graphs of users take a tenth of it."""
TENSOR_BYTES = (1 << 31) - 1
"""Bytes of a tensor where no limit says otherwise, and with any limit: of TOSA's levels."""
NESTED = 6
"""How deep control flow may be nested: of TOSA's levels."""
FEWER = "raise the limit if you trust the model: tosaic.Limits, --limits"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model may take: `nodes` operators of its graph, calls, branches and loops expanded; `bytes` of its file, of each
    tensor, of all constants and of the arena; `seconds` for reading and compiling it. None: what holds for every model (calls
    that expand to 100,000 operators, 2^31 - 1 bytes a tensor). What is beyond is a Problem of kind "limit".

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
    """The limits that hold in a block; `seconds` is what messages say of the deadline."""
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
    """The lower of two bounds, of which each may be missing."""
    return outer if own is None else own if outer is None else min(own, outer)


# ---- time ------------------------------------------------------------------------------------------------------------
def checkpoint() -> None:
    """A Problem where the time is over: called in loops, often."""
    scope = here.scope
    if scope is not None and scope.deadline is not None and time.monotonic() > scope.deadline:
        raise overtime()


def seconds_left() -> float | None:
    """How long there is still time, at least a moment; None for ever."""
    scope = here.scope
    return None if scope is None or scope.deadline is None else max(0.001, scope.deadline - time.monotonic())


class OutOfTime(Problem):
    """The time is over. Who tries what may fail lets it pass: it is no fault of what was tried."""


def overtime() -> OutOfTime:
    scope = here.scope
    given = "" if scope is None or scope.seconds is None else f" of {scope.seconds:g} seconds"
    return OutOfTime(f"the model takes longer to read and compile than the limit{given}", kind="limit", help=FEWER)


# ---- iterations of interpreted loops ---------------------------------------------------------------------------------------
class TooManyIterations(Problem):
    """The loops of an interpreted call have reached their limit of iterations."""


@contextmanager
def bounded_iterations(most: int | None) -> Iterator[None]:
    """Limit the iterations of all loops of an interpreted call together; None keeps the limit that holds."""
    before = here.scope
    if most is not None:
        outer = before or Scope()
        here.scope = replace(outer, iterations=lower(most, outer.iterations), outer=before)
    try:
        yield
    finally:
        here.scope = before


class Iterations:
    """Counts the iterations of all loops of one interpreted call, against the bound that holds; reports them as progress."""
    __slots__ = ("count", "most")
    REPORTED = 1024

    def __init__(self) -> None:
        self.count, self.most = 0, None if here.scope is None else here.scope.iterations

    def next(self) -> None:
        """Begin an iteration; a Problem where it is one too many, or the time is over."""
        checkpoint()
        self.count += 1
        if self.most is not None and self.count > self.most:
            raise TooManyIterations(f"loops run more than {self.most:,} times in one call", kind="limit")
        if self.count % self.REPORTED == 0:
            report_progress(f"{self.count:,} iterations")


# ---- operators -------------------------------------------------------------------------------------------------------
def most_nodes() -> int | None:
    """The operators that a graph may have; None for any number."""
    return None if here.scope is None else here.scope.nodes


def most_expanded(own: int) -> int:
    """The operators that a graph with `own` may expand to."""
    most = most_nodes()
    return own + EXPANDED if most is None else min(own + EXPANDED, most)


def check_nodes(count: int, position: Position | None = None) -> None:
    """A Problem where a graph has more operators than it may have, or the time is over."""
    checkpoint()
    most = most_nodes()
    if most is not None and count > most:
        raise Problem(f"the model has more than {most:,} operators, which is the limit", position, kind="limit", help=FEWER)


def expanded(what: str, help: str, position: Position | None = None) -> Problem:
    """That `what` (calls, branches, loops) expands to more than it may."""
    most = most_nodes()
    said = f"{EXPANDED:,} operations beside the model's own" if most is None else f"{most:,} operations, which is the limit"
    return Problem(f"{what} expand to more than {said}", position, kind="level" if most is None else "limit", help=help)


# ---- bytes -----------------------------------------------------------------------------------------------------------
def most_bytes() -> int:
    """The bytes that a tensor may have."""
    most = None if here.scope is None else here.scope.bytes
    return TENSOR_BYTES if most is None else min(TENSOR_BYTES, most)


def check_tensor(nbytes: int) -> None:
    """A Problem where a tensor that is to be made would have more bytes than one may have: asked before it is."""
    if nbytes > most_bytes():
        raise Problem(f"a tensor of {nbytes:,} bytes, {most_bytes():,} is the most", kind="limit",
                      help="TOSA's tensors have at most 2^31 - 1 bytes; tosaic.Limits may allow less")


def check_bytes(nbytes: int, what: str, position: Position | None = None) -> None:
    """A Problem where something has more bytes than a limit allows; nothing where none is given."""
    scope = here.scope
    if scope is not None and scope.bytes is not None and nbytes > scope.bytes:
        raise Problem(f"{what} {nbytes:,} bytes, the limit is {scope.bytes:,}", position, kind="limit", help=FEWER)
