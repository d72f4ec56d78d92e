"""Ahead of time: programs become an object file and the C header that declares them."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..lowering.elements.expression import Buffer
from ..lowering.loops.program import Program
from ..lowering.memory.plan import Plan
from ..lowering.native.data import Constants
from ..lowering.native.features import host
from ..lowering.native.header_c import header
from ..lowering.native.interface_c import Interface
from ..lowering.native.machine import object_file, undefined_symbols
from ..lowering.native.target import Target
from ..runtime.errors import Problem

if TYPE_CHECKING:
    from .stages import Lowered


@dataclass(frozen=True, slots=True)
class Artifact:
    """The files of a model, and what they amount to. `needs` are functions that the object calls and does not
    define."""
    object: Path
    header: Path
    needs: tuple[str, ...]
    constant_bytes: int
    variable_bytes: int

    @property
    def paths(self) -> tuple[Path, Path]:
        return self.object, self.header


def save(entries: Sequence[Lowered], directory: str | os.PathLike[str], name: str) -> Artifact:
    """Write lowered functions of one model, made for one target, as one object file and its header."""
    pairs = [(e.program, e.plan) for e in entries]
    elements = {buffer: element for e in entries for buffer, element in e.elements().items()}
    program, plan = pairs[0] if len(pairs) == 1 else (pairs, None)
    return write(program, plan, directory, name, entries[0].target, elements)


def write(programs: Program | Sequence[tuple[Program, Plan]], plan: Plan | None, directory: str | os.PathLike[str],
          name: str, target: Target | None = None, elements: Mapping[Buffer, str] | None = None) -> Artifact:
    """Write `<name>.o` and `tosaic_<name>.h` to a directory, which is made if there is none.

    One program with its plan becomes `tosaic_<name>_run`; a list of (program, plan), with `plan` None, becomes one
    function `tosaic_<name>_<program>_run` each, and the programs share their variables. `target` None is this
    machine. Raises a Problem where names clash in C, or a file cannot be written.
    """
    target = target or host()
    interface = Interface(name, pairs(programs, plan), target, elements)
    with Constants(interface.prefix, target) as constants:
        code = object_file(interface.module(constants), target, "static" if is_bare(target) else "pic")
        constant_bytes = constants.nbytes
    needs = undefined_symbols(code) if code[:4] == b"\x7fELF" else ()
    folder, stem = Path(directory), interface.prefix.removeprefix("tosaic_")
    artifact = Artifact(folder / f"{stem}.o", folder / f"{interface.prefix}.h", needs, constant_bytes,
                        sum(v.use.buffer.nbytes for v in interface.variables.values()))
    write_files(folder, {artifact.object: code, artifact.header: header(interface, needs).encode()})
    return artifact


def pairs(programs: Program | Sequence[tuple[Program, Plan]], plan: Plan | None) -> Sequence[tuple[Program, Plan]]:
    if isinstance(programs, Program):
        assert plan is not None, "a program without its plan"
        return [(programs, plan)]
    assert plan is None, "a list of programs brings its plans along"
    return programs


def is_bare(target: Target) -> bool:
    """Whether the target has no operating system, and so no position-independent code."""
    return not any(system in target.triple for system in ("linux", "darwin", "apple", "windows", "bsd"))


def write_files(folder: Path, files: Mapping[Path, bytes]) -> None:
    """Write whole files: an error leaves an old one as it was."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            partial = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                partial.write_bytes(data)
                os.replace(partial, path)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise Problem(f"cannot write to {folder}: {error.strerror or error}", kind="file",
                      help="name a directory that can be written") from error
