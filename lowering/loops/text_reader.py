"""Reads the text of a program of the loop IR. The text may come from anywhere: whatever it says ends in a Program,
which `verify_program` then judges, or in a Problem with the place.
"""
from __future__ import annotations

from typing import get_args

import numpy as np

from ..elements.affine import Affine, Axis
from ..elements.expression import Buffer, Load, Role
from ..graph.types import ITEM_SIZES, Array
from ..kernels.kernel import (
    Branch,
    CheckTrue,
    CheckWritten,
    Compute,
    Fault,
    Kernel,
    Loop,
    MarkWritten,
    Parallel,
    Step,
    VariableUse,
)
from .interpret import dtype_of
from .ir import Function
from .program import Program
from .text_functions import FunctionReader


class LoopsReader(FunctionReader):
    """Reads a program."""

    def program(self) -> Program:
        self.expect("program")
        name = self.string()
        while self.accept("buffer"):
            self.buffer()
        inputs: list[Buffer] = []
        outputs: list[Buffer] = []
        variables: list[VariableUse] = []
        faults: list[Fault] = []
        kernels: list[Kernel] = []
        functions: list[Function] = []
        while not self.accept("steps"):
            match self.take():
                case "input":
                    inputs.append(self.label())
                case "output":
                    outputs.append(self.label())
                case "variable":
                    variables.append(self.variable())
                case "fault":
                    faults.append(self.fault())
                case "kernel":
                    kernels.append(self.kernel())
                case "function":
                    functions.append(self.function())
                case other:
                    raise self.problem(f"expected a section of a program, found {other}")
        steps = self.steps()
        if self.next:
            self.take()
            raise self.problem("the program has ended here")
        return Program(name, tuple(inputs), tuple(outputs), tuple(kernels), tuple(functions), steps, tuple(variables),
                       tuple(faults))

    def buffer(self) -> None:
        label = self.take()
        if not label.startswith("@") or label in self.buffers:
            raise self.problem(f"expected a new buffer, found {label}")
        name = self.string() if self.next.startswith('"') else label[1:]
        self.expect(":")
        dtype = self.take()
        if dtype not in ITEM_SIZES:
            raise self.problem(f"there is no dtype {dtype}")
        shape, role = tuple(self.numbers()), self.take()
        if role not in get_args(Role) or min(shape, default=0) < 0:
            raise self.problem(f"expected a shape and one of {', '.join(get_args(Role))}")
        copies = self.number() if self.accept("copies") else 1
        buffer = Buffer(name, dtype, shape, role, None, copies)  # type: ignore[arg-type]
        if copies < 1 or buffer.size % copies:
            raise self.problem(f"{buffer.size} elements are no {copies} copies")
        if self.accept("="):
            buffer = Buffer(name, dtype, shape, role, self.data(buffer))  # type: ignore[arg-type]
        self.buffers[label] = buffer

    def data(self, buffer: Buffer) -> Array:
        token = self.take()
        if token == "...":
            raise self.problem(f"the data of {buffer.name} was left out when the text was printed")
        if not token.startswith("0x") or len(token) != 2 + 2 * buffer.nbytes:
            raise self.problem(f"expected 0x and {2 * buffer.nbytes} hexadecimal digits")
        data = np.frombuffer(bytes.fromhex(token[2:]), dtype_of(buffer.dtype)).reshape(buffer.shape)
        data.flags.writeable = False
        return data

    def variable(self) -> VariableUse:
        buffer = self.label()
        self.expect(":")
        element = self.take()
        initial = self.label() if self.accept("=") else None
        return VariableUse(buffer, element, initial, external=bool(self.accept("external")))

    def kernel(self) -> Kernel:
        out = self.label()
        axes: list[Axis] = []
        self.expect("[")
        while not self.accept("]"):
            if axes:
                self.expect(",")
            axes.append(Axis(self.string(), self.number()))
        return Kernel(out, tuple(axes), Load(out, tuple(map(Affine.of, axes))), self.string())

    def fault(self) -> Fault:
        message = self.string()
        help = self.string() if self.accept("help") else None
        return Fault(message, None, help, self.string()) if self.accept("kind") else Fault(message, None, help)

    # ---- steps -------------------------------------------------------------------------------------------------------
    def steps(self) -> tuple[Step, ...]:
        self.expect("{")
        self.deeper()
        found: list[Step] = []
        while not self.accept("}"):
            found.append(self.step())
        self.depth -= 1
        return tuple(found)

    def step(self) -> Step:
        match self.take():
            case "compute":
                kernel, rows = self.number(), None
                if self.accept("rows"):
                    low = self.number()
                    self.expect("to")
                    rows = low, self.number()
                return Compute(kernel, rows, self.number() if self.accept("tasks") else 1)
            case "parallel":
                return self.parallel()
            case "if":
                condition, then = self.label(), self.steps()
                self.expect("else")
                return Branch(condition, then, self.steps())
            case "loop":
                test = self.steps()
                self.expect("while")
                return Loop(test, self.label(), self.steps())
            case "check":
                buffer = self.label()
                self.expect("fault")
                return CheckWritten(buffer, self.number())
            case "assert":
                buffer = self.label()
                self.expect("fault")
                return CheckTrue(buffer, self.number())
            case "mark":
                return MarkWritten(self.label())
            case other:
                raise self.problem(f"expected a step, found {other}")

    def parallel(self) -> Parallel:
        self.expect("{")
        tasks: list[tuple[Compute, ...]] = []
        while not self.accept("}"):
            self.expect("task")
            steps = self.steps()
            own = tuple(s for s in steps if isinstance(s, Compute))
            if len(own) < len(steps) or not own:
                raise self.problem("a task computes, and nothing else")
            tasks.append(own)
        return Parallel(tuple(tasks))
