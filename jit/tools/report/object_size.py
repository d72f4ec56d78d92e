"""How large the sections of an object file are: code, constants, variables. Needs a compile for the target."""
from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .figures import ObjectSize

if TYPE_CHECKING:
    from ...stage_data import LoweredData

WRITE, ALLOCATE, EXECUTE = 1, 2, 4
"""Flags of an ELF section."""

NOBITS = 8
"""Type of an ELF section that has no bytes in the file."""


def object_size(lowered: LoweredData) -> ObjectSize | None:
    """The sizes of the object file that `Lowered.save` writes; None where the target's objects are not ELF."""
    from ...aot import ArtifactForm, save
    shares = any(use.external for use in lowered.program.variables)  # such variables are a namespace's
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        artifact = save([lowered], folder, lowered.traced.name, ArtifactForm(namespace="report" if shares else None))
        code = artifact.object.read_bytes()
    elsewhere = sum(p.size_bytes for p in lowered.plan.constant_pools)
    return sizes_of(code, max(0, artifact.constant_bytes - elsewhere)) if code[:4] == b"\x7fELF" else None


def sizes_of(code: bytes, constants: int) -> ObjectSize:
    """The sizes of an ELF object of which `constants` bytes are the model's."""
    sizes = {"text": 0, "read": 0, "data": 0, "zero": 0}
    for kind, flags, size in sections(code):
        if flags & ALLOCATE:
            sizes[role(kind, flags)] += size
    return ObjectSize(sizes["text"], constants, max(0, sizes["read"] - constants), sizes["data"], sizes["zero"])


def role(kind: int, flags: int) -> str:
    """What a section that is loaded is for."""
    if flags & EXECUTE:
        return "text"
    if not flags & WRITE:
        return "read"
    return "zero" if kind == NOBITS else "data"


def sections(code: bytes) -> Iterator[tuple[int, int, int]]:
    """(type, flags, size in bytes) of each section of an ELF object."""
    wide, order = code[4] == 2, "<" if code[5] == 1 else ">"
    start, = struct.unpack_from(order + ("Q" if wide else "I"), code, 0x28 if wide else 0x20)
    length, count = struct.unpack_from(order + "HH", code, 0x3A if wide else 0x2E)
    header = struct.Struct(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"))
    for i in range(count):
        fields = header.unpack_from(code, start + i * length)
        yield fields[1], fields[2], fields[5]
