"""The files that hold the constant pools of a model, beside its object or source. A program links one for each pool, and says
where it goes; the array in it is the one that the header declares. In a static library they are objects.

The form "binary" has the bytes in a file, and a short one for the C preprocessor and the GNU assembler that includes it. The
form "array" is C, for compilers beside which there is no such assembler.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...machine_code.llvm_writer import module
from .data_symbols import ObjectConstants
from .header_sections import DATA_COLUMNS, constant_file, pool_macro
from .interface import CInterface
from .pools import CPool


def pool_files(interface: CInterface, form: str) -> dict[str, bytes]:
    """The files, by their names."""
    return {name: data for pool in pools_beside(interface) for name, data in FORMS[form](interface, pool).items()}


def pools_beside(interface: CInterface) -> Iterator[CPool]:
    """The constant pools that the object does not have inside."""
    if not interface.self_contained:
        yield from (pool for pool in interface.memories.of_kind("constant") if pool.nbytes)


def pool_module(interface: CInterface, pool: CPool, constants: ObjectConstants) -> str:
    """LLVM's module of a pool's object."""
    constants.pool(interface.pool_symbol(pool), pool.data, pool.alignment)
    return module(interface.target.triple, (), constants.lines)


def binary(interface: CInterface, pool: CPool) -> dict[str, bytes]:
    name = constant_file(interface, pool)
    return {f"{name}.bin": pool.data, f"{name}.S": assembly(interface, pool, f"{name}.bin").encode()}


def assembly(interface: CInterface, pool: CPool, file: str) -> str:
    name, symbol = pool_macro(interface, pool), interface.pool_symbol(pool)
    kind = interface.target.section_mark
    return f"""\
/* Constant pool {pool.name} of {interface.prefix}.h, from the file beside this one.
   Define {name}_SECTION to place it in a section of your linker script. */
#ifndef {name}_SECTION
#define {name}_SECTION .rodata.{symbol}
#endif

    .section {name}_SECTION, "a", {kind}progbits
    .balign {pool.alignment}
    .globl {symbol}
    .type {symbol}, {kind}object
    .size {symbol}, {pool.nbytes}
{symbol}:
    .incbin "{file}"
    .section .note.GNU-stack, "", {kind}progbits
"""


def array(interface: CInterface, pool: CPool) -> dict[str, bytes]:
    name, symbol = pool_macro(interface, pool), interface.pool_symbol(pool)
    rows = (pool.data[at:at + DATA_COLUMNS] for at in range(0, pool.nbytes, DATA_COLUMNS))
    data = ",\n".join(f"    {', '.join(map(str, row))}" for row in rows)
    defined = f"TOSAIC_ALIGNED({name}_ALIGNMENT) const unsigned char {symbol}[{name}_SIZE] = {{\n{data}\n}};"
    source = f"""\
/* Constant pool {pool.name} of {interface.prefix}.h.
   Define {name}_SECTION to place it in a section of your linker script. */
#include "{interface.prefix}.h"

{in_section(name, symbol, defined)}
"""
    return {f"{constant_file(interface, pool)}.c": source.encode()}


def in_section(macro: str, symbol: str, defined: str) -> str:
    """C of an array, `defined` so, in the section that `<macro>_SECTION` names where the user has defined it."""
    return f"""\
#if defined({macro}_SECTION) && defined(__GNUC__)
#define TOSAIC_TEXT(name) #name
#define TOSAIC_TEXT_OF(name) TOSAIC_TEXT(name)
__attribute__((section(TOSAIC_TEXT_OF({macro}_SECTION))))
#elif defined({macro}_SECTION)
#error "place {symbol} as your compiler does it"
#endif
{defined}"""


FORMS: Mapping[str, Callable[[CInterface, CPool], dict[str, bytes]]] = {"binary": binary, "array": array}
"""By what users call them."""
