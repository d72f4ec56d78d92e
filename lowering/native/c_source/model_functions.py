"""The functions of a C source file that belong to the model as a whole, and its variables: those that `c_object.state` writes
for objects. A saved state has the same bytes as an object's.
"""
from __future__ import annotations

from ..c_object.data_symbols import bytes_of
from ..c_object.header_sections import declaration, state_parameter
from ..c_object.interface import STATE_ARGUMENT, CInterface
from ..c_object.saved_state import HEAD, saved_state
from ..c_object.state import constants_given
from ..c_object.variables import CVariable
from .constants import Constants, rows
from .entry import checked, checked_state, initialize, other_types, refuse
from .places import variable_data, variable_flag

MACROS = """\
#ifdef __ELF__
#define SECTION(name) __attribute__((section(name)))
#else
#define SECTION(name)
#endif"""

CRC32 = """\
/* CRC-32 of at least one byte, a bit at a time: it runs rarely. */
static uint32_t crc32_of(const unsigned char *data, size_t size) {
    uint32_t value = 0xffffffffu;
    for (size_t i = 0; i < size; ++i) {
        value ^= data[i];
        for (int bit = 0; bit < 8; ++bit)
            value = value >> 1 ^ ((value & 1u) != 0 ? 0xedb88320u : 0u);
    }
    return value ^ 0xffffffffu;
}

static uint32_t word_of(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}"""
PUT_WORD = """\
static void put_word(unsigned char *bytes, uint32_t word) {
    for (int i = 0; i < 4; ++i)
        bytes[i] = (unsigned char)(word >> 8 * i & 255u);
}"""


# ---- data ------------------------------------------------------------------------------------------------------------
def data_sections(interface: CInterface) -> list[str]:
    """The memory that the file has itself: variables, and the pools of one that is self-contained."""
    held = list(interface.variables.values()) if interface.caller_state is None else []
    sections = [variable_definition(v) for v in held if not v.use.external]
    sections += [f"extern const uint32_t {v.type_symbol};" for v in held if v.use.external]
    for pool in interface.memories.pools if interface.self_contained else ():
        symbol, aligned = interface.pool_symbol(pool), f"TOSAIC_ALIGNED({pool.alignment})"
        if pool.nbytes and pool.kind == "workspace":
            sections.append(f'{aligned} SECTION(".bss.{symbol}") unsigned char {symbol}[{pool.nbytes}];')
        elif pool.nbytes:
            text = "\n".join(rows(map(str, pool.data)))
            sections.append(f'{aligned} SECTION(".rodata.{symbol}") const unsigned char {symbol}[{pool.nbytes}] = {{\n'
                            f'{text}\n}};')
    return [MACROS, *sections] if any("SECTION(" in s for s in sections) else sections


def variable_definition(v: CVariable) -> str:
    """A variable, zero at first, in a section that a linker script can place."""
    weak = "__attribute__((weak)) " * v.is_shared
    return (f"/* Variable {v.type} */\n"
            f'TOSAIC_ALIGNED({v.alignment}) {weak}SECTION("{v.section}") {v.element} {v.symbol}[{v.count}];\n'
            f'{weak}SECTION(".bss.{v.flag}") uint8_t {v.flag};\n'
            f"extern const uint32_t {v.type_symbol};\n"
            f'{weak}const uint32_t {v.type_symbol} = {v.checksum}u;')


# ---- functions -------------------------------------------------------------------------------------------------------
def initial_values(interface: CInterface, constants: Constants) -> list[str]:
    """Gives each variable with an initial value that, unless it has been written."""
    if not interface.initialized:
        return []
    lines: list[str] = []
    for v in interface.initialized:
        assert v.use.initial is not None and v.initial is not None
        data, flag = (place(interface, v.name, STATE_ARGUMENT) for place in (variable_data, variable_flag))
        contents = bytes_of(v.initial)
        give = f"COPY({data}, {constants.name(v.use.initial)}, {len(contents)})" if len(set(contents)) > 1 else (
            f"FILL({data}, {contents[0] if contents else 0}, {v.nbytes})")
        lines += [f"    if ({flag} == 0) {{", f"        {give};", f"        {flag} = 1;", "    }"]
    return ["\n".join([f"static void {interface.prefix}_initialize({given(interface)}) {{", *lines, "}"])]


def given(interface: CInterface) -> str:
    """Return the parameter of functions that take the state alone."""
    return ", ".join(state_parameter(interface, interface.caller_state is not None)) or "void"


def model_functions(interface: CInterface, checksum: int) -> list[str]:
    """All functions of the model, and its checksum."""
    sections = [f"const uint32_t {interface.prefix}_checksum = 0x{checksum:08x}u;", reset(interface)]
    if interface.caller_state is not None:
        sections.append(f"int32_t {interface.prefix}_init({given(interface)}) {{\n"
                        f"    return {interface.prefix}_reset({STATE_ARGUMENT});\n}}")
    if interface.own_variables:
        sections += [CRC32, PUT_WORD, save(interface), load(interface)]
    if constants_given(interface):
        sections += ([] if interface.own_variables else [CRC32.split("\n\n")[0]]) + [check_constants(interface)]
    return sections


def beginning(interface: CInterface) -> list[str]:
    """Return the checks of the arguments of the model's functions."""
    return (checked_state(interface) if interface.caller_state is not None else []) + other_types(interface.own_variables)


def reset(interface: CInterface) -> str:
    """Nothing has been written, and then initial values are."""
    lines = beginning(interface)
    for v in interface.own_variables:
        lines.append(f"    {variable_flag(interface, v.name, STATE_ARGUMENT)} = 0;")
        if v.initial is None:
            lines.append(f"    FILL({variable_data(interface, v.name, STATE_ARGUMENT)}, 0, {v.nbytes});")
    return "\n".join([f"int32_t {interface.prefix}_reset({given(interface)}) {{", *lines, *initialize(interface),
                      "    return TOSAIC_OK;", "}"])


def saving(interface: CInterface, name: str, const: str) -> list[str]:
    """The beginning of a function of a saved state and its size."""
    taken = [*state_parameter(interface, interface.caller_state is not None), f"{const}void *saved", "size_t saved_size"]
    layout = saved_state(interface.own_variables)
    return [f"{declaration(f'int32_t {interface.prefix}_{name}', taken)} {{",
            f"    {const}unsigned char *const bytes = ({const}unsigned char *)saved;", *beginning(interface),
            *refuse(["saved == NULL"], "NULL"), *refuse([f"saved_size < {layout.nbytes}u"], "SIZE")]


def copies(interface: CInterface, back: bool) -> list[str]:
    """Copies of the variables, and of their flags."""
    layout = saved_state(interface.own_variables)
    memory = [(variable_data(interface, v.name, STATE_ARGUMENT), v.buffer.nbytes) for v in layout.variables]
    memory += [(f"&{variable_flag(interface, v.name, STATE_ARGUMENT)}", 1) for v in layout.variables]
    return [f"    COPY({place}, bytes + {at}, {n});" if back else f"    COPY(bytes + {at}, {place}, {n});"
            for at, (place, n) in zip(layout.offsets, memory)]


def contents(interface: CInterface) -> str:
    return f"crc32_of(bytes + {HEAD}, {saved_state(interface.own_variables).nbytes - HEAD})"


def save(interface: CInterface) -> str:
    checksum = saved_state(interface.own_variables).checksum
    return "\n".join([*saving(interface, "save_state", ""), *initialize(interface), f"    put_word(bytes, {checksum}u);",
                      *copies(interface, False), f"    put_word(bytes + 4, {contents(interface)});",
                      "    return TOSAIC_OK;", "}"])


def load(interface: CInterface) -> str:
    """Return the load function, which changes nothing unless the saved state is intact."""
    checksum = saved_state(interface.own_variables).checksum
    return "\n".join([*saving(interface, "load_state", "const "), *refuse([f"word_of(bytes) != {checksum}u"], "STATE"),
                      *refuse([f"word_of(bytes + 4) != {contents(interface)}"], "STATE"), *copies(interface, True),
                      "    return TOSAIC_OK;", "}"])


def check_constants(interface: CInterface) -> str:
    """True if the constant pools that the caller gives hold the model's constants."""
    pools, pieces = interface.memories.of_kind("constant"), constants_given(interface)
    sums = [f"crc32_of((const unsigned char *)constant_pools->{pools[g.number].name}, {g.nbytes}) != "
            f"{pools[g.number].checksum}u" for g in pieces]
    return "\n".join([f"int32_t {interface.prefix}_check_constants("
                      f"const struct {interface.prefix}_constant_pools *constant_pools) {{",
                      *checked(interface, None, pieces), *refuse(sums, "CONSTANTS"), "    return TOSAIC_OK;", "}"])
