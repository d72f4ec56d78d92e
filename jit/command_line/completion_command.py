"""`tosaic completion SHELL`: a script that completes commands, options and files, made from the parser by the library shtab."""
from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ...runtime.errors import Problem
from .answer import YES, Answer

FILES, FOLDERS = ("MODEL", "FILE", "OTHER", "OUT"), ("DIR", "FOLDER")
"""Prefixes of the placeholder names of values that are files and folders."""


def completion(options: argparse.Namespace) -> Answer:
    """Return the completion script of a shell, for the folder in which that shell looks for it."""
    try:
        import shtab
    except ImportError:
        raise Problem("completion needs the package shtab", kind="option", help="pip install shtab") from None
    from .cli import parser
    whole = parser()
    for action in actions(whole):
        mark(action, shtab.FILE, shtab.DIRECTORY)
    script = shtab.complete(whole, options.shell)
    return Answer(YES, script.rstrip("\n"), {"shell": options.shell, "script": script})


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options and arguments of a parser and of its commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions(command)
        else:
            yield action


def mark(action: argparse.Action, file: Any, folder: Any) -> None:
    """Mark an option whose value is a file, a folder, or one of a few words."""
    from ...lowering.stage_text import STAGES
    named = str(action.metavar or "").strip("[]")
    if named == "STAGE":
        action.choices = STAGES
    elif named.startswith(FOLDERS):
        action.complete = folder  # type: ignore[attr-defined]
    elif named.startswith(FILES) or named.endswith("SOURCE"):
        action.complete = file  # type: ignore[attr-defined]
