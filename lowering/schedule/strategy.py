"""What a strategy is: one way to run a loop nest. It is recognised by the pattern of the nest's expression and by the machine,
never by an operator's name; it writes its loops, says what they cost, names the other ways of its kind, and prints as one line,
by which a text can ask for it.

The strategies are in the sub-folders; `strategies.py` has them in the order in which they are asked.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Literal, Protocol

from ...runtime.records import dataclass
from ..loops.builder import Builder
from ..loops.cost import cycles
from ..target.target import Target
from .nest.loop_nest import Nest
from .nest.row_range import RowRange

Precision = Literal["f32", "bf16x6", "bf16x3", "winograd"]
"""Of contractions of float32: exact products and one rounding for each term; or sums of products of bfloat16 limbs; or, of
convolutions of 3 x 3, fewer products of transformed inputs."""

Weights = Literal["int8", "int16"]
"""How products by pairs of 16 bits (SMLAD) keep weights of bytes: as they are, or as such pairs, for twice the memory."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """What decides about the strategy of a nest beside the nest: the machine, how contractions of float32 may be computed,
    whether the first axis stays outermost, so that a caller may ask for a range of it, how weights of bytes are kept, and
    whether several threads are to divide the loops."""
    target: Target
    precision: Precision = "f32"
    by_rows: bool = False
    weights: Weights = "int8"
    divided: bool = False


class Strategy(Protocol):
    """One way to run `nest`. Two strategies of a nest that print alike write the same loops."""
    __slots__ = ()
    nest: Nest
    target: Target

    @abstractmethod
    def lower(self, b: Builder, rows: RowRange | None) -> None:
        """Write the loops; of the first axis only `rows`, where they are given."""

    def cost(self) -> float:
        """About how many cycles the loops take, by the cost model of the loop IR."""
        b = Builder(self.nest.name)
        self.lower(b, None)
        return cycles(b.finish(), self.target.costs)

    def alternatives(self) -> Iterator[Strategy]:
        """Other ways of the same kind that are worth a measurement; this one may be among them."""
        return iter(())
