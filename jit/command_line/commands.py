"""The commands of `tosaic`: each takes the parsed options and gives an `Answer`: exit code, text, and the same as JSON.

Nothing here prints or ends the process; `cli` does.
"""
from __future__ import annotations

import argparse
import io
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import Problem, printable_text
from ..compiled import Compiled
from ..models.dynamic_shapes import named_shape
from ..models.model import Entry, Model, at_level, load_model
from ..models.read import first_bytes
from ..stages import COMPILER, Lowered
from .memory_options import options_of, settings_of
from .progress import Progress

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.native.c_object.model_stack import ModelStack
    from ...lowering.native.c_object.pools import CPool
    from ...lowering.options import CompileOptions
    from ...runtime.variables import Context

YES, NO = 0, 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found."""
    code: int
    text: str
    json: dict[str, Any]


def standard_input(options: argparse.Namespace) -> bytes:
    """All of standard input, which can be read once."""
    if getattr(options, "standard_input", None) is None:
        options.standard_input = sys.stdin.buffer.read()
    data: bytes = options.standard_input
    return data


def take_pipe(options: argparse.Namespace) -> None:
    """A named pipe, which shells make for <(...), can be read once: from here on it is standard input."""
    model = getattr(options, "model", None) or "-"
    if model != "-" and is_pipe(model):
        options.standard_input, options.model = first_bytes(model, -1), "-"


def is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def model_of(options: argparse.Namespace, progress: Progress) -> Model:
    """The model that the command line names; `-` is standard input."""
    progress.update(f"reading {options.model}")
    if options.model == "-":
        return at_level(load_model(io.BytesIO(standard_input(options)), "<stdin>"), options.level)
    return at_level(load_model(Path(options.model)), options.level)


def entry_of(options: argparse.Namespace, progress: Progress) -> Entry:
    entry = model_of(options, progress).entry(options.entry)
    progress.update(f"compiling {entry.name}")
    return entry.specialize(shapes_of(options)) if options.shape else entry


def shapes_of(options: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """The shapes that the command line gives inputs, by name."""
    return dict(map(named_shape, options.shape))


def options_with_target(options: argparse.Namespace) -> CompileOptions | None:
    """How to compile, of a command that takes a machine."""
    from ...lowering.target.presets import target
    from ..tools.tune import read_findings
    machine = target(options.target or named_by_default(options), options.cpu, options.features)
    found = options_of(options, machine, read_findings(options.tuning) if options.tuning else ())
    if found is None or options.schedule is None:
        return found
    from ...lowering.schedule.schedule_text import ScheduleText
    return replace(found, schedule=ScheduleText(text_of(options.schedule), options.schedule))


def named_by_default(options: argparse.Namespace) -> str:
    """The machine where none is named: this one, or any, of C source (a processor says its machine itself)."""
    return "any" if getattr(options, "emit", "object") == "c" and not (options.cpu or options.features) else "host"


def text_of(path: str) -> str:
    """The text of a schedule's file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}", kind="file") from None
    except ValueError:
        raise Problem(f"{path} is no text", kind="file", help="tosaic show MODEL schedule prints a schedule") from None


# ---- run ---------------------------------------------------------------------------------------------------------
def run(options: argparse.Namespace) -> Answer:
    """Compile and call an entry: its outputs, microseconds of a call, bytes of the arena. A kernel program is run as it is."""
    from ...runtime.variables import Context
    from .inputs import gather_inputs, save_arrays
    if (program := program_of(options)) is not None:
        from ..op_by_op.programs.run_program import run_text
        succeeded, text, found = run_text(*program, options.entry)
        return Answer(YES if succeeded else NO, text, found)
    with Progress("reading") as progress:
        entry = entry_of(options, progress)
        arrays = gather_inputs(entry.trace().interface, options.input, options.seed)
        context = Context("run")
        compiled = entry.compile(options_of(options), context)
        if options.state:
            restore(context, options.state)
        progress.update(f"running {entry.name}")
        results, microseconds = timed(compiled, arrays, options.calls)
    outputs = {tensor.name: array for tensor, array in zip(compiled.outputs, results)}
    if options.save:
        save_arrays(options.save, outputs)
    if options.state:
        save_arrays(options.state, {k: v for k, v in context.snapshot().items() if v is not None})
    report = compiled.report()
    lines = [line for name, array in outputs.items() for line in shown(name, array)]
    lines.append(f"{microseconds:.2f} microseconds a call ({options.calls} call{'s' * (options.calls != 1)}), "
                 f"arena {report.arena:,} bytes, lower bound {report.lower_bound:,}")
    return Answer(YES, "\n".join(lines), {
        "entry": entry.name, "inputs": [t.as_json() for t in compiled.inputs],
        "outputs": [t.as_json() | as_json(t.name, array) for t, array in zip(compiled.outputs, results)],
        "microseconds": microseconds, "calls": options.calls, "arena": report.arena, "lower_bound": report.lower_bound})


def program_of(options: argparse.Namespace) -> tuple[bytes, str] | None:
    """The text and the name of a kernel program, where the model is one."""
    from ..op_by_op.programs.run_program import program_text
    found = program_text(options.model, lambda: standard_input(options))
    if found is not None:
        check_unused(options)
    return found


def check_unused(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing to a kernel program."""
    given = [f"--{name}" for name in ("input", "shape", "save", "state") if getattr(options, name)]
    if given:
        raise Problem(f"a kernel program takes no {', '.join(given)}", kind="option", help="its functions have no arguments")


def timed(compiled: Compiled, arrays: list[Array], calls: int) -> tuple[tuple[Array, ...], float]:
    """The results of the last of some calls, and the microseconds of one."""
    execute = compiled.executable
    start = time.perf_counter()
    for _ in range(calls):
        results = execute(*arrays)
    return results, (time.perf_counter() - start) / calls * 1e6


def restore(context: Context, path: str) -> None:
    """Give the variables the values of a .npz file, if it is there."""
    from .inputs import read_arrays
    if not Path(path).exists():
        return
    state = read_arrays(path)
    if not isinstance(state, dict):
        raise Problem(f"{path} is one array, a state is a .npz file", kind="argument")
    context.restore(state)


def shown(name: str, array: Array) -> list[str]:
    values = np.array2string(array.astype(np.float64) if array.dtype.kind == "V" else array, threshold=64, edgeitems=3)
    return [f"{name}: {array.dtype.name}{list(array.shape)}", *("  " + line for line in values.split("\n"))]


def as_json(name: str, array: Array) -> dict[str, Any]:
    number = array.astype(np.float64) if array.dtype.kind in "fV" else array
    return {"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "values": plain(number.tolist())}


def plain(values: Any) -> Any:
    """Values as JSON has them: NaN and infinities as strings."""
    if isinstance(values, list):
        return [plain(v) for v in values]
    return values if not isinstance(values, float) or np.isfinite(values) else str(values)


# ---- compile, check, show, report --------------------------------------------------------------------------------
def compile(options: argparse.Namespace) -> Answer:
    """Write an object file or C source, and a C header of the entries, or a project with both."""
    from ...lowering.memory.pool_traffic import pool_traffic
    from ..aot import ArtifactForm
    from ..projects.save_project import save
    options.emit = emitted_by(options)
    form = ArtifactForm(options.self_contained, options.library, options.main, options.namespace, options.state,
                        options.emit, options.pool_form)
    with Progress("reading") as progress:
        from ...lowering.options import for_object
        model, chosen = model_of(options, progress), for_object(options_with_target(options))
        entries = [model.entry(options.entry)] if options.entry or len(model) == 1 else list(model)
        if not entries:
            raise Problem(f"{options.model} has no entry function", kind="model")
        if options.shape:
            entries = [with_shapes(entry, options, len(entries)) for entry in entries]
        lowered = []
        for entry in entries:
            progress.update(f"compiling {entry.name}")
            lowered.append(entry.lower(chosen))
        name = options.name or (Path(options.model).stem if options.model != "-" else "") or "model"
        written = save(lowered, options.output, name, form, options.project, recorded_calls(options, lowered))
    lines = [f"{path}: {path.stat().st_size:,} bytes" for path in written.paths]
    plans = [(entry.program.name, entry.plan) for entry in lowered]
    lines += [f"{name}: arena {plan.size_bytes:,} bytes, lower bound {plan.lower_bound:,}"
              f"{'' if plan.is_proved else ', not proved'}" for name, plan in plans]
    moved = {entry.program.name: pool_traffic(entry.program, entry.plan) for entry in lowered}
    lines += [f"{name}: a run moves {m.moved:,} bytes through {pool}" for name, found in moved.items()
              for pool, m in found.items() if len(found) > 1]
    lines += [described(pool) for pool in written.pools] if settings_of(options) else []
    lines += stack_lines(written.stack)
    return Answer(YES, "\n".join(lines), {
        "files": [str(path) for path in written.paths], "needs": list(written.needs), "stack": stack_json(written.stack),
        "pools": [{"name": p.title, "kind": p.kind, "bytes": p.nbytes, "state": p.state, "limit": p.limit,
                   "alignment": p.alignment} for p in written.pools],
        "entries": [{"name": name, "arena": plan.size_bytes, "lower_bound": plan.lower_bound, "is_proved": plan.is_proved,
                     "moved": [{"pool": pool, "read": m.read, "written": m.written} for pool, m in moved[name].items()],
            **entry.traced.tensors.as_json()} for (name, plan), entry in zip(plans, lowered)]})


def emitted_by(options: argparse.Namespace) -> str:
    """An object or C source, as the command line, the project and the machine have it."""
    from ...lowering.target.presets import target
    from ..projects.save_project import emitted
    is_named = options.project and not options.emit and (options.target or options.cpu)
    machine = target(options.target or "host", options.cpu, options.features) if is_named else None
    return emitted(options.emit, options.project, machine)


def recorded_calls(options: argparse.Namespace, lowered: Sequence[Lowered]) -> dict[str, list[list[Array]]] | None:
    """The calls that a project's example makes, of each entry; None where there is no project."""
    from ..projects.recording import usual_count
    from .inputs import gather_inputs
    if options.project is None:
        if options.input or options.calls:
            raise Problem("--input and --calls are for the example of a project", kind="option", help="say --project, too")
        return None
    if options.input and len(lowered) > 1:
        raise Problem(f"{options.model} has {len(lowered)} entries, and --input is for one", kind="option",
                      help="name it with --entry")
    count = options.calls or max(map(usual_count, lowered))
    return {entry.traced.name: [gather_inputs(entry.traced.interface, options.input, options.seed + number)
                                for number in range(count)] for entry in lowered}


def with_shapes(entry: Entry, options: argparse.Namespace, count: int) -> Entry:
    """The entry for the shapes that the command line gives. Where there are several, one must be named."""
    if count > 1:
        raise Problem(f"{options.model} has {count} entries, and --shape is for one", kind="option",
                      help="name it with --entry")
    return entry.specialize(shapes_of(options))


def described(pool: CPool) -> str:
    limit = "" if pool.limit is None else f" of {pool.limit:,}"
    state = f", and {pool.state:,} of variables" if pool.state else ""
    return f"{pool.kind} pool {pool.title}: {pool.nbytes:,}{limit} bytes{state}, alignment {pool.alignment}"


def stack_lines(stack: ModelStack | None) -> list[str]:
    """The stack that calls of an object take."""
    if stack is None or stack.unknown:
        return [] if stack is None else [f"stack of a call: no bound is known, {stack.unknown}"]
    from ...lowering.native.c_object.model_stack import besides
    text = besides(stack.whole)
    return [f"stack of a call: at most {stack.whole.nbytes:,} bytes{f' ({text})' if text else ''}, interrupts apart"]


def stack_json(stack: ModelStack | None) -> dict[str, Any] | None:
    """The same; None of C source. Where no bound is known, why."""
    if stack is None:
        return None
    if stack.unknown:
        return {"bytes": None, "unknown": stack.unknown}
    whole = stack.whole
    return {"bytes": whole.nbytes, "allowance": whole.allowance, "outside": list(whole.outside),
            "calls_given": whole.calls_given, "entries": {name: bound.nbytes for name, bound in stack.entries.items()}}


def check(options: argparse.Namespace) -> Answer:
    """Compiled code against the reference interpreter, and an imported model against its source; exit code 1 where they differ,
    and where an operator has an index that the specification forbids."""
    from .inputs import gather_inputs
    with Progress("reading") as progress:
        entry = entry_of(options, progress)
        function = entry.trace().interface
        calls = [gather_inputs(function, options.input, options.seed + number) for number in range(options.calls)]
        progress.update(f"checking {entry.name}")
        found = entry.check(calls, options_of(options))
    return Answer(YES if found.passes else NO, str(found), {"entry": entry.name} | found.as_dict())


def show(options: argparse.Namespace) -> Answer:
    """One stage as text; what there is behind a pass, or behind each; from a model, or from the text of a stage."""
    from ...lowering import stage_text
    if options.start:
        options.stage = options.stage or options.model or "loops"
        text = resumed(options)
        return Answer(YES, text.rstrip("\n"), {"stage": options.stage, "text": text})
    if options.model in stage_text.STAGES and options.stage not in stage_text.STAGES:
        options.model, options.stage = options.stage, options.model
    if options.model is None:
        raise Problem("show needs a model", kind="argument", help="a file, or - for standard input; or --from FILE")
    take_pipe(options)
    stage = stage_text.known_stage(options.stage or "graph")
    with Progress("reading") as progress:
        if stage == "graph" and not (options.entry or options.after or options.print_after_all):
            text = model_of(options, progress).show(options.whole)
        else:
            text = shown_of(entry_of(options, progress), stage, options)
    return Answer(YES, text.rstrip("\n"), {"stage": stage, "text": text})


def shown_of(entry: Entry, stage: str, options: argparse.Namespace) -> str:
    """A stage of an entry, or what passes make of it."""
    from ...lowering.options import CompileOptions
    from ...lowering.pipeline import start
    from ...lowering.stage_text import text_after, texts_after_all
    chosen = options_with_target(options) or CompileOptions()
    if not (options.after or options.print_after_all):
        return entry.lower(chosen).show(stage, options.whole)
    traced = entry.trace()
    state = start(traced.module, traced.name, chosen)
    if options.after:
        return printable_text(text_after(state, options.after, options.whole))
    return printable_text("\n".join(texts_after_all(state, options.whole)))


def resumed(options: argparse.Namespace) -> str:
    """A stage of what is made from the texts of stages."""
    from ...lowering import stage_text
    from ...lowering.options import CompileOptions
    stage = stage_text.known_stage(options.stage)
    texts = [(path, text_of(path)) for path in options.start]
    state = stage_text.resumed(texts, options_with_target(options) or CompileOptions())
    return printable_text(stage_text.text_of(state, stage, options.whole))


def report(options: argparse.Namespace) -> Answer:
    """Memory and time of an entry; exit code 1 where it does not fit into what --fit says."""
    from .report_command import find

    def lower(path: str, entry: str | None = options.entry) -> Lowered:
        named = argparse.Namespace(**{**vars(options), "model": path, "entry": entry})
        return entry_of(named, progress).lower(options_with_target(options))

    with Progress("reading") as progress:
        found = find(options, lower)
    return Answer(YES if found.fits else NO, found.text, found.json)


def cache(options: argparse.Namespace) -> Answer:
    """What the cache of machine code holds; with --clear, what it held."""
    from ..cache.folder import folder
    where = folder()
    if where is None:
        return Answer(YES, "the cache is off", {"folder": None, "entries": 0, "bytes": 0})
    found = where.clear() if options.clear else where.usage()
    files = f"{found.entries} file{'s' * (found.entries != 1)}, {found.nbytes:,} bytes"
    text = f"{where.path}: removed {files}" if options.clear else f"{where.path}: {files} of at most {where.limit:,}"
    return Answer(YES, text, {"folder": where.path, "entries": found.entries, "bytes": found.nbytes, "limit": where.limit})


def targets(options: argparse.Namespace) -> Answer:
    """The machines of the tables, a line each."""
    from .list_targets import list_targets
    return Answer(YES, *list_targets())


# ---- profile -----------------------------------------------------------------------------------------------------
def profile(options: argparse.Namespace) -> Answer:
    """The time of each kernel."""
    from ..aot import write_files
    from ..tools.model_explorer import measured
    from .inputs import gather_inputs
    from .model_explorer_files import shown_model
    def lower(path: str, entry: str | None = options.entry) -> Lowered:
        named = argparse.Namespace(**{**vars(options), "model": path, "entry": entry})
        return entry_of(named, progress).lower(options_of(options))

    with Progress("reading") as progress:
        folder = options.model_explorer
        shown = shown_model(options.model, folder, options.entry, lower) if folder else None
        lowered = shown.lowered if shown else lower(options.model)
        inputs = gather_inputs(lowered.traced.function, options.input, options.seed)
        progress.update("profiling")
        found = lowered.profile(inputs, options.calls)
        if options.trace:
            path = Path(options.trace)
            write_files(path.parent, {path: json.dumps(found.trace()).encode()})
    if shown is None:
        return Answer(YES, str(found), found.as_json())
    command, files = shown.write(folder, (measured(found),))
    return Answer(YES, f"{found}\n\n{command}", found.as_json() | {"model_explorer": files})


# ---- tune --------------------------------------------------------------------------------------------------------
def tune(options: argparse.Namespace) -> Answer:
    """Search for faster schedules; keep them in a file or in the cache."""
    from ...lowering.target.presets import host
    from ..cache.folder import folder
    from ..cache.programs import CodeRequest, keep_findings
    from ..tools.tune import tune as search
    from ..tools.tune import write_findings
    from .inputs import gather_inputs
    if options.output is None and folder() is None:
        raise Problem("the cache is off, so what is found would be lost", kind="option", help="-o FILE keeps it in a file")
    with Progress("reading") as progress:
        entry, chosen = entry_of(options, progress), options_of(options)
        traced = entry.trace()
        inputs = gather_inputs(traced.interface, options.input, options.seed)
        found = search(traced.lower, inputs, chosen, options.calls, progress.update)
        if options.output:
            write_findings(options.output, found, host())
        else:
            keep_findings(traced, CodeRequest(chosen), found.findings, COMPILER)
    return Answer(YES, str(found), found.as_json())


# ---- convert -----------------------------------------------------------------------------------------------------
def convert(options: argparse.Namespace) -> Answer:
    """Write a model as the name of the output says: a .tosa flatbuffer, or MLIR text."""
    from ..aot import write_files
    output = Path(options.output)
    write = WRITERS.get(output.suffix.lower())
    if write is None:
        raise Problem(f"{output} does not say what to write", kind="argument",
                      help=f"let it end in {' or '.join(WRITERS)}")
    with Progress("reading") as progress:
        model = model_of(options, progress)
        module = model.entry().specialize(shapes_of(options)).trace().module if options.shape else model.module
        progress.update(f"writing {output}")
        data = write(module)
        write_files(output.parent, {output: data})
    return Answer(YES, f"{output}: {len(data):,} bytes", {"file": str(output), "bytes": len(data)})


def as_flatbuffer(module: Module) -> bytes:
    from ...lowering.flatbuffer.writer import write_module
    return write_module(module)


def as_text(module: Module) -> bytes:
    from ...lowering.text.printer import print_module
    return print_module(module).encode()


WRITERS: dict[str, Callable[[Module], bytes]] = {".tosa": as_flatbuffer, ".mlir": as_text}
"""What `convert` writes, by the ending of the output's name."""

COMMANDS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "run": run, "compile": compile, "check": check, "show": show, "profile": profile, "tune": tune, "report": report,
    "convert": convert, "cache": cache, "targets": targets}
