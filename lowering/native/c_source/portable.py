"""The machine that C source is made for where the user names none: any one that has a C99 compiler."""
from __future__ import annotations

from ...target.presets import microcontroller
from ...target.target import Target

PORTABLE = microcontroller("c99-unknown-none", "any", "")
"""No vectors, no fused products and sums, no caches: what every processor can do, and the same bits on each."""


def c_target(chosen: Target | None) -> Target:
    """The machine that C source is made for."""
    return chosen or PORTABLE
