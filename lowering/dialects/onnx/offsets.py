"""Known relations of integers that are unknown at compile time: one is another plus a constant. A slice from `start` to
`start + 4` has 4 elements for any start."""
from __future__ import annotations

import numpy as np

from ....runtime.records import dataclass
from ...graph.graph import Value
from ...graph.types import ElementType
from ..emitter import Emitter


@dataclass(frozen=True, slots=True)
class Origin:
    """One integer: an element of a tensor, or zero without a tensor, plus an offset."""
    tensor: Value | None
    place: int
    offset: int

    @property
    def known(self) -> int | None:
        return self.offset if self.tensor is None else None

    def __sub__(self, other: Origin) -> int | None:
        """Return the difference from another integer; None if it is not known."""
        same = self.tensor is other.tensor and self.place == other.place
        return self.offset - other.offset if same else None


def origins(e: Emitter, x: Value) -> list[Origin]:
    """Return the origins of the integers of a tensor."""
    if x.constant is not None:
        return [Origin(None, 0, int(n)) for n in x.constant.reshape(-1)]
    made = e.definitions.get(x)
    operands = () if made is None else made.operands
    match None if made is None else made.op.name:
        case "tosa.reshape":
            return origins(e, operands[0])
        case "tosa.cast" if is_within(operands[0].tensor.element, x.tensor.element):
            return origins(e, operands[0])
        case "tosa.concat" if x.tensor.rank == 1:
            return [one for part in operands for one in origins(e, part)]
        case "tosa.add" if operands[1].constant is not None and operands[0].tensor.size == x.tensor.size:
            return moved(e, operands[0], operands[1], 1)
        case "tosa.add" if operands[0].constant is not None and operands[1].tensor.size == x.tensor.size:
            return moved(e, operands[1], operands[0], 1)
        case "tosa.sub" if operands[1].constant is not None and operands[0].tensor.size == x.tensor.size:
            return moved(e, operands[0], operands[1], -1)
        case _:
            return [Origin(x, place, 0) for place in range(x.tensor.size)]


def moved(e: Emitter, x: Value, distance: Value, sign: int) -> list[Origin]:
    """Return the integers of x plus or minus known ones."""
    assert distance.constant is not None
    found = origins(e, x)
    distances = np.broadcast_to(distance.constant.reshape(-1), len(found)).tolist()
    return [Origin(one.tensor, one.place, one.offset + sign * n) for one, n in zip(found, distances)]


def is_within(inner: ElementType, outer: ElementType) -> bool:
    """True if integers keep their values in another type."""
    return inner.is_integer and inner.kind == outer.kind and inner.bits <= outer.bits
