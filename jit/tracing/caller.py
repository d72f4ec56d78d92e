"""The user's place: the line and columns of the innermost frame outside this package and NumPy, which operations and errors
carry."""
from __future__ import annotations

import sys
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

from ...runtime.errors import Position, Source

PACKAGE = Path(__file__).parents[2]
OURS = (*(str(Path(PACKAGE, folder)) + "/" for folder in ("jit", "lowering", "runtime")), str(Path(np.__file__).parent) + "/")
"""Where no user's code is: this package, and NumPy, which calls it."""


def caller() -> Position | None:
    """The place in the user's Python code that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return None if frame is None else place(frame.f_code, frame.f_lasti, frame.f_lineno)


@lru_cache(maxsize=4096)
def place(code: CodeType, instruction: int, line: int) -> Position:
    """The source range of an instruction; Python counts its columns in bytes of UTF-8."""
    source = Source(code.co_filename)
    _, end_line, start, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    text = source.line(line)
    if start is None or end is None or text is None:
        return Position(source, line, 1)
    data = text.encode()
    column = len(data[:start].decode(errors="replace"))
    last = len(data[:end].decode(errors="replace")) if end_line == line else len(text)
    return Position(source, line, column + 1, max(1, last - column))
