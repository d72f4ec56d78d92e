"""The LLVM module of an object: kernels and drivers, entry functions, those of the model as a whole, variables, constants."""
from __future__ import annotations

from ...elements.expression import Buffer
from ...machine_code.debug_lines import with_debug_lines
from ...machine_code.own_sections import in_own_sections
from ..driver.buffer_addresses import BufferAddresses, Place, Slot, SymbolAddress
from ..driver.module import PlacedProgram, constants_read, kernel_positions, module_text
from ..driver.parallel_steps import is_parallel
from .data_symbols import ObjectConstants, variable_lines, workspace_lines
from .entry import entry_lines
from .interface import CEntry, CInterface
from .pools import At
from .state import model_lines


def object_text(interface: CInterface, constants: ObjectConstants, checksum: int, debug: bool = False) -> str:
    """LLVM IR of the object; `constants` take up its constants, `checksum` is the header's. With `debug`, functions have their
    lines of the model."""
    programs = [PlacedProgram(entry.name, entry.program, places(interface, entry, constants)) for entry in interface.entries]
    held = interface.variables.values() if interface.caller_state is None else ()
    definitions = [line for v in held for line in variable_lines(v, interface.target)]
    pools = own_pools(interface, constants) if interface.self_contained else []
    declared: dict[str, str] = {}
    code = [line for entry in interface.entries for line in entry_lines(interface, entry, checksum, declared)]
    code += model_lines(interface, constants, checksum, declared)
    text = module_text(programs, interface.target, [*constants.lines, *pools, *definitions, *code], declared)
    text = in_own_sections(text) if interface.target.is_elf else text
    return with_debug_lines(text, kernel_positions(programs)) if debug else text


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
    behind = len(interface.given(entry))
    variables = {use.buffer: variable_places(interface, use.buffer.name, behind) for use in program.variables}
    buffers |= {b: data for b, (data, _) in variables.items()}
    rollback = place_of(interface, entry.rollback, len(given)) if entry.rollback else None
    if interface.takes_state(entry) and interface.caller_state:
        behind += len(interface.caller_state.structures)
    pool = Slot(behind) if is_parallel(program) else None
    return BufferAddresses(buffers, {b: flag for b, (_, flag) in variables.items()}, rollback, pool)


def variable_places(interface: CInterface, name: str, first: int) -> tuple[Place, Place]:
    """A variable and its flag: symbols, or in the caller's structures, to which the frame has pointers from `first` on."""
    state, variable = interface.caller_state, interface.variables[name]
    if state is None:
        return SymbolAddress(variable.symbol), SymbolAddress(variable.flag)
    data, flag = state.data[name], state.flags[name]
    return Slot(first + data.structure, data.offset), Slot(first + flag.structure, flag.offset)


def place_of(interface: CInterface, at: At, first: int) -> Place:
    """Return bytes of a pool: at a symbol, or at a pointer of the frame, where pools begin at `first`."""
    if interface.self_contained:
        return SymbolAddress(interface.pool_symbol(interface.memories.pools[at.number]), at.offset)
    return Slot(first + at.number, at.offset)
