"""How the loops of a kernel run: chosen by the form of its expression and the target, never by an operator's name.

A kernel is flattened, cut where guards change, and each part is lowered by the form that fits: contraction, window,
transpose, map. A choice is a small frozen value, a pure function of form and target; `describe` prints it.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..elements.affine import Affine
from ..elements.expression import Buffer, Load
from ..fuse.interleave import RowPolicy, interleave
from ..fuse.kernel import Kernel, Kernels
from ..loops.builder import Builder
from ..loops.ir import Function, buffers_read
from ..loops.order import may_overwrite
from ..loops.program import Program
from ..native.target import Target
from . import contraction, map, transpose, window
from .contraction import Contraction, ContractionChoice
from .map import MapChoice
from .nest import Nest, flatten
from .parts import collapse, split
from .rows import Rows
from .transpose import TransposeChoice
from .window import WindowChoice

Choice = ContractionChoice | WindowChoice | TransposeChoice | MapChoice


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a kernel and how it is lowered."""
    nest: Nest
    choice: Choice
    form: Contraction | None = None


def parts(kernel: Kernel, target: Target, by_rows: bool = False, rings: Mapping[Buffer, Buffer] = {}) -> Iterator[Part]:
    """The parts of a kernel, in order; together they write each output once."""
    nest = flatten(kernel, rings)
    by_rows = by_rows and bool(nest.axes)
    if 0 in kernel.out.shape:
        return
    for piece in split(nest, by_rows, target):
        small = collapse(piece, piece.axes[0] if by_rows else None)
        yield choose(small, target, by_rows)


def choose(nest: Nest, target: Target, by_rows: bool) -> Part:
    if form := contraction.recognise(nest, by_rows):
        return Part(nest, contraction.choose(form, target), form)
    if nest.axes and nest.index.coefficient(nest.axes[-1]) != 1:  # neighbours lie apart: in a part of a concat, a pad
        return Part(nest, map.choose(nest, target, by_rows))
    choice = (window.recognise(nest, target, by_rows) or transpose.recognise(nest, target, by_rows)
              or map.choose(nest, target, by_rows))
    return Part(nest, choice)


def schedule(kernel: Kernel, target: Target, by_rows: bool = False, rings: Mapping[Buffer, Buffer] = {}) -> Function:
    """The loops of a kernel. With `by_rows` the function takes the first and the last of the rows to compute: values
    of the first axis with an extent above 1. `rings` says which buffers keep only their last rows, and where
    (`fuse.interleave`)."""
    b = Builder(kernel.out.name, by_rows)
    lower_into(b, kernel, target, by_rows, rings)
    function = b.finish()
    if kernel.out in buffers_read(function) and not may_overwrite(function, kernel.out, kernel.out):
        return through_scratch(kernel, target)
    return function


def through_scratch(kernel: Kernel, target: Target) -> Function:
    """The loops of a kernel that reads what it overwrites, in another order: all of its values first, then the stores."""
    b = Builder(kernel.out.name)
    next_values = b.scratch(Buffer(f"{kernel.out.name}.next", kernel.out.dtype, kernel.out.shape, "scratch"))
    lower_into(b, dataclasses.replace(kernel, out=next_values), target)
    copied = Load(next_values, tuple([Affine.of(a) for a in kernel.axes]))
    lower_into(b, dataclasses.replace(kernel, value=copied), target)
    return b.finish()


def lower_into(b: Builder, kernel: Kernel, target: Target, by_rows: bool = False, rings: Mapping[Buffer, Buffer] = {}) -> None:
    """All parts of a kernel, one after the other."""
    for part in parts(kernel, target, by_rows, rings):
        nest = part.nest
        rows = Rows.of(b, nest.low, nest.axes[0].extent) if by_rows and nest.axes else None
        match part.choice:
            case ContractionChoice() as choice if part.form:
                contraction.lower(b, part.form, choice, target, rows)
            case WindowChoice() as choice:
                window.lower(b, nest, choice, target, rows)
            case TransposeChoice() as choice:
                transpose.lower(b, nest, choice, target, rows)
            case MapChoice() as choice:
                map.lower(b, nest, choice, target, rows)


def describe(kernel: Kernel, target: Target) -> str:
    """The choices for a kernel, a line for each part."""
    lines = []
    for part in parts(kernel, target):
        axes = " ".join(f"{a.name}<{a.extent}" for a in part.nest.axes) or "one element"
        lines.append(f"{part.nest.name} [{axes}] {part.choice}")
    return "\n".join(lines)


def lower(kernels: Kernels, target: Target, rows: RowPolicy | None = None) -> Program:
    """Every kernel as loops. Kernels whose values in between are too large for the cache run together, some rows at a
    time; with `rows` "memory" those with which the least memory is needed, with "never" none."""
    together = interleave(kernels, target, rows)
    functions = tuple(schedule(k, target, i in together.by_rows, together.rings) for i, k in enumerate(kernels.kernels))
    return Program(kernels.name, kernels.inputs, kernels.outputs, kernels.kernels, functions, together.steps,
                   kernels.variables, kernels.faults)
