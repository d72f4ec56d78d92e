"""Kernels -> functions of the loop IR, with a record of the schedule of each.

A kernel is flattened and cut where guards change, and each nest gets the first strategy that recognises it (`strategies`). So
the loops follow from the pattern of the expression and from the target, never from an operator's name.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ...runtime.errors import Position, Problem, printable
from ...runtime.limits import checkpoint
from ...runtime.progress import counted
from ...runtime.records import dataclass
from ..elements.affine import Affine
from ..elements.expression import Buffer, Load, Reduce
from ..elements.traverse import loads, nodes
from ..kernels.kernel import Compute, Kernel, Kernels, Parallel, rebuilt, walk
from ..loops.builder import Builder
from ..loops.dependence.access_order import may_overwrite
from ..loops.ir import Function, buffers_read
from ..loops.program import Program
from ..loops.schedule_record import ChainRecord, KernelRecord, NestRecord, RowRecord, TaskRecord
from ..loops.substitute_buffers import substituted
from ..row_tiling.ring_buffers import copied
from ..row_tiling.row_access import row_dimension
from ..row_tiling.row_chains import RowChain
from ..row_tiling.row_tiling import RowPolicy, TiledByRows, tile_by_rows, ways
from ..target.target import Target
from .contraction import recognise as contraction
from .contraction.bf16_split import choose as limbs
from .contraction.constant_outputs import with_background
from .contraction.contraction_strategies import ContractionStrategy
from .contraction.padded_input import PaddedInput
from .elementwise.elementwise import ONE_BY_ONE, Elementwise
from .fft import FourierTransform
from .float_vectors import machine_for
from .nest.loop_nest import Nest, flatten
from .nest.row_range import RowRange
from .nest.split_nest import collapse, split
from .parallelize import MAX_DIVIDED_DEPTH, Shared, share, share_among, task_count
from .row_reduction import fused_chain
from .schedule_cache import NONE, Rings, ScheduleCache, Scheduled, ScheduleRequest
from .schedule_text import ScheduleText, lines_of
from .search_space import Choices, as_asked, record_of, tuned
from .strategies import NestPhases, choose
from .strategy import Constraints, Precision, Strategy, Weights
from .winograd import winograd
from .winograd.winograd import Winograd

Ready = Callable[[Function], None]
MIN_SURELY_DIVIDED_TERMS = 1 << 20
"""Minimum number of terms of a kernel that is surely worth dividing, so that it is scheduled for several threads at once."""


# ---- one kernel ------------------------------------------------------------------------------------------------------
def strategies_of(kernel: Kernel, request: ScheduleRequest) -> Sequence[Strategy]:
    """Return the strategies of the nests of a kernel, in order; together they write every output."""
    if 0 in kernel.out.shape:
        return ()
    constraints = Constraints(machine_for(kernel.value, kernel.out, request.target), request.precision, request.by_rows,
                              request.weights, request.keeps > 0)
    if request.plain:
        return [Elementwise(flatten(kernel, request.rings), request.target, ONE_BY_ONE)]
    if transform := FourierTransform.recognise(kernel, constraints):
        return (transform,)
    if request.precision == "winograd" and (filtered := Winograd.recognise(kernel, constraints)):
        return tuned((filtered,), kernel, request.by_rows, request.findings)
    if request.precision != "f32" and in_floats(kernel, request.target, request.precision) is not None:
        constraints = replace(constraints, precision="f32")
    if not request.rings and (padded := PaddedInput.recognise(kernel, constraints)):
        return tuned((padded,), kernel, request.by_rows, request.findings)
    found = of_nest(flatten(kernel, request.rings), constraints, may_repeat=not (request.by_rows or request.rings))
    return tuned(found, kernel, request.by_rows, request.findings)


def of_nest(nest: Nest, constraints: Constraints, may_repeat: bool = False) -> Sequence[Strategy]:
    """Return the strategies of the pieces of a nest. With `may_repeat`, outputs may be written twice, if that is less code."""
    by_rows, target = constraints.by_rows and bool(nest.axes), constraints.target
    constraints = replace(constraints, by_rows=by_rows)
    pieces = split(nest, by_rows, target, NestPhases(constraints))
    small: Sequence[Nest] = [collapse(piece, piece.axes[0] if by_rows else None) for piece in pieces]
    return [choose(piece, constraints) for piece in (with_background(nest, small, target) if may_repeat else small)]


def in_floats(kernel: Kernel, target: Target, precision: Precision) -> str | None:
    """Return the reason why a kernel takes plain sums of float32 although another precision is allowed, or None. The reason
    against limbs does not depend on how rows are cut; a minimal filter is for whole kernels."""
    if precision == "winograd":
        return winograd.refusal(kernel, target) or "it is tiled by rows"
    nest, uses = flatten(kernel), NestPhases(Constraints(target, precision))
    if not nest.axes or any(len(split(nest, by_rows, target, uses)) != 1 for by_rows in (False, True)):
        return "it is cut into several loop nests"
    whole, rows = (split(nest, by_rows, target, uses)[0] for by_rows in (False, True))
    pattern = contraction.recognise(collapse(whole), False)
    by_row = contraction.recognise(collapse(rows, rows.axes[0]), True)
    if pattern is None or by_row is None or not limbs.is_possible(by_row):
        return "its operands are not read along rows"
    return limbs.refusal(pattern, target, precision)


def instead(kernel: Kernel, strategies: Sequence[Strategy], request: ScheduleRequest) -> str:
    """Return the reason why a contraction is computed in float32 although another precision is allowed, or ''."""
    sums = [s.inner if isinstance(s, PaddedInput) else s for s in strategies]
    has_floats = any(isinstance(s, ContractionStrategy) and s.pattern.reduce.dtype == "float32" for s in sums)
    if request.precision == "f32" or not has_floats:
        return ""
    return in_floats(kernel, request.target, request.precision) or ""


def schedule(kernel: Kernel, target: Target, by_rows: bool = False, rings: Rings = NONE, keeps: int = 0,
             precision: Precision = "f32", findings: Choices = ()) -> Function:
    """Return the loops of a kernel. With `by_rows` the function takes the bounds of the rows to compute: values of the first
    axis with an extent above 1. `rings` maps each buffer that keeps only its last rows to its ring buffer (`row_tiling`);
    `keeps` is the depth down to which loops stay that run once."""
    return scheduled(kernel, ScheduleRequest(target, precision, by_rows, rings, keeps, findings)
                     ).function


def scheduled(kernel: Kernel, request: ScheduleRequest) -> Scheduled:
    """Return the loops of a kernel with the record of its schedule."""
    checkpoint()
    asked = request.asked
    if asked and asked.nests and asked.nests[0].name.startswith(printable(f"{kernel.out.name}.next")):
        return through_scratch(kernel, request)
    b = Builder(kernel.out.name, request.by_rows, request.keeps)
    found = strategies_of(kernel, request)
    if asked is not None:
        found = as_asked(found, asked.nests, asked)
    lower_all(b, found, request.by_rows)
    function = b.finish()
    if kernel.out in buffers_read(function) and not may_overwrite(function, kernel.out, kernel.out):
        return through_scratch(kernel, replace(request, asked=None))
    return Scheduled(function, tuple(map(record_of, found)), tuple(b.derived), instead(kernel, found, request))


def through_scratch(kernel: Kernel, request: ScheduleRequest) -> Scheduled:
    """Schedule a kernel that would read elements after overwriting them: compute all values first, then store them."""
    b = Builder(kernel.out.name)
    next_values = b.scratch(Buffer(f"{kernel.out.name}.next", kernel.out.dtype, kernel.out.shape, "scratch"))
    values = replace(kernel, out=next_values)
    stores = replace(kernel, value=Load(next_values, tuple([Affine.of(a) for a in kernel.axes])))
    plain = replace(request, by_rows=False, rings=NONE, keeps=0, asked=None)
    found = [*strategies_of(values, plain), *strategies_of(stores, plain)]
    if request.asked is not None:
        found = list(as_asked(found, request.asked.nests, request.asked))
    lower_all(b, found, by_rows=False)
    return Scheduled(b.finish(), tuple(map(record_of, found)))


def lower_all(b: Builder, strategies: Sequence[Strategy], by_rows: bool) -> None:
    """Write the loops of all nests of a kernel, one after the other."""
    for strategy in strategies:
        nest = strategy.nest
        strategy.lower(b, RowRange.of(b, nest.low, nest.axes[0].extent) if by_rows and nest.axes else None)


def describe(kernel: Kernel, target: Target, precision: Precision = "f32", findings: Choices = ()) -> str:
    """Return the schedule of a kernel by itself, as text: a line for each nest."""
    request = ScheduleRequest(target, precision, findings=findings)
    found = strategies_of(kernel, request)
    record = KernelRecord(kernel.origin, tuple(map(record_of, found)), in_floats=instead(kernel, found, request))
    return "\n".join(line.strip() for line in list(lines_of(0, record))[1:])


# ---- one kernel for several threads ----------------------------------------------------------------------------------
def divided(kernel: Kernel, request: ScheduleRequest, threads: int, cache: ScheduleCache | None = None
            ) -> tuple[Scheduled, Shared | None]:
    """Schedule a kernel for `threads` threads and divide its function into tasks; schedule it for one thread if dividing it
    does not pay."""
    schedule = (cache or ScheduleCache(scheduled)).schedule
    plain = None if work(kernel) >= MIN_SURELY_DIVIDED_TERMS else schedule(kernel, request)
    if not may_divide(kernel) or (plain and task_count(plain.function, threads, request.target.costs) == 1):
        return plain or schedule(kernel, request), None
    deep = schedule(kernel, replace(request, keeps=MAX_DIVIDED_DEPTH))
    found = share(deep.function, threads, request.target.costs)
    return (deep, found) if found else (plain or schedule(kernel, request), None)


def divided_as_asked(kernel: Kernel, request: ScheduleRequest, record: KernelRecord, cache: ScheduleCache
                     ) -> tuple[Scheduled, Shared | None]:
    """Schedule a kernel with the number of tasks that a schedule text gives."""
    if record.tasks is None:
        return cache.schedule(kernel, request), None
    deep = cache.schedule(kernel, replace(request, keeps=MAX_DIVIDED_DEPTH))
    return deep, among(deep.function if may_divide(kernel) else None, record, request.target)


def among(function: Function | None, record: KernelRecord, target: Target) -> Shared:
    """Divide a function into the number of tasks that a schedule text gives."""
    assert record.tasks
    if function is None or (found := share_among(function, record.tasks.count, target.costs)) is None:
        raise Problem(f"the work of {record.origin!r} cannot be divided into {record.tasks.count} tasks", record.tasks.position,
                      kind="schedule", help="leave the line of tasks out: then it is not divided")
    return found


def may_divide(kernel: Kernel) -> bool:
    """True if a kernel reads nothing that it writes."""
    return all(x.buffer is not kernel.out for x in loads(kernel.value))


def work(kernel: Kernel) -> int:
    """Return the number of terms of a kernel: its elements, times the terms of its sums."""
    sums = {a for e in nodes(kernel.value) if isinstance(e, Reduce) for a in e.axes}
    return math.prod(a.extent for a in {*kernel.axes, *sums})


# ---- a program -------------------------------------------------------------------------------------------------------
def lower(kernels: Kernels, target: Target, rows: RowPolicy | None = None, threads: int = 1,
          precision: Precision = "f32", findings: Choices = (), asked: ScheduleText | None = None,
          weights: Weights = "int8") -> Program:
    """Lower every kernel to loops. Kernels whose intermediate tensors are too large for the cache run together, some rows at a
    time; with `rows` "memory", these are the kernels with which the least memory is needed; with "never", there are none. Steps
    with enough work are divided among `threads` threads. `asked` is the text of a schedule, if one is given."""
    tiled = tile_by_rows(kernels, target, rows, threads, with_minimal_filters(kernels, target, precision))
    request = ScheduleRequest(target, precision, findings=findings, weights=weights)
    return Lowering(kernels, tiled, request, threads, ScheduleCache(scheduled), records_of(asked, kernels)).program()


def lower_each_way(kernels: Kernels, target: Target, rows: RowPolicy | None = None, threads: int = 1,
                   workspace_io: bool = False, ready: Ready | None = None, precision: Precision = "f32",
                   findings: Choices = (), asked: ScheduleText | None = None, weights: Weights = "int8",
                   plain: bool = False) -> list[Program]:
    """Do the work of `lower` for each order of the steps that may need the least memory; only a memory plan can tell which.
    Call `ready` with each function of the first order as soon as the function is complete. With `plain`, compute elements one
    by one."""
    request = ScheduleRequest(target, precision, findings=findings, weights=weights, plain=plain)
    cache = ScheduleCache(scheduled)
    found = ways(kernels, target, rows, threads, workspace_io, with_minimal_filters(kernels, target, precision))
    records = records_of(asked, kernels)
    if records is not None:  # the schedule does not fit ways with other rows than its own
        found = [way for way in found if has_rows(kernels, way, records)] or found[:1]
    return [Lowering(kernels, way, request, threads, cache, records, None if number else ready).program()
            for number, way in enumerate(found)]


def with_minimal_filters(kernels: Kernels, target: Target, precision: Precision) -> frozenset[int]:
    """Return the kernels that take a minimal filter unless they are tiled by rows."""
    if precision != "winograd":
        return frozenset()
    return frozenset(i for i, k in enumerate(kernels.kernels) if Winograd.recognise(k, Constraints(target)))


@dataclass(slots=True)
class Lowering:
    """The lowering of a program's kernels to loops, in one order of the steps. `asked` are the schedules of a schedule text."""
    kernels: Kernels
    tiled: TiledByRows
    request: ScheduleRequest
    threads: int
    cache: ScheduleCache
    asked: Sequence[KernelRecord] | None = None
    ready: Ready | None = None

    def program(self) -> Program:
        """Lower all kernels and return the program."""
        k = self.kernels
        rows = row_records(k, self.tiled)
        for record, other in zip(rows, self.asked or ()):
            check_rows(record, other)
        functions: list[Function] = []
        records: list[KernelRecord] = []
        chained: dict[int, Sequence[NestRecord]] = {}
        for i, kernel in enumerate(counted("schedule", k.kernels)):
            chain = self.tiled.chain(i)
            with noted(kernel):
                made, tasks = self.of_chain(i, chain, chained) if chain else self.alone(i, kernel)
            functions.append(made.function)
            records.append(replace(rows[i], nests=made.nests, tasks=tasks, in_floats=made.in_floats))
            if self.ready:
                self.ready(made.function)
        schedules = tuple([replace(r, nests=tuple(chained.get(i, r.nests))) for i, r in enumerate(records)])
        counts = [record.tasks.count if record.tasks else 1 for record in schedules]
        steps = rebuilt(self.tiled.steps, lambda step: replace(step, tasks=counts[step.kernel]) if isinstance(
            step, Compute) and counts[step.kernel] > 1 else step)
        return Program(k.name, k.inputs, k.outputs, k.kernels, tuple(functions), steps, k.variables, k.faults, schedules)

    def alone(self, number: int, kernel: Kernel) -> tuple[Scheduled, TaskRecord | None]:
        """Schedule a kernel that has a function of its own."""
        record = self.asked[number] if self.asked is not None else None
        by_rows, rings = number in self.tiled.by_rows, self.tiled.rings
        request = replace(self.request, asked=record)
        if self.threads == 1 or by_rows:
            if record and record.tasks:
                raise among_one(record)
            made = self.cache.schedule(kernel, replace(request, by_rows=by_rows, rings=rings))
            return (replace(made, function=self.own_copies(number, made.function)) if by_rows else made), None
        made, shared = (divided_as_asked(kernel, request, record, self.cache) if record
                        else divided(kernel, request, self.threads, self.cache))
        return (replace(made, function=shared.function), shared.tasks) if shared else (made, None)

    def own_copies(self, number: int, function: Function) -> Function:
        """Return the function of a kernel that runs by rows, with private memory for each of the tasks that run in parallel."""
        if self.threads == 1:
            return function
        beside = beside_each_other(self.tiled)
        own = {b: copied(b, beside[number]) for b in function.scratch if number in beside}
        return substituted(function, {**self.tiled.copies, **own})

    # ---- kernels whose loops are inside those of another -------------------------------------------------------------
    def of_chain(self, number: int, chain: RowChain, chained: dict[int, Sequence[NestRecord]]
                 ) -> tuple[Scheduled, TaskRecord | None]:
        """Return the function of a kernel of a chain. The function of the last kernel does the work of all; the others are
        empty. Note the nests of all kernels of the chain in `chained`."""
        if number != chain.kernels[-1]:
            return Scheduled(Function(self.kernels.kernels[number].out.name, (), (), [])), None
        record = self.asked[number] if self.asked is not None else None
        if self.threads == 1:
            if record and record.tasks:
                raise among_one(record)
            return Scheduled(self.chain_function(chain, 0, chained)), None
        if record and not record.tasks:
            return Scheduled(self.chain_function(chain, 0, chained)), None
        deep, target = self.chain_function(chain, MAX_DIVIDED_DEPTH, chained), self.request.target
        shared = among(deep, record, target) if record else share(deep, self.threads, target.costs)
        if shared is None:
            return Scheduled(self.chain_function(chain, 0, chained)), None
        return Scheduled(shared.function), shared.tasks

    def chain_function(self, chain: RowChain, keeps: int, chained: dict[int, Sequence[NestRecord]]) -> Function:
        noted: dict[int, list[NestRecord]] = {i: [] for i in chain.kernels}

        def lower_nest(b: Builder, number: int, nest: Nest) -> None:
            """Write the loops of a nest inside the open loops; contractions of float32 stay in float32."""
            found = of_nest(nest, Constraints(machine_for(nest.value, nest.out, self.request.target)))
            if self.asked is not None:
                start, record = len(noted[number]), self.asked[number]
                found = as_asked(found, record.nests[start:start + len(found)], record)
            noted[number] += map(record_of, found)
            lower_all(b, found, by_rows=False)

        function = fused_chain.schedule(self.kernels.kernels, chain, lower_nest, keeps)
        for i, nests in noted.items():
            if self.asked is not None and len(self.asked[i].nests) > len(nests):
                raise differs(self.asked[i].nests[len(nests)].position, f"kernel {i} has only {len(nests)} loop nests")
        chained.update(noted)
        return function


@contextmanager
def noted(kernel: Kernel) -> Iterator[None]:
    """Note the kernel in an exception, unless the exception is a Problem."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, Problem):
            error.add_note(f"in the loops of {kernel.out.name} ({kernel.origin})")
        raise


def beside_each_other(tiled: TiledByRows) -> dict[int, int]:
    """Map each kernel whose rows are divided into tasks to the number of these tasks."""
    return {s.kernel: len(group.tasks) for group in walk(tiled.steps) if isinstance(group, Parallel)
            for task in group.tasks for s in task}


def row_records(kernels: Kernels, tiled: TiledByRows) -> list[KernelRecord]:
    """Return the records of all kernels, with only the rows that run at a time filled in."""
    beside, result = beside_each_other(tiled), []
    for i, kernel in enumerate(kernels.kernels):
        ring, chain = tiled.rings.get(kernel.out), tiled.chain(i)
        rows = RowRecord(beside.get(i, 1), ring.shape[row_dimension(kernel.out)[0]] if ring else None)
        result.append(KernelRecord(printable(kernel.origin), (), rows if i in tiled.by_rows else None,
                                   ChainRecord(chain.kernels[-1], chain.block) if chain else None))
    return result


def records_of(asked: ScheduleText | None, kernels: Kernels) -> tuple[KernelRecord, ...] | None:
    """Return the schedule of each kernel that a text asks for. Raise a Problem if the text has more or fewer kernels."""
    if asked is None:
        return None
    records, count = asked.read(), len(kernels.kernels)
    if len(records) == count:
        return records
    what = f"the schedule has {len(records)} kernels, and the function {count}" if records else (
        f"the schedule is empty, and the function has {count} kernel{'s' * (count != 1)}")
    raise differs(records[count].position if len(records) > count else asked.end, what)


def has_rows(kernels: Kernels, tiled: TiledByRows, asked: Sequence[KernelRecord]) -> bool:
    """True if the rows that run at a time are those that a schedule text gives."""
    return all((a.rows, a.chain) == (b.rows, b.chain) for a, b in zip(row_records(kernels, tiled), asked))


def check_rows(record: KernelRecord, asked: KernelRecord) -> None:
    """Raise a Problem if other rows of a kernel run at a time than a schedule text gives. Row tiling is decided for all kernels
    together, before their nests have strategies."""
    for own, other in ((record.rows, asked.rows), (record.chain, asked.chain)):
        if own != other:
            raise differs((other or asked).position,
                          f"the rows of {asked.origin!r} that run at a time are others than the schedule says")


def differs(where: Position | None, what: str) -> Problem:
    return Problem(what, where, kind="schedule",
                   help="a schedule is for one model, machine and set of options (rows, threads, order); print it again")


def among_one(record: KernelRecord) -> Problem:
    assert record.tasks
    return Problem(f"{record.origin!r} has {record.tasks.count} tasks in the schedule, and runs on one thread",
                   record.tasks.position, kind="schedule", help="compile for several threads, or leave the line of tasks out")
