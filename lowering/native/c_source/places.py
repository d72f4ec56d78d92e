"""The memory of a C program, as C expressions: memory of the caller is a member of the frame, all other memory has a name. The
entry function builds the frame from its arguments and passes it to the driver.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...elements.expression import Buffer
from ..c_object.interface import STATE_ARGUMENT, THREAD_POOL, CEntry, CInterface
from ..c_object.pools import At, CPool
from ..c_object.variables import pointer_member, written_member
from ..driver.module import constants_read
from ..driver.parallel_steps import is_parallel
from .c_text import memory_type
from .constants import Constants
from .driver import CPlace, CPlaces


def pool_member(pool: CPool) -> str:
    """Return the member of the frame that points to a pool."""
    return f"{pool.kind}_{pool.name}"


def frame_members(interface: CInterface, entry: CEntry) -> list[tuple[str, str, str]]:
    """Return the members of an entry's frame: type, name, and initial value as an expression of the arguments."""
    found = []
    if not entry.is_mapped:
        for kind, const, names in (("input", "const ", entry.inputs), ("output", "", entry.outputs)):
            found += [(f"{const}{memory_type(b.dtype)} *", f"{kind}_{name}", f"{kind}s->{name}" if b.nbytes else "NULL")
                      for b, name in names.items()]
    for pool in () if interface.self_contained else interface.memories.pools:
        if pool.nbytes:
            t = f"{'const ' * (pool.kind == 'constant')}unsigned char *"
            found.append((t, pool_member(pool), f"({t})({pool.kind}_pools->{pool.name})"))
    if interface.takes_state(entry):
        found.append((f"struct {interface.prefix}_state *", STATE_ARGUMENT, STATE_ARGUMENT))
    if is_parallel(entry.program):
        found.append((f"const struct tosaic_{THREAD_POOL} *", THREAD_POOL, THREAD_POOL))
    return found


def c_places(interface: CInterface, entry: CEntry, constants: Constants) -> CPlaces:
    """Return the memory of an entry's driver."""
    program = entry.program
    buffers: dict[Buffer, CPlace] = {}
    if not entry.is_mapped:
        for kind, names in (("input", entry.inputs), ("output", entry.outputs)):
            buffers |= {b: CPlace(f"frame->{kind}_{name}") for b, name in names.items()}
    buffers |= {b: in_pool(interface, at) for b, at in entry.places.items()}
    buffers |= {b: CPlace(constants.name(b)) for b in constants_read(program) if b not in buffers}
    uses = {use.buffer: use.buffer.name for use in program.variables}
    buffers |= {b: CPlace(variable_data(interface, name, f"frame->{STATE_ARGUMENT}")) for b, name in uses.items()}
    flags = {b: variable_flag(interface, name, f"frame->{STATE_ARGUMENT}") for b, name in uses.items()}
    rollback = in_pool(interface, entry.rollback) if entry.rollback else None
    return CPlaces(buffers, flags, rollback, f"frame->{THREAD_POOL}" if is_parallel(program) else None)


def in_pool(interface: CInterface, at: At) -> CPlace:
    """Return bytes of a pool, which is an array of the file or the caller's memory."""
    pool = interface.memories.pools[at.number]
    base = interface.pool_symbol(pool) if interface.self_contained else f"frame->{pool_member(pool)}"
    return CPlace(f"{base} + {at.offset}" if at.offset else base, is_shared=True)


def variable_data(interface: CInterface, name: str, state: str) -> str:
    """Return the array of a variable, which is the file's or a member of the structure that `state` points to."""
    variable = interface.variables[name]
    if interface.caller_state is None:
        return variable.symbol
    return f"{state}->{f'{pointer_member(variable.pool)}->' if variable.pool else ''}{variable.member}"


def variable_flag(interface: CInterface, name: str, state: str) -> str:
    """Return the byte that says whether a variable has been written."""
    variable = interface.variables[name]
    return variable.flag if interface.caller_state is None else f"{state}->{written_member(variable.member)}"


def overlapping(buffers: Sequence[Buffer], entry: CEntry) -> frozenset[Buffer]:
    """Return the buffers of one call that share bytes with others of that call."""
    placed = [(b, entry.places[b]) for b in buffers if b in entry.places]
    return frozenset(b for b, one in placed for o, other in placed if b is not o and one.number == other.number
                     and max(one.offset, other.offset) < min(one.offset + b.nbytes, other.offset + o.nbytes))
