"""How the loops of a kernel run: chosen by the form of its expression and the target, never by an operator's name.

A kernel is flattened, cut where guards change, and each part is lowered by the form that fits: contraction, window,
transpose, map. A choice is a small frozen value, a pure function of form and target; `describe` prints it.
"""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from ...runtime.records import dataclass
from ..elements.affine import Affine
from ..elements.expression import Buffer, Load, Reduce
from ..elements.traverse import loads, nodes
from ..kernels.kernel import Compute, Kernel, Kernels, Parallel, Step, rebuilt, walk
from ..loops.access_order import may_overwrite
from ..loops.builder import Builder
from ..loops.ir import Function, buffers_read
from ..loops.program import Program
from ..loops.substitute import substituted
from ..row_tiling.ring_buffers import copied
from ..row_tiling.row_tiling import Interleaved, RowPolicy, interleave, ways
from ..target.target import Target
from . import fft as fourier
from .contraction import choose as contraction_choice
from .contraction import gemv as matrix_vector
from .contraction import micro_kernel as contraction
from .contraction import padded_input as halo
from .contraction import recognise as contraction_form
from .contraction.bf16_split import choose as float_parts
from .contraction.choose import ContractionChoice
from .contraction.constant_outputs import with_background
from .contraction.gemv import MatrixVectorChoice
from .contraction.padded_input import Halo, HaloChoice
from .contraction.recognise import Contraction
from .derived_constants import Derived
from .elementwise import elementwise as map
from .elementwise import transpose
from .elementwise.elementwise import MapChoice
from .elementwise.transpose import TransposeChoice
from .fft import FourierChoice
from .nest.loop_nest import Nest, flatten
from .nest.row_range import Rows
from .nest.split_nest import collapse, split
from .parallelize import DEEPEST, parts_of
from .row_reduction import fused_chain as row_blocks
from .row_reduction import lower as row_passes
from .row_reduction.lower import RowChoice
from .schedule_cache import Repeated
from .search_space import chosen
from .share import share
from .window import column_reduction as outer_sums
from .window import int8_window as byte_window
from .window import int8_window_loops as byte_window_loops
from .window import window
from .window.column_reduction import OuterSumsChoice
from .window.int8_window import ByteWindowChoice
from .window.window import WindowChoice

Choice = (ContractionChoice | ByteWindowChoice | RowChoice | OuterSumsChoice | MatrixVectorChoice | WindowChoice
          | TransposeChoice | MapChoice | FourierChoice | HaloChoice)


Ready = Callable[[Function], None]
MUCH = 1 << 20
"""Terms of a kernel that is surely worth dividing, so that it is scheduled for that at once."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a kernel and how it is lowered."""
    nest: Nest
    choice: Choice
    form: Contraction | None = None
    halo: Halo | None = None


def parts(kernel: Kernel, target: Target, by_rows: bool = False, rings: Mapping[Buffer, Buffer] = {}) -> Sequence[Part]:
    """The parts of a kernel, in order; together they write each output once."""
    if 0 in kernel.out.shape:
        return ()
    if transform := fourier.recognise(kernel, target, by_rows):
        return (Part(flatten(kernel), transform),)
    if target.precision != "f32" and in_floats(kernel, target) is not None:
        target = dataclasses.replace(target, precision="f32")
    if not (by_rows or rings) and target.precision == "f32" and (found := halo.recognise(kernel, target)):
        return chosen(kernel, by_rows, (Part(flatten(kernel), found.choice, halo=found),), target)
    nest = flatten(kernel, rings)
    return chosen(kernel, by_rows, parts_of_nest(nest, target, by_rows, may_repeat=not (by_rows or rings)), target)


def parts_of_nest(nest: Nest, target: Target, by_rows: bool, may_repeat: bool = False) -> Sequence[Part]:
    """The same of a nest; parts of it may be written twice, if that is less code."""
    by_rows = by_rows and bool(nest.axes)
    small = [collapse(piece, piece.axes[0] if by_rows else None) for piece in split(nest, by_rows, target)]
    return [choose(piece, target, by_rows) for piece in (with_background(nest, small, target) if may_repeat else small)]


def in_floats(kernel: Kernel, target: Target) -> str | None:
    """Why a kernel is computed in float32 though bfloat16 parts are allowed. It does not depend on how rows are cut."""
    nest = flatten(kernel)
    if not nest.axes or any(len(split(nest, by_rows, target)) != 1 for by_rows in (False, True)):
        return "it has several parts"
    whole, rows = (split(nest, by_rows, target)[0] for by_rows in (False, True))
    form = contraction_form.recognise(collapse(whole), False)
    by_row = contraction_form.recognise(collapse(rows, rows.axes[0]), True)
    if form is None or by_row is None or not float_parts.is_possible(by_row):
        return "its operands are not read along rows"
    return float_parts.refusal(form, target)


def choose(nest: Nest, target: Target, by_rows: bool) -> Part:
    if passes := row_passes.recognise(nest, target, by_rows):
        return Part(nest, passes)
    if form := contraction_form.recognise(nest, by_rows, target):
        return Part(nest, contraction_choice.choose(form, target), form)
    if nest.where or (nest.axes and nest.index.coefficient(nest.axes[-1]) != 1):  # neighbours lie apart: in a part of a pad
        return Part(nest, map.choose(nest, target, by_rows))
    choice = (outer_sums.recognise(nest, target, by_rows)
              or matrix_vector.recognise(nest, target, by_rows) or byte_window.recognise(nest, target, by_rows)
              or window.recognise(nest, target, by_rows) or transpose.recognise(nest, target, by_rows)
              or map.choose(nest, target, by_rows))
    return Part(nest, choice)


def schedule(kernel: Kernel, target: Target, by_rows: bool = False, rings: Mapping[Buffer, Buffer] = {},
             keeps: int = 0) -> Function:
    """The loops of a kernel. With `by_rows` the function takes the first and the last of the rows to compute: values
    of the first axis with an extent above 1. `rings` says which buffers keep only their last rows, and where
    (`fuse.interleave`); `keeps` down to which depth loops stay that run once."""
    return scheduled(kernel, target, by_rows, rings, keeps)[0]


def scheduled(kernel: Kernel, target: Target, by_rows: bool, rings: Mapping[Buffer, Buffer], keeps: int
              ) -> tuple[Function, tuple[Derived, ...] | None]:
    """The same, and what is derived from constants, where that is known."""
    b = Builder(kernel.out.name, by_rows, keeps)
    lower_into(b, kernel, target, by_rows, rings)
    function = b.finish()
    if kernel.out in buffers_read(function) and not may_overwrite(function, kernel.out, kernel.out):
        return through_scratch(kernel, target), None
    return function, tuple(b.derived)


def divided(kernel: Kernel, target: Target, threads: int, repeated: Repeated | None = None) -> tuple[Function, int]:
    """The loops of a kernel for so many threads: divided into parts, and how many; or those for one thread."""
    schedule = (repeated or Repeated(scheduled)).schedule
    plain = None if work(kernel) >= MUCH else schedule(kernel, target)
    if any(x.buffer is kernel.out for x in loads(kernel.value)) or (plain and parts_of(plain, threads) == 1):
        return plain or schedule(kernel, target), 1
    return shared_out(schedule(kernel, target, keeps=DEEPEST), lambda: plain or schedule(kernel, target), threads)


def shared_out(function: Function, plain: Callable[[], Function], threads: int) -> tuple[Function, int]:
    """A function with all of its loops, divided into parts, and how many; where that does not pay, the plain one."""
    return share(function, threads) or (plain(), 1)


def work(kernel: Kernel) -> int:
    """Elements, and terms of sums, that a kernel computes."""
    sums = {a for e in nodes(kernel.value) if isinstance(e, Reduce) for a in e.axes}
    return math.prod(a.extent for a in {*kernel.axes, *sums})


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
        lower_part(b, part, target, by_rows)


def lower_nest(b: Builder, nest: Nest, target: Target) -> None:
    """All parts of a nest, inside of the loops that are open; in floats as they are."""
    target = dataclasses.replace(target, precision="f32")
    for part in parts_of_nest(nest, target, by_rows=False):
        lower_part(b, part, target, by_rows=False)


def lower_part(b: Builder, part: Part, target: Target, by_rows: bool) -> None:
    nest = part.nest
    if part.halo:
        halo.lower(b, part.halo, target)
        return
    rows = Rows.of(b, nest.low, nest.axes[0].extent) if by_rows and nest.axes else None
    match part.choice:
        case ContractionChoice() as choice if part.form:
            contraction.lower(b, part.form, choice, target, rows)
        case ByteWindowChoice() as choice:
            byte_window_loops.lower(b, nest, choice, target, rows)
        case RowChoice() as choice:
            row_passes.lower(b, nest, choice, target, rows)
        case OuterSumsChoice() as choice:
            outer_sums.lower(b, nest, choice, target)
        case MatrixVectorChoice() as choice:
            matrix_vector.lower(b, nest, choice, target, rows)
        case WindowChoice() as choice:
            window.lower(b, nest, choice, target, rows)
        case TransposeChoice() as choice:
            transpose.lower(b, nest, choice, target, rows)
        case FourierChoice() as choice:
            fourier.lower(b, nest, choice, rows)
        case MapChoice() as choice:
            map.lower(b, nest, choice, target, rows)


def describe(kernel: Kernel, target: Target) -> str:
    """The choices for a kernel, a line for each part."""
    lines = []
    for part in parts(kernel, target):
        axes = " ".join(f"{a.name}<{a.extent}" for a in part.nest.axes) or "one element"
        lines.append(f"{part.nest.name} [{axes}] {part.choice}{instead(kernel, part, target)}")
    return "\n".join(lines)


def instead(kernel: Kernel, part: Part, target: Target) -> str:
    """Why a contraction is done in float32 where another precision is allowed."""
    if target.precision == "f32" or part.form is None or part.form.reduce.dtype != "float32":
        return ""
    why = in_floats(kernel, target)
    return f", in f32: {why}" if why else ""


def lower(kernels: Kernels, target: Target, rows: RowPolicy | None = None, threads: int = 1) -> Program:
    """Every kernel as loops. Kernels whose values in between are too large for the cache run together, some rows at a
    time; with `rows` "memory" those with which the least memory is needed, with "never" none. Steps with work enough are
    divided among so many `threads`."""
    return program_of(kernels, target, interleave(kernels, target, rows, threads), threads, Repeated(scheduled))


def lower_each_way(kernels: Kernels, target: Target, rows: RowPolicy | None = None, threads: int = 1,
                   workspace_io: bool = False, ready: Ready | None = None) -> list[Program]:
    """`lower`, with every order of the steps of which only a plan can tell which needs the least memory. `ready` is called
    with each function of the first of them as soon as it is there."""
    first, *others = ways(kernels, target, rows, threads, workspace_io)
    repeated = Repeated(scheduled)
    return [program_of(kernels, target, first, threads, repeated, ready),
            *(program_of(kernels, target, w, threads, repeated) for w in others)]


def program_of(kernels: Kernels, target: Target, together: Interleaved, threads: int, repeated: Repeated,
               ready: Ready | None = None) -> Program:
    ready = ready or (lambda function: None)
    if threads > 1:
        functions, steps = in_parts(kernels, together, target, threads, repeated, ready)
    else:
        functions = tuple(told(whole(kernels, i, together, target, repeated), ready) for i in range(len(kernels.kernels)))
        steps = together.steps
    return Program(kernels.name, kernels.inputs, kernels.outputs, kernels.kernels, functions, steps, kernels.variables,
                   kernels.faults)


def whole(kernels: Kernels, number: int, together: Interleaved, target: Target, repeated: Repeated, keeps: int = 0) -> Function:
    """The function of a kernel, not divided; without anything in it, where that of another kernel does its work."""
    if (chain := together.chain(number)) is None:
        return repeated.schedule(kernels.kernels[number], target, number in together.by_rows, together.rings)
    if number == chain.kernels[-1]:
        return row_blocks.schedule(kernels.kernels, chain, target, keeps)
    return Function(kernels.kernels[number].out.name, (), (), [])


def told(function: Function, ready: Ready) -> Function:
    """The function, of which somebody has been told."""
    ready(function)
    return function


def in_parts(kernels: Kernels, together: Interleaved, target: Target, threads: int, repeated: Repeated, ready: Ready
             ) -> tuple[tuple[Function, ...], tuple[Step, ...]]:
    """The functions for several threads, and the steps that run them."""
    beside = {s.kernel: len(group.parts) for group in walk(together.steps) if isinstance(group, Parallel)
              for part in group.parts for s in part}

    def each(i: int, kernel: Kernel) -> tuple[Function, int]:
        if together.chain(i):
            deep = whole(kernels, i, together, target, repeated, DEEPEST)
            function, parts = shared_out(deep, lambda: whole(kernels, i, together, target, repeated), threads)
            return told(function, ready), parts
        if i not in together.by_rows:
            function, parts = divided(kernel, target, threads, repeated)
            return told(function, ready), parts
        function = repeated.schedule(kernel, target, True, together.rings)
        own = {b: copied(b, beside[i]) for b in function.scratch if i in beside}
        return told(substituted(function, {**together.copies, **own}), ready), 1

    found = [each(i, kernel) for i, kernel in enumerate(kernels.kernels)]
    return tuple(f for f, _ in found), rebuilt(together.steps, lambda step: dataclasses.replace(
        step, parts=found[step.kernel][1]) if isinstance(step, Compute) else step)
