"""The parts of an object for 32-bit Arm that LLVM leaves out, added afterwards: that it may be linked into programs of either
floating-point calling convention, and the run-time names of Arm's own ABI.

The functions of an object pass pointers and integers only, so both conventions are the same for them. LLVM does not say so in
the object, and a linker then refuses it beside hard-float code. Tag_ABI_VFP_args = 3 says it: "compatible with both" (Addenda
to the ABI for the Arm Architecture, build attributes). For arithmetic that a processor lacks LLVM, as llvmlite sets it up,
calls the functions of GNU's library. Those of the Run-time ABI do the same with the same arguments, and all compilers for Arm
have them; comparisons, which differ, are never called (`native/llvm/helper_functions`).
"""
from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

SYMBOLS, ATTRIBUTES = 2, 0x70000003
"""SHT_SYMTAB, SHT_ARM_ATTRIBUTES."""
VFP_ARGS_COMPATIBLE = bytes((28, 3))

RUN_TIME_NAMES = {
    "__addsf3": "__aeabi_fadd", "__subsf3": "__aeabi_fsub", "__mulsf3": "__aeabi_fmul", "__divsf3": "__aeabi_fdiv",
    "__adddf3": "__aeabi_dadd", "__subdf3": "__aeabi_dsub", "__muldf3": "__aeabi_dmul", "__divdf3": "__aeabi_ddiv",
    "__fixsfsi": "__aeabi_f2iz", "__fixunssfsi": "__aeabi_f2uiz", "__fixdfsi": "__aeabi_d2iz", "__fixunsdfsi": "__aeabi_d2uiz",
    "__floatsisf": "__aeabi_i2f", "__floatunsisf": "__aeabi_ui2f",
    "__floatsidf": "__aeabi_i2d", "__floatunsidf": "__aeabi_ui2d",
    "__extendsfdf2": "__aeabi_f2d", "__truncdfsf2": "__aeabi_d2f", "__muldi3": "__aeabi_lmul", "__ashldi3": "__aeabi_llsl",
    "__lshrdi3": "__aeabi_llsr", "__ashrdi3": "__aeabi_lasr", "__divsi3": "__aeabi_idiv", "__udivsi3": "__aeabi_uidiv"}
"""GNU's name -> the name in the Run-time ABI for the Arm Architecture of a function with the same parameters and result."""
NAME = re.compile(r"\b(" + "|".join(RUN_TIME_NAMES) + r")\b")


class Section(NamedTuple):
    """A section of a little-endian ELF32 object: the offset of its header, and the header's fields."""
    header: int
    kind: int
    offset: int
    size: int
    link: int


def sections(code: bytes) -> list[Section]:
    (table,), (entry, count) = struct.unpack_from("<I", code, 0x20), struct.unpack_from("<HH", code, 0x2E)
    return [Section(at, struct.unpack_from("<I", code, at + 4)[0], *struct.unpack_from("<III", code, at + 16))
            for at in range(table, table + entry * count, entry)]


def completed(code: bytes) -> bytes:
    """Return a little-endian ELF32 object for Arm with the attribute and the names."""
    result = bytearray(code)
    for section in sections(code):
        if section.kind == ATTRIBUTES:
            replace_section(result, section, extended(code[section.offset:section.offset + section.size]))
        elif section.kind == SYMBOLS:
            rename(result, section, sections(code)[section.link])
    return bytes(result)


def completed_text(assembly: str) -> str:
    """Return the assembly of an object with the same names."""
    return NAME.sub(lambda found: RUN_TIME_NAMES[found[1]], assembly)


def replace_section(code: bytearray, section: Section, contents: bytes) -> None:
    """Give a section other contents, at the end of the object."""
    struct.pack_into("<II", code, section.header + 16, len(code), len(contents))
    code += contents


def rename(code: bytearray, symbols: Section, strings: Section) -> None:
    """Rename symbols; the new names follow the old ones."""
    names = bytearray(code[strings.offset:strings.offset + strings.size])
    for at, name in symbol_names(code, symbols, bytes(names)):
        if name in RUN_TIME_NAMES:
            struct.pack_into("<I", code, at, len(names))
            names += RUN_TIME_NAMES[name].encode() + b"\0"
    if len(names) > strings.size:
        replace_section(code, strings, bytes(names))


def symbol_names(code: bytearray, symbols: Section, strings: bytes) -> Iterator[tuple[int, str]]:
    """Yield the offset and the name of each symbol."""
    for at in range(symbols.offset, symbols.offset + symbols.size, 16):
        first, = struct.unpack_from("<I", code, at)
        yield at, strings[first:strings.index(b"\0", first)].decode()


def extended(section: bytes) -> bytes:
    """Return the attributes section (`A`, length, "aeabi", file tag, length, attributes) with one more attribute."""
    length_at, file_at = 1, section.index(b"aeabi\0") + len(b"aeabi\0")
    (length,), (file_length,) = struct.unpack_from("<I", section, length_at), struct.unpack_from("<I", section, file_at + 1)
    result = bytearray(section[:file_at + file_length] + VFP_ARGS_COMPATIBLE + section[file_at + file_length:])
    struct.pack_into("<I", result, length_at, length + len(VFP_ARGS_COMPATIBLE))
    struct.pack_into("<I", result, file_at + 1, file_length + len(VFP_ARGS_COMPATIBLE))
    return bytes(result)
