"""The LLVM module of an object: kernels and drivers, entry functions, those of the model as a whole, variables, constants."""
from __future__ import annotations

from ...elements.expression import Buffer
from ..driver.buffer_addresses import BufferAddresses, Place, Slot, SymbolAddress
from ..driver.module import PlacedProgram, constants_read, module_text
from ..driver.parallel_steps import is_parallel
from .data_symbols import ObjectConstants, workspace_lines
from .entry import entry_lines
from .interface import CEntry, CInterface
from .pools import At
from .state import model_lines


def object_text(interface: CInterface, constants: ObjectConstants, checksum: int) -> str:
    """LLVM IR of the object; `constants` take up its constants, `checksum` is the header's."""
    programs = [PlacedProgram(entry.name, entry.program, places(interface, entry, constants)) for entry in interface.entries]
    definitions = [line for v in interface.variables.values() for line in v.definitions(interface.target)]
    pools = own_pools(interface, constants) if interface.self_contained else []
    declared: dict[str, str] = {}
    code = [line for entry in interface.entries for line in entry_lines(interface, entry, checksum, declared)]
    code += model_lines(interface, constants, checksum, declared)
    return module_text(programs, interface.target, [*constants.lines, *pools, *definitions, *code], declared)


def own_pools(interface: CInterface, constants: ObjectConstants) -> list[str]:
    """Definitions of the pools of a self-contained object."""
    for pool in interface.memories.of_kind("constant"):
        constants.pool(interface.pool_symbol(pool), pool.data, pool.alignment)
    return [line for pool in interface.memories.of_kind("workspace") if pool.nbytes
            for line in workspace_lines(interface.pool_symbol(pool), pool.nbytes, pool.alignment, interface.target)]


def places(interface: CInterface, entry: CEntry, constants: ObjectConstants) -> BufferAddresses:
    """The frame holds what is given; everything else is a symbol."""
    program, given = entry.program, entry.given()
    arguments = [*program.inputs, *program.outputs] if given else []
    buffers: dict[Buffer, Place] = {b: Slot(i) for i, b in enumerate(arguments)}
    buffers |= {b: place_of(interface, at, len(given)) for b, at in entry.places.items()}
    buffers |= {b: SymbolAddress(constants.symbol(b.data)) for b in constants_read(program)
                if b.data is not None and b not in buffers}
    own = {use.buffer: interface.variables[use.buffer.name] for use in program.variables}
    buffers |= {b: SymbolAddress(v.symbol) for b, v in own.items()}
    rollback = place_of(interface, entry.rollback, len(given)) if entry.rollback else None
    pool = Slot(len(interface.given(entry))) if is_parallel(program) else None
    return BufferAddresses(buffers, {b: SymbolAddress(v.flag) for b, v in own.items()}, rollback, pool)


def place_of(interface: CInterface, at: At, first: int) -> Place:
    """Bytes of a pool: of a symbol, or behind a pointer of the frame, where pools begin at `first`."""
    if interface.self_contained:
        return SymbolAddress(interface.pool_symbol(interface.memories.pools[at.number]), at.offset)
    return Slot(first + at.number, at.offset)
