"""The C header of an object, for C89 to C17 and C++98 to C++20: declares what `interface` describes. Macros state sizes, shapes
and alignments, and a checksum ties the header to its object.
"""
from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from ....runtime.errors import Problem
from .entry import linked
from .header_sections import (
    checks,
    comment,
    functions,
    maps,
    model_functions,
    pool_sections,
    stack_sections,
    tensor_sections,
    thread_sections,
    tile_sections,
    variable_sections,
)
from .interface import ALIGNMENT, CONSTANTS, NULL, SIZE, STATE, VARIABLE, VERSION, CInterface
from .model_stack import ModelStack
from .tensor_tables import COMMON, table_sections

__all__ = ["comment", "header", "header_checksum"]

CODES = f"""#ifndef TOSAIC_INTERFACE_VERSION
#define TOSAIC_INTERFACE_VERSION {VERSION}
#define TOSAIC_OK 0
#define TOSAIC_ERROR_NULL ({NULL}) /* a pointer is null */
#define TOSAIC_ERROR_ALIGNMENT ({ALIGNMENT}) /* a pointer is not aligned as its elements, or the pool, need it */
#define TOSAIC_ERROR_VARIABLE ({VARIABLE}) /* another object has a variable of the same name with another type */
#define TOSAIC_ERROR_SIZE ({SIZE}) /* a tensor has another size, or a pool or a saved state is too small */
#define TOSAIC_ERROR_STATE ({STATE}) /* these bytes are no state that this model has saved */
#define TOSAIC_ERROR_CONSTANTS ({CONSTANTS}) /* a constant pool does not hold the model's constants */
#if defined(__GNUC__)
#define TOSAIC_ALIGNED(n) __attribute__((aligned(n)))
#elif defined(_MSC_VER)
#define TOSAIC_ALIGNED(n) __declspec(align(n))
#elif defined(__cplusplus)
#define TOSAIC_ALIGNED(n) alignas(n)
#else
#define TOSAIC_ALIGNED(n) _Alignas(n)
#endif
#if defined(__cplusplus)
#define TOSAIC_CAST(type, value) static_cast<type>(value)
#else
#define TOSAIC_CAST(type, value) ((type)(value))
#endif
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define TOSAIC_INLINE static inline
#elif defined(__GNUC__)
#define TOSAIC_INLINE static __inline__
#else
#define TOSAIC_INLINE static
#endif
#if defined(__cplusplus) && __cplusplus >= 201103L
#define TOSAIC_ASSERT(condition, name) static_assert(condition, #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TOSAIC_ASSERT(condition, name) _Static_assert(condition, #name)
#else
#define TOSAIC_ASSERT(condition, name) typedef char name[(condition) ? 1 : -1]
#endif
#elif TOSAIC_INTERFACE_VERSION != {VERSION}
#error "headers of two versions of tosaic in one program: compile all models with the same one"
#endif"""

INCLUDES = '#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern "C" {\n#endif'


def header(interface: CInterface, checksum: int, needs: Sequence[str], stack: ModelStack | None = None) -> str:
    """Return the header's text. `needs` holds the functions that the object calls but does not define, `stack` the bounds of
    its calls (None for C source, whose compiler knows them)."""
    guard = f"{interface.prefix.upper()}_H"
    sections = [f"#ifndef {guard}\n#define {guard}", introduction(interface, needs), INCLUDES, CODES,
                *tile_sections(interface), belonging(interface, checksum)]
    sections += [section for entry in interface.entries for section in tensor_sections(interface, entry)]
    sections += pool_sections(interface) + variable_sections(interface) + thread_sections(interface)
    sections += stack_sections(interface, stack)
    sections += [section for entry in interface.entries for section in (*maps(interface, entry), *functions(interface, entry))]
    sections += model_functions(interface) + checks(interface)
    sections += table_sections(interface)
    sections += ["#ifdef __cplusplus\n}\n#endif", f"#endif /* {guard} */"]
    text = "\n\n".join(sections) + "\n"
    check_macros(text)
    return text


def header_checksum(interface: CInterface) -> int:
    """Return the CRC-32 of the header's text about the interface, and so of all that a program may rely on."""
    return zlib.crc32(header(interface, 0, ()).encode())


def belonging(interface: CInterface, checksum: int) -> str:
    """Return the checksum, and the names of the entry functions that contain it."""
    names = [f"{entry.name}_run" for entry in interface.entries]
    renamed = "".join(f"\n#define {name} {linked(name, checksum)}" for name in names)
    return (f"/* A program with this header links with the object that belongs to it, and with no other. */\n"
            f"#define {interface.prefix.upper()}_CHECKSUM 0x{checksum:08x}u\n"
            f"extern const uint32_t {interface.prefix}_checksum;{renamed}")


def check_macros(text: str) -> None:
    """Raise a Problem if two macros have the same name."""
    seen: set[str] = set()
    for name in re.findall(r"^#define (\w+)", text.replace(CODES, "").replace(COMMON, ""), re.MULTILINE):
        if name in seen:
            raise Problem(f"two macros of the header are called {name}", kind="symbol",
                          help="rename an entry function, an input, an output or a pool of the model")
        seen.add(name)


def introduction(interface: CInterface, needs: Sequence[str]) -> str:
    """Return the comment that applies to all functions of the object."""
    lines = [f"Written by tosaic for {comment(interface.target.triple)}, {comment(interface.target.cpu)}.",
             "Tensors are row-major. In each structure, a size is that of the memory behind the pointer before it, in bytes.",
             placing(interface), f"Nothing is allocated. {concurrency(interface)}",
             f"The object needs {', '.join(map(comment, needs)) or 'nothing'} from elsewhere."]
    return "/* " + "\n   ".join(lines) + " */"


def placing(interface: CInterface) -> str:
    if any(entry.is_mapped for entry in interface.entries):
        return "Inputs and outputs lie in the workspace: write inputs before each run, read outputs before the next one."
    return "Outputs must share no memory with inputs, each other or the workspace: results are undefined otherwise."


def concurrency(interface: CInterface) -> str:
    if interface.self_contained and interface.memories.of_kind("workspace"):
        return "The object has its own memory: calls must not run at the same time."
    if interface.caller_state is not None:
        return "Calls may run at the same time, each with a workspace and a state of its own."
    if interface.variables:
        return "Calls of functions that use variables must not run at the same time."
    return "Calls may run at the same time, each with a workspace of its own."
