"""Arrays that a schedule derives from constants while compiling (packed weights, tables), and facts about the constants' data
on which the schedule depends. The builder records them with the function that makes them, so that `schedule_cache` can derive
them again from the constants of another kernel of the same signature.

A schedule reads the data of constants only through `derive`.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..elements.expression import Buffer, Expr, Load
from ..elements.traverse import computed, loads, rewrite
from ..graph.types import Array

if TYPE_CHECKING:
    from ..loops.builder import Builder


class Made(NamedTuple):
    """Derived arrays that the code reads, and all other facts that the data of the constants decides."""
    arrays: tuple[Array, ...] = ()
    facts: Hashable = None

    @property
    def key(self) -> Hashable:
        """The facts, and the type and size of each array: everything on which code that reads the arrays depends."""
        return self.facts, tuple([(a.dtype.name, a.size) for a in self.arrays])


Make = Callable[..., Made]


class Derived(NamedTuple):
    """A derivation: `buffers` hold the arrays that `make` makes of `sources`, expressions of constants; `key` is `Made.key`."""
    buffers: tuple[Buffer, ...]
    sources: tuple[Expr, ...]
    make: Make
    key: Hashable

    def again(self, buffers: Mapping[Buffer, Buffer]) -> tuple[Array, ...] | None:
        """Return the arrays for other buffers in place of those of the sources; None if these need different code."""
        if any(computed(x.index) or x.buffer not in buffers for e in self.sources for x in loads(e)):
            return None
        made = self.make(*(reading(e, buffers) for e in self.sources))
        return made.arrays if made.key == self.key else None


def derive(b: Builder, names: Sequence[str], sources: Sequence[Expr], make: Make) -> tuple[tuple[Buffer, ...], Hashable]:
    """Return constant buffers of these names with the arrays that `make` makes of the sources, expressions of constants, and
    the facts. `make` knows no buffer but those of its arguments."""
    made = make(*sources)
    buffers = tuple([constant_buffer(name, array) for name, array in zip(names, made.arrays, strict=True)])
    b.derived.append(Derived(buffers, tuple(sources), make, made.key))
    return buffers, made.facts


def constant_buffer(name: str, array: Array) -> Buffer:
    """Return a flat constant buffer with these elements."""
    return Buffer(name, array.dtype.name, (array.size,), "constant", array.reshape(-1))


def reading(e: Expr, buffers: Mapping[Buffer, Buffer]) -> Expr:
    """Return the expression with each buffer replaced in its loads."""
    return rewrite(e, lambda node: Load(buffers[node.buffer], node.index) if isinstance(node, Load) else None)
