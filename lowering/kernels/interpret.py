"""The reference interpreter of kernels: it runs the steps in order and evaluates each kernel's expression over its whole index
space. It checks fusion against the graph's reference, and the loops must agree with it.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..elements.expression import Buffer
from ..elements.interpret import evaluate
from ..graph.types import Array
from .kernel import Branch, CheckTrue, CheckWritten, Compute, Kernels, Loop, MarkWritten, Parallel, Step


class VariableContents:
    """The contents of variables between runs, by symbol: their data, and whether they have been written."""

    def __init__(self) -> None:
        self.data: dict[str, Array] = {}
        self.written: set[str] = set()


def run(kernels: Kernels, inputs: Sequence[Array], state: VariableContents | None = None) -> tuple[Array, ...]:
    """Return the outputs for these inputs. Raise the Problem of a fault."""
    state = state or VariableContents()
    data: dict[Buffer, Array] = dict(zip(kernels.inputs, inputs))
    for variable in kernels.variables:
        name, buffer = variable.buffer.name, variable.buffer
        if name not in state.data:
            state.data[name] = np.zeros(buffer.shape, buffer.dtype)
            if variable.initial is not None and variable.initial.data is not None:
                state.data[name] = variable.initial.data.copy()
                state.written.add(name)
        data[buffer] = state.data[name]
    execute(kernels, kernels.steps, data, state)
    for variable in kernels.variables:
        state.data[variable.buffer.name] = data[variable.buffer]
    return tuple(data[b] for b in kernels.outputs)


def execute(kernels: Kernels, steps: Sequence[Step], data: dict[Buffer, Array], state: VariableContents) -> None:
    for step in steps:
        match step:
            case Compute(number, rows):
                kernel = kernels.kernels[number]
                values = evaluate(kernel.value, kernel.axes, data)
                if rows is None:
                    data[kernel.out] = np.array(values)
                else:
                    axis = next(d for d, n in enumerate(kernel.out.shape) if n > 1)
                    chosen = (slice(None),) * axis + (slice(*rows),)
                    data.setdefault(kernel.out, np.zeros(kernel.out.shape, values.dtype))[chosen] = values[chosen]
            case Parallel(tasks):
                for task in tasks:
                    execute(kernels, task, data, state)
            case Branch(condition, then, otherwise):
                execute(kernels, then if data[condition].reshape(-1)[0] else otherwise, data, state)
            case Loop(test, condition, body):
                execute(kernels, test, data, state)
                while data[condition].reshape(-1)[0]:
                    execute(kernels, body, data, state)
                    execute(kernels, test, data, state)
            case CheckWritten(variable, number):
                if variable.name not in state.written:
                    raise kernels.faults[number].problem
            case CheckTrue(condition, number):
                if not data[condition].reshape(-1)[0]:
                    raise kernels.faults[number].problem
            case MarkWritten(variable):
                state.written.add(variable.name)
