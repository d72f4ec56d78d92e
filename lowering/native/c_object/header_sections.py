"""The declarations of a header: macros and structures of tensors and pools, entry functions, variables, and the functions of
the model as a whole.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ....runtime.errors import printable
from ...elements.expression import Buffer
from ...graph.quantized import Quantized, real
from ...machine_code.stack.bound import StackBound
from ..driver.parallel_steps import is_parallel, most_tasks
from .amx_permission import uses_tiles
from .c_names import c_type, cast, macro, size_member
from .interface import MACHINE, STATE_ARGUMENT, THREAD_POOL, CEntry, CInterface
from .model_stack import ModelStack, besides
from .pools import CPool
from .saved_state import saved_state
from .variables import CVariable, StateMember, StateStructure

DATA_BYTES = 16384
"""Maximum number of bytes of a constant pool that is written into the header."""

DATA_COLUMNS = 20
"""Bytes of a constant pool per line."""


COLUMNS = 120


def comment(text: str) -> str:
    """Return text that is safe in a one-line C comment."""
    plain = printable(text.replace("\t", " ")).encode("ascii", "backslashreplace").decode()
    return re.sub(r"(?<=[*/?])(?=[*/?])", " ", plain)


def listed(values: Sequence[object]) -> str:
    return f"{{{', '.join(map(str, values))}}}"


def structure(name: str, members: Sequence[str]) -> list[str]:
    """Return a structure; none if it has no members (C has no empty structures)."""
    return [f"struct {name} {{" + "".join(f"\n    {m}" for m in members) + "\n};"] if members else []


# ---- tensors ---------------------------------------------------------------------------------------------------------
def tensor_sections(interface: CInterface, entry: CEntry) -> list[str]:
    """Return the macros and structures of an entry function's inputs and outputs."""
    prefix = entry.name.upper()
    lines = [f"/* {comment(entry.program.name)}: sizes in bytes, shapes and strides in elements */"]
    for kind, names in (("INPUT", entry.inputs), ("OUTPUT", entry.outputs)):
        for buffer, name in names.items():
            lines += tensor_macros(interface, entry, buffer, f"{prefix}_{kind}_{macro(name)}")
    is_const = "" if entry.is_mapped else "const "
    return ["\n".join(lines), *tensor_structure(entry, "inputs", entry.inputs, is_const),
            *tensor_structure(entry, "outputs", entry.outputs, "")]


def tensor_macros(interface: CInterface, entry: CEntry, buffer: Buffer, name: str) -> list[str]:
    shape = buffer.shape
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    lines = [f"#define {name}_SIZE {buffer.nbytes} /* {entry.type(buffer)} */", f"#define {name}_RANK {len(shape)}"]
    if shape:
        lines += [f"#define {name}_SHAPE {listed(shape)}", f"#define {name}_STRIDES {listed(strides)}"]
    if buffer in entry.places:
        at = entry.places[buffer]
        lines.append(f"#define {name}_OFFSET {at.offset} /* in {interface.memories.pools[at.number].name} */")
    return lines + quantization(name, entry.quantized.get(buffer))


def quantization(name: str, element: Quantized | None) -> list[str]:
    """Return the macros of a quantization: real = scale * (stored - zero point)."""
    if element is None or not element.scales:
        return []
    scales, zeros = [real(s) for s in element.scales], [f"({z})" if z < 0 else f"{z}" for z in element.zero_points]
    if element.axis is None:
        return [f"#define {name}_SCALE {scales[0]}", f"#define {name}_ZERO_POINT {zeros[0]}"]
    return [f"#define {name}_QUANTIZED_AXIS {element.axis}", f"#define {name}_SCALES {listed(scales)}",
            f"#define {name}_ZERO_POINTS {listed(zeros)}"]


def tensor_structure(entry: CEntry, kind: str, names: Mapping[Buffer, str], qualifier: str) -> list[str]:
    members = []
    for buffer, name in names.items():
        size = f"{entry.name.upper()}_{kind[:-1].upper()}_{macro(name)}_SIZE"
        members += [f"{qualifier}{c_type(buffer.dtype)} *{name}; /* {entry.type(buffer)} */",
                    f"size_t {size_member(name)}; /* {size} */"]
    return structure(f"{entry.name}_{kind}", members)


# ---- pools -----------------------------------------------------------------------------------------------------------
def pool_sections(interface: CInterface) -> list[str]:
    """Return the macros of every pool, and structures of the pools that the caller provides."""
    sections: list[str] = []
    for kind, what, qualifier in (("workspace", "Memory that a run works in; it means nothing between runs.", ""),
                                  ("constant", "Memory that holds constants.", "const ")):
        pools = [p for p in interface.memories.pools if p.kind == kind]
        if not pools:
            continue
        lines = [f"/* {what} */"]
        for pool in pools:
            lines += pool_macros(interface, pool)
        sections.append("\n".join([*lines, *pool_symbols(interface, pools)]))
        if not interface.self_contained:
            members = [m for p in pools for m in (f"{qualifier}void *{p.name};", f"size_t {size_member(p.name)};")]
            sections += structure(f"{interface.prefix}_{kind}_pools", members)
    return sections


def pool_macros(interface: CInterface, pool: CPool) -> list[str]:
    name, limit = pool_macro(interface, pool), "" if pool.limit is None else f" /* of {pool.limit} */"
    lines = [f"#define {name}_SIZE {pool.nbytes}{limit}", f"#define {name}_ALIGNMENT {pool.alignment}"]
    if pool.kind == "constant":
        lines.append(f"#define {name}_CHECKSUM 0x{pool.checksum:08x}u /* CRC-32 */")
        if 0 < pool.nbytes <= DATA_BYTES and not interface.self_contained:
            rows = [pool.data[at:at + DATA_COLUMNS] for at in range(0, pool.nbytes, DATA_COLUMNS)]
            text = ", \\\n    ".join(", ".join(f"0x{b:02x}" for b in row) for row in rows)
            lines.append(f"#define {name}_DATA \\\n    {text}")
    return lines


def pool_macro(interface: CInterface, pool: CPool) -> str:
    return f"{interface.prefix.upper()}_{pool.macro}"


def pool_symbols(interface: CInterface, pools: Sequence[CPool]) -> list[str]:
    """Return the declarations of arrays that hold pools: in the object, or in a file beside it (`pool_files`)."""
    lines = []
    for pool in pools:
        symbol, size = interface.pool_symbol(pool), f"{pool_macro(interface, pool)}_SIZE"
        if pool.nbytes and interface.self_contained:
            lines.append(f"extern {'const ' * (pool.kind == 'constant')}unsigned char {symbol}[{size}];")
        elif pool.nbytes and pool.kind == "constant":
            lines.append(f"extern const unsigned char {symbol}[{size}]; /* in the file {constant_file(interface, pool)} */")
    return lines


def constant_file(interface: CInterface, pool: CPool) -> str:
    """Return the name of the files of a constant pool, without a suffix."""
    return f"{interface.prefix.removeprefix('tosaic_')}_{pool.name}"


# ---- entry functions -------------------------------------------------------------------------------------------------
def functions(interface: CInterface, entry: CEntry) -> list[str]:
    """Return the function that runs an entry, with its faults."""
    faults = "".join(f"#define {entry.name.upper()}_FAULT_{i} {i} /* {comment(f.message)} */\n"
                     for i, f in enumerate(entry.program.faults, 1))
    return [f"{faults}/* Returns TOSAIC_OK, an error below 0, or a fault above 0; no variable changes then. */\n"
            f"{declaration(f'int32_t {entry.name}_run', parameters(interface, entry))};"]


def declaration(start: str, parameters: Sequence[str]) -> str:
    """Return a function declaration on one line, or with one line per parameter if that is too long."""
    line = f"{start}({', '.join(parameters) or 'void'})"
    return line if len(line) <= COLUMNS else f"{start}(" + ",".join(f"\n    {p}" for p in parameters) + ")"


def parameters(interface: CInterface, entry: CEntry) -> list[str]:
    given = [f"const struct {interface.prefix if s.endswith('_pools') else entry.name}_{s} *{s}"
             for s in interface.structures(entry)]
    threads = [f"const struct tosaic_{THREAD_POOL} *{THREAD_POOL}"] * (THREAD_POOL in interface.arguments(entry))
    return [*state_parameter(interface, interface.takes_state(entry)), *given, *threads]


def maps(interface: CInterface, entry: CEntry) -> list[str]:
    """Return functions that return the addresses of inputs and outputs in the workspace. They are in the header, so that no
    calling convention for returned structures matters."""
    if not entry.is_mapped:
        return []
    own = interface.self_contained
    parameter = "void" if own else f"const struct {interface.prefix}_workspace_pools *workspace_pools"
    sections = []
    for kind, names in (("inputs", entry.inputs), ("outputs", entry.outputs)):
        if names:
            lines = [line for buffer, name in names.items() for line in mapped(interface, entry, kind, buffer, name)]
            head = declaration(f"TOSAIC_INLINE struct {entry.name}_{kind} {entry.name}_map_{kind}", [parameter])
            sections.append("\n".join([f"/* Where the {kind} lie. */", f"{head} {{", f"    struct {entry.name}_{kind} {kind};",
                                       *lines, f"    return {kind};", "}"]))
    return sections


def mapped(interface: CInterface, entry: CEntry, kind: str, buffer: Buffer, name: str) -> list[str]:
    pool = interface.memories.pools[entry.places[buffer].number]
    base = interface.pool_symbol(pool) if interface.self_contained else cast("unsigned char *", f"workspace_pools->{pool.name}")
    prefix = f"{entry.name.upper()}_{kind[:-1].upper()}_{macro(name)}"
    address = cast(f"{c_type(buffer.dtype)} *", cast("void *", f"{base} + {prefix}_OFFSET"))
    return [f"    {kind}.{name} = {address};",
            f"    {kind}.{size_member(name)} = {prefix}_SIZE;"]


# ---- threads and tiles -----------------------------------------------------------------------------------------------
POOL_STRUCTURE = """\
/* Threads that a run may use: parallel(context, task, argument, parts) calls task(argument, part) once for each part from 0 to
   parts - 1, on any threads and in any order, and returns when all of them have returned. What a part has written must then be
   seen by the caller, as a join or a mutex makes sure. Results are the same for any number of threads. */
#ifndef TOSAIC_THREAD_POOL
#define TOSAIC_THREAD_POOL
struct tosaic_thread_pool {
    void (*parallel)(void *context, void (*task)(void *argument, int64_t part), void *argument, int64_t parts);
    void *context;
};
#endif"""


def thread_sections(interface: CInterface) -> list[str]:
    """Return the structure by which a C program gives threads to a model, and the number of tasks of a run's steps: more
    threads than that have no work. Return nothing for an object for one thread."""
    lines = [f"#define {entry.name.upper()}_PARTS {most_tasks(entry.program)} /* of a step, at most; a null pool runs them one "
             "after the other */" for entry in interface.entries if is_parallel(entry.program)]
    return [POOL_STRUCTURE, "\n".join(lines)] if lines else []


def tile_sections(interface: CInterface) -> list[str]:
    """Return the name of the tile error, for objects that can return it."""
    if not any(uses_tiles(entry.program) for entry in interface.entries):
        return []
    return [f"#ifndef TOSAIC_ERROR_MACHINE\n#define TOSAIC_ERROR_MACHINE ({MACHINE}) "
            "/* the system does not let this process use tiles (AMX) */\n#endif"]


def stack_sections(interface: CInterface, stack: ModelStack | None) -> list[str]:
    """Return the stack bounds of calls: of any function of the model, and of each that runs an entry."""
    if stack is None:
        return []
    if stack.unknown:
        return [f"/* No bound of the stack that a call takes is known: {comment(stack.unknown)}. */"]
    runs = [(f"{name}_run", bound) for name, bound in stack.entries.items()]
    lines = [f"#define {name.upper()}_STACK_BYTES {bound.nbytes}{said(bound)}"
             for name, bound in [(interface.prefix, stack.whole), *runs]]
    what = ("/* The most bytes of stack that a call takes, read from the object's code: of any function of the model, and\n"
            "   of each run. Interrupts come on top. */")
    return ["\n".join([what, *lines])]


def said(bound: StackBound) -> str:
    """Return a comment with the assumptions of a bound."""
    text = besides(bound)
    return f" /* {comment(text)} */" if text else ""


# ---- the model -------------------------------------------------------------------------------------------------------
def variable_sections(interface: CInterface) -> list[str]:
    """Return the declarations of the variables, so that a program may read and set the state: symbols of the object, or
    structures of the caller."""
    if interface.caller_state is not None:
        structures = interface.caller_state.structures
        return [section for s in reversed(structures) for section in state_structure(s, structures[0])]
    if not interface.variables:
        return []
    whose = ["/* Variables of the model."]
    if interface.state.namespace is not None:
        whose = [f"/* Variables in namespace {comment(interface.state.namespace)}; all objects of that namespace share them."]
    lines = [line for variable in interface.variables.values() for line in variable_symbols(variable)]
    said = ["   At first they are zeros and not written. One that is not written gets its initial value, if it",
            "   has any, in the next call that uses it; who sets one sets the byte beside it, too. */"]
    return ["\n".join([*whose, *said, *lines])]


def variable_symbols(variable: CVariable) -> list[str]:
    where = "; in another object" if variable.use.external else ""
    return [f"extern {variable.element} {variable.symbol}[{variable.count}]; /* {variable.type}{where} */",
            f"extern uint8_t {variable.flag}; /* whether it has been written */"]


def state_structure(s: StateStructure, first: StateStructure) -> list[str]:
    """Return a structure of variables that the caller holds, with assertions that the compiler lays it out as the object
    does."""
    name = s.tag.upper()
    what = ("Variables that the caller holds: zeros, or what init has made of other memory. Anything else is undefined."
            if s is first else f"Variables in {s.pool}; struct {first.tag} points to them.")
    macros = [f"/* {what} */", f"#define {name}_BYTES {s.nbytes}", f"#define {name}_ALIGNMENT {s.alignment}"]
    members = [state_member(m, s.alignment if i == 0 else m.alignment) for i, m in enumerate(s.members)]
    checked = [(f"offsetof(struct {s.tag}, {m.name}) == {m.offset}", f"{s.tag}_offset_{m.name}") for m in s.members]
    checked.append((f"sizeof(struct {s.tag}) == {name}_BYTES", f"{s.tag}_bytes"))
    assertions = [f"TOSAIC_ASSERT({condition}, {title});" for condition, title in checked]
    return ["\n".join([*macros, *structure(s.tag, members)]), "\n".join(assertions)]


def state_member(member: StateMember, alignment: int) -> str:
    aligned = f"TOSAIC_ALIGNED({alignment}) " if alignment > 1 else ""
    said = f" /* {member.comment} */" if member.comment else ""
    if member.points:
        return f"{aligned}struct {member.points} *{member.name};{said}"
    is_array = member.count > 1 or member.comment.startswith("tensor")
    return f"{aligned}{member.type} {member.name}{f'[{member.count}]' * is_array};{said}"


def state_parameter(interface: CInterface, is_taken: bool) -> list[str]:
    """Return the first parameter of functions if the caller holds the state."""
    return [f"struct {interface.prefix}_state *{STATE_ARGUMENT}"] * is_taken


def model_functions(interface: CInterface) -> list[str]:
    """Return the declarations of reset, of save and load if there is state to save, and of init if the caller holds the
    state."""
    prefix, given = interface.prefix, state_parameter(interface, interface.caller_state is not None)
    sections = []
    if interface.caller_state is not None:
        sections.append("/* Makes a state of memory that holds anything"
                        f"{', but its pointers to others' * (len(interface.caller_state.structures) > 1)}. */\n"
                        f"int32_t {prefix}_init({', '.join(given)});")
    sections.append(f"/* Brings every variable of the model back to its initial value, or to not written. */\n"
                    f"int32_t {prefix}_reset({', '.join(given) or 'void'});")
    if interface.own_variables:
        save, load = (declaration(f"int32_t {prefix}_{name}_state", [*given, f"{const}void *saved", "size_t saved_size"])
                      for name, const in (("save", ""), ("load", "const ")))
        sections.append(
            f"/* All variables as bytes, at any alignment. Loading checks that the model has saved them, and changes\n"
            f"   nothing where it returns an error. */\n"
            f"#define {prefix.upper()}_STATE_SIZE {saved_state(interface.own_variables).nbytes}\n{save};\n{load};")
    return sections


def checks(interface: CInterface) -> list[str]:
    """Return the declaration of the check of the caller's constant pools."""
    if not any(g.structure == "constant_pools" and g.nbytes for g in interface.pools_given):
        return []
    return [f"/* Whether the pools hold the model's constants; reads all of them. A run does not check that. */\n"
            f"int32_t {interface.prefix}_check_constants(const struct {interface.prefix}_constant_pools *constant_pools);"]
