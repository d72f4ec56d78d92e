"""The locations of operation calls, and the errors that a client receives. A location is any object that the client passes; by
default it is the position in the client's Python code, of which only the identifying parts are taken at first.
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
    """True if the code belongs to this package."""
    return code.co_filename.startswith(OURS)


def caller() -> CodeLocation | None:
    """Return the innermost running position outside this package."""
    frame = sys._getframe(1)
    while is_ours(frame.f_code):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return CodeLocation(frame.f_code, frame.f_lasti, frame.f_lineno)


def line_of(code: CodeType, instruction: int, line: int) -> Position:
    """Return the line alone as a position."""
    return Position(Source(code.co_filename), line, 1)


def caller_position() -> Position | None:
    """Return the caller's line."""
    where = caller()
    return None if where is None else line_of(*where)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error at its origin. `location` is the client's, or None; `decoded` is its position, if known."""
    message: str
    location: object
    decoded: Position | None
    op_name: str
    problem: Problem
