"""Runs a program of the loop IR in NumPy: its table of steps, each function through `interpret`."""
from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...runtime.errors import Problem
from ..elements.expression import Buffer
from ..graph.types import Array
from ..kernels.interpret import VariableContents
from ..kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten, Parallel, Step
from .interpret import LoopMemory, dtype_of, run_function
from .ir import Function
from .program import Program
from .verify_steps import row_count


def run_program(program: Program, inputs: Sequence[Array], state: VariableContents | None = None) -> tuple[Array, ...]:
    """The outputs for these inputs. Raises Problem: that of a fault, or of kind "internal" where the program accesses
    what it must not, or reads what nothing has written."""
    memory, state = LoopMemory(), state or VariableContents()
    for buffer, data in zip(program.inputs, inputs, strict=True):
        memory.add(buffer, data)
    for variable in program.variables:
        load_variable(memory, variable.buffer, variable.initial, state)
    execute(program, program.steps, memory, state)
    for variable in program.variables:
        state.data[variable.buffer.name] = memory.array(variable.buffer).copy()
    return tuple(memory.array(b).copy() for b in program.outputs)


def load_variable(memory: LoopMemory, buffer: Buffer, initial: Buffer | None, state: VariableContents) -> None:
    """A variable as the run before left it; the first run has its initial value, or zeros."""
    if buffer.name in state.data:
        memory.add(buffer, state.data[buffer.name])
        return
    if initial is not None:
        state.written.add(buffer.name)
        memory.add(buffer, initial.data)
    else:
        memory.add(buffer, np.zeros(buffer.shape, dtype_of(buffer.dtype)))


def execute(program: Program, steps: Sequence[Step], memory: LoopMemory, state: VariableContents) -> None:
    for step in steps:
        match step:
            case Compute(kernel, _, tasks) if tasks > 1:
                run_tasks(program.functions[kernel], tasks, memory)
            case Parallel(tasks):
                for task in reversed(tasks):  # any order is right
                    for own in {b for s in task for b in program.functions[s.kernel].params if b.copies > 1}:
                        memory.arrays.pop(own, None)
                    execute(program, task, memory, state)
            case Compute(kernel, rows):
                function = program.functions[kernel]
                if rows is None and function.rows is not None:
                    rows = 0, row_count(program.kernels[kernel])
                run_function(function, memory, rows)
            case Branch(condition, then, otherwise):
                execute(program, then if holds(memory, condition) else otherwise, memory, state)
            case Loop(test, condition, body):
                execute(program, test, memory, state)
                while holds(memory, condition):
                    execute(program, body, memory, state)
                    execute(program, test, memory, state)
            case CheckWritten(variable, number):
                if variable.name not in state.written:
                    raise program.faults[number].problem
            case CheckTrue(condition, number):
                if not holds(memory, condition):
                    raise program.faults[number].problem
            case MarkWritten(variable):
                state.written.add(variable.name)


def run_tasks(function: Function, tasks: int, memory: LoopMemory) -> None:
    """Each phase in tasks, the last one first: any order is right."""
    for number, (start, end) in enumerate(itertools.pairwise((0, *function.phases))):
        for i in reversed(range(tasks)):
            low, high = (start + (end - start) * n // tasks for n in (i, i + 1))
            run_function(function, memory, (low, high), keep=number > 0 or i < tasks - 1)


def holds(memory: LoopMemory, condition: Buffer) -> bool:
    """The one element of a condition, which a step before must have written."""
    if not memory.written[condition].all():
        raise Problem(f"{condition!r} decides a step, and nothing has written it", kind="internal")
    return bool(memory.arrays[condition][0])
