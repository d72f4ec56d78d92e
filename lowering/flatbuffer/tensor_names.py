"""Names of tensors in a .tosa file: those of the values, made unique among a block and the blocks around it."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..graph.graph import Value

NAME_ATTRIBUTE = "tosa.tensor_name"
"""Attribute of an argument or a result that holds the name of its tensor, if MLIR cannot write that name."""

GENERATED = re.compile(r"[0-9]+(?:_[0-9]+)+")
"""Pattern of rewrites' names for results of one operation: in MLIR text such a name would become another one."""
GROUP = re.compile(r"(.+)#([0-9]+)")
"""Pattern of MLIR's name for one of several results: `4#1`."""


class BlockNames:
    """The names of one block. They also differ from those of the blocks around it, as MLIR text requires, so that a file that
    becomes text and a file again keeps them."""

    def __init__(self, outer: BlockNames | None = None) -> None:
        self.outer = outer
        self.values: dict[Value, str] = {}
        self.taken: set[str] = set()

    def is_taken(self, name: str) -> bool:
        return name in self.taken or (self.outer is not None and self.outer.is_taken(name))

    def free(self, wanted: str) -> str:
        """Return `wanted`, or a similar name that no other value has."""
        name = wanted = f"v{wanted}" if GENERATED.fullmatch(wanted) else wanted or "v"
        base, number = f"v{wanted}" if wanted[0].isdigit() else wanted, 0
        while self.is_taken(name):
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def define(self, value: Value, wanted: str | None = None) -> str:
        """Return the name of a value of the block, defining it if it is new."""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = self.free(value.name if wanted is None else wanted)
        return found

    def define_all(self, values: Iterable[Value]) -> tuple[str, ...]:
        return tuple(map(self.define, values))

    def more(self, names: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
        """Return names for results after those with these names: `4#2` if they are `4#0` and `4#1`, as text has them."""
        matches = [GROUP.fullmatch(name) for name in names]
        bases = {match.group(1) if match else None for match in matches}
        if len(names) > 1 and len(bases) == 1 and [m and int(m.group(2)) for m in matches] == list(range(len(names))):
            wanted = [f"{base}#{number}" for base in bases for number in range(len(names), len(names) + len(wanted))]
        return tuple(map(self.free, wanted))
