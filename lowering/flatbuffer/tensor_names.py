"""Names of tensors in a .tosa file: those of the values, made different where two in a block or around it are the same."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..graph.graph import Value

NAME_ATTRIBUTE = "tosa.tensor_name"
"""The attribute of an argument or a result that says what its tensor is called, where MLIR cannot write the name."""

GENERATED = re.compile(r"[0-9]+(?:_[0-9]+)+")
"""What rewrites call results of one operation: in MLIR text such a name would become another one."""
GROUP = re.compile(r"(.+)#([0-9]+)")
"""What MLIR calls one of several results: `4#1`."""


class BlockNames:
    """The names of one block. They also differ from those of the blocks around it, as MLIR text needs it, so that a file
    which becomes text and a file again keeps them."""

    def __init__(self, outer: BlockNames | None = None) -> None:
        self.outer = outer
        self.values: dict[Value, str] = {}
        self.taken: set[str] = set()

    def is_taken(self, name: str) -> bool:
        return name in self.taken or (self.outer is not None and self.outer.is_taken(name))

    def free(self, wanted: str) -> str:
        """`wanted`, or a name like it that no other value has."""
        name = wanted = f"v{wanted}" if GENERATED.fullmatch(wanted) else wanted or "v"
        base, number = f"v{wanted}" if wanted[0].isdigit() else wanted, 0
        while self.is_taken(name):
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def define(self, value: Value, wanted: str | None = None) -> str:
        """The name of a value of the block, by which it is found from now on."""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = self.free(value.name if wanted is None else wanted)
        return found

    def define_all(self, values: Iterable[Value]) -> tuple[str, ...]:
        return tuple(map(self.define, values))

    def more(self, names: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
        """Names for results behind those with these names: `4#2` where they are `4#0` and `4#1`, as text has them."""
        matches = [GROUP.fullmatch(name) for name in names]
        bases = {match.group(1) if match else None for match in matches}
        if len(names) > 1 and len(bases) == 1 and [m and int(m.group(2)) for m in matches] == list(range(len(names))):
            wanted = [f"{base}#{number}" for base in bases for number in range(len(names), len(names) + len(wanted))]
        return tuple(map(self.free, wanted))
