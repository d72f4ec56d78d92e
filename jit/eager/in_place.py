"""Kernels that may write a result over an argument: which ones, as the order of their loads and stores shows, and how they are
called then.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ...runtime.arena import Array
from ..compiled import Compiled

Into = Callable[[Sequence[Array], Sequence[Array]], None]


def in_place_kernel(compiled: Compiled) -> tuple[tuple[tuple[int, ...], ...], Into | None]:
    """The arguments that each result may be written over, and the way to run with given results; nothing where no argument is
    known to be read before it is written."""
    return (), None
