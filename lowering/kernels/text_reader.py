"""The reader of kernel text that `print_kernels` wrote whole. The text may come from anywhere: any text gives `Kernels`, or a
Problem with its position; `verify_program` checks the loops that are made from the kernels.

    kernel 0: exp
      result0: float32[4, 8] at [i0<4, i1<8] =
        exp(x[i0, i1])
"""
from __future__ import annotations

import json
import re

import numpy as np

from ...runtime.errors import printable
from ..elements.expression import Buffer, Role
from ..elements.roots import roots_buffer
from ..graph.types import BY_STORAGE, ELEMENT_TYPES, ITEM_SIZES, Array
from .expression_reader import ExpressionReader
from .kernel import (
    Branch,
    CheckTrue,
    CheckWritten,
    Compute,
    Fault,
    Kernel,
    Kernels,
    Loop,
    MarkWritten,
    Step,
    VariableUse,
)
from .text_tokens import KernelTokens

AXIS = re.compile(r"(?<=[\[ ])([A-Za-z_][\w.]*)<(\d{1,18})(?=[,\]])", re.ASCII)
"""Pattern of an axis with its extent, of a reduction or of the kernel."""
KERNEL = re.compile(r"kernel (\d{1,9}): ?(.*)")


def read_kernels(text: str, source: str = "kernels") -> Kernels:
    """Return the kernels that a text describes. Raise a Problem, with the position, for any other text."""
    return KernelsReader(text, source).kernels()


class KernelsReader(KernelTokens):
    """A reader of kernels and of the steps that run them."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source)
        self.buffers: dict[str, Buffer] = {}
        self.constants: dict[int, Buffer] = {}

    # ---- the whole ---------------------------------------------------------------------------------------------------
    def kernels(self) -> Kernels:
        self.open()
        self.expect("kernels")
        name = self.string()
        self.close()
        inputs: list[Buffer] = []
        outputs: list[Buffer] = []
        variables: list[VariableUse] = []
        faults: list[Fault] = []
        kernels: list[Kernel] = []
        while self.line != "steps":
            if match := KERNEL.fullmatch(self.line):
                if not kernels:
                    self.declare_results()
                kernels.append(self.kernel(int(match[1]), match[2], len(kernels)))
                continue
            self.open()
            match self.take():
                case "input":
                    inputs.append(self.declared("argument"))
                case "output":
                    outputs.append(self.output())
                case "fault":
                    faults.append(self.fault())
                case "external":
                    self.expect("variable")
                    variables.append(self.variable(external=True))
                case "variable":
                    variables.append(self.variable())
                case other:
                    raise self.problem(f"expected input, output, variable, fault, kernel or steps, found {printable(other)}")
            self.close()
        self.at += 1
        steps = self.steps(0, len(kernels), len(faults))
        if self.line:
            self.open()
            raise self.problem("the kernels have ended here")
        return Kernels(name, tuple(inputs), tuple(outputs), tuple(kernels), steps, tuple(variables), tuple(faults))

    def declare_results(self) -> None:
        """Declare the outputs of all kernels: in a loop, a kernel may read the output of a later one."""
        start = self.at
        while self.at < len(self.lines):
            if KERNEL.fullmatch(self.line):
                self.at += 1
                self.open()
                if self.next not in self.buffers:
                    self.declared("temporary")
            else:
                self.at += 1
        self.at = start

    def declared(self, role: Role) -> Buffer:
        """Read the label and type of a new buffer."""
        label = self.take()
        if label in self.buffers:
            raise self.problem(f"{printable(label)} is there already")
        name = str(json.loads(label)) if label.startswith('"') else label
        self.expect(":")
        dtype, shape = self.type()
        self.buffers[label] = found = Buffer(name, dtype, shape, role)
        return found

    def type(self) -> tuple[str, tuple[int, ...]]:
        dtype = self.dtype()
        self.expect("[")
        shape = self.listed(self.whole, "]")
        if min(shape, default=0) < 0:
            raise self.problem("an extent is below 0")
        return dtype, shape

    def output(self) -> Buffer:
        """Read an output: a known buffer, or a new one."""
        known = self.buffers.get(self.next)
        if known is None:
            return self.declared("result")
        self.take()
        self.expect(":")
        if self.type() != (known.dtype, known.shape):
            raise self.problem(f"{printable(known.name)} is {known}")
        return known

    def fault(self) -> Fault:
        kind, message = self.string(), self.string()
        return Fault(message, None, self.string() if self.accept("help") else None, kind)

    def variable(self, external: bool = False) -> VariableUse:
        buffer = self.buffers.get(self.next)
        if buffer is None or buffer.role != "variable":
            buffer = self.declared("variable")
        else:
            self.take()
            self.expect(":")
            self.type()
        element = BY_STORAGE[buffer.dtype].name
        if self.accept("of"):
            element = self.take()
            if element not in ELEMENT_TYPES:
                raise self.problem(f"there is no element type {printable(element)}")
        initial = None
        if self.accept("="):
            initial = Buffer(f"{buffer.name}.initial", buffer.dtype, buffer.shape, "constant",
                             self.data(buffer.dtype, buffer.shape))
        return VariableUse(buffer, element, initial, external=external)

    def data(self, dtype: str, shape: tuple[int, ...]) -> Array:
        """Read the elements of a constant: numbers in brackets, or their bytes."""
        size, kind = int(np.prod(shape, dtype=np.int64)), BY_STORAGE[dtype].dtype
        if self.next.startswith("0x"):
            digits = self.take()[2:]
            if len(digits) != 2 * size * ITEM_SIZES[dtype]:
                raise self.problem(f"expected {2 * size * ITEM_SIZES[dtype]} hexadecimal digits, found {len(digits)}")
            found = np.frombuffer(bytes.fromhex(digits), kind).reshape(shape)
        else:
            self.expect("[")
            values = self.listed(self.element, "]")
            if len(values) != size:
                raise self.problem(f"expected {size} elements, found {len(values)}")
            found = np.array(values, kind).reshape(shape)
        found.flags.writeable = False
        return found

    def element(self) -> float | int:
        token = self.take()
        if token == "...":
            raise self.problem("elements were left out when the text was printed")
        if token in ("True", "False"):
            return token == "True"
        return self.number(token)

    # ---- a kernel ----------------------------------------------------------------------------------------------------
    def kernel(self, number: int, origin: str, expected: int) -> Kernel:
        self.last = self.lines[self.at][0]
        if number != expected:
            raise self.problem(f"expected kernel {expected}")
        self.at += 1
        self.open()
        out = self.label()
        self.expect(":")
        if self.type() != (out.dtype, out.shape):
            raise self.problem(f"{printable(out.name)} is {out}")
        self.expect("at", "[")
        scope = ExpressionReader(self, self.buffers)
        axes = self.listed(scope.new_axis, "]")
        self.expect("=")
        self.close()
        self.look_ahead(scope)
        while self.line.startswith("%"):
            self.open()
            scope.share()
            self.close()
        self.open()
        value = scope.expression()
        self.close()
        while self.line.startswith("where "):
            self.at += 1
        if value.dtype != out.dtype:
            raise self.problem(f"the value is {value.dtype}, and {printable(out.name)} holds {out.dtype}")
        return Kernel(out, axes, value, origin)

    def look_ahead(self, scope: ExpressionReader) -> None:
        """Read the axes of reductions and the constants of a kernel: their uses may precede the line that defines them."""
        start = self.at
        while self.at < len(self.lines) and not KERNEL.fullmatch(self.line) and self.line != "steps":
            offset, line = self.lines[self.at]
            for match in AXIS.finditer(line):
                self.last = offset + match.start(1)
                scope.bind(match[1], int(match[2]))
            if self.line.startswith("where "):
                self.open()
                self.constant(scope)
                self.close()
            else:
                self.at += 1
        self.at = start

    def constant(self, scope: ExpressionReader) -> None:
        self.expect("where")
        label = self.take()
        self.expect(":")
        dtype, shape = self.type()
        self.expect("#")
        number = self.whole()
        if self.next and number not in self.constants:
            name = self.string()
            self.expect("=")
            self.constants[number] = self.roots(shape) or Buffer(name, dtype, shape, "constant", self.data(dtype, shape))
        known = self.constants.get(number)
        if known is None or (known.dtype, known.shape) != (dtype, shape):
            raise self.problem(f"constant {number} is {'not there yet' if known is None else known}")
        scope.constants[label] = known

    def roots(self, shape: tuple[int, ...]) -> Buffer | None:
        """Read the constants of a Fourier transform, which follow from its length; None if other data follows."""
        if self.next not in ("inverse", "roots"):
            return None
        inverse = self.accept("inverse")
        self.expect("roots")
        if shape != (2, 2, self.whole()) or shape[2] < 1:
            raise self.problem(f"roots of this length are no {list(shape)}")
        return roots_buffer(shape[2], inverse)

    # ---- steps -------------------------------------------------------------------------------------------------------
    def steps(self, margin: int, kernels: int, faults: int) -> tuple[Step, ...]:
        """Read the steps of one block: the lines that are indented further than `margin`."""
        found: list[Step] = []
        inside = self.margin
        while self.margin == inside > margin and self.line not in ("else",) and not self.line.startswith("while "):
            found.append(self.step(inside, kernels, faults))
        return tuple(found)

    @property
    def margin(self) -> int:
        if self.at == len(self.lines):
            return 0
        line = self.lines[self.at][1]
        return len(line) - len(line.lstrip())

    def step(self, margin: int, kernels: int, faults: int) -> Step:
        self.open()
        match self.take():
            case "compute":
                found: Step = Compute(self.below(kernels, "kernel"))
            case "if":
                condition = self.label()
                self.close()
                then = self.steps(margin, kernels, faults)
                self.open()
                self.expect("else")
                found = Branch(condition, then, self.steps(margin, kernels, faults))
            case "loop":
                self.close()
                test = self.steps(margin, kernels, faults)
                self.open()
                self.expect("while")
                condition = self.label()
                self.close()
                return Loop(test, condition, self.steps(margin, kernels, faults))
            case "check":
                buffer = self.label()
                self.expect("is")
                written = self.take() == "written"
                self.expect(",", "fault")
                fault = self.below(faults, "fault")
                found = CheckWritten(buffer, fault) if written else CheckTrue(buffer, fault)
            case "mark":
                buffer = self.label()
                self.expect("written")
                found = MarkWritten(buffer)
            case other:
                raise self.problem(f"expected a step, found {printable(other)}")
        self.close()
        return found

    def below(self, count: int, what: str) -> int:
        number = self.whole()
        if not 0 <= number < count:
            raise self.problem(f"there is no {what} {number}")
        return number

    def label(self) -> Buffer:
        token = self.take()
        if token not in self.buffers:
            raise self.problem(f"there is no buffer {printable(token)}")
        return self.buffers[token]
