"""What a schedule makes of constants while compiling (packed weights, tables), and what it goes by that their data says: noted
in the builder with how it was made, so that `schedule_cache` can make the same of the constants of another kernel of the same
signature.

Whatever a schedule reads of the data of a constant, it reads through `derive`.
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
    """Arrays for the code to read, and all else that the data of the constants decides."""
    arrays: tuple[Array, ...] = ()
    facts: Hashable = None

    @property
    def key(self) -> Hashable:
        """What code depends on that reads the arrays."""
        return self.facts, tuple([(a.dtype.name, a.size) for a in self.arrays])


Make = Callable[..., Made]


class Derived(NamedTuple):
    """`buffers` have the arrays that `make` makes of expressions of constants; `key` is what the code depends on."""
    buffers: tuple[Buffer, ...]
    sources: tuple[Expr, ...]
    make: Make
    key: Hashable

    def again(self, buffers: Mapping[Buffer, Buffer]) -> tuple[Array, ...] | None:
        """The arrays for other buffers in place of those of the sources; None where the code for them would be another."""
        if any(computed(x.index) or x.buffer not in buffers for e in self.sources for x in loads(e)):
            return None
        made = self.make(*(reading(e, buffers) for e in self.sources))
        return made.arrays if made.key == self.key else None


def derive(b: Builder, names: Sequence[str], sources: Sequence[Expr], make: Make) -> tuple[tuple[Buffer, ...], Hashable]:
    """Constant buffers of these names with the arrays that `make` makes of the sources, expressions of constants, and the
    facts. `make` knows no buffer but those of its arguments."""
    made = make(*sources)
    buffers = tuple([constant_buffer(name, array) for name, array in zip(names, made.arrays, strict=True)])
    b.derived.append(Derived(buffers, tuple(sources), make, made.key))
    return buffers, made.facts


def constant_buffer(name: str, array: Array) -> Buffer:
    """A flat buffer with these elements."""
    return Buffer(name, array.dtype.name, (array.size,), "constant", array.reshape(-1))


def reading(e: Expr, buffers: Mapping[Buffer, Buffer]) -> Expr:
    """The expression with loads from other buffers."""
    return rewrite(e, lambda node: Load(buffers[node.buffer], node.index) if isinstance(node, Load) else None)
