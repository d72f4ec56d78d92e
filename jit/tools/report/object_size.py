"""The sizes of the sections of an object file: code, constants, variables. Needs a compile for the target. For C source only
the constants are known."""
from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from ....lowering.machine_code.elf import ALLOCATE, EXECUTE, NO_BITS, WRITE, ElfObject, is_elf
from .figures import ObjectSize

if TYPE_CHECKING:
    from ...stage_data import LoweredData


def object_size(lowered: LoweredData) -> ObjectSize | None:
    """Return the sizes of the object file that `Lowered.save` writes; None if the target's objects are not ELF."""
    from ...aot import ArtifactForm, save
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        artifact = save([lowered], folder, lowered.traced.name, ArtifactForm(namespace=namespace(lowered)))
        code = artifact.object.read_bytes()
    elsewhere = sum(p.size_bytes for p in lowered.plan.constant_pools)
    stack = artifact.stack.whole.nbytes if artifact.stack and not artifact.stack.unknown else None
    return sizes_of(code, max(0, artifact.constant_bytes - elsewhere), stack) if is_elf(code) else None


def source_size(lowered: LoweredData) -> ObjectSize:
    """Return the size of the constants in the C source that `Lowered.save` writes."""
    from ...aot import ArtifactForm, interface_of, model_files
    form = ArtifactForm(namespace=namespace(lowered), emit="c")
    made = model_files(interface_of([lowered], lowered.traced.name, form), form)
    return ObjectSize(0, made.constant_bytes, 0, 0, 0)


def namespace(lowered: LoweredData) -> str | None:
    """Return a namespace if another program declares variables, as these belong to one; else None."""
    return "report" if any(use.external for use in lowered.program.variables) else None


def sizes_of(code: bytes, constants: int, stack: int | None) -> ObjectSize:
    """Return the sizes of an ELF object with `constants` bytes of the model's constants and calls that take `stack` bytes of
    stack."""
    sizes = {"text": 0, "read": 0, "data": 0, "zero": 0}
    for section in ElfObject(code).sections:
        if section.flags & ALLOCATE:
            sizes[role(section.kind, section.flags)] += section.nbytes
    return ObjectSize(sizes["text"], constants, max(0, sizes["read"] - constants), sizes["data"], sizes["zero"], stack)


def role(kind: int, flags: int) -> str:
    """Return the role of a section that is loaded."""
    if flags & EXECUTE:
        return "text"
    if not flags & WRITE:
        return "read"
    return "zero" if kind == NO_BITS else "data"
