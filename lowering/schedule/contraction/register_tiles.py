"""Products by register tiles, not in blocks: which tiles there are, what is packed, and in which order the loops stand. Rows
pass all panels, tile by tile; or each panel passes all rows before the next one comes, if panels are much for the cache.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Expr
from ...loops.builder import Builder
from ...target.target import Target
from ..nest.loop_nest import At
from ..nest.padding_conditions import PaddingConditions
from ..nest.row_range import RowRange
from ..nest.tile_axis import Cut, Tiles, balanced, interior
from ..vectorize.epilogue import EpilogueWriter
from .border_tiles import MAX_ROW_VECTORS, grouped_panels, heights
from .choose import ContractionChoice, code_of, machine, may_repeat
from .int8 import dot8_tiles, widening
from .int8.dot8_kernel import Dot8Kernel
from .int8.dual_multiply import DualMultiply
from .int8.multiply_bytes import ByteMultiply
from .int8.vnni import Dot4
from .macro_kernel import START, Loop, MacroKernel, Run, packing, run
from .micro_kernel import MicroKernel, Step, epilogue, in_vectors
from .micro_kernels.multiply import Multiply
from .pack_b import Panels, depth_of_panels, pack_at_run_time, packed, unpacked
from .pattern import Contraction
from .prefetch import Prefetching

MAX_COUNTED_PLACES = 128
"""Of outer axes, for which rows of outputs are not counted."""


def alike_in_each(pattern: Contraction, choice: ContractionChoice, conditions: PaddingConditions) -> Tiles | None:
    """Tiles of one size for the rows of outputs that there are at each place of the outer axes, more here and fewer there; the
    last computes rows again."""
    if pattern.m is None or not pattern.tested or conditions.rows or not may_repeat(pattern, choice.lanes):
        return None
    counts = counts_of_rows(pattern.m, pattern.tested)
    most, fewest = max(counts, default=0), min(counts, default=0)
    size = min(balanced(most, choice.tile.rows)[0].size, fewest) if most else 0
    return Tiles(0, size, -(-most // size)) if size > 1 else None


def counts_of_rows(m: Axis, tested: Sequence[Range]) -> set[int]:
    """How many rows there are, at each place of the other axes; nothing where these places are many."""
    others = sorted({a for w in tested for a in w.index.axes} - {m}, key=lambda a: a.name)
    if math.prod(a.extent for a in others) > MAX_COUNTED_PLACES or any(w.index.hidden for w in tested):
        return set()
    places = ({a: Affine.of(i) for a, i in zip(others, at)} for at in itertools.product(*(range(a.extent) for a in others)))
    found = (interior(m, [w.substitute(at) for w in tested]) for at in places)
    return {high - low for low, high in found}


def lower(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """The loops: see `macro_kernel`."""
    if choice.step == "dot4" and rows:
        choice = replace(choice, columns_first=False, prefetching=False, group=None)
    groups = Axis("group", pattern.rows // choice.group) if choice.group else None
    conditions, widths = PaddingConditions.of(pattern.reduce, pattern.m, pattern.n), choice.cut(pattern.n.extent, target)
    wide = widths if choice.columns_first or choice.tile.rows == 1 else grouped_panels(widths, most_of_a_row(choice, target))
    found = operands(b, pattern, choice, target, conditions, widths, groups)
    kernel, macro = micro_kernel(b, pattern, choice, found, target, widths, wide), MacroKernel(b, pattern)
    tiles, panels = row_tiles(macro, choice, target, conditions, wide, found, groups), macro.panels(widths, wide)
    batches, places = macro.outer(found.fill is not None or bool(choice.columns_first and pattern.batch), rows)
    loops = [batches, *found.pack_b(b, pattern)]
    pack_a = found.pack_a
    if not choice.columns_first:
        loops += [places, tiles, *([packing(pack_a)] if pack_a else []), panels]
    else:
        loops += [macro.places((groups,))] if groups else []
        loops += [packing(lambda place: run([places, tiles], pack_a, place))] if pack_a else []
        loops += [panels, places, tiles]
    run(loops, kernel.tile)


def micro_kernel(b: Builder, pattern: Contraction, choice: ContractionChoice, found: Operands, target: Target, widths: Cut,
                 wide: Cut) -> MicroKernel:
    largest = max(count * sum(p.lanes for p in vectors) for count, cut in ((choice.tile.rows, widths), (1, wide))
                  for _, vectors in cut)
    prefetching = Prefetching.of(b, pattern, found.panels.buffer if choice.prefetching else None, target, found.step.group)
    writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, largest, known=found.known)
    kernel = Dot8Kernel if choice.step == "dot8" else MicroKernel
    finish = epilogue(writer)
    if choice.step == "widen" and target.has_lane_products:
        finish = in_vectors(b, target.lanes(4), finish)
    return kernel(b, pattern, found.step, found.panels, target, finish, prefetching)


def row_tiles(macro: MacroKernel, choice: ContractionChoice, target: Target, conditions: PaddingConditions, wide: Cut,
              found: Operands, groups: Axis | None) -> Loop:
    """The loop over tiles of rows: those of a group, or all."""
    pattern = macro.pattern
    if pattern.m is None:
        return macro.rows([Tiles(0, 1, 1)])
    if equal := alike_in_each(pattern, choice, conditions):
        return macro.equal_rows(equal)
    steps = pattern.depth * pattern.iterations * math.prod(a.extent for a in pattern.outer)
    free = (0, choice.group) if choice.group else interior(pattern.m, (*conditions.rows, *pattern.tested))
    lines = heights(choice.group or pattern.rows, free, choice.tile, conditions.by_single_rows, wide, steps,
                    machine(pattern, choice.step, target), bool(pattern.tested), code_of(pattern, found.step.group),
                    may_repeat(pattern, choice.lanes), conditions.fractions(pattern.m), found.test_cycles)
    return macro.rows(lines, True, Affine.of(groups) * (pattern.rows // groups.extent) if groups else START)


def most_of_a_row(choice: ContractionChoice, target: Target) -> int:
    """Vectors of columns beside a single row, at most."""
    match choice.step:
        case "dual" | "pairs":
            return target.costs.dual_row_columns
        case "widen":
            return widening.MAX_ROW_VECTORS
    return MAX_ROW_VECTORS


@dataclass(frozen=True, slots=True)
class Operands:
    """The step of K and the panels; `fill` packs these for the batch at a place, if that is not done while compiling, `pack_a`
    the rows of a tile, if they are packed. `known` is what the sums are in the value of the nest, `test_cycles` what a test
    costs where rows are packed."""
    step: Step
    panels: Panels
    fill: Callable[[At], None] | None
    known: Expr
    pack_a: Run | None = None
    test_cycles: float | None = None

    def pack_b(self, b: Builder, pattern: Contraction) -> list[Loop]:
        """What fills panels, outside of the loops that they do not depend on."""
        fill = self.fill
        return [packing(lambda place: b.outside(depth_of_panels(b, pattern), lambda: fill(place.at)))] if fill else []


def operands(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, conditions: PaddingConditions,
             widths: Cut, groups: Axis | None) -> Operands:
    if choice.step == "dot4":
        dot = Dot4.of(b, pattern, choice.tile.rows, target, widths, choice.columns_first, groups)
        return Operands(dot, dot.panels, dot.fill, dot.packed.known, dot.pack if dot.rows else None, dot.test_cycles)
    if choice.step == "dot8":
        dot8 = Dot4.of(b, pattern, choice.tile.rows, target, widths, group=dot8_tiles.GROUP)
        return Operands(dot8, dot8.panels, None, dot8.packed.known, dot8.pack if dot8.rows else None, dot8.test_cycles)
    if choice.step in ("dual", "pairs"):
        dual = DualMultiply.of(b, pattern, target, widths, conditions, choice.tile, choice.wide_weights)
        return Operands(dual, dual.panels, None, dual.packed.known, dual.pack if dual.staged else None, dual.test_cycles)
    if choice.step == "bytes":
        single = ByteMultiply.of(b, pattern, target, widths, conditions)
        return Operands(single, single.panels, None, single.packed.known)
    if choice.step == "widen":
        widened = widening.WideningMultiply.of(b, pattern, choice.tile.rows, target, widths)
        return Operands(widened, widened.panels, None, widened.packed.known, widened.pack if widened.rows else None,
                        widened.test_cycles)
    step = Multiply(b, target, pattern, conditions)
    match choice.packing:
        case "compiling":
            return Operands(step, packed(b, pattern, widths, target), None, pattern.reduce)
        case "running":
            return Operands(step, *pack_at_run_time(b, pattern, widths, target), pattern.reduce)
    return Operands(step, unpacked(pattern), None, pattern.reduce)
