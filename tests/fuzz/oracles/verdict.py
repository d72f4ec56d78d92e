"""All oracles on one case. What fails is an error of the compiler, whatever exception says so."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import tosaic
from tosaic.jit.stages import Lowered, Traced, prepared
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.graph.verify import verify

from .kernels import check_kernels, check_loops, check_text_of_loops
from .memory import check_plans
from .native import USABLE, check_native, check_operators
from .reference import Expected
from .text import check_text


@dataclass(frozen=True, slots=True)
class Depth:
    """How much is checked: which targets, on which of them each operator and each statement of the loops."""
    targets: tuple[str, ...] = tuple(USABLE)
    operators: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    text: bool = True


def check(module: Module, calls: tuple[tuple[Array, ...], ...], depth: Depth = Depth()) -> Expected:
    """Hold every stage of a module's compilation against the interpreter."""
    verify(module)
    if depth.text:
        check_text(module)
    prepared(module)
    expected = Expected.of(module, calls)
    seen = False
    for name in usable(depth.targets):
        lowered: Lowered = Traced(module, "main").lower(tosaic.CompileOptions(USABLE[name]))
        if not seen:
            check_kernels(lowered, calls, expected)
            seen = True
        if name in depth.loops:
            check_loops(lowered, calls, expected)
            check_text_of_loops(lowered)
            check_plans(lowered)
        check_native(lowered, calls, expected, name)
        if name in depth.operators:
            check_operators(lowered, calls, name)
    return expected


def usable(names: Iterable[str]) -> Iterable[str]:
    """Those of the targets whose code this machine can run."""
    return (n for n in names if n in USABLE)
