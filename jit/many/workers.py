"""Who runs one function on many items: the interface that `map`, `tune` and the drivers of tests use. There are processes of
this machine, and the workers of a Dask cluster; `scheduler` chooses.

The function is pickled once for each worker, so that what it holds (a model) is made there once. Items are taken from their
iterable only as workers come free. Outcomes come as they end. An item whose worker goes away is run again by another.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from ...runtime.errors import Problem

ATTEMPTS = 3
"""Workers that an item may end before it is given up: it may be what ends them."""


class Outcome(NamedTuple):
    """What came of the item of that number: a value, or an error in words."""
    number: int
    value: Any = None
    error: str | None = None


class Workers(Protocol):
    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """The outcomes of `function(item)`, as they end. An exception of the function is the outcome of its item."""

    @property
    def description(self) -> str:
        """Who they are, for a message."""


def attempted(function: Callable[[Any], Any], item: Any) -> tuple[Any, str | None]:
    """What a worker sends back: the value, or the error in words, which no process of another version fails to read."""
    try:
        return function(item), None
    except Problem as problem:
        return None, str(problem)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
