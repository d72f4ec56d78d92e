"""Where an operation was called, and what a client learns of an error. A location is whatever the client passes; without one
it is the place in the client's Python code, of which only what identifies it is taken at first.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from ..errors import Position, Problem, Source

PACKAGE = Path(__file__).parents[2]
OURS = tuple(str(Path(PACKAGE, folder)) + "/" for folder in ("jit", "lowering", "runtime"))

Place = Callable[[CodeType, int, int], Position]


class CodeLocation(NamedTuple):
    """An instruction of Python code."""
    code: CodeType
    instruction: int
    line: int


@functools.lru_cache(maxsize=4096)
def is_ours(code: CodeType) -> bool:
    """True if it is code of this package."""
    return code.co_filename.startswith(OURS)


def caller() -> CodeLocation | None:
    """The innermost place outside this package that is running."""
    frame = sys._getframe(1)
    while is_ours(frame.f_code):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return CodeLocation(frame.f_code, frame.f_lasti, frame.f_lineno)


def line_of(code: CodeType, instruction: int, line: int) -> Position:
    """The line alone, as a position."""
    return Position(Source(code.co_filename), line, 1)


def caller_position() -> Position | None:
    """The caller's line."""
    where = caller()
    return None if where is None else line_of(*where)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error where it began. `location` is what the client passed, or None; `decoded` what is known of it as a position."""
    message: str
    location: object
    decoded: Position | None
    op_name: str
    problem: Problem
