"""`tosaic run`: a call of a model, or a kernel program."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ..tools.array_files import read_arrays, save_arrays
from ..tools.call_times import times_of
from .answer import NO, YES, Answer
from .inputs import gather_inputs
from .memory_options import options_of
from .model_options import entry_of, standard_input
from .progress import Progress

if TYPE_CHECKING:
    from ...runtime.variables import Context


def run(options: argparse.Namespace) -> Answer:
    """Compile and call an entry. Return its outputs, the microseconds of a call (measured after a warm-up, on separate
    variables), and the bytes of the arena. A kernel program is run as it is."""
    from ...runtime.variables import Context
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
        state = dict(context.snapshot())
        for _ in range(options.calls):
            results = compiled.executable(*arrays)
        progress.update(f"measuring {entry.name}")
        times = times_of(compiled.executable, arrays, options.calls, state)
    outputs = {tensor.name: array for tensor, array in zip(entry.outputs, results, strict=True)}
    if options.save:
        save_arrays(options.save, outputs)
    if options.state:
        save_arrays(options.state, {k: v for k, v in context.snapshot().items() if v is not None})
    report = compiled.report()
    lines = [line for name, array in outputs.items() for line in shown(name, array)]
    lines.append(f"at least {times.least / 1e3:.3f}, median {times.median / 1e3:.3f} microseconds a call "
                 f"({options.calls} call{'s' * (options.calls != 1)}), "
                 f"arena {report.arena:,} bytes, live {report.live_bytes:,}")
    return Answer(YES, "\n".join(lines), {
        "entry": entry.name, "inputs": [t.as_json() for t in compiled.inputs],
        "outputs": [t.as_json() | as_json(name, array) for t, (name, array) in zip(compiled.outputs, outputs.items())],
        "microseconds": times.median / 1e3, "least_microseconds": times.least / 1e3, "calls": options.calls,
        "arena": report.arena, "live_bytes": report.live_bytes, "lower_bound": report.lower_bound})


def program_of(options: argparse.Namespace) -> tuple[bytes, str] | None:
    """Return the text and the name of a kernel program; None if the model is none."""
    from ..op_by_op.programs.run_program import program_text
    found = program_text(options.model, lambda: standard_input(options))
    if found is not None:
        check_unused(options)
    return found


def check_unused(options: argparse.Namespace) -> None:
    """Raise a Problem for options that have no meaning for a kernel program."""
    given = [f"--{name}" for name in ("input", "shape", "save", "state") if getattr(options, name)]
    if given:
        raise Problem(f"a kernel program takes no {', '.join(given)}", kind="option", help="its functions have no arguments")


def restore(context: Context, path: str) -> None:
    """Give the variables the values of a .npz file, if it exists."""
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
    """Return values in JSON form: NaN and infinities as strings."""
    if isinstance(values, list):
        return [plain(v) for v in values]
    return values if not isinstance(values, float) or np.isfinite(values) else str(values)
