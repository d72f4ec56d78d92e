"""The user's source position, which operations and errors carry: the line and columns of the innermost frame that belongs
neither to this package, nor to Python's own library, nor to an installed package."""
from __future__ import annotations

import os
import sys
import sysconfig
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

from ...runtime.errors import Position, Source

PACKAGE = Path(__file__).parents[2]
OURS = tuple(str(folder) + os.sep for folder in (*(PACKAGE / room for room in ("jit", "lowering", "runtime")),
                                                  Path(np.__file__).parent))
"""Folders of this package, and that of NumPy, which calls this package."""
LIBRARIES = (*{str(Path(folder)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")
               if (folder := sysconfig.get_path(name))}, "<frozen ")
"""Folders of Python's own library and of installed packages, and the prefix of modules inside the interpreter."""


def caller() -> Position | None:
    """Return the position in the user's Python code that is running; if all of that code is installed, its innermost
    position."""
    frame = outside(sys._getframe(1), OURS)
    chosen = outside(frame, (*OURS, *LIBRARIES)) or frame
    return None if chosen is None else place(chosen.f_code, chosen.f_lasti, chosen.f_lineno)


def first_place(error: BaseException) -> Position | None:
    """Return the outermost position in the user's Python code that an exception has come through, below the frame that caught
    it."""
    link = error.__traceback__
    while link is not None and link.tb_frame.f_code.co_filename.startswith((*OURS, *LIBRARIES)):
        link = link.tb_next
    return None if link is None else place(link.tb_frame.f_code, link.tb_lasti, link.tb_lineno)


def outside(frame: FrameType | None, folders: tuple[str, ...]) -> FrameType | None:
    """Return the innermost frame, from this one outward, whose file is in none of the folders."""
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return frame


@lru_cache(maxsize=4096)
def place(code: CodeType, instruction: int, line: int) -> Position:
    """Return the source range of an instruction; Python counts its columns in bytes of UTF-8."""
    source = Source(code.co_filename)
    _, end_line, start, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    text = source.line(line)
    if start is None or end is None or text is None:
        return Position(source, line, 1)
    data = text.encode()
    column = len(data[:start].decode(errors="replace"))
    last = len(data[:end].decode(errors="replace")) if end_line == line else len(text)
    return Position(source, line, column + 1, max(1, last - column))
