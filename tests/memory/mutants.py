"""Plans that are changed a little: answers of an algorithm, right or wrong, and plans of programs that are wrong then."""
from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable

from tosaic.lowering.kernels.kernel import Compute
from tosaic.lowering.loops.ir import buffers_read
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.plan import Plan, PlannedBuffer, names_of

from .exhaustive import Case, Places


# ---- answers of an algorithm -----------------------------------------------------------------------------------------
def mutants(draw: random.Random, problem: Case, places: Places) -> dict[str, tuple[str, int]]:
    """The same places with one change, or two."""
    found = dict(places)
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.choice(sorted(found) or ["b0"])
        pool, at = found.get(name, (problem.pools[0].name, 0))
        match draw.randrange(7):
            case 0:
                found[name] = pool, at + draw.choice([-1, 1]) * draw.choice([1, 2, 4, 8])
            case 1:
                found[name] = draw.choice([*(p.name for p in problem.pools), "nowhere"]), at
            case 2:
                other = draw.choice(sorted(found) or [name])
                found[name], found[other] = found.get(other, (pool, at)), (pool, at)
            case 3:
                found.pop(name, None)
            case 4:
                found["unknown"] = pool, at
            case 5:
                found[name] = pool, draw.randint(0, 24)
            case 6:
                found[name] = found.get(draw.choice(sorted(found) or [name]), (pool, at))
    return found


# ---- plans of programs -----------------------------------------------------------------------------------------------
Spoil = Callable[[random.Random, Plan, Program], Plan | None]
"""A plan of a program that is wrong, of one that is right; None where that cannot be had."""


def with_buffer(plan: Plan, old: PlannedBuffer, **fields: object) -> Plan:
    return dataclasses.replace(plan, buffers=tuple(dataclasses.replace(b, **fields) if b is old else b  # type: ignore[arg-type]
                                                   for b in plan.buffers))


def roomy(plan: Plan) -> Plan:
    """With pools that are as large as one likes, so that nothing is wrong but what is changed."""
    return dataclasses.replace(plan, pools=tuple(dataclasses.replace(p, size_bytes=1 << 20, limit_bytes=None)
                                                 for p in plan.pools))


def one(draw: random.Random, plan: Plan) -> PlannedBuffer | None:
    live = [b for b in plan.buffers if b.live and b.size_bytes]
    return draw.choice(live) if live else None


def overlapping(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    """Two buffers that one step reads have a byte in common, or more."""
    names, places = names_of(program), {b.name: b for b in plan.buffers}
    pairs = [(places[names[a]], places[names[b]]) for step in program.steps if isinstance(step, Compute) and step.rows is None
             for a, b in itertools.permutations(sorted(buffers_read(program.functions[step.kernel]), key=names.__getitem__), 2)]
    if not pairs:
        return None
    a, b = draw.choice(pairs)
    at = [o for o in range(max(16, b.byte_offset - a.size_bytes + 1), b.end) if o % a.alignment == 0]
    return with_buffer(roomy(plan), a, byte_offset=draw.choice(at), pool=b.pool) if at else None


def misaligned(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    b = one(draw, plan)
    return None if b is None or b.alignment == 1 else with_buffer(
        roomy(plan), b, byte_offset=b.byte_offset + draw.randint(1, b.alignment - 1))


def before(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    """Before the offset of the pool that has one, or before the first byte of another."""
    b = one(draw, plan)
    start = {p.name: p.pool_offset for p in plan.pools}
    return None if b is None else with_buffer(roomy(plan), b, byte_offset=start[b.pool] - b.alignment * draw.randint(1, 3))


def behind(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    """Behind the last byte of the pool."""
    b = one(draw, plan)
    size = {p.name: p.size_bytes for p in plan.pools}
    return None if b is None else with_buffer(plan, b, byte_offset=-(-(size[b.pool] - b.size_bytes + 1) // b.alignment)
                                              * b.alignment)


def elsewhere(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    b = one(draw, plan)
    return None if b is None else with_buffer(plan, b, pool="nowhere")


def shorter(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    b = one(draw, plan)
    return None if b is None else with_buffer(plan, b, size_bytes=draw.randrange(b.size_bytes))


def missing(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    b = one(draw, plan)
    return None if b is None else dataclasses.replace(plan, buffers=tuple(x for x in plan.buffers if x is not b))


def over_its_limit(draw: random.Random, plan: Plan, program: Program) -> Plan | None:
    pool = max(plan.pools, key=lambda p: p.size_bytes)
    if not pool.size_bytes:
        return None
    less = dataclasses.replace(pool, limit_bytes=draw.randrange(pool.size_bytes))
    return dataclasses.replace(plan, pools=tuple(less if p is pool else p for p in plan.pools))


spoilt: dict[str, Spoil] = {f.__name__: f for f in (overlapping, misaligned, before, behind, elsewhere, shorter, missing,
                                                    over_its_limit)}
"""Ways to spoil a plan, by name."""
