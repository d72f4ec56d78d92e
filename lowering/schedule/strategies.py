"""The strategies, in the order in which they are tried: the first that recognises a nest runs it. Strategies of whole kernels
are tried before a kernel is cut into nests.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...runtime.records import dataclass
from .contraction.choose import run_interleaved
from .contraction.contraction_strategies import ContractionStrategy
from .contraction.gemv import Gemv
from .contraction.padded_input import PaddedInput
from .elementwise.elementwise import Elementwise
from .elementwise.transpose import Transpose
from .fft import FourierTransform
from .nest.loop_nest import Nest
from .row_reduction.lower import RowReduction
from .strategy import Constraints, Strategy
from .window.column_reduction import ColumnReduction
from .window.int8_window_loops import Int8Window
from .window.window import Window
from .winograd.winograd import Winograd

KERNEL_STRATEGIES = (FourierTransform, Winograd, PaddedInput)
"""Strategies of whole kernels."""
STRATEGIES = (RowReduction, ContractionStrategy, ColumnReduction, Gemv, Int8Window, Window, Transpose, Elementwise)
"""Strategies of nests. The unit that does the work decides the micro-kernel of a contraction
(`contraction.contraction_strategies`). The last strategy fits every nest."""


def choose(nest: Nest, constraints: Constraints) -> Strategy:
    """Return the first strategy that recognises a nest."""
    for strategy in STRATEGIES:
        if found := strategy.recognise(nest, constraints):
            return found
    raise TypeError(nest)


@dataclass(frozen=True, slots=True)
class NestPhases:
    """The strategies' view of the phases of a nest, for `nest.split_nest`."""
    constraints: Constraints

    def share_contraction(self, nests: Sequence[Nest]) -> bool:
        return run_interleaved(nests, self.constraints.target)

    def is_elementwise(self, nest: Nest) -> bool:
        whole = Constraints(self.constraints.target, self.constraints.precision)
        return isinstance(choose(nest, whole), Elementwise)
