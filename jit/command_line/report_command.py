"""`tosaic report`: the figures that its options ask for, of a model or of a saved report."""
from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ..models.read import read_bytes
from ..tools.report import Report, report, saved

if TYPE_CHECKING:
    from ...lowering.target.boards import Board
    from ..stages import Lowered

Lower = Callable[..., "Lowered"]
"""Reads the model at a path, and lowers the entry that the options name, or another one."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to the options, as text and as JSON; `fits` determines the exit code."""
    text: str
    json: dict[str, Any]
    fits: bool = True


def find(options: argparse.Namespace, lower: Lower) -> Found:
    """Return the figures of a model; with --fit a table of memories, with --boards a table of boards, with --html a page in a
    file, with --diff the changes from the model to another.

    With --model-explorer node data for that program. JSON: the keys of `Report.as_dict`, and `fit` (`Fit.as_dict`), `html` (the
    file) and `model_explorer` (`model`, and `data`, files) on request; with --diff those of `Diff.as_dict`.
    """
    from ..tools.report.fit import fit, parse_limits
    limits = parse_limits(options.fit) if options.fit is not None else ()
    if options.diff:
        return compare(options, lower)
    if options.model_explorer:
        return show_in_model_explorer(options, lower)
    facts = facts_of(options.model, options, lower)
    verdict = fit(facts, limits, options.io_elsewhere) if limits else None
    parts = [str(verdict)] if verdict else []
    if options.boards:
        from ..tools.report.text import board_table
        parts.append("\n".join(board_table(facts.boards)))
    answer = facts.as_dict() | ({"fit": verdict.as_dict()} if verdict else {})
    if options.html:
        from ..tools.report.page import page
        parts.append(write(options.html, page(facts, title_of(options, facts), verdict)))
        answer["html"] = options.html
    on_a_board = not options.boards or any(board.fits for board in facts.boards)
    return Found("\n\n".join(parts) or str(facts), answer, on_a_board and (verdict is None or verdict.fits))


def compare(options: argparse.Namespace, lower: Lower) -> Found:
    """Return the changes from the model to the one of --diff."""
    from ..tools.report.diff import diff
    check_alone(options, "diff")
    found = diff(facts_of(options.model, options, lower), facts_of(options.diff, options, lower))
    return Found(str(found), found.as_dict())


def show_in_model_explorer(options: argparse.Namespace, lower: Lower) -> Found:
    """Write node data to the folder of --model-explorer, and return the command that shows them."""
    from ..tools.model_explorer import static_measures
    from .model_explorer_files import shown_model
    check_alone(options, "model_explorer")
    model = shown_model(options.model, options.model_explorer, options.entry, lower)
    command, files = model.write(options.model_explorer, static_measures(model.lowered))
    return Found(command, {"model_explorer": files})


def check_alone(options: argparse.Namespace, name: str) -> None:
    """Raise a Problem if another option asks for another answer."""
    for other in ("fit", "boards", "html", "diff", "model_explorer"):
        if other != name and getattr(options, other):
            first, second = (n.replace("_", "-") for n in (name, other))
            raise Problem(f"--{first} and --{second} do not go together", kind="option", help="give them one at a time")


def facts_of(path: str, options: argparse.Namespace, lower: Lower) -> Report:
    """Return the report of a model, or the report in a file. Code is measured if the answer counts it; a page that is not
    checked against memories is checked against all boards."""
    from ...lowering.target.boards import ALL, boards_named
    asked = options.boards or (ALL if options.html and not options.fit else "")
    boards = boards_named(asked) if asked else ()
    if path != "-" and is_json(path):
        return with_boards(saved.read(read_bytes(path)[0], path), options.boards, boards, path, options.io_elsewhere)
    from ..tools.report.judge_boards import judge_boards
    lowered = lower(path)
    judged = judge_boards(lowered, boards, options.io_elsewhere) if boards else ()
    return report(lowered, ladder=True, code=bool(options.code or options.fit or options.html), boards=judged)


def with_boards(found: Report, asked: str | None, boards: Sequence[Board], path: str, io_elsewhere: bool) -> Report:
    """Return a saved report with the requested boards, which must be among those that were judged when the report was made."""
    if not asked:
        return found
    if io_elsewhere:
        raise Problem(f"the boards of {path} were judged when it was made, without --io-elsewhere", kind="option",
                      help="give the model")
    known = {board.name: board for board in found.boards}
    missing = [board.name for board in boards if board.name not in known]
    if missing:
        raise Problem(f"{path} says nothing of {', '.join(missing)}", kind="option",
                      help="code cannot be compiled from a report: give the model")
    return replace(found, boards=tuple(known[board.name] for board in boards))


def is_json(path: str) -> bool:
    """True if a file is a JSON object, and so no model."""
    try:
        with open(path, "rb") as file:
            start = file.read(64).split()
    except OSError:  # the code that reads the whole file reports it
        return False
    return bool(start) and b"".join(start)[:2] in (b'{"', b"{}")


def title_of(options: argparse.Namespace, facts: Report) -> str:
    return f"{Path(options.model).name}: {facts.name}" if options.model != "-" else facts.name


def write(path: str, text: str) -> str:
    """Write a page, and return a line about it."""
    from ..aot import write_files
    data = text.encode()
    write_files(Path(path).parent, {Path(path): data})
    return f"{path}: {len(data):,} bytes"
