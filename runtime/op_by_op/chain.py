"""Chains: values without contents that order side effects. An operation runs when its chain is ready, and the chain that it
returns is ready when its effect is done.
"""
from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..errors import Problem
from .asynchronous import AsyncValue, Waiting, raised
from .reporting import sound


class Chain(AsyncValue):
    """Order of a side effect that has happened, will happen, or has failed. Chains are immutable, so they may be shared."""
    __slots__ = ()

    def __init__(self, state: Waiting | Problem | None = None) -> None:
        self._state = state

    def __copy__(self) -> Chain:
        return self

    def __deepcopy__(self, memo: object) -> Chain:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settled state, after waiting for it: ready, or the error."""
        self.wait()
        return Chain, (self.error,)

    @classmethod
    def ready(cls) -> Chain:
        """Return a chain that is ready."""
        return cls()

    @classmethod
    def of_error(cls, problem: Problem) -> Chain:
        """Return a chain that has failed with this problem."""
        return cls(sound(problem, "a chain"))

    @classmethod
    def pending(cls) -> tuple[Chain, ChainResolver]:
        """Return a pending chain, and the object that settles it."""
        chain = cls(Waiting())
        return chain, ChainResolver(chain)

    def get(self) -> None:
        """Wait for the chain; raise its error."""
        self.wait()
        if self.error is not None:
            raise raised(self.error)

    def __await__(self) -> Generator[object, None, None]:
        yield from self._settled()
        self.get()

    def __repr__(self) -> str:
        return f"<Chain {'pending' if self.is_pending else 'error' if self.is_error else 'ready'}>"


class ChainResolver:
    """Settles one chain, once. If the resolver is destroyed before that, the chain becomes an error: nobody waits for ever."""
    __slots__ = ("_chain",)

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    def set(self) -> bool:
        """Make the chain ready. Return False if the chain was settled before."""
        return self._chain._settle(None)

    def fail(self, problem: Problem) -> bool:
        """Make the chain an error. Return False if the chain was settled before."""
        return self._chain._fail(sound(problem, "a pending chain"))

    def __del__(self) -> None:
        chain = getattr(self, "_chain", None)  # Ctrl-C may have come before the chain was set
        if chain is not None and chain.is_pending:
            self.fail(abandoned("chain"))


def abandoned(what: str) -> Problem:
    return Problem(f"a pending {what} will never be settled: what would have settled it is gone", kind="argument",
                   help="keep the object that `pending` returned, and call its set or fail")
