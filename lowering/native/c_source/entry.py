"""The entry functions of a C source file: they check the caller's arguments, as an object's do (`c_object.entry`), put the
pointers into a frame and run the program's driver.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...memory.buffers import PoolKind
from ..c_object.c_names import size_member
from ..c_object.entry import linked
from ..c_object.header_sections import declaration, parameters
from ..c_object.interface import STATE_ARGUMENT, CEntry, CInterface, Given
from ..c_object.variables import CVariable, pointer_member
from .places import frame_members


def frame_structure(interface: CInterface, entry: CEntry) -> str:
    """Return the structure that an entry passes to its driver."""
    members = [f"    {t}{name};" for t, name, _ in frame_members(interface, entry)] or ["    char nothing;"]
    return "\n".join([f"/* The memory of a run. */\nstruct {entry.name}_frame {{", *members, "};"])


def entry_function(interface: CInterface, entry: CEntry, driver: str, checksum: int) -> str:
    """Return the function that runs a program, under the header's name for it and under its plain name; `driver` runs the
    steps."""
    given, taken = interface.given(entry), parameters(interface, entry)
    variables = [interface.variables[use.buffer.name] for use in entry.program.variables]
    body = [f"    struct {entry.name}_frame frame;"]
    if interface.takes_state(entry):
        body += checked_state(interface)
    body += checked(interface, entry, given) + other_types(variables)
    body += initialize(interface) if entry.program.variables else []
    members = [f"    frame.{name} = {value};" for _, name, value in frame_members(interface, entry)]
    body += members or ["    frame.nothing = 0;"]
    body.append(f"    return {driver}(&frame);")
    body[1:1] = [f"    (void){name};" for name in interface.arguments(entry) if not any(uses(line, name) for line in body)]
    name, names = f"{entry.name}_run", ", ".join(interface.arguments(entry))
    head = declaration(f"int32_t {name}", taken)
    return "\n".join([f"{head} {{", *body, "}", "", "/* The same by its plain name, for callers without the header. */",
                      f"#undef {name}", f"{head};", f"{head} {{", f"    return {linked(name, checksum)}({names});", "}"])


def uses(line: str, name: str) -> bool:
    return f"{name}->" in line or f"{name} " in line or f"{name})" in line or f"{name};" in line


def member(interface: CInterface, entry: CEntry | None, given: Given) -> tuple[str, str]:
    """Return the pointer that the caller passes, and its stated size."""
    if given.structure in ("inputs", "outputs"):
        assert entry is not None
        name = list(getattr(entry, given.structure).values())[given.number]
    else:
        kind: PoolKind = "workspace" if given.structure == "workspace_pools" else "constant"
        name = interface.memories.of_kind(kind)[given.number].name
    return f"{given.structure}->{name}", f"{given.structure}->{size_member(name)}"


def checked(interface: CInterface, entry: CEntry | None, given: Sequence[Given]) -> list[str]:
    """Return an error unless all memory of the caller is non-null, large enough and aligned."""
    needed = [g for g in given if g.nbytes]
    members = {g: member(interface, entry, g) for g in needed}
    return [*refuse([f"{s} == NULL" for s in dict.fromkeys(g.structure for g in needed)], "NULL"),
            *refuse([f"{members[g][0]} == NULL" for g in needed], "NULL"),
            *refuse([f"{members[g][1]} {'!=' if g.exact else '<'} {g.nbytes}u" for g in needed], "SIZE"),
            *refuse([misaligned(members[g][0], g.alignment) for g in needed if g.alignment > 1], "ALIGNMENT")]


def checked_state(interface: CInterface) -> list[str]:
    """Return an error unless the caller's structures of variables are non-null and aligned."""
    layout, lines = interface.caller_state, []
    assert layout is not None, "the caller holds no variables"
    for structure in layout.structures:
        pointer = f"{STATE_ARGUMENT}->{pointer_member(structure.pool)}" if structure.pool else STATE_ARGUMENT
        lines += refuse([f"{pointer} == NULL"], "NULL")
        if structure.alignment > 1:
            lines += refuse([misaligned(pointer, structure.alignment)], "ALIGNMENT")
    return lines


def initialize(interface: CInterface) -> list[str]:
    """Give the variables that have not been written their initial values, if any has one."""
    state = STATE_ARGUMENT if interface.caller_state else ""
    return [f"    {interface.prefix}_initialize({state});"] if interface.initialized else []


def other_types(variables: Sequence[CVariable]) -> list[str]:
    """Return an error if another file declares a shared variable with another type."""
    return refuse([f"{v.type_symbol} != {v.checksum}u" for v in variables if v.is_shared], "VARIABLE")


def refuse(conditions: Sequence[str], error: str) -> list[str]:
    """Return the error if one of the conditions holds."""
    return [f"    if ({condition}) return TOSAIC_ERROR_{error};" for condition in conditions]


def misaligned(pointer: str, alignment: int) -> str:
    return f"((uintptr_t){pointer} & {alignment - 1}u) != 0"
