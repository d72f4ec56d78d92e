"""The build attribute that lets one ARM object be linked into programs of either floating-point calling convention.

The functions of an object pass pointers and integers only, so both conventions are the same for them. LLVM does not say so in
the object, and a linker then refuses it beside hard-float code. Tag_ABI_VFP_args = 3 says it: "compatible with both"
(Addenda to the ABI for the Arm Architecture, build attributes).
"""
from __future__ import annotations

import struct

ATTRIBUTES = 0x70000003  # SHT_ARM_ATTRIBUTES
VFP_ARGS_COMPATIBLE = bytes((28, 3))


def linkable_with_either(code: bytes) -> bytes:
    """A little-endian ELF32 object with the attribute added; unchanged where it has no attributes."""
    (table,), (entry, count) = struct.unpack_from("<I", code, 0x20), struct.unpack_from("<HH", code, 0x2E)
    for header in range(table, table + entry * count, entry):
        kind, offset, size = *struct.unpack_from("<I", code, header + 4), *struct.unpack_from("<II", code, header + 16)
        if kind == ATTRIBUTES:
            section = extended(code[offset:offset + size])
            result = bytearray(code + section)
            struct.pack_into("<II", result, header + 16, len(code), len(section))
            return bytes(result)
    return code


def extended(section: bytes) -> bytes:
    """The attributes section (`A`, length, "aeabi", file tag, length, attributes) with one attribute more."""
    length_at, file_at = 1, section.index(b"aeabi\0") + len(b"aeabi\0")
    (length,), (file_length,) = struct.unpack_from("<I", section, length_at), struct.unpack_from("<I", section, file_at + 1)
    result = bytearray(section[:file_at + file_length] + VFP_ARGS_COMPATIBLE + section[file_at + file_length:])
    struct.pack_into("<I", result, length_at, length + len(VFP_ARGS_COMPATIBLE))
    struct.pack_into("<I", result, file_at + 1, file_length + len(VFP_ARGS_COMPATIBLE))
    return bytes(result)
