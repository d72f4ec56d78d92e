"""Products by register tiles, without cache blocks: the tiles, the packing, and the order of the loops. Each tile of rows
passes all panels; or each panel passes all rows before the next panel, if panels are large for the cache.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from ...elements.affine import Affine, Axis, Range
from ...loops.builder import Builder
from ...target.target import Target
from ..nest.padding_conditions import PaddingConditions
from ..nest.row_range import RowRange
from ..nest.tile_axis import Cut, Tiles, balanced, interior
from ..vectorize.epilogue import EpilogueWriter
from .border_tiles import MAX_ROW_VECTORS, grouped_panels, heights
from .choice import ContractionChoice, code_of, machine, may_repeat
from .layout import width_of
from .line_buffers import line_copies
from .macro_kernel import START, Loop, MacroKernel, packing, run
from .micro_kernel import MicroKernel, Step, epilogue, in_vectors
from .micro_kernels import widening
from .micro_kernels.dot2 import Dot2
from .micro_kernels.dot4 import Dot4
from .micro_kernels.dot8 import Dot8Kernel
from .micro_kernels.dual_multiply import DualMultiply
from .micro_kernels.multiply import Multiply
from .micro_kernels.multiply_bytes import ByteMultiply
from .pack_panels import depth_of_panels
from .pattern import Contraction
from .prefetch import Prefetching

Make = Callable[[Builder, Contraction, ContractionChoice, Target, Cut, Axis | None], Step]
STEPS: Mapping[str, Make] = {"fma": Multiply.of, "multiply": Multiply.of, "dot2": Dot2.of, "dot4": Dot4.of,
                             "dot8": Dot4.of, "dual": DualMultiply.of, "pairs": DualMultiply.of, "bytes": ByteMultiply.of,
                             "widen": widening.WideningMultiply.of}
"""Functions that make the step of a choice, for panels and groups of rows, by the name of the step."""
KERNELS: Mapping[str, type[MicroKernel]] = {"dot8": Dot8Kernel}
"""Steps with a micro-kernel of their own."""
MAX_COUNTED_PLACES = 128
"""Maximum number of points of outer axes at which rows of outputs are counted."""


def alike_in_each(pattern: Contraction, choice: ContractionChoice, conditions: PaddingConditions) -> Tiles | None:
    """Return tiles of one size for the rows of outputs that exist at each point of the outer axes, whose number varies; the
    last tile recomputes rows. Return None if such tiles are impossible."""
    if pattern.m is None or not pattern.tested or conditions.rows or not may_repeat(pattern, choice.lanes):
        return None
    counts = counts_of_rows(pattern.m, pattern.tested)
    most, fewest = max(counts, default=0), min(counts, default=0)
    size = min(balanced(most, choice.tile.rows)[0].size, fewest) if most else 0
    return Tiles(0, size, -(-most // size)) if size > 1 else None


def counts_of_rows(m: Axis, tested: Sequence[Range]) -> set[int]:
    """Return the numbers of rows that occur at points of the other axes; nothing if there are too many points."""
    others = sorted({a for w in tested for a in w.index.axes} - {m}, key=lambda a: a.name)
    if math.prod(a.extent for a in others) > MAX_COUNTED_PLACES or any(w.index.hidden for w in tested):
        return set()
    places = ({a: Affine.of(i) for a, i in zip(others, at)} for at in itertools.product(*(range(a.extent) for a in others)))
    found = (interior(m, [w.substitute(at) for w in tested]) for at in places)
    return {high - low for low, high in found}


def lower(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """Write the loops: see `macro_kernel`."""
    groups = Axis("group", pattern.rows // choice.group) if choice.group else None
    conditions, widths = PaddingConditions.of(pattern.reduce, pattern.m, pattern.n), choice.cut(pattern.n.extent, target)
    wide = widths if choice.columns_first or choice.tile.rows == 1 else grouped_panels(widths, most_of_a_row(choice, target))
    step = STEPS[choice.step](b, pattern, choice, target, widths, groups)
    kernel, macro = micro_kernel(b, pattern, choice, step, target, widths, wide), MacroKernel(b, pattern)
    tiles, panels = row_tiles(macro, choice, target, conditions, wide, step, groups), macro.panels(widths, wide)
    fill, copies = step.fills, line_copies(b, pattern, target)
    batches, places = macro.outer(fill is not None or bool(choice.columns_first and pattern.batch), rows)
    loops = [batches]
    if fill:
        loops.append(packing(lambda place: b.outside(depth_of_panels(b, pattern), lambda: fill(place.at))))
    if not choice.columns_first:
        loops += [places, *copies, tiles, *([packing(step.pack)] if step.packs_rows else []), panels]
    else:
        loops += [macro.places((groups,))] if groups else []
        loops += [packing(lambda place: run([places, *copies, tiles], step.pack, place))] if step.packs_rows else []
        loops += [panels, places, *([] if step.packs_rows else copies), tiles]
    run(loops, kernel.tile)


def micro_kernel(b: Builder, pattern: Contraction, choice: ContractionChoice, step: Step, target: Target, widths: Cut,
                 wide: Cut) -> MicroKernel:
    largest = max(count * width_of(vectors) for count, cut in ((choice.tile.rows, widths), (1, wide))
                  for _, vectors in cut)
    prefetching = Prefetching.of(b, pattern, step.panels.buffer if choice.prefetching else None, target, step.group)
    writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, largest, known=step.known)
    kernel, finish = KERNELS.get(choice.step, MicroKernel), epilogue(writer)
    if choice.step == "widen" and target.has_lane_products:
        finish = in_vectors(b, target.lanes(4), finish)
    return kernel(b, pattern, step, target, finish, prefetching)


def row_tiles(macro: MacroKernel, choice: ContractionChoice, target: Target, conditions: PaddingConditions, wide: Cut,
              step: Step, groups: Axis | None) -> Loop:
    """Return the loop over tiles of rows: those of a group, or all."""
    pattern = macro.pattern
    if pattern.m is None:
        return macro.rows([Tiles(0, 1, 1)])
    if equal := alike_in_each(pattern, choice, conditions):
        return macro.equal_rows(equal)
    steps = pattern.depth * pattern.iterations * math.prod(a.extent for a in pattern.outer)
    free = (0, choice.group) if choice.group else interior(pattern.m, (*conditions.rows, *pattern.tested))
    lines = heights(choice.group or pattern.rows, free, choice.tile, conditions.by_single_rows, wide, steps,
                    machine(pattern, choice.step, target), bool(pattern.tested), code_of(pattern, step.group),
                    may_repeat(pattern, choice.lanes), conditions.fractions(pattern.m), step.test_cycles)
    return macro.rows(lines, True, Affine.of(groups) * (pattern.rows // groups.extent) if groups else START)


def most_of_a_row(choice: ContractionChoice, target: Target) -> int:
    """Return the maximum number of vectors of columns for a single row."""
    match choice.step:
        case "dual" | "pairs":
            return target.costs.dual_row_columns
        case "widen":
            return widening.MAX_ROW_VECTORS
    return MAX_ROW_VECTORS
