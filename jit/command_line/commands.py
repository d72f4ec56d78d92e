"""The commands of `tosaic`, by name: each takes the parsed options and returns an `Answer`. The module of a command is imported
when the command is used.

Nothing here prints or ends the process; `cli` does.
"""
from __future__ import annotations

import argparse
from importlib import import_module

from ...runtime.errors import Problem
from .answer import Answer
from .limits_option import limits_of

MODULES = {
    "run": "run_command", "compile": "compile_command", "show": "show_command", "convert": "convert_command",
    "check": "measure_commands", "profile": "measure_commands", "tune": "measure_commands", "report": "measure_commands",
    "info": "info_command", "map": "map_command", "cache": "cache_command", "targets": "cache_command",
    "doctor": "doctor_command", "completion": "completion_command"}
"""The module of each command, which has a function of the command's name."""


SPELLED = {"start": "from"}
"""Options whose attribute has another name than the option."""


def carry_out(options: argparse.Namespace) -> Answer:
    """Return the answer of the command that the options name."""
    from .model_options import take_pipe
    check_not_empty(options)
    take_pipe(options)
    module = import_module(f".{MODULES[options.command]}", __package__)
    with limits_of(getattr(options, "limits", None)):
        answer: Answer = getattr(module, options.command)(options)
    return answer


def check_not_empty(options: argparse.Namespace) -> None:
    """Raise a Problem for an option with an empty value, which would be taken for an option that is not given. A list of
    features may be empty."""
    for name, value in vars(options).items():
        values = value if isinstance(value, list) else [value]
        if name != "features" and any(isinstance(x, str) and not x.strip() for x in values):
            said = name.upper() if name in ("model", "stage") else f"--{SPELLED.get(name, name).replace('_', '-')}"
            raise Problem(f"{said} is empty", kind="option", help="give it a value, or leave it out")
