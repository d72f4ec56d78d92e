"""Makes and writes the project of a model: the model's files from `aot`, its recorded calls, and the layout of a build system
around them. Nothing is written unless all of it has been made.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...lowering.native.c_object.header_sections import pool_macro
from ...lowering.native.c_object.interface import CInterface
from ...lowering.native.c_object.pool_files import pool_files
from ...lowering.native.c_object.pools import CPool
from ...lowering.native.c_object.recorded_data import data_header
from ...lowering.native.c_object.recorded_example import example_header, example_source
from ...runtime.errors import Problem, ValueProblem
from .. import aot
from ..aot import Artifact, ArtifactForm, ModelFiles, interface_of, model_files
from ..stage_data import LoweredData
from .contents import Contents
from .folder import LISTING, write_project
from .recording import Calls, random_calls, record, usual_count
from .systems import emitted, system_of

__all__ = ["emitted", "save"]


def save(entries: Sequence[LoweredData], directory: str | os.PathLike[str], name: str, form: ArtifactForm,
         project: str | None = None, calls: Calls | Mapping[str, Calls] | None = None) -> Artifact:
    """Write the lowered functions of one model: their object or C source and its header, or a project for a build system, whose
    example makes `calls` of the only function, or of each by its name (None: random ones)."""
    if project is not None:
        return save_project(entries, directory, name, form, project, calls)
    if calls is not None:
        raise ValueProblem("calls are recorded in projects, and no project is written", kind="option",
                           help="say for which system")
    return aot.save(entries, directory, name, form)


def save_project(entries: Sequence[LoweredData], directory: str | os.PathLike[str], name: str, form: ArtifactForm,
                 system: str, calls: Calls | Mapping[str, Calls] | None = None) -> Artifact:
    """Write the project for a build system."""
    layout, folder = system_of(system), Path(directory)
    check_form(form)
    interface = interface_of(entries, name, form)
    made = model_files(interface, form)
    recording = record(entries, calls_of(entries, calls))
    example = {f"{interface.prefix}_example.c": example_source(interface, recording),
               f"{interface.prefix}_example.h": example_header(interface),
               f"{interface.prefix}_recorded.h": data_header(interface, recording)}
    contents = contents_of(interface, made, form, {path: text.encode() for path, text in example.items()})
    files = layout.files(contents)
    write_project(folder, files, interface.prefix)
    return artifact(interface, made, folder, files)


def check_form(form: ArtifactForm) -> None:
    """Raise a Problem for options that a project covers in its own way."""
    for option, is_there, what in (("library", form.library, "builds a static library"), ("main", form.main, "has an example")):
        if is_there:
            raise ValueProblem(f"a project {what} itself", kind="option", help=f"leave out the {option}")


def calls_of(entries: Sequence[LoweredData], given: Calls | Mapping[str, Calls] | None) -> list[Calls]:
    """Return the calls of each entry: the given ones, or equally many random ones for each."""
    names = [entry.traced.name for entry in entries]
    if given is None:
        count = max(usual_count(entry) for entry in entries)
        return [random_calls(entry, count) for entry in entries]
    if not isinstance(given, Mapping):
        given = dict.fromkeys(names, given) if len(names) == 1 else {}
    if set(given) != set(names):
        raise Problem(f"calls are needed of {', '.join(names)}", kind="argument", help="give a list of calls for each, by name")
    return [given[name] for name in names]


def contents_of(interface: CInterface, made: ModelFiles, form: ArtifactForm, example: Mapping[str, bytes]) -> Contents:
    """Return the contents for the layouts. Constant pools are C source in every project, a form that each system builds."""
    return Contents(interface.prefix.removeprefix("tosaic_"), made.code, form.emit == "c", made.header,
                    pool_files(interface, "array"), example,
                    interface.target, made.needs, tuple(sizes(interface, made)))


def sizes(interface: CInterface, made: ModelFiles) -> list[str]:
    """Return the memory that the model uses, in sentences."""
    lines = [pool_line(interface, pool) for pool in interface.memories.pools if pool.nbytes]
    lines += [f"{made.constant_bytes:,} bytes of constants in the code"] * bool(made.constant_bytes)
    variables = sum(v.use.buffer.nbytes for v in interface.own_variables)
    return lines + [f"{variables:,} bytes of variables"] * bool(variables)


def pool_line(interface: CInterface, pool: CPool) -> str:
    """Return a line about a pool, with the macro for the section of its array in the project: a workspace's array belongs to
    the example."""
    what, whose = ("memory to work in", "the example's: ") if pool.kind == "workspace" else ("constants", "")
    name = "" if pool.stem == "workspace" else f", the pool {pool.name}"
    place = "" if interface.self_contained else f" ({whose}`{pool_macro(interface, pool)}_SECTION`)"
    return f"{pool.nbytes:,} bytes of {what}{name}{place}"


def artifact(interface: CInterface, made: ModelFiles, folder: Path, files: Mapping[str, bytes]) -> Artifact:
    """Return the artifact of the written files. The code of an object may be in a library."""
    library = f"/lib{interface.prefix}.a"
    code = next(path for path, data in files.items() if data == made.code or path.endswith(library))
    header = next(path for path in files if path.endswith(f"/{made.header_name}"))
    others = [folder / path for path in (*files, LISTING) if path not in (code, header)]
    return made.artifact(interface, folder / code, folder / header, tuple(others))
