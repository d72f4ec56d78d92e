"""Other ways to run a kernel than the cost model's: what a measured search (`jit.tools.tune`) tries, and how its findings are
named.

A finding says, for a kernel, which choice each of its parts is to have. The kernel is named by a digest of its expression
in which buffers have no names; a choice by its text. A text that is none of a part's alternatives changes nothing, so a
finding can make code slow, but never wrong.
"""
from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..elements.expression import Buffer, Expr
from ..kernels.kernel import Kernel
from ..kernels.text import Names
from ..target.target import Target
from .contraction import choose
from .contraction.choose import ContractionChoice
from .contraction.gemv import MatrixVectorChoice
from .contraction.padded_input import HaloChoice
from .elementwise.elementwise import MapChoice
from .window.window import WindowChoice

if TYPE_CHECKING:
    from .schedule import Choice, Part

Choices = tuple[tuple[str, tuple[str, ...]], ...]
"""Findings: the name of a kernel, and the texts of its parts' choices."""


def alternatives(part: Part, target: Target) -> tuple[Part, ...]:
    """The part as it is, then with each other choice that is worth a trial."""
    others = [c for c in others_of(part, target) if c != part.choice]
    return part, *(with_choice(part, c) for c in dict.fromkeys(others))


def with_choice(part: Part, choice: Choice) -> Part:
    halo = dataclasses.replace(part.halo, choice=choice) if part.halo and isinstance(choice, HaloChoice) else part.halo
    return dataclasses.replace(part, choice=choice, halo=halo)


def others_of(part: Part, target: Target) -> Iterator[Choice]:
    match part.choice:
        case ContractionChoice() as choice if part.form:
            yield from choose.others(part.form, choice, target)
        case HaloChoice(inner=inner) as choice if part.halo:
            yield from (dataclasses.replace(choice, inner=c) for c in choose.others(part.halo.form, inner, target))
        case WindowChoice() as choice:
            free, heights = target.vector_registers // 2, (1, 2, 4, 6, 8, 12) if choice.rows > 1 else (1,)
            yield from (dataclasses.replace(choice, rows=rows, vectors=vectors) for rows in heights
                        for vectors in (1, 2, 4) if rows * vectors <= free)
        case MatrixVectorChoice() as choice:
            yield from (dataclasses.replace(choice, rows=rows) for rows in (1, 2, 3, 4, 6, 8) if rows <= choice.rows)
        case MapChoice(lanes) as choice if lanes > 1:
            yield from (dataclasses.replace(choice, unroll=unroll) for unroll in (1, 2, 4, 8))
            if choice.streaming:
                yield dataclasses.replace(choice, streaming=False)


def chosen(kernel: Kernel, by_rows: bool, parts: Sequence[Part], target: Target) -> Sequence[Part]:
    """The parts of a kernel with the choices that the target's findings give them."""
    wanted = found(target.findings).get(name_of(kernel, by_rows)) if target.findings else None
    if wanted is None or len(wanted) != len(parts):
        return parts
    return [next((a for a in alternatives(part, target) if text_of(a) == text), part)
            for part, text in zip(parts, wanted)]


@functools.lru_cache(maxsize=16)
def found(findings: Choices) -> Mapping[str, tuple[str, ...]]:
    return dict(findings)


def text_of(part: Part) -> str:
    """A choice, with all that tells it from others."""
    return repr(part.choice)


def name_of(kernel: Kernel, by_rows: bool) -> str:
    """A digest of what the kernel computes, the same for kernels that differ in their buffers' names and data alone."""
    names = Unnamed(kernel.value)
    axes = ", ".join(f"{names.axis(a)}<{a.extent}" for a in kernel.axes)
    value = names.expression(kernel.value)
    shared = [f"{name} := {text}" for name, text in names.shared.values()]
    text = "\n".join((f"{names.buffer(kernel.out)} at [{axes}] by rows: {by_rows}", *shared, value))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Unnamed(Names):
    """Buffers by number, type, shape and role."""

    def __init__(self, whole: Expr) -> None:
        super().__init__(whole)
        self.numbers: dict[Buffer, int] = {}

    def buffer(self, buffer: Buffer) -> str:
        number = self.numbers.setdefault(buffer, len(self.numbers))
        return f"b{number}:{buffer.role}:{buffer.dtype}{list(buffer.shape)}"
