"""Line buffers for windows over bytes: the input of a row of outputs is copied to scratch once, line by line, with the zero
point where the window leaves the input. The bytes that an output takes of a line are then one run, which the micro-kernel reads
in place: nothing is copied for each output, no output meets a condition, and overlapping windows share their copy.

K has a run of bytes for each line. A run is filled up to whole groups of the micro-kernel by the next bytes of the line, with
weights of 0.
"""
from __future__ import annotations

import math
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Buffer, Expr, Load, Reduce
from ...elements.traverse import computed, loads, rewrite, substitute
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.constant_data import is_constant
from ..nest.loop_nest import At, number_of
from ..nest.row_range import nested
from .int8.byte_factors import GROUP, byte
from .macro_kernel import Loop, packing
from .pack_a import Value, run_of, store_run
from .pattern import Contraction, LineBuffers

MAX_RUN_BYTES = 32
"""Maximum bytes that an output takes of a line, if rows are widened from lines: a copy of a longer run for each output costs
little beside the output's products. Counted: lines of longer runs took 0 to 6 % fewer instructions on Cortex-M4."""
MAX_FEW_LINES_BYTES = 512
"""Maximum bytes of all lines of a row in that case: larger lines save little for their memory. Counted: for the first layer of
MobileNetV1 with 96 x 96 positions, whose lines have 873 bytes, 0.1 % of the network's instructions on Cortex-M4."""
MAX_LINES_BYTES = 2048
"""Maximum bytes of all lines of a row, without a cache and with bytes multiplied one by one: lines then save the subtraction
from each byte of a row. Counted: convolutions of 3 x 3 took 0.75 to 0.93 of the instructions on Cortex-M3, on RV32 0.87 to
1.04."""
LINES_L1_PART = 2
"""Divisor: on machines with a cache, lines take at most half of the first-level cache."""
MIN_ROWS = 4
"""Minimum outputs of a row for which a copy is worth it."""
SLACK_BYTES = 16
"""Bytes after the last line, if products take lanes of vectors: these load a whole vector anywhere in a run."""
START = Affine()


def with_lines(pattern: Contraction, target: Target) -> Contraction | None:
    """Return the contraction with line buffers; None if these are impossible or no gain."""
    group, found = group_of(target), byte(pattern.a)
    if group is None or found is None or pattern.m is None or pattern.rows < MIN_ROWS or not is_constant(pattern.b):
        return None
    x, zero_point = found
    run = run_of(x, pattern.reduce.axes, ())
    if computed(x.index) or x.index[0].hidden & {pattern.m, *run} or not is_worthwhile(pattern, x, run):
        return None
    inside = places_inside(pattern, x, run)
    if inside is None or not is_run_of_weights(pattern, run):
        return None
    made = reading_lines(pattern, x, zero_point, run, inside, group, SLACK_BYTES * target.has_lane_products)
    return made if is_small(made.lines, run, target) else None


def group_of(target: Target) -> int | None:
    """Return the bytes of a run that are multiplied at a time; None if lines are no gain, or have not been measured. Counted:
    on Cortex-M55 keyword spotting took 4 % more instructions, and a third more memory, because its kernels were then tiled
    differently by rows."""
    if target.dot_product == "s8s8":
        return GROUP
    return 1 if target.has_widening_products or target.vector_bytes == 1 else None


def is_worthwhile(pattern: Contraction, x: Load, run: tuple[Axis, ...]) -> bool:
    """True if there is no gap between windows or between their columns, and rows cannot be read in place."""
    length, step = math.prod(a.extent for a in run), x.index[0].coefficient(pattern.m)
    lines = pattern.reduce.axes[:-len(run)]
    overlap = any(2 * abs(x.index[0].coefficient(a)) < length_of(pattern, x, run) for a in lines if a not in x.index[0].hidden)
    is_plain = run == pattern.reduce.axes and not pattern.reduce.where
    return x.index[0].coefficient(run[-1]) == 1 and 0 < step <= length and not (is_plain or overlap)


def is_small(lines: LineBuffers | None, run: tuple[Axis, ...], target: Target) -> bool:
    """True if the copy is small for the machine."""
    assert lines
    if target.has_cache:
        return lines.buffer.nbytes <= target.l1_bytes // LINES_L1_PART
    if target.vector_bytes == 1 and not target.has_dual_multiply:
        return lines.buffer.nbytes <= MAX_LINES_BYTES
    return math.prod(a.extent for a in run) <= MAX_RUN_BYTES and lines.buffer.nbytes <= MAX_FEW_LINES_BYTES


def places_inside(pattern: Contraction, x: Load, run: tuple[Axis, ...]) -> range | None:
    """Return the range of positions of a line that the input has, counted from the first position that a row reads. Return None
    if a condition is neither on lines nor on positions of a line."""
    assert pattern.m
    along, low, high = {pattern.m, *run}, 0, length_of(pattern, x, run)
    for w in pattern.reduce.where:
        if not w.index.axes & along:
            continue
        pitch = x.index[0].coefficient(pattern.m) // (w.index.coefficient(pattern.m) or 1)
        seen = [a for a in along if w.index.coefficient(a)]
        within = sum((a.extent - 1) * x.index[0].coefficient(a) for a in along if a not in seen)
        if w.index.axes - along or w.index.hidden or pattern.m not in seen or within >= pitch or any(
                x.index[0].coefficient(a) != w.index.coefficient(a) * pitch for a in seen):
            return None
        low, high = max(low, pitch * (w.low - w.index.const)), min(high, pitch * (w.high - w.index.const))
    return range(low, high) if low < high else None


def length_of(pattern: Contraction, x: Load, run: tuple[Axis, ...]) -> int:
    """Return the bytes of a line that the windows of a row of outputs cover."""
    return x.index[0].coefficient(pattern.m) * (pattern.rows - 1) + math.prod(a.extent for a in run)


def is_run_of_weights(pattern: Contraction, run: tuple[Axis, ...]) -> bool:
    """True if the weights of a run are evenly spaced, too, and no condition is on weights alone."""
    inner = [math.prod(a.extent for a in run[i + 1:]) for i in range(len(run))]
    even = all(y.index[0].coefficient(a) == y.index[0].coefficient(run[-1]) * n and not set(run) & y.index[0].hidden
               for y in loads(pattern.b) for a, n in zip(run, inner))
    return even and not computed(i for y in loads(pattern.b) for i in y.index) and not pattern.inside


def reading_lines(pattern: Contraction, x: Load, zero_point: int, run: tuple[Axis, ...], inside: range, group: int,
                  slack: int) -> Contraction:
    """Return the contraction that reads line buffers, with the description of the buffers."""
    nest, reduce, m = pattern.nest, pattern.reduce, pattern.m
    assert m
    terms = math.prod(a.extent for a in run)
    k, place = Axis("run", -(-terms // group) * group), Axis("place", inside.stop)
    length, lines = length_of(pattern, x, run) + k.extent - terms, reduce.axes[:-len(run)]
    count = math.prod(a.extent for a in lines)
    buffer = Buffer(f"{nest.name}.lines", x.dtype, (count * length + slack,), "scratch")
    first = {a: START for a in (m, *run)}
    source = Load(x.buffer, (x.index[0].substitute({**first, run[-1]: Affine.of(place)}),))
    where = tuple(w for w in reduce.where if not w.index.axes & {m, *run})
    read = Load(buffer, (number_of(lines, {a: Affine.of(a) for a in lines}) * length
                         + Affine.of(m) * x.index[0].coefficient(m) + k,))
    a = rewrite(pattern.a, lambda e: read if e is x else None)
    b = substitute(pattern.b, {**{axis: START for axis in run}, run[-1]: Affine.of(k)})
    filling = (Range(Affine.of(k), 0, terms),) if terms < k.extent else ()
    total = Reduce(reduce.primitive, (*lines, k), product(reduce.body, pattern, a, b), filling)
    value = rewrite(nest.value, lambda e: total if e is reduce else None)
    buffers = LineBuffers(buffer, source, lines, place, length, inside, where, zero_point)
    return replace(pattern, nest=replace(nest, value=value), reduce=total, a=a, b=b, lines=buffers)


def product(body: Expr, pattern: Contraction, a: Expr, b: Expr) -> Expr:
    return rewrite(body, lambda e: a if e is pattern.a else b if e is pattern.b else None)


@dataclass(frozen=True, slots=True)
class LineCopy:
    """The copy that fills the line buffers of a contraction."""
    b: Builder
    target: Target
    lines: LineBuffers

    def fill(self, at: At) -> None:
        """Fill all lines of a row of outputs."""
        nested(self.b, self.lines.axes, at, self.line)
        end = math.prod(a.extent for a in self.lines.axes) * self.lines.length
        self.store(Affine.of(end), range(self.lines.buffer.size - end), self.outside)

    def line(self, at: At) -> None:
        lines = self.lines
        start = number_of(lines.axes, at) * lines.length
        self.store(start, range(lines.inside.start), self.outside)
        self.store(start, range(lines.inside.stop, lines.length), self.outside)
        where = [r for r in (w.substitute(at) for w in lines.where) if r.known is not True]
        if not where:
            self.store(start, lines.inside, self.copied(at))
            return
        holds = self.b.holds(where)
        self.b.when(holds, lambda: self.store(start, lines.inside, self.copied(at)))
        self.b.when(self.b.op("xor", holds, Literal(1, holds.type)), lambda: self.store(start, lines.inside, self.outside))

    def copied(self, at: At) -> Value:
        x, place = self.lines.source, self.lines.place
        return lambda first, lanes, active: self.b.load(
            x.buffer, x.index[0].substitute({**at, place: first}), lanes, active)

    def outside(self, first: Affine, lanes: int, active: int) -> Operand:
        return Literal(self.lines.fill, Type(self.lines.buffer.dtype, lanes))

    def store(self, start: Affine, places: range, value: Value) -> None:
        """Store these positions of the line that begins at `start`."""
        store_run(self.b, self.target, self.lines.buffer, start, places, value)


def line_copies(b: Builder, pattern: Contraction, target: Target) -> list[Loop]:
    """Return the loop that fills line buffers at each point of the outer axes; none if the pattern has no line buffers."""
    if pattern.lines is None:
        return []
    b.scratch(pattern.lines.buffer)
    copy = LineCopy(b, target, pattern.lines)
    return [packing(lambda place: copy.fill(place.at))]
