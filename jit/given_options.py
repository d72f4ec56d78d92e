"""The options that a call of the interface gives, in the new spelling or an old one. This module is separate from
`lowering/options.py` because a call without options, of code from the cache, imports nothing of the compiler.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..lowering.options import CompileOptions


def given(function: str, options: CompileOptions | None, **old: Any) -> CompileOptions | None:
    """Return the options of a call of `function`; None if it gives none. `old` are deprecated keywords."""
    if options is None and all(value is None for value in old.values()):
        return None
    from ..lowering.options import chosen
    return chosen(function, options, **old)
