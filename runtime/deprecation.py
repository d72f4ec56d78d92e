"""Replaced spellings of the interface: they still work, and a DeprecationWarning at the caller's line names the new one."""
from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = (*(f"{ROOT / room}{os.sep}" for room in ("jit", "lowering", "runtime")), str(ROOT / "__init__.py"), "<string>")
"""Prefixes of the file names of the project's own code; methods of dataclasses are in <string>."""


def deprecated(old: str, new: str) -> None:
    """Warn that `old` is now spelled `new`, at the line that called the project."""
    warnings.warn(f"{old} is deprecated; write {new}", DeprecationWarning, stacklevel=caller_level())


def caller_level() -> int:
    """Return the `stacklevel` of a warning of the calling function, such that it refers to the line that called the project."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        level, frame = level + 1, frame.f_back
    return level
