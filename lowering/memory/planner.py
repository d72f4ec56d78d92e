"""The memory planner's entry: a program and options in, a checked plan out."""
from __future__ import annotations

from dataclasses import dataclass

from ...runtime.errors import Problem
from ..loops.program import Program
from .algorithms import Algorithm, find_algorithm, run_algorithm
from .buffers import BufferInfo, PoolInfo, is_alignment, with_conflicts
from .lifetimes import access_of, lifetimes
from .plan import Plan, buffer_names, make_plan
from .verify import verify


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How to plan. `algorithm` is a registered name or a function, `pools` the memories in order of preference,
    `alignment` what every buffer is aligned to in bytes, `target` who accesses the pools (None: any)."""
    algorithm: str | Algorithm = "portfolio"
    pools: tuple[PoolInfo, ...] = (PoolInfo("workspace"),)
    alignment: int = 64
    target: str | None = None

    def __post_init__(self) -> None:
        if not is_alignment(self.alignment):
            raise Problem(f"an alignment of {self.alignment} bytes is not a power of two", kind="option")
        if isinstance(self.algorithm, str):
            find_algorithm(self.algorithm)

    @property
    def algorithm_name(self) -> str:
        if isinstance(self.algorithm, str):
            return self.algorithm
        return getattr(self.algorithm, "__name__", "custom")


def plan(program: Program, options: PlanOptions | None = None) -> Plan:
    """A place for each temporary and scratch buffer of `program`, by the names of `buffer_names(program.temporaries)`.

    Arguments and results are the caller's, constants and variables lie elsewhere. Raises a Problem where the pools are
    too small, or a custom algorithm breaks a rule.
    """
    options = options or PlanOptions()
    buffers = planned_buffers(program, options)
    allocations = run_algorithm(buffers, options.pools, options.algorithm)
    found = make_plan(program.name, options.algorithm_name, buffers, options.pools, allocations)
    verify(found, program)
    return found


def planned_buffers(program: Program, options: PlanOptions) -> tuple[BufferInfo, ...]:
    """What there is to plan, with conflicts. A buffer that no step uses has a place too, but conflicts with none."""
    live = lifetimes(program.steps, [access_of(f) for f in program.functions])
    pools = tuple(p.name for p in options.pools if p.allows(options.target))
    if not pools:
        raise Problem(f"target {options.target} may read and write none of the pools "
                      f"{', '.join(p.name for p in options.pools) or '(there are none)'}", kind="option")
    return with_conflicts([BufferInfo(name, buffer.nbytes, options.alignment, pools, live=live.get(buffer, ()))
                           for buffer, name in buffer_names(program.temporaries).items()])
