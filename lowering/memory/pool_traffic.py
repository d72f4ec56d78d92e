"""The traffic of a run through each pool of a plan: the bytes of `loops.traffic`, by the pools of the buffers."""
from __future__ import annotations

from collections.abc import Mapping

from ..elements.expression import Buffer
from ..loops.program import Program
from ..loops.traffic import Traffic, program_traffic
from .plan import Plan, names_of


def pool_traffic(program: Program, plan: Plan, moved: Mapping[Buffer, Traffic] | None = None) -> dict[str, Traffic]:
    """Return the bytes that a run reads and writes in each pool, by its name; `moved` is the known traffic of each buffer."""
    known = program_traffic(program) if moved is None else moved
    names = {name: b for b, name in names_of(program).items()}
    found = dict.fromkeys((p.name for p in plan.pools), Traffic())
    for b in plan.buffers:
        found[b.pool] = found[b.pool].plus(known.get(names[b.name], Traffic()))
    return found
