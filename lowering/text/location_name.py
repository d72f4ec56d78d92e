"""The model's name of an operation in MLIR's `loc(...)`: exporters write the name of the tensor or of the operator there."""
from __future__ import annotations

import re

from .strings import unescape
from .syntax import SyntaxFault

QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:\s*\d)?', re.DOTALL)
"""Pattern of a name, or of a file name with its line number."""


def location_name(location: str | None) -> str | None:
    """Return the first name in a location, or None. TensorFlow writes `fused["MatMul:", "dense/MatMul@function"]`: the kind of
    the operation, and its name in a function."""
    try:
        names = [unescape(found).decode("utf-8", "replace") for found, line in QUOTED.findall(location or "") if not line]
    except SyntaxFault:
        return None
    if len(names) > 1 and names[0].endswith(":"):
        names = [names[1].split("@")[0], *names[1:]]
    return next((name for name in names if name), None)
