"""The C program that a user starts from: a `main.c` that calls every entry function once."""
from __future__ import annotations

from ...elements.expression import Buffer
from .c_names import c_type, macro
from .header_sections import pool_macro
from .interface import STATE_ARGUMENT, THREAD_POOL, CEntry, CInterface
from .pool_files import in_section
from .pools import CPool
from .variables import pointer_member


def skeleton(interface: CInterface) -> str:
    """A program that gives each entry function zeros, and returns 0 if all of them ran."""
    sections = [f"/* A first program for {interface.prefix}.h: gives zeros to each entry function. */\n"
                f'#include "{interface.prefix}.h"']
    sections += pool_arrays(interface) + state_memory(interface)
    sections += [section for entry in interface.entries for section in caller(interface, entry)]
    calls = "".join(f"    if (call_{entry.name}() != TOSAIC_OK) return 1;\n" for entry in interface.entries)
    sections.append(f"int main(void) {{\n{started(interface)}{calls}    return 0;\n}}")
    return "\n\n".join(sections) + "\n"


def state_memory(interface: CInterface) -> list[str]:
    """The memory of the variables, where the program holds it."""
    if interface.caller_state is None:
        return []
    first, *others = interface.caller_state.structures
    lines = [f"static struct {s.tag} {pointer_member(s.pool)};" for s in others if s.pool]
    return ["\n".join([*lines, f"static struct {first.tag} {STATE_ARGUMENT};"])]


def started(interface: CInterface) -> str:
    """Statements that give variables their initial values."""
    if interface.caller_state is None:
        return f"    if ({interface.prefix}_reset() != TOSAIC_OK) return 1;\n"
    names = [pointer_member(s.pool) for s in interface.caller_state.structures if s.pool]
    pointers = "".join(f"    {STATE_ARGUMENT}.{name} = &{name};\n" for name in names)
    return f"{pointers}    if ({interface.prefix}_init(&{STATE_ARGUMENT}) != TOSAIC_OK) return 1;\n"


def pool_arrays(interface: CInterface) -> list[str]:
    """The memory that the program gives."""
    sections: list[str] = []
    for kind in ("workspace", "constant"):
        pools = [p for p in interface.memories.pools if p.kind == kind]
        if not pools or interface.self_contained:
            continue
        lines = [workspace_array(interface, p) for p in pools if kind == "workspace" and p.nbytes]
        members = []
        for p in pools:
            array = f"{p.name}_pool" if kind == "workspace" else interface.pool_symbol(p)
            members.append(f"    {array}, sizeof {array}" if p.nbytes else "    0, 0")
        lines.append(f"static const struct {interface.prefix}_{kind}_pools {kind}_pools = {{\n" + ",\n".join(members) + "\n};")
        sections.append("\n".join(lines))
    return sections


def workspace_array(interface: CInterface, pool: CPool) -> str:
    name = pool_macro(interface, pool)
    held = f"{pool.name}_pool"
    return in_section(name, held, f"static TOSAIC_ALIGNED({name}_ALIGNMENT) unsigned char {held}[{name}_SIZE];")


def caller(interface: CInterface, entry: CEntry) -> list[str]:
    """A function that calls an entry."""
    declared: list[str] = []
    body: list[str] = []
    mapped = "" if interface.self_contained else "&workspace_pools"
    for kind, names in (("inputs", entry.inputs), ("outputs", entry.outputs)):
        if names and entry.is_mapped:
            body += [f"    const struct {entry.name}_{kind} {kind} = {entry.name}_map_{kind}({mapped});", f"    (void){kind};"]
        elif names:
            arrays = {name: (f"{entry.name}_{kind[:-1]}_{name}", buffer) for buffer, name in names.items()}
            declared += [array(entry, kind, name, held, buffer) for name, (held, buffer) in arrays.items()]
            members = ", ".join(f"{held}, sizeof {held}" for held, _ in arrays.values())
            body.append(f"    const struct {entry.name}_{kind} {kind} = {{{members}}};")
    passed = ", ".join("0" if s == THREAD_POOL else f"&{s}" for s in interface.arguments(entry))
    function = [f"static int32_t call_{entry.name}(void) {{", *body, f"    return {entry.name}_run({passed});", "}"]
    return ["\n".join(declared)] * bool(declared) + ["\n".join(function)]


def array(entry: CEntry, kind: str, name: str, held: str, buffer: Buffer) -> str:
    size = f"{entry.name.upper()}_{kind[:-1].upper()}_{macro(name)}_SIZE"
    return f"static {c_type(buffer.dtype)} {held}[{size} / sizeof({c_type(buffer.dtype)})];"
