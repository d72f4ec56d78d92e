"""The luxuries that a compile gives up, in turn, if a pass fails or a verifier rejects its result: such a fault is tosaic's,
and no reason to leave a model uncompiled. The values are the same; the code is slower, or takes more memory.

Only the pipeline's driver (`pipeline.run`) uses this. A warning reports each fault, so that none stays unseen: the tests treat
the warning as an error.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from typing import Any, Literal, Protocol, Self, TypeVar, get_args

from ..runtime.deprecation import caller_level
from ..runtime.errors import Problem, is_interrupt, printable
from ..runtime.records import dataclass
from .memory.check.verify import says_wrong
from .options import CompileOptions

Luxury = Literal["rewrites that are for speed", "buffers that share bytes", "several threads", "tiling by rows", "fusion",
                 "strategies other than plain loops"]
"""The optional parts of a compile, in the order in which they are given up."""


class Compile(Protocol):
    """The state that a compile begins from, as far as giving up luxuries needs it (`pipeline.State`)."""

    @property
    def name(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def options(self) -> CompileOptions: ...
    @property
    def without(self) -> frozenset[Luxury]: ...
    def changed(self, **changes: Any) -> Self: ...


State = TypeVar("State", bound=Compile)


@dataclass(frozen=True, slots=True)
class Failed:
    """A pass that has raised `error`."""
    name: str
    stage: str
    error: Exception


def is_fault(failed: Failed, state: Compile) -> bool:
    """True if a failure is a fault of tosaic: an exception that no user causes, or a verifier's. A user's own planning
    algorithm is to blame for its plans."""
    error = failed.error
    if not isinstance(error, Problem):
        return not (isinstance(error, MemoryError | Warning) or is_interrupt(error))
    if says_wrong(error):
        return isinstance(state.options.memory.algorithm, str)
    return error.kind == "internal" or failed.name == "verify-rewritten"


def with_less(state: State, failed: Failed, again: Callable[[State], State | Failed]) -> State:
    """Run the passes `again` without one luxury after the other; return the first result. Raises the first error if nothing
    helps, or if the error is the user's."""
    if is_fault(failed, state):
        for less in fewer(state, failed):
            made = again(less)
            if not isinstance(made, Failed):
                warn(made.name, failed, less.without)
                return made
    raise failed.error


def fewer(state: State, failed: Failed) -> Iterator[State]:
    """Yield the states to begin from, each without one more luxury of those that matter to the failed pass."""
    luxuries = get_args(Luxury)
    first = {"graph": 0, "plan": 1, "kernels": luxuries.index("fusion")}.get(failed.stage, 2)
    for luxury in luxuries[first:first + 1] if failed.stage == "graph" else luxuries[first:]:
        if luxury != "several threads" or state.threads > 1:
            state = without(state, luxury)
            yield state


def without(state: State, luxury: Luxury) -> State:
    """Return a state whose passes do without a luxury. Drop schedules, found or given: they are for the previous passes. Drop
    `ready`, too: functions of loops that it gets early may be the rejected ones."""
    options = replace(state.options, schedule=None, tuning=())
    match luxury:
        case "buffers that share bytes":
            options = replace(options, memory=replace(options.memory, overlap=False))
        case "several threads":
            state = state.changed(threads=1)
        case "tiling by rows":
            options = replace(options, rows="never")
        case "strategies other than plain loops":
            options = replace(options, precision="f32")
    return state.changed(options=options, without=state.without | {luxury}, ready=None)


def warn(name: str, failed: Failed, given_up: Set[str]) -> None:
    """Warn at the caller's line of what was given up, and for which operator."""
    error, given = failed.error, ", ".join(x for x in get_args(Luxury) if x in given_up)
    notes = [error.message] if isinstance(error, Problem) else [f"{type(error).__name__}: {error}"]
    where = f" at {error.position}" if isinstance(error, Problem) and error.position else ""
    cause = printable("; ".join([*notes, *getattr(error, "__notes__", ())])[:500])
    warnings.warn(f"tosaic compiles {printable(name)} without {given}: {failed.name}{where}: {cause}; this is a fault of "
                  "tosaic, not of the model", RuntimeWarning, stacklevel=caller_level())
