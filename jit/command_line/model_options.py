"""The model, the entry and the compile options that a command line names."""
from __future__ import annotations

import argparse
import io
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...runtime.errors import Problem, printable
from ..models import front_door
from ..models.dynamic_shapes import named_shape
from ..models.entry import Entry
from ..models.load_model import at_level
from ..models.model import Model
from ..models.read import first_bytes
from ..models.stated_shapes import stated_note
from .memory_options import options_of
from .progress import Progress

if TYPE_CHECKING:
    from ...lowering.options import CompileOptions


def standard_input(options: argparse.Namespace) -> bytes:
    """Return all of standard input, which can be read once."""
    if getattr(options, "standard_input", None) is None:
        options.standard_input = sys.stdin.buffer.read()
    data: bytes = options.standard_input
    return data


def take_pipe(options: argparse.Namespace) -> None:
    """Treat a named pipe, which shells create for <(...), as standard input from here on, as it can be read once."""
    model = getattr(options, "model", None) or "-"
    if model != "-" and is_pipe(model):
        options.standard_input, options.model = first_bytes(model, -1), "-"


def is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def model_of(options: argparse.Namespace, progress: Progress) -> Model:
    """Return the model that the command line names; `-` is standard input."""
    progress.update(f"reading {options.model}")
    if options.model == "-":
        return at_level(front_door.load(io.BytesIO(standard_input(options)), "<stdin>"), options.level)
    return at_level(front_door.load(path_of(options.model)), options.level)


def path_of(model: str) -> Path | str:
    """Return the path that a command line names; an address stays as it is, for the message."""
    return model if "://" in model else Path(model)


def entry_of(options: argparse.Namespace, progress: Progress) -> Entry:
    entry = noted(model_of(options, progress).entry(options.entry), options)
    progress.update(f"compiling {entry.name}")
    return entry.specialize(shapes_of(options)) if options.shape else entry


def noted(entry: Entry, options: argparse.Namespace) -> Entry:
    """Return the entry unchanged, after a note on standard error of the shapes that were taken from the file."""
    note = None if options.shape else stated_note(entry)
    if note:
        print(f"note: {printable(note)}", file=sys.stderr)
    return entry


def shapes_of(options: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the command line gives inputs, by name."""
    return dict(map(named_shape, options.shape))


def options_with_target(options: argparse.Namespace) -> CompileOptions | None:
    """Return the compile options of a command that takes a machine."""
    from ...lowering.target.presets import target
    from ..tools.tune import read_findings
    machine = target(options.target or named_by_default(options), options.cpu, options.features)
    found = options_of(options, machine, read_findings(options.tuning) if options.tuning else ())
    if found is None or options.schedule is None:
        return found
    from ...lowering.schedule.schedule_text import ScheduleText
    return replace(found, schedule=ScheduleText(text_of(options.schedule), options.schedule))


def named_by_default(options: argparse.Namespace) -> str:
    """Return the machine to use if none is named: this one, or "any" for C source (a processor determines its machine
    itself)."""
    return "any" if getattr(options, "emit", "object") == "c" and not (options.cpu or options.features) else "host"


def text_of(path: str) -> str:
    """Return the text of a schedule's file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}", kind="file") from None
    except ValueError:
        raise Problem(f"{path} is no text", kind="file", help="tosaic show MODEL schedule prints a schedule") from None
