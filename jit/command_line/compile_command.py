"""`tosaic compile`: an object file or C source with a header, or a project."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ..models.entry import Entry
from ..stages import Lowered
from .answer import YES, Answer
from .inputs import gather_inputs
from .memory_options import settings_of
from .model_options import model_of, noted, options_with_target, shapes_of
from .progress import Progress

if TYPE_CHECKING:
    from ...lowering.native.c_object.model_stack import ModelStack
    from ...lowering.native.c_object.pools import CPool


def compile(options: argparse.Namespace) -> Answer:
    """Write an object file or C source, and a C header of the entries, or a project with both."""
    from ...lowering.memory.pool_traffic import pool_traffic
    from ..aot import ArtifactForm
    from ..projects.save_project import save
    options.emit = emitted_by(options)
    form = ArtifactForm(options.self_contained, options.library, options.main, options.namespace, options.state,
                        options.emit, options.pool_form, options.debug)
    with Progress("reading") as progress:
        from ...lowering.options import for_object
        model, chosen = model_of(options, progress), for_object(options_with_target(options))
        chosen_entries = [model.entry(options.entry)] if options.entry or len(model) == 1 else list(model)
        entries = [noted(entry, options) for entry in chosen_entries]
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
    lines += [f"{name}: arena {plan.size_bytes:,} bytes, live {plan.live_bytes:,}"
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
        "entries": [{"name": name, "arena": plan.size_bytes, "live_bytes": plan.live_bytes, "is_proved": plan.is_proved,
                     "moved": [{"pool": pool, "read": m.read, "written": m.written} for pool, m in moved[name].items()],
            **entry.traced.tensors.as_json()} for (name, plan), entry in zip(plans, lowered)]})


def emitted_by(options: argparse.Namespace) -> str:
    """Return whether to emit an object or C source, from the command line, the project and the machine."""
    from ...lowering.target.presets import target
    from ..projects.save_project import emitted
    is_named = options.project and not options.emit and (options.target or options.cpu)
    machine = target(options.target or "host", options.cpu, options.features) if is_named else None
    return emitted(options.emit, options.project, machine)


def recorded_calls(options: argparse.Namespace, lowered: Sequence[Lowered]) -> dict[str, list[list[Array]]] | None:
    """Return the calls of each entry that a project's example makes; None if there is no project."""
    from ..projects.recording import usual_count
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
    """Return the entry for the shapes that the command line gives. If there are several entries, the user must name one."""
    if count > 1:
        raise Problem(f"{options.model} has {count} entries, and --shape is for one", kind="option",
                      help="name it with --entry")
    return entry.specialize(shapes_of(options))


def described(pool: CPool) -> str:
    limit = "" if pool.limit is None else f" of {pool.limit:,}"
    state = f", and {pool.state:,} of variables" if pool.state else ""
    return f"{pool.kind} pool {pool.title}: {pool.nbytes:,}{limit} bytes{state}, alignment {pool.alignment}"


def stack_lines(stack: ModelStack | None) -> list[str]:
    """Return the lines about the stack that calls of an object use."""
    if stack is None or stack.unknown:
        return [] if stack is None else [f"stack of a call: no bound is known, {stack.unknown}"]
    from ...lowering.native.c_object.model_stack import besides
    text = besides(stack.whole)
    return [f"stack of a call: at most {stack.whole.nbytes:,} bytes{f' ({text})' if text else ''}, interrupts apart"]


def stack_json(stack: ModelStack | None) -> dict[str, Any] | None:
    """Return the stack as JSON, or None for C source. If no bound is known, it gives the reason."""
    if stack is None:
        return None
    if stack.unknown:
        return {"bytes": None, "unknown": stack.unknown}
    whole = stack.whole
    return {"bytes": whole.nbytes, "allowance": whole.allowance, "outside": list(whole.outside),
            "calls_given": whole.calls_given, "entries": {name: bound.nbytes for name, bound in stack.entries.items()}}
