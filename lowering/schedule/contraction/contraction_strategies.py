"""The strategies of a contraction, by the unit that computes its sums: the matrix unit for bfloat16 limbs or for bytes, dot
products of bytes (VNNI), or fused multiply-adds on vectors. The first one that fits is taken.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ....runtime.records import dataclass
from ...loops.builder import Builder
from ...target.target import Target
from ..nest.loop_nest import Nest
from ..nest.row_range import RowRange
from ..strategy import Constraints, Strategy
from . import blocked_loops, register_tiles
from .bf16_split import amx_loops
from .choose import (
    ContractionChoice,
    choose_amx,
    choose_dot8,
    choose_dual,
    choose_limbs,
    choose_scalar_sums,
    choose_vectors,
    choose_vnni,
    choose_widening,
    others,
)
from .int8 import amx_macro_loops, scalar_sums
from .pattern import Contraction
from .recognise import recognise


@dataclass(frozen=True, slots=True)
class ContractionStrategy(Strategy):
    """A contraction, of the pattern `pattern`, by register tiles."""
    nest: Nest
    target: Target
    pattern: Contraction
    choice: ContractionChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> ContractionStrategy | None:
        pattern = recognise(nest, constraints.by_rows, constraints.target)
        return of_pattern(pattern, constraints) if pattern else None

    def alternatives(self) -> Iterator[ContractionStrategy]:
        return (replace(self, choice=c) for c in others(self.pattern, self.choice, self.target))

    def __str__(self) -> str:
        return str(self.choice)


class Bf16LimbTiles(ContractionStrategy):
    """Products of bfloat16 limbs of float32, on a matrix unit (AMX)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        amx_loops.lower(b, self.pattern, self.choice.step, self.target, rows)


class Int8MatrixTiles(ContractionStrategy):
    """Products of bytes on a matrix unit (AMX)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        amx_macro_loops.lower(b, self.pattern, self.target, rows)


class Int8PairTiles(ContractionStrategy):
    """Products of bytes, by pairs of rows and of columns (SMMLA)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        register_tiles.lower(b, self.pattern, self.choice, self.target, rows)


class Int8DotTiles(ContractionStrategy):
    """Products of bytes, four at a time in each lane (VNNI)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        register_tiles.lower(b, self.pattern, self.choice, self.target, rows)


class Int8DualTiles(ContractionStrategy):
    """Products of bytes, two at a time in a register (SMLAD)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        register_tiles.lower(b, self.pattern, self.choice, self.target, rows)


class Int8ScalarSumTiles(ContractionStrategy):
    """Products of bytes, a vector of them at a time added to a register (VMLADAVA)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        scalar_sums.lower(b, self.pattern, self.choice.tile, self.target, rows)


class Int8WideningTiles(ContractionStrategy):
    """Products of bytes, a vector of columns at a time, widened (VWMACC)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        register_tiles.lower(b, self.pattern, self.choice, self.target, rows)


class VectorTiles(ContractionStrategy):
    """One element of K at a time, by vectors, in blocks of K and of columns where operands are too large for the caches."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        if self.choice.blocks:
            blocked_loops.lower(b, self.pattern, self.choice, self.choice.blocks, self.target, rows)
        else:
            register_tiles.lower(b, self.pattern, self.choice, self.target, rows)


def of_pattern(pattern: Contraction, constraints: Constraints) -> ContractionStrategy:
    """The strategy for a contraction that is recognised."""
    target = constraints.target
    for name in target.micro_kernels:
        choose, strategy = MICRO_KERNELS[name]
        if choice := choose(pattern, constraints):
            return strategy(pattern.nest, target, pattern, choice)
    raise TypeError(pattern)


Choose = Callable[[Contraction, Constraints], ContractionChoice | None]
MICRO_KERNELS: Mapping[str, tuple[Choose, type[ContractionStrategy]]] = {
    "limbs": (lambda p, c: choose_limbs(p, c.target, c.precision), Bf16LimbTiles),
    "tiles": (lambda p, c: choose_amx(p, c.target), Int8MatrixTiles),
    "dot8": (lambda p, c: choose_dot8(p, c.target), Int8PairTiles),
    "dot4": (lambda p, c: choose_vnni(p, c.target), Int8DotTiles),
    "dual": (lambda p, c: choose_dual(p, c.target, c.weights), Int8DualTiles),
    "dot": (lambda p, c: choose_scalar_sums(p, c.target), Int8ScalarSumTiles),
    "widen": (lambda p, c: choose_widening(p, c.target), Int8WideningTiles),
    "vectors": (lambda p, c: choose_vectors(p, c.target), VectorTiles)}
"""By the name in `Target.micro_kernels`: when a contraction is done so, and how."""
