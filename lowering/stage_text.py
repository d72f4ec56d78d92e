"""The text of each stage of a compile, and a compile that continues from a stage's text. This module is above the pipeline:
it has the printers and readers of all stages; `show` uses it.

    graph      MLIR text                            kernels    expressions of stored buffers
    schedule   strategies, rows, tasks              loops      functions of the loop IR, and the steps that run them
    plan       an offset for every buffer           llvm, asm  what is made of loops and a plan
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..runtime.errors import Problem, Source, ValueProblem, printable_text
from .graph.graph import Module
from .kernels.kernel import Compute, walk
from .kernels.text import print_kernels
from .kernels.text_reader import read_kernels
from .loops.program import Program
from .loops.text import print_program, read_program
from .loops.verify import verify_program
from .memory.check.verify import verify as verify_plan
from .memory.plan import parse_plan
from .options import CompileOptions
from .pipeline import State, behind_the_graph, passes_after, passes_until, run, steps
from .schedule.schedule_text import ScheduleText, print_schedule
from .text.printer import print_module

STAGES = ("graph", "kernels", "schedule", "loops", "plan", "llvm", "asm")
"""Stages that `show` prints, from the tensor graph down."""
READABLE = ("graph", "kernels", "schedule", "loops", "plan")
"""Stages whose text reads back."""
ELIDED = 32
"""Maximum number of elements of a constant that is printed whole."""


def known_stage(stage: str) -> str:
    if stage not in STAGES:
        raise ValueProblem(f"there is no stage {stage}", kind="argument", help=f"one of {', '.join(STAGES)}")
    return stage


# ---- text of a stage -------------------------------------------------------------------------------------------------
def text_of(state: State, stage: str, whole: bool = False) -> str:
    """Return the result of the passes as text; with `whole`, it has all constants, so that it reads back."""
    match known_stage(stage):
        case "graph":
            return graph_text(state.graph, whole)
        case "kernels":
            if state.kernels is None:
                raise Problem("the text that was read is of a stage behind the kernels", kind="argument",
                              help="show loops, plan, llvm or asm")
            return print_kernels(state.kernels, whole)
        case "schedule":
            return print_schedule(state.program.schedules)
        case "loops":
            return print_program(state.program, whole)
        case "plan":
            return str(state.plan)
        case _:
            return machine_text(state, stage)


def graph_text(module: Module, whole: bool = False) -> str:
    """Return a module as MLIR text; only a whole module reads back."""
    return printable_text(print_module(module, elide=None if whole else ELIDED))


def machine_text(state: State, stage: str) -> str:
    """Return LLVM's text, or the target's assembly."""
    from .native.process.load import native_text
    assert state.plan is not None
    text = native_text(state.program, state.plan, state.target)
    if stage == "llvm":
        return text
    from .machine_code.codegen import assembly
    return assembly(text, state.target)


def text_after(state: State, name: str, whole: bool = False) -> str:
    """Return the text after the pass of that name."""
    passes = passes_until(name)
    return text_of(run(state, passes), passes[-1].stage, whole)


def texts_after_all(state: State, whole: bool = False) -> Iterator[str]:
    """Yield, for each pass, its name with what it promises, and then the text after it, if the pass changed that."""
    before = ""
    for each, made in steps(state):
        text = text_of(made, each.stage, whole)
        yield f"// ----- {each.name}: {each.promises}"
        yield text.rstrip("\n") if text != before else "// (nothing changed)"
        before = text


# ---- from a text on --------------------------------------------------------------------------------------------------
def stage_of(text: str) -> str:
    """Return the stage of a text, by the text's first word."""
    words = text.split(maxsplit=1)
    known = {"kernels": "kernels", "kernel": "schedule", "program": "loops", "plan": "plan"}
    return known.get(words[0], "graph") if words else "an empty text"


def resumed(sources: Sequence[tuple[str, str]], options: CompileOptions) -> State:
    """Return the state after all remaining passes, from texts (each with its name for messages): kernels, with a schedule if
    one is given; or loops, with a plan if one is given. A graph is read in the same way as a model."""
    found = {stage_of(text): Source(name, text) for name, text in sources}
    if len(found) < len(sources):
        raise Problem("two texts are of the same stage", kind="argument", help="kernels and a schedule, or loops and a plan")
    match sorted(found):
        case ["kernels"]:
            return from_kernels(found["kernels"], options)
        case ["kernels", "schedule"]:
            schedule = found["schedule"]
            asked = ScheduleText(schedule.text or "", schedule.name)
            return from_kernels(found["kernels"], replace(options, schedule=asked))
        case ["loops"]:
            return from_loops(found["loops"], options)
        case ["loops", "plan"]:
            return with_plan(read_loops(found["loops"], options), found["plan"])
        case names:
            raise Problem(f"nothing can be made of {' and '.join(names)} alone", found[names[0]].position(0), kind="argument",
                          help="a text of kernels, or of kernels and a schedule, of loops, or of loops and a plan")


def from_kernels(source: Source, options: CompileOptions) -> State:
    kernels = read_kernels(source.text or "", source.name)
    state = replace(behind_the_graph(kernels.name, options), kernels=kernels)
    return run(state, passes_after("kernels"))


def read_loops(source: Source, options: CompileOptions) -> State:
    """Read a program, and verify it."""
    program = read_program(source.text or "", source.name)
    verify_program(program)
    return replace(behind_the_graph(program.name, options), programs=(program,))


def from_loops(source: Source, options: CompileOptions) -> State:
    state = read_loops(source, options)
    if runs_by_rows(state.program):  # sharing of bytes follows from the kernels' expressions, which the text does not have
        state = replace(state, options=replace(options, memory=replace(options.memory, overlap=False)))
    return run(state, passes_after("loops"))


def runs_by_rows(program: Program) -> bool:
    return any(isinstance(step, Compute) and step.rows is not None for step in walk(program.steps))


def with_plan(state: State, source: Source) -> State:
    """Return the program with a plan from a text; raise a Problem if the plan is wrong for the program."""
    plan = parse_plan(source.text or "", source.name)
    try:
        verify_plan(plan, state.program)
    except Problem as problem:
        raise Problem(f"{source.name} is no plan for these loops: {problem.message}", kind=problem.kind,
                      help="show plan --from LOOPS prints one") from None
    return replace(state, plan=plan)
