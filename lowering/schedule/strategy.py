"""The interface of strategies: a strategy is one way to run a loop nest. The pattern of the nest's expression and the machine
select it, never an operator's name. A strategy writes its loops, estimates their cost, lists the alternatives of its kind, and
prints as one line, with which a schedule text can ask for it.

The strategies are in the sub-folders; `strategies.py` lists them in the order in which they are tried.
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
"""Arithmetic of float32 contractions: exact products and one rounding for each term; or sums of products of bfloat16 limbs;
or, for 3 x 3 convolutions, fewer products of transformed inputs."""

Weights = Literal["int8", "int16"]
"""Storage of byte weights for products of pairs of 16 bits (SMLAD): as bytes, or as such pairs, for twice the memory."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Everything beside the nest that decides its strategy: the machine, the arithmetic of float32 contractions, whether the
    first axis stays outermost, so that a caller may ask for a range of it, the storage of byte weights, and whether several
    threads are to divide the loops."""
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
        """Write the loops. If `rows` is given, write them only for that range of the first axis."""

    def cost(self) -> float:
        """Return the approximate cycles of the loops, by the cost model of the loop IR."""
        b = Builder(self.nest.name)
        self.lower(b, None)
        return cycles(b.finish(), self.target.costs)

    def alternatives(self) -> Iterator[Strategy]:
        """Return other strategies of the same kind that are worth a measurement; this one may be among them."""
        return iter(())
