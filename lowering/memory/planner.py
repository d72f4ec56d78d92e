"""The memory planner's entry: a program and options in, a checked plan out."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from typing import Any

from ...runtime.deprecation import deprecated
from ...runtime.errors import Problem, ValueProblem
from ...runtime.public_names import checked_fields
from ...runtime.records import shown_changes
from ...runtime.threads import checked
from ..elements.expression import Buffer
from ..graph.types import ITEM_SIZES
from ..loops.program import Program
from ..loops.traffic import Traffic, program_traffic
from .algorithms.lower_bound import lower_bound
from .algorithms.outcome import Outcome
from .algorithms.pool_costs import Objective, checked_objective, cost_of, costs_of, score_of
from .algorithms.pool_offsets import behind_offsets
from .algorithms.portfolio import quick, unlimited, within
from .algorithms.run import Algorithm, find_algorithm, run_algorithm
from .algorithms.smallest_pools import with_smaller_pools
from .buffers import (
    BufferInfo,
    Kind,
    PoolAccess,
    PoolAllocation,
    PoolInfo,
    Ticks,
    is_alignment,
    own_alignment,
    sizes_of,
    with_conflicts,
)
from .check.verify import says_wrong, verify
from .lifetimes import KernelAccess, access_of, lifetimes
from .plan import Plan, PlannedVariable, in_order, make_plan, names_of, state_bytes
from .sharing.occupancy import Occupied, table
from .sharing.overlap import Sharing, most_occupied, sharing_of
from .sharing.share_in_pools import place_in_pools

SHARING = ("portfolio", "exact")
"""Algorithms whose plans may let buffers share bytes while both are live."""
EXACT_CHANGES = 5
"""Factor of the changes of order that `exact` tries to those that `portfolio` tries."""
ANY_ALIGNMENT = 64
"""Alignment, in bytes, that suffices for every machine: a cache line, and the widest vector."""


DEPRECATED = ("order", "rows", "threads", "precision", "target", "moved")
"""Names that `Memory` takes and does not offer."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The memories of a target, and the options of planning them. `algorithm` is a registered name or a function, `pools`
    the workspace memories in order of preference, `alignment` the maximum alignment of a buffer in bytes (a shorter buffer:
    by its size; None: as the machine needs it, 64 if that is not known), `accessor` the target that accesses the pools
    (None: any).

    `constant_pools` are the memories for constants in order of preference; without any, constants are symbols of the
    object. `pins` maps a buffer's name in the plan, or a variable's, to the one pool that must hold it. With `workspace_io`,
    inputs and outputs are in the workspace, too (the document's U4): an input until it has been read for the last time, an
    output until the run ends. With `overlap`, the algorithms portfolio and exact let buffers share bytes while both are live,
    where the order of loops and rows allows it. `objective` is the first criterion with several pools: the "traffic" through
    slow ones, or the "bytes" of each pool, the last one first.

    `order`, `rows`, `threads` and `precision` are options of other stages, which `CompileOptions` has; they are deprecated
    here, and kept as `moved` until the options are made.
    """
    __repr__ = shown_changes
    algorithm: str | Algorithm = "portfolio"
    pools: tuple[PoolInfo, ...] = (PoolInfo("workspace"),)
    alignment: int | None = None
    accessor: str | None = None
    constant_pools: tuple[PoolInfo, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict, hash=False)
    workspace_io: bool = False
    overlap: bool = True
    order: InitVar[Any] = None
    rows: InitVar[Any] = None
    threads: InitVar[Any] = None
    precision: InitVar[Any] = None
    target: InitVar[Any] = None
    objective: Objective = field(default="traffic", kw_only=True)
    moved: tuple[tuple[str, Any], ...] = field(default=(), kw_only=True, repr=False)

    def __new__(cls, *values: Any, **named: Any) -> Memory:
        checked_fields("tosaic.Memory", cls, values, named, DEPRECATED)
        return object.__new__(cls)

    def __post_init__(self, order: Any, rows: Any, threads: Any, precision: Any, target: Any) -> None:
        if threads is not None:
            checked(threads)
        for name, value in (("order", order), ("rows", rows), ("threads", threads), ("precision", precision)):
            if value is not None:
                deprecated(f"tosaic.Memory({name}=...)", f"tosaic.CompileOptions({name}=...)")
                object.__setattr__(self, "moved", (*self.moved, (name, value)))
        if target is not None:
            deprecated("tosaic.Memory(target=...)", "tosaic.Memory(accessor=...)")
            object.__setattr__(self, "accessor", target)
        checked_objective(self.objective)
        if self.alignment is not None and not is_alignment(self.alignment):
            raise ValueProblem(f"an alignment of {self.alignment} bytes is not a power of two", kind="option")
        if isinstance(self.algorithm, str):
            find_algorithm(self.algorithm)
        names = [p.name for p in (*self.pools, *self.constant_pools)]
        for name in names:
            if names.count(name) > 1:
                raise ValueProblem(f"two pools are named {name}", kind="option", help="give each memory one name, once")
        for pool in self.constant_pools:
            if pool.pool_offset:
                raise ValueProblem(f"pool {pool.name} holds constants and has an offset of {pool.pool_offset} bytes",
                                   kind="option", help="the linker places it: name a section for the pool")

    @property
    def algorithm_name(self) -> str:
        if isinstance(self.algorithm, str):
            return self.algorithm
        return getattr(self.algorithm, "__name__", "custom")


def plan(program: Program, memory: Memory | None = None) -> Plan:
    """Plan each buffer of `program` that the options leave to the planner, by the names of `names_of(program)`.

    Variables are stored elsewhere, pinned ones beside the buffers of a pool. Raises a Problem if the pools are too small,
    a pin names no buffer or pool, or a custom algorithm breaks a rule.
    """
    given = seen(memory or Memory())
    moved = traffic_for(program, given)
    workspace, constants = planned_buffers(program, given, moved), planned_constants(program, given, moved)
    variables = pinned_variables(program, given, {b.name for b in (*workspace, *constants)})
    check_pins(given, [*(b.name for b in (*workspace, *constants)), *(v.name for v in variables)])
    memory = without_state(given, variables)
    sharing = share(program, workspace) if memory.overlap and memory.algorithm in SHARING else None
    outcome = behind_offsets(workspace, memory.pools, lambda pools: placed(workspace, pools, memory, sharing))
    if constants:
        outcome = both(outcome, run_algorithm(constants, memory.constant_pools, memory.algorithm, memory.objective))
    found = make_plan(program.name, memory.algorithm_name, (*workspace, *constants), given.pools, outcome,
                      memory.constant_pools, sharing.bound if sharing else lower_bound)
    found = replace(found, variables=variables)
    verify(found, program)
    return found


def seen(memory: Memory) -> Memory:
    """Return the memories as their accessor sees them."""
    def of(pools: Iterable[PoolInfo]) -> tuple[PoolInfo, ...]:
        return tuple(p.seen_by(memory.accessor) for p in pools)

    return replace(memory, pools=of(memory.pools), constant_pools=of(memory.constant_pools))


def pinned_variables(program: Program, memory: Memory, buffers: Collection[str]) -> tuple[PlannedVariable, ...]:
    """Return the pinned variables; a name that a planned buffer has, too, is the buffer's. Raises a Problem if a pool is not
    one that a run writes."""
    workspaces, constants = {p.name for p in memory.pools}, {p.name for p in memory.constant_pools}
    found = []
    for buffer in (use.buffer for use in program.variables):
        pool = memory.pins.get(buffer.name)
        if pool is None or buffer.name in buffers:
            continue
        if pool in constants:
            raise ValueProblem(f"variable {buffer.name} is pinned to {pool}, which holds constants", kind="option",
                               help=f"a run writes {', '.join(sorted(workspaces))}")
        found.append(PlannedVariable(buffer.name, pool, buffer.nbytes, alignment_in(memory, buffer)))
    return in_order(found)


def without_state(memory: Memory, variables: Sequence[PlannedVariable]) -> Memory:
    """Return the memories less the bytes of pinned variables. Raises a Problem if these need more than there is."""
    def left(pool: PoolInfo) -> PoolInfo:
        state = state_bytes(variables, pool.name)
        if pool.size_hint_bytes is None or not state:
            return pool
        if state > pool.size_hint_bytes:
            raise Problem(f"pool {pool.name} holds {pool.size_hint_bytes} bytes, and the variables that are pinned to it need "
                          f"{state}", kind="memory", help="pin fewer variables to it, or make it larger")
        return replace(pool, size_hint_bytes=pool.size_hint_bytes - state)

    return replace(memory, pools=tuple(map(left, memory.pools))) if variables else memory


def smallest_plan(programs: Sequence[Program], memory: Memory) -> tuple[Program, Plan]:
    """Return, of equivalent programs, the one that needs the least memory, and its plan; with several pools, the best one by
    the objective. Raises as `plan` does if none fits."""
    found: list[tuple[list[Fraction], int]] = []
    plans: list[Plan | Problem] = []
    for number, program in enumerate(programs):
        try:
            planned = plan(program, memory)
        except Problem as problem:
            if says_wrong(problem):
                raise
            plans.append(problem)
            continue
        plans.append(planned)
        sizes = [Fraction(p.size_bytes) for p in reversed(planned.workspace_pools)]
        traffic = excess(program, planned, memory)
        found.append(([traffic, *sizes] if memory.objective == "traffic" else [*sizes, traffic], number))
    if not found:
        assert isinstance(plans[0], Problem)
        raise plans[0]
    *_, best = min(found)
    chosen = plans[best]
    assert isinstance(chosen, Plan)
    return programs[best], chosen


def traffic_for(program: Program, memory: Memory) -> Mapping[Buffer, Traffic]:
    """Return the traffic of each buffer in a run, if there are pools to choose from; otherwise an empty mapping."""
    return program_traffic(program) if max(len(memory.pools), len(memory.constant_pools)) > 1 else {}


def excess(program: Program, planned: Plan, memory: Memory) -> Fraction:
    """Return the cost of a plan's accesses above that with everything in the fastest pool: bytes moved through others, each
    times the index of its pool, or time."""
    memory, moved = seen(memory), traffic_for(program, memory)
    buffers = {name: b for b, name in names_of(program).items()}
    total = Fraction(0)
    for pools in (memory.pools, memory.constant_pools):
        own = {p.name for p in pools}
        held = [with_traffic(BufferInfo(b.name, b.size_bytes), moved, buffers[b.name])
                for b in planned.buffers if b.pool in own]
        costs = costs_of(held, pools)
        total += cost_of(held, costs, planned.allocations) - sum((min(c.values()) for c in costs.values()), Fraction(0))
    return total


def with_traffic(info: BufferInfo, moved: Mapping[Buffer, Traffic], buffer: Buffer) -> BufferInfo:
    """Return the buffer's info with the bytes that a run reads and writes of it, if those matter."""
    found = moved.get(buffer, Traffic())
    return replace(info, bytes_read=found.read, bytes_written=found.written) if moved else info


def both(workspace: Outcome, constants: Outcome) -> Outcome:
    """Return the joint outcome of the workspace's buffers and of constants, which are in pools of their own."""
    return Outcome({**workspace.allocations, **constants.allocations}, {**workspace.bounds, **constants.bounds},
                   workspace.proved and constants.proved)


def placed(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], memory: Memory, sharing: Sharing | None) -> Outcome:
    """Return the outcome for the buffers of the workspace: the algorithm's, or one in which buffers that are live together
    share bytes, if that is better. Raises a Problem if the pools are too small."""
    if sharing is None or not sharing.spacings:
        return run_algorithm(buffers, pools, memory.algorithm, memory.objective)
    if len(pools) == 1:
        effort = EXACT_CHANGES if memory.algorithm == "exact" else 1
        return within(buffers, pools, place_in_pool(buffers, pools[0], sharing, effort))
    shared = shared_in_pools(buffers, pools, sharing, memory.objective)
    try:
        found = run_algorithm(buffers, pools, quick if shared and memory.algorithm == "portfolio" else memory.algorithm,
                              memory.objective)
    except Problem:
        if shared is None:
            raise
        return shared
    if shared and score_of(buffers, pools, shared.allocations, memory.objective) < score_of(
            buffers, pools, found.allocations, memory.objective):
        return shared
    return Outcome(found.allocations, {}, shared is not None and shared.proved)  # its own proof is of plans that share nothing


def shared_in_pools(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], sharing: Sharing, objective: Objective
                    ) -> Outcome | None:
    """Return the best plan of several pools in which buffers share bytes; None if none fits."""
    found = place_in_pools(buffers, pools, sharing)
    if found is None or objective == "traffic":
        return found
    smaller = with_smaller_pools(buffers, pools, found, lambda limited: place_in_pools(buffers, limited, sharing))
    return replace(smaller, proved=False)


def place_in_pool(buffers: Sequence[BufferInfo], pool: PoolInfo, sharing: Sharing, effort: int = 1) -> Outcome:
    """Return `placed` for one pool, as if the pool had no limit."""
    free, bound = (unlimited(pool),), sharing.bound(buffers)
    best: Mapping[str, PoolAllocation] | None = sharing.place(buffers, free[0], effort)
    size = sizes_of(buffers, free, best)[0] if best else None
    if size is None or size >= most_live(buffers):  # no plan that shares nothing takes less than is live
        disjoint = run_algorithm(buffers, free, quick if size == bound else "portfolio").allocations
        best = min([disjoint, best or disjoint], key=lambda places: sizes_of(buffers, free, places))
    assert best is not None
    return Outcome(best, {pool.name: bound}, sizes_of(buffers, free, best) == [bound])


def most_live(buffers: Sequence[BufferInfo]) -> int:
    """Return the most bytes that are live at one tick."""
    return most_occupied((table(Occupied(0, b.size_bytes, *span) for span in b.live or ()) for b in buffers), {})


def share(program: Program, buffers: Sequence[BufferInfo]) -> Sharing:
    """Return the sharing of bytes that the workspace's buffers may have while they are live together."""
    names = names_of(program)
    known = {b.name: b for b in buffers}
    return sharing_of(program, names, {b: known[n].live or () for b, n in names.items() if n in known},
                      {b.name: b.conflicts for b in buffers})


def planned_buffers(program: Program, memory: Memory, moved: Mapping[Buffer, Traffic] | None = None) -> tuple[BufferInfo, ...]:
    """Return the buffers of the workspace, with conflicts. A buffer that no step uses is included, but conflicts with none."""
    names = names_of(program)
    lives: list[tuple[Buffer, Kind, tuple[Ticks, ...]]]
    live = lifetimes(program.steps, [without_constants(access_of(f)) for f in program.functions])
    candidates = allowed(memory.pools, memory.accessor, "rw")
    lives = [(b, "intermediate", live.get(b, ())) for b in program.temporaries]
    if memory.workspace_io:
        end = 1 + max((last for spans in live.values() for _, last in spans), default=0)  # the caller reads outputs then
        lives += [(b, "input", ((0, last_of(live.get(b, ()))),)) for b in program.inputs]
        lives += [(b, "output", ((first_of(live.get(b, ())), end),)) for b in program.outputs]
    return with_conflicts([info(memory, names, moved or {}, b, kind, candidates, spans) for b, kind, spans in lives])


def without_constants(access: KernelAccess) -> KernelAccess:
    """Return the accesses that matter for live ranges: constants are always live."""
    return replace(access, reads=tuple(b for b in access.reads if b.role != "constant"))


def planned_constants(program: Program, memory: Memory, moved: Mapping[Buffer, Traffic]) -> tuple[BufferInfo, ...]:
    """Return the buffers of constant pools: all constants that kernels read, always live. (Initial values of variables belong
    to the variables.)"""
    read = dict.fromkeys(b for f in program.functions for b in f.params if b.role == "constant")
    if not memory.constant_pools or not read:
        return ()
    names = names_of(program)
    candidates = allowed(memory.constant_pools, memory.accessor, "ro")
    return with_conflicts([info(memory, names, moved, b, "constant", candidates, ((0, 0),)) for b in read])


def info(memory: Memory, names: Mapping[Buffer, str], moved: Mapping[Buffer, Traffic], buffer: Buffer, kind: Kind,
         candidates: tuple[str, ...], live: tuple[Ticks, ...]) -> BufferInfo:
    """Return a buffer as an algorithm sees it."""
    name = names[buffer]
    pools = (memory.pins[name],) if name in memory.pins else candidates
    found = BufferInfo(name, buffer.nbytes, alignment_in(memory, buffer), pools, kind=kind, live=live)
    return with_traffic(found, moved, buffer)


def alignment_in(memory: Memory, buffer: Buffer) -> int:
    return own_alignment(buffer.nbytes, ITEM_SIZES[buffer.dtype], memory.alignment or ANY_ALIGNMENT)


def first_of(live: Sequence[Ticks]) -> int:
    return live[0][0] if live else 0


def last_of(live: Sequence[Ticks]) -> int:
    return live[-1][1] if live else 0


def allowed(pools: Sequence[PoolInfo], target: str | None, access: PoolAccess) -> tuple[str, ...]:
    """Return the names of the pools that the target may access that way."""
    found = tuple(p.name for p in pools if p.allows(target, access))
    if not found:
        verb = "read and write" if access == "rw" else "read"
        named = ", ".join(p.name for p in pools) or "(there are none)"
        raise ValueProblem(f"target {target} may {verb} none of the pools {named}", kind="option")
    return found


def check_pins(memory: Memory, names: Iterable[str]) -> None:
    """Raise a Problem if a pin names a buffer that is not planned, or a pool that does not exist or is not of its kind."""
    known, pools = list(names), [p.name for p in (*memory.pools, *memory.constant_pools)]
    for name, pool in memory.pins.items():
        if name not in known:
            from difflib import get_close_matches
            near = get_close_matches(name, known, 3)
            raise ValueProblem(f"there is no buffer named {name} to pin to {pool}", kind="option",
                               help=f"did you mean {' or '.join(near)}?" if near else "the plan lists the buffers' names")
        if pool not in pools:
            raise ValueProblem(f"buffer {name} is pinned to {pool}, which is no pool", kind="option",
                               help=f"there are {', '.join(pools)}")
