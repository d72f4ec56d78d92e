"""Small programs built by hand, for tests of what runs them: every kernel computes element by element."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Const
from tosaic.lowering.kernels.kernel import CheckTrue, CheckWritten, Compute, Fault, Kernel, MarkWritten, Step, VariableUse
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import INDEX, Function, Literal, Operand, Type
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.runtime.errors import Position
from tosaic.runtime.executable import Executable
from tosaic.runtime.variables import Context, process

Element = Callable[..., Operand]
"""element(builder, value of each operand) -> the output's element."""


class Programs:
    """Builds one program. Buffers are float32 of shape (8,) unless said otherwise."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.inputs: list[Buffer] = []
        self.outputs: list[Buffer] = []
        self.kernels: list[Kernel] = []
        self.functions: list[Function] = []
        self.variables: list[VariableUse] = []
        self.faults: list[Fault] = []

    def input(self, name: str, shape: Sequence[int] = (8,), dtype: str = "float32") -> Buffer:
        self.inputs.append(Buffer(name, dtype, tuple(shape), "argument"))
        return self.inputs[-1]

    def output(self, name: str, shape: Sequence[int] = (8,), dtype: str = "float32") -> Buffer:
        self.outputs.append(Buffer(name, dtype, tuple(shape), "result"))
        return self.outputs[-1]

    def temporary(self, name: str, shape: Sequence[int] = (8,), dtype: str = "float32") -> Buffer:
        return Buffer(name, dtype, tuple(shape))

    def constant(self, name: str, data: Any) -> Buffer:
        array = np.asarray(data)
        return Buffer(name, array.dtype.name, array.shape, "constant", array)

    def variable(self, name: str, shape: Sequence[int] = (8,), dtype: str = "float32", initial: Any = None,
                 element: str | None = None, position: Position | None = None) -> Buffer:
        buffer = Buffer(name, dtype, tuple(shape), "variable")
        first = None if initial is None else Buffer(f"{name}.initial", dtype, tuple(shape), "constant",
                                                    np.asarray(initial, dtype).reshape(shape))
        names = {"float32": "f32", "int32": "i32", "int64": "i64", "bool": "i1", "int8": "i8"}
        self.variables.append(VariableUse(buffer, element or names[dtype], first, position))
        return buffer

    def compute(self, out: Buffer, element: Element, *operands: Buffer, by_rows: bool = False,
                rows: tuple[int, int] | None = None) -> Compute:
        """A step that computes `out`; operands have its shape, or one element."""
        builder, axis = Builder(f"k{len(self.kernels)}_{out.name}", by_rows), Axis("i", out.size)
        low, high = builder.rows or (None, None)

        def body() -> None:
            values = [builder.load(b, Affine.of(axis) if b.size > 1 else Affine()) for b in operands]
            builder.store(out, Affine.of(axis), element(builder, *values))

        builder.loop(axis, body, low=low, high=high)
        self.kernels.append(Kernel(out, (axis,), Const(0, out.dtype)))
        self.functions.append(builder.finish())
        return Compute(len(self.kernels) - 1, rows)

    def check(self, variable: Buffer, position: Position | None = None) -> CheckWritten:
        message = f"variable @{variable.name} is read before it was written"
        self.faults.append(Fault(message, position, "write it first"))
        return CheckWritten(variable, len(self.faults) - 1)

    def check_true(self, condition: Buffer, message: str, position: Position | None = None) -> CheckTrue:
        self.faults.append(Fault(message, position, kind="check"))
        return CheckTrue(condition, len(self.faults) - 1)

    def write(self, variable: Buffer, element: Element, *operands: Buffer) -> tuple[Step, ...]:
        return self.compute(variable, element, *operands), MarkWritten(variable)

    def program(self, *steps: Step) -> Program:
        return Program(self.name, tuple(self.inputs), tuple(self.outputs), tuple(self.kernels), tuple(self.functions),
                       steps, tuple(self.variables), tuple(self.faults))

    def load(self, *steps: Step, context: Context = process) -> Executable:
        program = self.program(*steps)
        return load(program, plan(program), context=context)


def add(b: Builder, x: Operand, y: Operand) -> Operand:
    return b.op("add", x, y)


def mul(b: Builder, x: Operand, y: Operand) -> Operand:
    return b.op("mul", x, y)


def less(b: Builder, x: Operand, y: Operand) -> Operand:
    return b.op("lt", x, y)


def copy(b: Builder, x: Operand) -> Operand:
    return x


def plus(value: float, dtype: str = "float32") -> Element:
    return lambda b, x: b.op("add", x, Literal(value, Type(dtype)))


def times(value: float, dtype: str = "float32") -> Element:
    return lambda b, x: b.op("mul", x, Literal(value, Type(dtype)))


def below(value: float, dtype: str = "float32") -> Element:
    return lambda b, x: b.op("lt", x, Literal(value, Type(dtype)))


def counter(context: Context = process, name: str = "counter", initial: Any = 0) -> Executable:
    """result = counter = counter + 1."""
    p = Programs("count")
    variable = p.variable(name, (1,), "int64", initial)
    result = p.output("result", (1,), "int64")
    steps = p.write(variable, plus(1, "int64"), variable)
    return p.load(*steps, p.compute(result, copy, variable), context=context)


def slow(iterations: int = 20_000_000) -> Executable:
    """A call that takes a while: a loop of that number of iterations that carries a value."""
    p = Programs("slow")
    x, result = p.input("x", (1,), "int64"), p.output("result", (1,), "int64")
    builder, axis = Builder("slow"), Axis("i", iterations)

    def body(total: Operand) -> tuple[Operand, ...]:
        again = builder.op("mul", builder.op("xor", total, builder.index(Affine.of(axis))), Literal(3, INDEX))
        return (again,)

    (total,) = builder.loop(axis, body, [builder.load(x, Affine())])
    builder.store(result, Affine(), total)
    p.kernels.append(Kernel(result, (Axis("o", 1),), Const(0, "int64")))
    p.functions.append(builder.finish())
    return p.load(Compute(0))
