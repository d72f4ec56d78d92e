"""`tosaic check | profile | tune | report`: commands that run or measure a model."""
from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...lowering.graph.graph import Function
from ...runtime.errors import Problem
from ...runtime.limits import TooManyIterations, bounded_iterations, seconds_left
from ..stages import COMPILER, Lowered
from ..tools.steered_loops import steers_a_loop
from .answer import NO, YES, Answer
from .inputs import drawn, gather_inputs
from .memory_options import options_of
from .model_options import entry_of, options_with_target
from .progress import Progress

RANDOM_ITERATIONS = 20_000
"""Iterations in one call of loops that random inputs steer: a few seconds in the interpreter."""


def check(options: argparse.Namespace) -> Answer:
    """Compare compiled code with the reference interpreter, and an imported model with its source; exit code 1 if they differ,
    or if an operator has an index that the specification forbids."""
    with Progress("reading") as progress:
        entry = entry_of(options, progress)
        function = entry.trace().interface
        calls = [gather_inputs(function, options.input, options.seed + number) for number in range(options.calls)]
        progress.update(f"checking {entry.name}")
        with bounded_loops(function, options):
            found = entry.check(calls, options_of(options))
    return Answer(YES if found.passes else NO, str(found), {"entry": entry.name} | found.as_dict())


@contextmanager
def bounded_loops(function: Function, options: argparse.Namespace) -> Iterator[None]:
    """Bound the iterations of loops whose trip counts depend on random inputs, unless there is a deadline. Beyond the bound,
    raise a Problem that names the inputs."""
    steering = [v.name for v in drawn(function, options.input) if steers_a_loop(function, v)]
    has_deadline = seconds_left() is not None
    try:
        with bounded_iterations(RANDOM_ITERATIONS if steering and not has_deadline else None):
            yield
    except TooManyIterations as problem:
        raise Problem(f"{problem.message} with random numbers for {', '.join(steering)}", problem.position, kind="argument",
                      help=f"give numbers with which it ends, --input {steering[0]}=FILE.npy, or the time that it may take, "
                      "--limits seconds=60") from None


def report(options: argparse.Namespace) -> Answer:
    """Report memory and time of an entry; exit code 1 if it does not fit into the memories of --fit."""
    from .report_command import find

    def lower(path: str, entry: str | None = options.entry) -> Lowered:
        named = argparse.Namespace(**{**vars(options), "model": path, "entry": entry})
        return entry_of(named, progress).lower(options_with_target(options))

    with Progress("reading") as progress:
        found = find(options, lower)
    return Answer(YES if found.fits else NO, found.text, found.json)


def profile(options: argparse.Namespace) -> Answer:
    """Report the time of each kernel."""
    from ..aot import write_files
    from ..tools.model_explorer import measured
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
        found = lowered.profile(inputs, options.calls, options.traced_calls if options.trace else 1)
        if options.trace:
            path = Path(options.trace)
            write_files(path.parent, {path: json.dumps(found.trace()).encode()})
    if shown is None:
        return Answer(YES, str(found), found.as_json())
    command, files = shown.write(folder, (measured(found),))
    return Answer(YES, f"{found}\n\n{command}", found.as_json() | {"model_explorer": files})


def tune(options: argparse.Namespace) -> Answer:
    """Search for faster schedules, and keep them in a file or in the cache."""
    from ...lowering.target.presets import host
    from ..cache.folder import folder
    from ..cache.programs import CodeRequest, keep_findings
    from ..many.tune_trials import trials_on
    from ..tools.tune import tune as search
    from ..tools.tune import write_findings
    if options.output is None and folder() is None:
        raise Problem("the cache is off, so what is found would be lost", kind="option", help="-o FILE keeps it in a file")
    with Progress("reading") as progress:
        entry, chosen = entry_of(options, progress), options_of(options)
        traced = entry.trace()
        inputs = gather_inputs(traced.interface, options.input, options.seed)
        with trials_on(options.scheduler, traced) as trials:
            found = search(traced.lower, inputs, chosen, options.calls, progress.update, trials)
        if options.output:
            write_findings(options.output, found, host())
        else:
            keep_findings(traced, CodeRequest(chosen), found.findings, COMPILER)
    return Answer(YES, str(found), found.as_json())
