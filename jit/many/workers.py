"""Workers that run one function on many items: the interface that `map`, `tune` and the drivers of tests use. Workers are
processes of this machine or of a Dask cluster; `scheduler` chooses.

The function is pickled once for each worker, so that its contents (a model) are created there once. Items are taken from their
iterable only as workers become free. Outcomes are returned as items end. An item whose worker goes away is run again by
another.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from ...runtime.errors import Problem

ATTEMPTS = 3
"""Maximum number of workers that may end on an item before it is given up: the item may be the cause."""


class Outcome(NamedTuple):
    """The outcome of the item of this number: a value, or an error in words."""
    number: int
    value: Any = None
    error: str | None = None


class Workers(Protocol):
    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """Yield the outcomes of `function(item)`, as they end. An exception of the function is the outcome of its item."""

    @property
    def description(self) -> str:
        """A description of the workers, for a message."""


def attempted(function: Callable[[Any], Any], item: Any) -> tuple[Any, str | None]:
    """Return the value, or the error as text, which a process with other versions can always unpickle."""
    try:
        return function(item), None
    except Problem as problem:
        return None, str(problem)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
