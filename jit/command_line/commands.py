"""The commands of `tosaic`, by name: each takes the parsed options and gives an `Answer`. Its module is imported when it is
used.

Nothing here prints or ends the process; `cli` does.
"""
from __future__ import annotations

import argparse
from importlib import import_module

from .answer import Answer
from .limits_option import limits_of

MODULES = {
    "run": "run_command", "compile": "compile_command", "show": "show_command", "convert": "convert_command",
    "check": "measure_commands", "profile": "measure_commands", "tune": "measure_commands", "report": "measure_commands",
    "info": "info_command", "map": "map_command", "cache": "cache_command", "targets": "cache_command",
    "doctor": "doctor_command", "completion": "completion_command"}
"""The module that a command is in, where a function has its name."""


def carry_out(options: argparse.Namespace) -> Answer:
    """The answer of the command that the options name."""
    from .model_options import take_pipe
    take_pipe(options)
    module = import_module(f".{MODULES[options.command]}", __package__)
    with limits_of(getattr(options, "limits", None)):
        answer: Answer = getattr(module, options.command)(options)
    return answer
