"""Colours of messages on a terminal: the kind of problem, the position, the marks, the help. NO_COLOR turns colours off and
FORCE_COLOR on, as is common (no-color.org, force-color.org). Text is coloured only after everything that could control a
terminal has been removed.
"""
from __future__ import annotations

import os
import re
from typing import TextIO

BOLD, RED, GREEN, CYAN, BLUE = "1", "1;31", "1;32", "1;36", "34"
RULES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"^(.*?: )?(error\[[\w-]*\]:|tosaic: internal error:)( .*)$"), (BOLD, RED, BOLD)),
    (re.compile(r"^( *\d* \|)( *)(\^+)$"), (BLUE, "", RED)),
    (re.compile(r"^( *\d* \|)( *)(~+)$"), (BLUE, "", CYAN)),
    (re.compile(r"^( *\d+ \|)(.*)$"), (BLUE, "")),
    (re.compile(r"^(  help:)(.*)$"), (GREEN, "")),
    (re.compile(r"^(  note:)(.*)$"), (CYAN, "")))
"""Patterns for the lines of a message, each with the colours of its parts: the first rule that matches applies."""


def is_coloured(stream: TextIO | None) -> bool:
    """True if text on this stream is coloured: on a terminal, unless the environment says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def coloured(text: str) -> str:
    """Return a message with its colours."""
    return "\n".join(map(coloured_line, text.split("\n")))


def coloured_line(line: str) -> str:
    for pattern, colours in RULES:
        found = pattern.match(line)
        if found is not None:
            return "".join(f"\x1b[{colour}m{part}\x1b[0m" if colour and part else part or ""
                           for part, colour in zip(found.groups(), colours))
    return line
