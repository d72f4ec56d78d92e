"""Ahead-of-time compilation: write programs as an object file, the C header that declares them and the files of their constant
pools and, on request, a static library and a C program to start from.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..lowering.elements.expression import Buffer
from ..lowering.graph.quantized import Quantized
from ..lowering.loops.program import Program
from ..lowering.machine_code.codegen import object_file
from ..lowering.machine_code.elf import is_elf, undefined_symbols
from ..lowering.memory.plan import Plan
from ..lowering.native.c_object.archive import archive
from ..lowering.native.c_object.data_symbols import ObjectConstants
from ..lowering.native.c_object.example_main import skeleton
from ..lowering.native.c_object.header import header, header_checksum
from ..lowering.native.c_object.header_sections import constant_file
from ..lowering.native.c_object.interface import CInterface
from ..lowering.native.c_object.model_stack import ModelStack, model_stack
from ..lowering.native.c_object.object_module import object_text
from ..lowering.native.c_object.pool_files import FORMS, pool_files, pool_module, pools_beside
from ..lowering.native.c_object.pools import CPool
from ..lowering.native.c_object.variables import Owner, StateForm
from ..lowering.target.presets import host
from ..lowering.target.target import Target
from ..runtime.errors import Problem, ValueProblem, printable, unwritten

if TYPE_CHECKING:
    from .stage_data import LoweredData


STATES: Mapping[str, Owner] = {"own": "object", "caller": "caller"}
"""The owner of the variables, by the user's word for it."""
EMITTED = "object", "c"


@dataclass(frozen=True, slots=True)
class ArtifactForm:
    """The options of a model's files. A `self_contained` object contains its workspace and constant pools; otherwise
    `pool_form` selects whether separate files hold the constants as "binary" or as a C "array". `library` adds a static library
    of the object and its constants, `main` a C program that calls the model. Objects of one `namespace` share variables of the
    same name. `state` names the owner of the variables: the object ("own") or the "caller". `emit` selects an "object", or "c"
    source in its place. With `debug`, the object has debug information for the lines of the model."""
    self_contained: bool = False
    library: bool = False
    main: bool = False
    namespace: str | None = None
    state: str = "own"
    emit: str = "object"
    pool_form: str = "binary"
    debug: bool = False

    def __post_init__(self) -> None:
        if self.emit not in EMITTED:
            raise ValueProblem(f"emit is {self.emit!r}", kind="option", help=f"it may be {' or '.join(EMITTED)}")
        if self.pool_form not in FORMS:
            raise ValueProblem(f"pool_form is {self.pool_form!r}", kind="option", help=f"it may be {' or '.join(FORMS)}")
        if self.emit == "c" and self.library:
            raise ValueProblem("a static library has objects, and C source is none", kind="option",
                               help="leave out the library, or make it with the C compiler and ar")
        if self.emit == "c" and self.debug:
            raise ValueProblem("C source has no lines of the model", kind="option",
                               help="leave out debug, and compile the source with -g for its own lines")

    @property
    def variables(self) -> StateForm:
        if self.state not in STATES:
            raise ValueProblem(f"state is {self.state!r}", kind="option", help=f"it may be {' or '.join(STATES)}")
        return StateForm(self.namespace, STATES[self.state])


@dataclass(frozen=True, slots=True)
class Artifact:
    """The files of a model, with their sizes. `object` is the C source if that was requested; `needs` are the functions that it
    calls and does not define; `others` are the files besides these two. `pools` are those of all entry functions together;
    `stack` is the stack that calls of an object use (None for C source)."""
    object: Path
    header: Path
    needs: tuple[str, ...]
    constant_bytes: int
    variable_bytes: int
    others: tuple[Path, ...] = ()
    pools: tuple[CPool, ...] = ()
    stack: ModelStack | None = None

    def __repr__(self) -> str:
        return printable(f"<Artifact {', '.join(map(str, self.paths[:6]))}{', ...' * (len(self.paths) > 6)}>")

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.object, self.header, *self.others


def save(entries: Sequence[LoweredData], directory: str | os.PathLike[str], name: str,
         form: ArtifactForm = ArtifactForm()) -> Artifact:
    """Write the lowered functions of one model, all for one target, as one object file and its header."""
    return write_interface(interface_of(entries, name, form), directory, form)


def interface_of(entries: Sequence[LoweredData], name: str, form: ArtifactForm) -> CInterface:
    """Return the C interface of the lowered functions of one model."""
    if not entries:
        raise Problem("the model has no entry function", kind="model")
    programs = [(e.program, e.plan) for e in entries]
    elements = {buffer: element for e in entries for buffer, element in e.elements().items()}
    quantized = {buffer: element for e in entries for buffer, element in e.quantized().items()}
    return CInterface(name, programs, entries[0].target, elements, quantized, form.self_contained, form.variables)


def write(programs: Program | Sequence[tuple[Program, Plan]], plan: Plan | None, directory: str | os.PathLike[str],
          name: str, target: Target | None = None, elements: Mapping[Buffer, str] | None = None,
          quantized: Mapping[Buffer, Quantized] | None = None, form: ArtifactForm = ArtifactForm()) -> Artifact:
    """Write `<name>.o` and `tosaic_<name>.h` to a directory, and create the directory if necessary.

    One program with its plan becomes `tosaic_<name>_run`; a list of (program, plan), with `plan` None, becomes one function
    `tosaic_<name>_<program>_run` each, and the programs share their variables and pools. If `target` is None, it is this
    machine. Raises a Problem if names clash in C, pools are too small for all programs together, or a file cannot be written.
    """
    interface = CInterface(name, pairs(programs, plan), target or host(), elements, quantized, form.self_contained,
                           form.variables)
    return write_interface(interface, directory, form)


def pairs(programs: Program | Sequence[tuple[Program, Plan]], plan: Plan | None) -> Sequence[tuple[Program, Plan]]:
    if isinstance(programs, Program):
        assert plan is not None, "a program without its plan"
        return [(programs, plan)]
    assert plan is None, "a list of programs brings its plans along"
    return programs


def write_interface(interface: CInterface, directory: str | os.PathLike[str], form: ArtifactForm) -> Artifact:
    """Make all files, then write them."""
    made, folder = model_files(interface, form), Path(directory)
    keep_main(folder, made.others)
    artifact = made.artifact(interface, folder / made.code_name, folder / made.header_name,
                             tuple(folder / name for name in made.others))
    files = {artifact.object: made.code, artifact.header: made.header}
    write_files(folder, files | {folder / name: data for name, data in made.others.items()})
    return artifact


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model, generated and not yet written: its code (an object or C source), its header, and the `others` by
    name."""
    code_name: str
    code: bytes
    header_name: str
    header: bytes
    others: Mapping[str, bytes]
    needs: tuple[str, ...]
    constant_bytes: int
    stack: ModelStack | None

    def artifact(self, interface: CInterface, code: Path, header: Path, others: tuple[Path, ...]) -> Artifact:
        """Return the artifact for these paths, to which the files have been written."""
        pools = interface.memories.pools
        given = 0 if interface.self_contained else sum(p.nbytes for p in pools if p.kind == "constant")
        return Artifact(code, header, self.needs, self.constant_bytes + given,
                        sum(v.use.buffer.nbytes for v in interface.own_variables), others, pools, self.stack)


def model_files(interface: CInterface, form: ArtifactForm) -> ModelFiles:
    """All files of a model."""
    checksum = header_checksum(interface)
    made = c_source(interface, checksum) if form.emit == "c" else object_code(interface, checksum, form.debug)
    code, needs, constant_bytes, stack = made
    stem = interface.prefix.removeprefix("tosaic_")
    return ModelFiles(f"{stem}.{'c' if form.emit == 'c' else 'o'}", code, f"{interface.prefix}.h",
                      header(interface, checksum, needs, stack).encode(), other_files(interface, code, stem, form), needs,
                      constant_bytes, stack)


Code = tuple[bytes, tuple[str, ...], int, ModelStack | None]
"""An object or source, the symbols it needs from elsewhere, the bytes of its constants, and the stack that an object uses."""


def object_code(interface: CInterface, checksum: int, debug: bool) -> Code:
    target = interface.target
    with ObjectConstants(interface.prefix, target) as constants:
        code = object_file(object_text(interface, constants, checksum, debug), target, "static" if is_bare(target) else "pic")
    return code, undefined_symbols(code) if is_elf(code) else (), constants.nbytes, model_stack(interface, code)


def c_source(interface: CInterface, checksum: int) -> Code:
    from ..lowering.native.c_source.source import source_text
    found = source_text(interface, checksum)
    return found.text.encode(), found.needs, found.constant_bytes, None


def other_files(interface: CInterface, code: bytes, stem: str, form: ArtifactForm) -> dict[str, bytes]:
    """The files besides object and header, by name."""
    files: dict[str, bytes] = {}
    if form.library:
        files[f"lib{stem}.a"] = archive({f"{stem}.o": code, **pool_objects(interface)})
    if form.main:
        files["main.c"] = skeleton(interface).encode()
    return files | pool_files(interface, form.pool_form)


def pool_objects(interface: CInterface) -> dict[str, bytes]:
    """The objects of the constant pools, by their names in a library."""
    objects = {}
    for pool in pools_beside(interface):
        with ObjectConstants(interface.prefix, interface.target) as constants:
            code = object_file(pool_module(interface, pool, constants), interface.target)
        objects[f"{constant_file(interface, pool)}.o"] = code
    return objects


def keep_main(folder: Path, files: Mapping[str, bytes]) -> None:
    """Raise a Problem if the C program to start from would replace one that somebody has changed."""
    path = folder / "main.c"
    if "main.c" in files and path.exists() and not (path.is_file() and path.read_bytes() == files["main.c"]):
        raise Problem(f"{path} is there already", kind="file", help="move it away, or do without a new one")


def is_bare(target: Target) -> bool:
    """True if the target has no operating system, and so no position-independent code."""
    return not any(system in target.triple for system in ("linux", "darwin", "apple", "windows", "bsd"))


def write_files(folder: Path, files: Mapping[Path, bytes]) -> None:
    """Write files atomically: an error leaves the old file as it was."""
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
        raise unwritten(error, f"cannot write to {folder}") from error
