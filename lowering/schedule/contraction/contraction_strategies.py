"""The strategy for contractions: use the first of the machine's micro-kernels that fits.
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
from .micro_kernels import amx_bytes, amx_limbs, dot2, dot4, dot8, dual_multiply, vector_dot, widening
from .pattern import Contraction
from .recognise import recognise


@dataclass(frozen=True, slots=True)
class ContractionStrategy(Strategy):
    """The strategy that computes a contraction by a micro-kernel."""
    nest: Nest
    target: Target
    pattern: Contraction
    choice: ContractionChoice
    micro_kernel: str

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> ContractionStrategy | None:
        rows, target = constraints.by_rows, constraints.target
        pattern = recognise(nest, rows)
        if pattern and not (found := with_lines(pattern, target)):
            found = recognise(nest, rows, target)
        return of_pattern(found, constraints) if pattern and found else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        _, write = MICRO_KERNELS[self.micro_kernel]
        write(b, self.pattern, self.choice, self.target, rows)

    def alternatives(self) -> Iterator[ContractionStrategy]:
        return (replace(self, choice=c) for c in others(self.pattern, self.choice, self.target))

    def __str__(self) -> str:
        return f"{self.choice}, of lines of the input" if self.pattern.lines else str(self.choice)


def lower_vectors(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """Write a product by one element of K at a time, in blocks of K and of columns if operands are too large for the caches."""
    (blocked_loops if choice.blocks else register_tiles).lower(b, pattern, choice, target, rows)


Choose = Callable[[Contraction, Constraints], ContractionChoice | None]
Lower = Callable[[Builder, Contraction, ContractionChoice, Target, RowRange | None], None]
MICRO_KERNELS: Mapping[str, tuple[Choose, Lower]] = {
    "limbs": (choose_limbs, amx_limbs.lower),
    "tiles": (choose_amx, amx_bytes.lower),
    "dot8": (dot8.choose, register_tiles.lower),
    "dot4": (dot4.choose, register_tiles.lower),
    "dot2": (dot2.choose, register_tiles.lower),
    "dual": (dual_multiply.choose, register_tiles.lower),
    "dot": (vector_dot.choose, vector_dot.lower),
    "widen": (widening.choose, register_tiles.lower),
    "vectors": (choose_vectors, lower_vectors)}
"""Functions by the name in `Target.micro_kernels`: one makes the choice or returns None, the other writes the loops."""


def of_pattern(pattern: Contraction, constraints: Constraints) -> ContractionStrategy:
    """Return the strategy for a recognised contraction, with the first of the machine's micro-kernels that fits."""
    for name in constraints.target.micro_kernels:
        choose, _ = MICRO_KERNELS[name]
        if choice := choose(pattern, constraints):
            return ContractionStrategy(pattern.nest, constraints.target, pattern, choice, name)
    raise TypeError(pattern)
