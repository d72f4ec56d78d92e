"""The pipeline: every pass from a tensor graph to a memory plan, as one table.

    graph passes      Module -> Module      operators become those that fusion knows
    kernel passes     Module -> Kernels     one stored buffer each, and the order in which they run
    loop passes       Kernels -> Programs   loops of each kernel; one program for each order of rows that only a plan can judge
    planning          Programs -> Plan      the program that needs the least memory, with an offset for each buffer

`run` runs all passes; `steps` stops after each, so that its result can be printed; `start` begins from a graph,
`stage_text.resumed` from the printed text of a later stage. Machine code comes after (`native`), from the program and its plan.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Literal, NamedTuple

from ..runtime.errors import Problem, printable
from ..runtime.limits import check_bytes, checkpoint
from ..runtime.progress import report_progress
from ..runtime.records import dataclass
from ..runtime.threads import get_num_threads
from .fallback import Failed, Luxury, with_less
from .fuse.fuse import fuse
from .fuse.half_arithmetic import half_arithmetic
from .fuse.halve_constants import halve_constants
from .graph.check_limits import check_limits
from .graph.graph import Function, Module
from .graph.shape_options import shape_options
from .graph.verify import verify
from .kernels.kernel import Kernels
from .loops.ir import Function as LoopFunction
from .loops.program import Program
from .loops.verify import verify_program
from .memory.plan import Plan
from .memory.planner import smallest_plan
from .native.c_object.data_symbols import alignment_of
from .options import CompileOptions
from .rewrite.branches import inline_branches
from .rewrite.common_subexpressions import eliminate_common_subexpressions
from .rewrite.decompose import decompose
from .rewrite.fourier import expand_transforms
from .rewrite.join_rescales import join_rescales
from .rewrite.legalize import legalize
from .rewrite.lift_checks import lift_checks
from .rewrite.pad_pools import pad_pools
from .rewrite.postpone_writes import postpone_writes
from .rewrite.prune import prune
from .rewrite.rescale_in_float import rescale_in_float
from .rewrite.rescale_in_words import rescale_in_words
from .rewrite.rescale_of_sums import rescale_of_sums
from .rewrite.sink_transposes import sink_transposes
from .rewrite.split_concats import split_concats
from .rewrite.strip_quantized import strip_quantized
from .row_tiling.kernel_order import ordered
from .schedule.schedule import Ready, lower_each_way
from .schedule.schedule_text import ScheduleText
from .target.presets import host
from .target.target import Target

Stage = Literal["graph", "kernels", "loops", "plan"]
"""Stage that a pass makes; the text of its result is that of `show`."""


@dataclass(frozen=True, slots=True)
class State:
    """The state that one pass hands to the next. `module` is None if the pipeline begins after the graph; `programs` are the
    candidates of which planning takes one; `ready` is called with each function of loops as soon as it exists. `without` are
    the luxuries that the passes do without, because of a fault (`fallback`)."""
    name: str
    target: Target
    threads: int
    options: CompileOptions
    module: Module | None = None
    kernels: Kernels | None = None
    programs: tuple[Program, ...] = ()
    plan: Plan | None = None
    ready: Ready | None = None
    without: frozenset[Luxury] = frozenset()

    def __repr__(self) -> str:
        made = [name for name in ("module", "kernels", "programs", "plan") if getattr(self, name)]
        return printable(f"<State {self.name} for {self.target.triple}, {self.target.cpu}: {', '.join(made)}>")

    def changed(self, **changes: Any) -> State:
        """Return the state with other values of some fields."""
        return replace(self, **changes)

    @property
    def graph(self) -> Module:
        assert self.module is not None, "the pipeline begins behind the graph"
        return self.module

    @property
    def program(self) -> Program:
        """Program that is planned; before planning, the first candidate."""
        return self.programs[0]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass. `promises` is what later passes and readers may rely on; `clock` is the name under which the seconds of the
    pass are counted (`Report.seconds`). A pass that is `for_speed` alone can be left out."""
    name: str
    stage: Stage
    clock: str
    promises: str
    run: Callable[[State], State]
    for_speed: bool = False


def of_graph(name: str, function: Callable[[Module], Module], promises: str, for_speed: bool = False) -> Pass:
    """Return a pass from a graph to a graph."""
    return Pass(name, "graph", "graph", promises, lambda state: replace(state, module=function(state.graph)), for_speed)


def in_float(name: str, function: Callable[[Module], Module], promises: str) -> Pass:
    """Return a pass from a graph to a graph that computes integers in float32 for speed, if the target has a unit for it.
    Elsewhere integers stay integers."""
    return Pass(name, "graph", "graph", promises, lambda state: (
        replace(state, module=function(state.graph)) if seen_by_graph(state.target).has_floats else state), for_speed=True)


def in_words(name: str, function: Callable[[Module], Module], promises: str) -> Pass:
    """Return a pass from a graph to a graph that computes with integers of 32 bits, for vectors that have none of 64."""
    return Pass(name, "graph", "graph", promises, lambda state: (
        replace(state, module=function(state.graph)) if seen_by_graph(state.target).rounds_words else state), for_speed=True)


def by_even_words(name: str, function: Callable[[Module], Module], promises: str) -> Pass:
    """Return a pass from a graph to a graph that avoids sums of 64 bits, for vectors in which these are of every other word."""
    return Pass(name, "graph", "graph", promises, lambda state: (
        replace(state, module=function(state.graph)) if seen_by_graph(state.target).multiplies_even_words else state),
                for_speed=True)


class SeenByGraph(NamedTuple):
    """All that passes over a graph may see of a target."""
    has_floats: bool
    rounds_words: bool
    multiplies_even_words: bool


def seen_by_graph(target: Target) -> SeenByGraph:
    return SeenByGraph("float32" in target.float_unit, target.rounds_words, target.multiplies_even_words)


def verified(state: State) -> State:
    verify(state.graph)
    return state


def fused(state: State) -> State:
    return replace(state, kernels=fuse(state.graph, state.graph.function(state.name), "fusion" not in state.without))


def halved(state: State) -> State:
    assert state.kernels is not None
    return replace(state, kernels=halve_constants(state.kernels, state.target))


def with_half_arithmetic(state: State) -> State:
    assert state.kernels is not None
    return replace(state, kernels=half_arithmetic(state.kernels, state.target))


def in_order(state: State) -> State:
    assert state.kernels is not None
    return replace(state, kernels=ordered(state.kernels)) if state.options.order else state


def scheduled(state: State) -> State:
    assert state.kernels is not None
    options = state.options
    if options.weights != "int8" and not state.target.keeps_pairs:
        raise Problem(f"weights as {options.weights} are for processors that multiply pairs of 16 bits, {state.target.cpu} "
                      "does not", kind="option", help="leave it out, or name such a target: cortex-m4, cortex-m7, cortex-m33")
    asked = options.schedule if isinstance(options.schedule, ScheduleText) else None
    programs = lower_each_way(state.kernels, state.target, options.rows, state.threads, options.memory.workspace_io,
                              state.ready, options.precision, options.tuning, asked, options.weights,
                              "strategies other than plain loops" in state.without)
    return replace(state, programs=tuple(programs))


def verified_loops(state: State) -> State:
    for program in state.programs:
        verify_program(program)
    return state


def planned(state: State) -> State:
    memory = state.options.memory
    memory = replace(memory, alignment=memory.alignment or alignment_of(state.target))
    program, plan = smallest_plan(state.programs, memory)
    check_bytes(plan.size_bytes, "the arena has")
    return replace(state, programs=(program,), plan=plan)


PASSES: tuple[Pass, ...] = (
    Pass("verify", "graph", "graph",
         "The graph is sound: SSA form, types by the operators' own rules, known symbols.", verified),
    of_graph("strip-quantized", strip_quantized,
             "Tensors have the integers that they are stored as; no type is quantized."),
    of_graph("inline-branches", inline_branches,
             "Branches hold regions; none names a function."),
    of_graph("legalize", legalize,
             "All operators are of TOSA, or tosaic's own."),
    of_graph("decompose-block-scaled", decompose,
             "No tensor is block-scaled: its values and its scales are two tensors."),
    of_graph("expand-transforms", expand_transforms,
             "A Fourier transform that no strategy computes as a whole is written as sums."),
    of_graph("sink-transposes", sink_transposes,
             "No transpose stands before an operator that can as well work on the axes as they lie.", for_speed=True),
    in_float("join-rescales", join_rescales,
             "A sum of two rescaled bytes, rescaled to a byte, is one operator where that is exact and floats are fast."),
    in_float("rescale-in-float", rescale_in_float,
             "A byte is rescaled to a byte in float32 where that is exact and floats are fast."),
    in_words("rescale-in-words", rescale_in_words,
             "A RESCALE is products and shifts of 32 bits that round, where that is exact and vectors have them."),
    by_even_words("rescale-of-sums", rescale_of_sums,
                  "What a RESCALE of known sums adds is added before the product, where vectors multiply even words."),
    of_graph("pad-pools", pad_pools,
             "A border around the input of a maximum's window is the window's own padding.", for_speed=True),
    of_graph("split-concats", split_concats,
             "No concatenation has more than 64 operands."),
    of_graph("lift-checks", lift_checks,
             "A check at the head of a branch stands before the branch."),
    of_graph("eliminate-common-subexpressions", eliminate_common_subexpressions,
             "A costly operator is not computed twice for the same operands.", for_speed=True),
    of_graph("prune", prune,
             "Every result is read, or its operator has an effect."),
    of_graph("postpone-writes", postpone_writes,
             "A variable is written after the last operator that reads its old contents."),
    Pass("verify-rewritten", "graph", "graph",
         "The rewritten graph is as sound as the one that was read.", verified),
    Pass("fuse", "kernels", "kernels",
         "Each kernel stores one buffer; everything else is part of an expression.", fused),
    Pass("halve-constants", "kernels", "kernels",
         "Where converting float16 is an instruction and there is no cache, constants of float16's numbers are stored so.",
         halved),
    Pass("half-arithmetic", "kernels", "kernels",
         "Where arithmetic of float16 is an instruction, what is rounded to float16 is computed so, for the same bits.",
         with_half_arithmetic),
    Pass("order-kernels", "kernels", "kernels",
         "Kernels run in the order that needs the least memory that a search has found.", in_order),
    Pass("schedule", "loops", "loops",
         "Each kernel is loops over explicit vectors, tiled by rows and divided into tasks.", scheduled),
    Pass("verify-loops", "loops", "verify",
         "Every access is in bounds, nothing is read before a step writes it, no row is of two tasks.", verified_loops),
    Pass("plan", "plan", "plan",
         "Every buffer has an offset; a checker that shares no code with the planner has replayed it.", planned),
)
"""Every pass, in order."""

GRAPH_PASSES = tuple(p for p in PASSES if p.stage == "graph")


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds of steps, by name."""
    seconds: dict[str, float] = field(default_factory=dict)

    def note(self, name: str, start: float) -> None:
        """Add the time since `start` to a step's seconds."""
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def start(module: Module, name: str, options: CompileOptions, ready: Callable[[LoopFunction], None] | None = None) -> State:
    """Return the state before the first pass. Raises a Problem if the shape of an input is left open."""
    check_shapes(module.function(name))
    return replace(behind_the_graph(name, options), module=module, ready=ready)


def behind_the_graph(name: str, options: CompileOptions) -> State:
    """Return a state without a graph, to begin from a later stage."""
    threads = options.threads or (get_num_threads() if options.target is None else 1)
    return State(name, options.target or host(), threads, options)


def step(each: Pass, state: State, clock: Clock) -> State:
    """Return the state after one pass."""
    begin = time.perf_counter()
    checkpoint()
    report_progress(each.name)
    if not (each.for_speed and "rewrites that are for speed" in state.without):
        state = each.run(state)
    if each.stage == "graph":
        check_limits(state.graph)
    clock.note(each.clock, begin)
    return state


def steps(state: State, passes: Sequence[Pass] = PASSES) -> Iterator[tuple[Pass, State]]:
    """Yield each pass and the state after it, in order."""
    clock = Clock()
    for each in passes:
        state = step(each, state, clock)
        yield each, state


def run(state: State, passes: Sequence[Pass] = PASSES, clock: Clock | None = None) -> State:
    """Return the state after all passes, in order; with less, and a warning, if one of them has a fault (`fallback`)."""
    counted = clock or Clock()
    made = attempt(state, passes, counted)
    return with_less(state, made, lambda less: attempt(less, passes, counted)) if isinstance(made, Failed) else made


def attempt(state: State, passes: Sequence[Pass], clock: Clock) -> State | Failed:
    """Return the state after all passes, or the pass that has failed."""
    for each in passes:
        try:
            state = step(each, state, clock)
        except Exception as error:
            return Failed(each.name, each.stage, error)
    return state


def passes_until(name: str) -> tuple[Pass, ...]:
    """Return the passes up to the one of that name. Raises a Problem if there is none."""
    names = [p.name for p in PASSES]
    if name not in names:
        raise Problem(f"there is no pass {name}", kind="argument", help=f"the passes: {', '.join(names)}")
    return PASSES[:names.index(name) + 1]


def passes_after(stage: Stage) -> tuple[Pass, ...]:
    """Return the passes that remain after `stage` is made: those that make later stages, and the verifier of `stage`."""
    last = max(number for number, p in enumerate(PASSES) if p.stage == stage and not p.name.startswith("verify"))
    return PASSES[last + 1:]


def rewritten(module: Module) -> Module:
    """Return the module after all graph passes: the input of the interpreter and of fusion."""
    for each in GRAPH_PASSES:
        module = each.run(State("", NO_TARGET, 1, NO_OPTIONS, module)).graph
    return module


NO_TARGET, NO_OPTIONS = Target("", "", ""), CompileOptions()
"""A processor that computes floats, and has no vectors of words that round: `seen_by_graph`."""


def check_shapes(function: Function) -> None:
    """Raise a Problem if the shape of an input is left open."""
    for value in function.arguments:
        if not getattr(value.type, "is_static", True):
            raise Problem(f"input {value.name} is {value.type}: its shape must be known to compile", value.position,
                          kind="unsupported", help=f"call it with arrays, specialize it, or {shape_options(function)}")
