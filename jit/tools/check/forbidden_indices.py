"""Indices that the specification forbids: those of GATHER, ROW_GATHER and SCATTER that are out of range, and an index that
SCATTER writes twice. Both engines return the same result for them, so only an inspection of the operands finds them.
"""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ....lowering.graph.graph import Module, Operation
from ....lowering.graph.types import Array
from ....runtime.errors import Position
from .instrument import InstrumentedOp, instrumented

INDEXED = frozenset({"tosa.gather", "tosa.row_gather", "tosa.scatter"})


@dataclass(frozen=True, slots=True)
class Violation:
    """An operand that an operator must not have: the operator, the call, and the first element that is wrong."""
    where: str
    position: Position | None
    call: int
    what: str

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        return f"{place}{self.where}: {self.what} in call {self.call}; what it gives is unpredictable by the specification"


@dataclass(slots=True)
class Watch:
    """An observer of an interpreted module's operands: it keeps the first violation of each operation."""
    call: int = 0
    found: list[Violation] = field(default_factory=list)
    seen: set[Operation] = field(default_factory=set)

    def module(self, module: Module) -> Module:
        return instrumented(module, lambda o: InstrumentedOp(o, self.apply) if o.op.name in INDEXED else None)

    def apply(self, operation: Operation, operands: tuple[Array, ...]) -> object:
        what = None if operation in self.seen else forbidden(operation.op.name, operands)
        if what is not None:
            self.seen.add(operation)
            self.found.append(Violation(str(operation), operation.position, self.call, what))
        return operation.op.reference(*operands)


def forbidden(name: str, operands: tuple[Array, ...]) -> str | None:
    """Return a description of what is wrong with the indices; None if they are valid."""
    values, indices = operands[:2]
    last = values.shape[1] - (int(operands[2].item()) if name == "tosa.row_gather" else 1)
    wrong = (indices < 0) | (indices > last)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        others = f"{int(wrong.sum())} of {indices.size} are not in 0 to {last}"
        return f"index {indices[place]} at {list(place)} is out of range, {others},"
    if name == "tosa.scatter":
        ordered = np.sort(indices, axis=1)
        again = ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]]
        if again.size:
            return f"index {again[0]} is written more than once,"
    return None
