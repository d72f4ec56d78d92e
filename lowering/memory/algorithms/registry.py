"""The planner's algorithms by name: tosaic's own, those that a program registers (`tosaic.planner`), and those that another
installed package offers as entry points of the group `tosaic.memory_planners`. Such a package is only loaded when its
algorithm is named. Its pyproject.toml says

    [project.entry-points."tosaic.memory_planners"]
    my_planner = "my_package:my_function"
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ....runtime.errors import Problem
from ..buffers import BufferInfo, PoolAllocation, PoolInfo
from .outcome import Outcome
from .pool_costs import Objective

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "tosaic.memory_planners"
PRESSURE, OBJECTIVE = "memory_pressure", "objective"

Algorithm = Callable[..., Mapping[str, PoolAllocation] | Outcome]
"""(buffers, pools) -> the allocation of each buffer, by name; or an outcome, which also has the proved bounds. Buffers come
with symmetric conflicts, pools in order of preference with their sizes. A parameter named `memory_pressure` is given the
largest sum of bytes that are live together; a parameter named `objective` is given the first criterion with several pools,
"traffic" or "bytes" (`pool_costs`)."""


class Planner(Protocol):
    """An algorithm, ready to be called."""

    def __call__(self, buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]
                 ) -> Mapping[str, PoolAllocation] | Outcome: ...


ALGORITHMS: dict[str, Algorithm] = {}


def algorithm(name: str) -> Callable[[Algorithm], Algorithm]:
    """Register a planner's algorithm, so that an option can name it. Raises a Problem if it cannot be called as one."""
    def register(function: Algorithm) -> Algorithm:
        if name in ALGORITHMS:
            raise Problem(f"there is a planner's algorithm named {name} already", kind="option")
        wanted(function, name)
        ALGORITHMS[name] = function
        return function

    return register


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name; raise a Problem if there is none, or if the package that offers it is broken."""
    if name not in ALGORITHMS:
        function = offered(name)
        if name not in ALGORITHMS:  # loading the package may have registered it
            algorithm(name)(function)
    return ALGORITHMS[name]


def names() -> list[str]:
    """Return the names of all algorithms, those of other packages included."""
    return sorted({*ALGORITHMS, *(e.name for e in offers())})


def offers() -> EntryPoints:
    """Return the entry points of other packages; import the reader of package metadata only here, on demand."""
    from importlib.metadata import entry_points
    return entry_points(group=GROUP)


def offered(name: str) -> Algorithm:
    """Return the algorithm of that name from another package."""
    found = {(e.value, package(e)): e for e in offers().select(name=name)}
    if not found:
        raise Problem(f"there is no planner's algorithm named {name}", kind="option", help=f"there are {', '.join(names())}")
    if len(found) > 1:
        raise Problem(f"several packages offer a planner's algorithm named {name}: {', '.join(sorted(p for _, p in found))}",
                      kind="option", help="uninstall all but one of them")
    entry, = found.values()
    where = f"the planner's algorithm {name} of package {package(entry)} ({entry.value})"
    try:
        function = entry.load()
    except Exception as error:  # whatever another package's code may raise
        raise Problem(f"{where} cannot be loaded: {type(error).__name__}: {error}", kind="option",
                      help="repair or uninstall the package, or name another algorithm") from error
    if not callable(function):
        raise Problem(f"{where} is {type(function).__name__} and no function", kind="option",
                      help="an entry point names a function of buffers and pools")
    return function


def package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value.split(":")[0]


def wanted(function: Algorithm, name: str = "custom") -> set[str]:
    """Return the parameters of an algorithm besides buffers and pools. Raises a Problem if it does not take these two."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in, says nothing about itself
        return set()
    found = {PRESSURE, OBJECTIVE} & signature.parameters.keys()
    more: dict[str, Any] = dict.fromkeys(found)
    try:
        signature.bind((), (), **more)
    except TypeError as error:
        raise Problem(f"the planner's algorithm {name} cannot be called with buffers and pools: {error}", kind="option",
                      help=f"its parameters are buffers and pools, and {PRESSURE} or {OBJECTIVE} if it needs them") from error
    return found


def planner(function: Algorithm, pressure: Callable[[], int], objective: Objective) -> Planner:
    """Return the algorithm as a function of buffers and pools; `pressure` computes the memory pressure on demand."""
    asked = wanted(function, getattr(function, "__name__", "custom"))
    more = {name: value() for name, value in ((PRESSURE, pressure), (OBJECTIVE, lambda: objective)) if name in asked}
    return lambda buffers, pools: function(buffers, pools, **more)
