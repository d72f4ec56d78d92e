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
from .bf16_split.choose import choose_limbs
from .choice import ContractionChoice
from .choose import choose_vectors, others
from .int8.amx_choose import choose_amx
from .line_buffers import with_lines
from .micro_kernels import amx_bytes, amx_limbs, dot4, dot8, dual_multiply, vector_dot, widening
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
        rows, target = constraints.by_rows, constraints.target
        pattern = recognise(nest, rows)
        if pattern and not (found := with_lines(pattern, target)):
            found = recognise(nest, rows, target)
        return of_pattern(found, constraints) if pattern and found else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        register_tiles.lower(b, self.pattern, self.choice, self.target, rows)

    def alternatives(self) -> Iterator[ContractionStrategy]:
        return (replace(self, choice=c) for c in others(self.pattern, self.choice, self.target))

    def __str__(self) -> str:
        return f"{self.choice}, of lines of the input" if self.pattern.lines else str(self.choice)


class Bf16LimbTiles(ContractionStrategy):
    """Products of bfloat16 limbs of float32, on a matrix unit (AMX)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        amx_limbs.lower(b, self.pattern, self.choice.step, self.target, rows)


class Int8MatrixTiles(ContractionStrategy):
    """Products of bytes on a matrix unit (AMX)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        amx_bytes.lower(b, self.pattern, self.target, rows)


class Int8PairTiles(ContractionStrategy):
    """Products of bytes, by pairs of rows and of columns (SMMLA)."""
    __slots__ = ()


class Int8DotTiles(ContractionStrategy):
    """Products of bytes, four at a time in each lane (VNNI)."""
    __slots__ = ()


class Int8DualTiles(ContractionStrategy):
    """Products of bytes, two at a time in a register (SMLAD)."""
    __slots__ = ()


class Int8ScalarSumTiles(ContractionStrategy):
    """Products of bytes, a vector of them at a time added to a register (VMLADAVA)."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        vector_dot.lower(b, self.pattern, self.choice, self.target, rows)


class Int8WideningTiles(ContractionStrategy):
    """Products of bytes, a vector of columns at a time, widened (VWMACC)."""
    __slots__ = ()


class VectorTiles(ContractionStrategy):
    """One element of K at a time, by vectors, in blocks of K and of columns where operands are too large for the caches."""
    __slots__ = ()

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        if self.choice.blocks:
            blocked_loops.lower(b, self.pattern, self.choice, self.choice.blocks, self.target, rows)
        else:
            register_tiles.lower(b, self.pattern, self.choice, self.target, rows)


Choose = Callable[[Contraction, Constraints], ContractionChoice | None]
MICRO_KERNELS: Mapping[str, tuple[Choose, type[ContractionStrategy]]] = {
    "limbs": (choose_limbs, Bf16LimbTiles),
    "tiles": (choose_amx, Int8MatrixTiles),
    "dot8": (dot8.choose, Int8PairTiles),
    "dot4": (dot4.choose, Int8DotTiles),
    "dual": (dual_multiply.choose, Int8DualTiles),
    "dot": (vector_dot.choose, Int8ScalarSumTiles),
    "widen": (widening.choose, Int8WideningTiles),
    "vectors": (choose_vectors, VectorTiles)}
"""By the name in `Target.micro_kernels`: when a contraction is done so, and how."""


def of_pattern(pattern: Contraction, constraints: Constraints) -> ContractionStrategy:
    """The strategy for a contraction that is recognised: of the machine's micro-kernels the first that is chosen."""
    for name in constraints.target.micro_kernels:
        choose, strategy = MICRO_KERNELS[name]
        if choice := choose(pattern, constraints):
            return strategy(pattern.nest, constraints.target, pattern, choice)
    raise TypeError(pattern)
