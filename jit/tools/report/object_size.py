"""How large the sections of an object file are: code, constants, variables. Needs a compile for the target. Of C source, the
constants alone are known."""
from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from ....lowering.machine_code.elf import ALLOCATE, EXECUTE, NO_BITS, WRITE, ElfObject, is_elf
from .figures import ObjectSize

if TYPE_CHECKING:
    from ...stage_data import LoweredData


def object_size(lowered: LoweredData) -> ObjectSize | None:
    """The sizes of the object file that `Lowered.save` writes; None where the target's objects are not ELF."""
    from ...aot import ArtifactForm, save
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        artifact = save([lowered], folder, lowered.traced.name, ArtifactForm(namespace=namespace(lowered)))
        code = artifact.object.read_bytes()
    elsewhere = sum(p.size_bytes for p in lowered.plan.constant_pools)
    stack = artifact.stack.whole.nbytes if artifact.stack and not artifact.stack.unknown else None
    return sizes_of(code, max(0, artifact.constant_bytes - elsewhere), stack) if is_elf(code) else None


def source_size(lowered: LoweredData) -> ObjectSize:
    """The constants of the C source that `Lowered.save` writes."""
    from ...aot import ArtifactForm, interface_of, model_files
    form = ArtifactForm(namespace=namespace(lowered), emit="c")
    made = model_files(interface_of([lowered], lowered.traced.name, form), form)
    return ObjectSize(0, made.constant_bytes, 0, 0, 0)


def namespace(lowered: LoweredData) -> str | None:
    """One for variables that another program declares: such are a namespace's."""
    return "report" if any(use.external for use in lowered.program.variables) else None


def sizes_of(code: bytes, constants: int, stack: int | None) -> ObjectSize:
    """The sizes of an ELF object of which `constants` bytes are the model's, and whose calls take that `stack`."""
    sizes = {"text": 0, "read": 0, "data": 0, "zero": 0}
    for section in ElfObject(code).sections:
        if section.flags & ALLOCATE:
            sizes[role(section.kind, section.flags)] += section.nbytes
    return ObjectSize(sizes["text"], constants, max(0, sizes["read"] - constants), sizes["data"], sizes["zero"], stack)


def role(kind: int, flags: int) -> str:
    """What a section that is loaded is for."""
    if flags & EXECUTE:
        return "text"
    if not flags & WRITE:
        return "read"
    return "zero" if kind == NO_BITS else "data"
