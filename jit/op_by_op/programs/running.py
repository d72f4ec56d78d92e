"""Running a whole kernel program: its functions in order, those with arguments left out, as a test driver of kernels does.

    --- Running 'f'
    'f' returned 1
    --- Not running 'g' because it has arguments.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ....lowering.graph.types import ELEMENT_TYPES
from ....runtime.errors import Position, Problem
from ....runtime.op_by_op.core import CoreRuntime
from ....runtime.op_by_op.location import Diagnostic
from ..program_text.kernel_program import Function, Program
from ..program_text.reader import read_program
from .execution import CANCELLED, Execution, Report
from .registers import Register
from .tensor_printing import number_text
from .tfrt_test_operations import register_operations

Write = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class FunctionOutcome:
    """The outcome of a function: a text for each result, and whether one is an error. `is_run` is False if the function has
    arguments."""
    name: str
    is_run: bool
    returned: tuple[str, ...] = ()
    failed: bool = False


def run_program(program: Program | str | bytes, *, write: Write = print, report: Report | None = None, entry: str | None = None,
                runtime: CoreRuntime | None = None, name: str = "<text>") -> tuple[FunctionOutcome, ...]:
    """Run the functions of a kernel program (or of its text, which problems call `name`), or the one called `entry`.

    `write` gets each line that it prints, `report(position, message)` each error where it begins. Errors at run time are
    results, not exceptions; a Problem is raised for a text that is wrong. A `runtime` brings its own op handlers, and its
    diagnostic keeps getting the errors that begin in operations; it is for this program alone while it runs.
    """
    if not isinstance(program, Program):
        program = read_program(program, name)
    functions = program.functions if entry is None else (program.function(entry),)
    if entry is not None and functions[0].body.arguments:
        raise Problem(f"the function @{entry} has arguments", functions[0].position, kind="argument",
                      help="only functions without arguments are run")
    own = runtime is None
    runtime = runtime or make_runtime()
    execution = Execution(program, runtime, write)
    execution.report = report or execution.report
    former = runtime.diagnostic
    runtime.diagnostic = forwarded(execution.report, former)
    register_operations(execution)
    try:
        return tuple(run_function(execution, function) for function in functions)
    finally:
        runtime.diagnostic = former
        if own:
            runtime.shutdown()


def forwarded(report: Report, former: Callable[[Diagnostic], object] | None) -> Callable[[Diagnostic], None]:
    """Report the errors of operations, too."""
    def diagnostic(found: Diagnostic) -> None:
        if found.problem.kind != CANCELLED:
            report(found.decoded, found.message)
        if former is not None:
            former(found)
    return diagnostic


def make_runtime() -> CoreRuntime:
    """Return a runtime with compiled kernels, and variables of its own."""
    from ....runtime.variables import Context
    from ..runtime import CoreRuntime as Compiling
    return Compiling(context=Context("program"))


def run_function(execution: Execution, function: Function) -> FunctionOutcome:
    if function.body.arguments:
        execution.write(f"--- Not running '{function.name}' because it has arguments.")
        return FunctionOutcome(function.name, False)
    execution.write(f"--- Running '{function.name}'")
    results = execution.run(function)
    returned = tuple(result_text(r, type) for r, type in zip(results, function.result_types))
    if returned:
        execution.write(f"'{function.name}' returned {','.join(returned)}")
    return FunctionOutcome(function.name, True, returned, any(r.error is not None for r in results))


def result_text(result: Register, type: str) -> str:
    """Return a result as text: a number, an error, or only its type."""
    error = result.error or getattr(result.value, "error", None)
    if error is not None:
        return f"<<error: {'Cancelled' if error.kind == CANCELLED else error.message}>>"
    return number_text(result.value, ELEMENT_TYPES[type]) if type in ELEMENT_TYPES else f"{type} value"


def position_text(position: Position | None, message: str) -> str:
    """Return an error at run time on one line."""
    return f"{position}: runtime error: {message}" if position is not None else f"runtime error: {message}"


def as_json(outcomes: Sequence[FunctionOutcome]) -> list[dict[str, Any]]:
    return [{"function": o.name, "run": o.is_run, "returned": list(o.returned), "failed": o.failed} for o in outcomes]
