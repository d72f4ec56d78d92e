"""Oracle: every planning algorithm gives a plan that the plan's own verifier accepts."""
from __future__ import annotations

from tosaic.jit.stages import Lowered
from tosaic.lowering.memory.algorithms.run import ALGORITHMS
from tosaic.lowering.memory.check.verify import verify
from tosaic.lowering.memory.planner import Memory, plan


def check_plans(lowered: Lowered) -> None:
    for name in ALGORITHMS:
        found = plan(lowered.program, Memory(algorithm=name, alignment=16))
        verify(found, lowered.program)
