"""Graph -> kernels: decides which values are stored; all others become part of their consumer's expression.

There is one mechanism, inlining. A contraction inlined into the elementwise operator that reads it *is* a contraction with
an epilogue; a pad inlined into a convolution *is* a guarded load; a slice is an offset. The stored values are those that
more than one consumer computes with, those that control flow or a write to a variable must not change, and the results.

`Fuser` walks one function; `folding.py` decides what is computed while compiling, `kernel_pattern.py` which inlined values
spoil an expression; `variables.py` has the rules of stateful operators, `control_flow.py` those of regions, `checks.py` those
of checks.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ...runtime.errors import Position, Problem
from ...runtime.limits import checkpoint
from ...runtime.records import dataclass
from ..dialects.foreign_dialects import advice
from ..elements.affine import Affine, Axis
from ..elements.expression import Buffer, Expr
from ..elements.interpret import evaluate
from ..elements.tensor import Element, NotAffine, Tensor, stored, viewed
from ..elements.traverse import post_order, substitute
from ..graph.graph import Block, Function, Module, Operation, Value, uses
from ..graph.operator import UnknownOp
from ..graph.types import INDEX, Array, TensorType
from ..kernels.kernel import Compute, Fault, Kernel, Kernels, Step
from .checks import check, checks_first
from .folding import may_fold
from .inline import Inlining
from .kernel_pattern import troublesome
from .partial_sums import PartialSums, partial_sums
from .row_fusion import fuse_rows
from .values import axes_of, static


def fuse(module: Module, function: Function, inlines: bool = True) -> Kernels:
    """Return the kernels and steps of one function; `module` declares the variables. Without `inlines`, each operator has a
    kernel of its own."""
    refuse_foreign(function)
    fuser = Fuser(module, function, inlines)
    fuser.block(function.body)
    return fuse_rows(fuser.finish()) if inlines else fuser.finish()


@dataclass(slots=True)
class StepScope:
    """A block being walked: its steps so far."""
    steps: list[Step] = field(default_factory=list)


class Fuser:
    """State of the walk over one function.

    `tensors` has the tensor through which each value is read; `homes` the buffer of each stored value; `reads` the variables
    whose memory the readers of an unstored value (or a view) would read; `remaining` the number of uses still to come.
    """

    def __init__(self, module: Module, function: Function, inlines: bool = True) -> None:
        from .variables import FunctionVariables
        self.module, self.function, self.inlines = module, function, inlines
        self.kernels: list[Kernel] = []
        self.faults: list[Fault] = []
        self.tensors: dict[Value, Tensor] = {}
        self.homes: dict[Value, Buffer] = {}
        self.reads: dict[Value, frozenset[Buffer]] = {}
        self.origins: dict[Value, str] = {}
        self.definitions: dict[Value, Operation] = {}
        self.uses = uses(function.body)
        self.inlining = Inlining(self)
        self.remaining = {v: len(u) for v, u in self.uses.items()}
        self.names: dict[str, int] = {}
        self.known_axes: dict[tuple[int, ...], tuple[Axis, ...]] = {}
        self.scopes: list[StepScope] = [StepScope()]
        self.variables = FunctionVariables(self, module)
        self.results: dict[Value, Buffer] = {}
        self.inputs = tuple(self._input(v) for v in function.arguments)
        self.outputs = tuple(self._output(v, i) for i, v in enumerate(function.body.yields))

    # ---- names and buffers -------------------------------------------------------------------------------------------
    def unique(self, name: str) -> str:
        """Return `name`, with a number appended if it is taken."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return name if not count else self.unique(f"{name}_{count}")

    def buffer(self, value: Value, role: str = "temporary", name: str | None = None) -> Buffer:
        type = static(value)
        return Buffer(self.unique(name or value.name), type.element.storage, type.dims, role)  # type: ignore[arg-type]

    def axes(self, type: TensorType) -> tuple[Axis, ...]:
        """Return the axes at which every value of a shape is evaluated, so that operands reuse their expressions there
        (`shared`). A kernel has axes of its own."""
        if type.dims not in self.known_axes:
            self.known_axes[type.dims] = axes_of(type)
        return self.known_axes[type.dims]

    def _input(self, value: Value) -> Buffer:
        buffer = self.buffer(value, "argument")
        self.place(value, buffer)
        return buffer

    def _output(self, value: Value, number: int) -> Buffer:
        """Return a new buffer for an output. Each output has its own: a value that leaves the function twice is copied."""
        buffer = self.buffer(value, "result", f"result{number}")
        if value not in self.results and value.constant is None and value not in self.function.arguments:
            self.results[value] = buffer
        return buffer

    def place(self, value: Value, buffer: Buffer) -> None:
        """Record that a value is stored in a buffer of its own shape."""
        self.homes[value] = buffer
        self.tensors[value] = stored(static(value), buffer)
        self.reads[value] = frozenset((buffer,)) if buffer.role == "variable" else frozenset()

    def tensor(self, value: Value) -> Tensor:
        """Return the tensor through which a value is read."""
        if value not in self.tensors:
            if value.constant is None:
                raise Problem(f"%{value.name} is used before it is defined", value.position, kind="symbol")
            self.constant(value, value.constant)
        return self.tensors[value]

    def constant(self, value: Value, data: Array) -> None:
        if isinstance(value.type, TensorType):
            type = static(value)
            array = data.reshape(type.dims)
            self.place(value, Buffer(self.unique(value.name), type.element.storage, type.dims, "constant", array))
        else:  # a shape: read while compiling only
            flat = data.reshape(-1)
            self.place_shape(value, flat)

    def place_shape(self, value: Value, data: Array) -> None:
        type = TensorType(data.shape, INDEX)
        self.tensors[value] = stored(type, Buffer(value.name, "int64", data.shape, "constant", data))
        self.reads[value] = frozenset()

    # ---- the walk ----------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        for operation in block.operations:
            try:
                self.visit(operation)
            except Problem as problem:
                raise problem.at(operation.position) from None
            except Exception as error:
                error.add_note(f"at {operation.op.name}")
                raise

    def visit(self, operation: Operation) -> None:
        from . import control_flow
        match operation.op.variable_effect:
            case "declare":
                self.variables.declare(operation)
            case "read":
                self.variables.read(operation)
            case "write":
                self.variables.write(operation)
            case _ if operation.regions:
                control_flow.lower(self, operation)
            case _ if operation.op.is_check:
                check(self, operation)
            case _ if all(v.constant is not None for v in operation.results):
                pass  # known when compiling, or nothing but a check
            case _:
                self.compute(operation)
        self.used(operation.operands)

    def used(self, values: Iterable[Value]) -> None:
        for value in values:
            self.remaining[value] -= 1

    def compute(self, operation: Operation) -> None:
        """Fold, inline, view or store each result of an operator."""
        checkpoint()
        if isinstance(operation.op, UnknownOp):
            raise unsupported(operation)
        for number, value in enumerate(operation.results):
            if value in self.uses:
                self.result(operation, number)

    def result(self, operation: Operation, number: int) -> None:
        """Fold, inline, view or store one result of an operator."""
        value = operation.results[number]
        static(value)
        try:
            element, expression, axes = self.expression(operation, number)
        except NotAffine:
            self.view(operation)
            return
        if self.fold(value, operation, expression, axes):
            return
        self.tensors[value] = Tensor(static(value), shared(element))
        self.definitions[value] = operation
        self.origins[value] = self.origin(operation)
        self.reads[value] = self.read_by(operation)
        if value in self.results or not self.inlines or not self.inlining.may_inline(value, expression):
            self.materialize(value, operation.position)

    def element(self, operation: Operation, number: int = 0) -> Element:
        """Return the function from an index to the element of a result, for the operands as they are read now."""
        return operation.op.result_elements([static(v) for v in operation.results],
                                     *map(self.tensor, operation.operands))[number]

    def origin(self, operation: Operation) -> str:
        """Return the operators that a kernel of this operation would compute, the last one first; at most eight."""
        inlined = [self.origins[v] for v in dict.fromkeys(operation.operands)
                   if v in self.origins and v not in self.homes]
        return " ".join([operation.op.name.removeprefix("tosa."), *" ".join(inlined).split()][:8])

    def expression(self, operation: Operation, number: int) -> tuple[Element, Expr, tuple[Axis, ...]]:
        """Return (element, its expression, axes). Operands that cannot be part of the expression are stored first."""
        value = operation.results[number]
        self.store_all(self.inlining.too_many(operation))
        for attempt in range(3):
            try:
                element = self.element(operation, number)
                axes = self.axes(static(value))
                expression = element(*map(Affine.of, axes))
            except NotAffine:
                inlined = [v for v in operation.operands if v not in self.homes and v.constant is None]
                if operation.op.name == "tosa.reshape" or not inlined or attempt == 2:
                    raise
                self.store_all(inlined)
                continue
            inlined = [v for v in dict.fromkeys(operation.operands)
                       if v in self.tensors and v not in self.homes and v.constant is None]
            spoiling = [inlined[n] for n in troublesome(expression, [self.tensors[v] for v in inlined])]
            if not spoiling:
                return element, expression, axes
            axes = axes_of(static(value))
            sums = partial_sums(value.name, axes, element(*map(Affine.of, axes)))
            if sums and sums.nbytes <= sum(static(v).nbytes for v in spoiling):
                return self.summed(operation, axes, sums)
            self.store_all([self.inlining.narrowest(v) for v in spoiling])
            for v in spoiling:
                self.renew(v)
        return element, expression, axes

    def summed(self, operation: Operation, axes: tuple[Axis, ...], sums: PartialSums) -> tuple[Element, Expr, tuple[Axis, ...]]:
        """Store partial sums, and return the rest of the expression."""
        for buffer, own, reduction in sums.sums:
            self.kernels.append(Kernel(buffer, own, reduction, self.origin(operation), operation.position))
            self.step(Compute(len(self.kernels) - 1))
        long = [a for a in axes if a.extent > 1]

        def element(*index: Affine) -> Expr:
            return substitute(sums.expression, {a: i for a, i in zip(axes, index) if a in long})

        return element, sums.expression, axes

    def view(self, operation: Operation) -> None:
        """Lower a reshape whose index is not affine: store the operand, and read it by flat index."""
        source, value = operation.operands[0], operation.results[0]
        buffer = self.materialize(source, operation.position)
        self.tensors[value] = viewed(static(value), buffer)
        self.reads[value] = self.reads.get(source, frozenset())
        self.origins[value] = "reshape"
        if value in self.results:
            self.materialize(value, operation.position)

    def fold(self, value: Value, operation: Operation, expression: Expr, axes: tuple[Axis, ...]) -> bool:
        """Compute an operator on constants now, if `may_fold`; True if it is computed."""
        if not may_fold(static(value), expression, axes, value in self.results):
            return False
        data = evaluate(expression, axes).copy()
        data.flags.writeable = False
        self.constant(value, data)
        if value in self.results:
            self.materialize_copy(value, operation.position)
        return True

    # ---- storing -----------------------------------------------------------------------------------------------------
    def store_all(self, values: Iterable[Value]) -> None:
        """Store values, after the values from which several of them are computed."""
        values = tuple(values)
        common = [v for v in self.inside(*values) if len(set(self.uses.get(v, ()))) > 1]
        for value in common:
            self.materialize(value, value.position)
        for value in values:
            if common:
                self.renew(value)
            self.materialize(value, value.position)

    def inside(self, *values: Value) -> list[Value]:
        """Return the unstored values that these values are computed from, themselves included, operands first."""
        return post_order(filter(self.is_unstored, values), self.unstored_operands)

    def is_unstored(self, value: Value) -> bool:
        """True if a value is not stored, so that its readers compute it."""
        return value not in self.homes and value in self.definitions

    def unstored_operands(self, value: Value) -> list[Value]:
        return [v for v in self.definitions[value].operands if self.is_unstored(v)]

    def renew(self, value: Value) -> None:
        """Make the expression of an unstored value again, from its operands as they are read now."""
        for inner in self.inside(value):
            self.compute_again(inner)

    def compute_again(self, value: Value) -> None:
        operation = self.definitions[value]
        self.tensors[value] = Tensor(static(value), shared(self.element(operation, operation.results.index(value))))

    def materialize(self, value: Value, position: Position | None) -> Buffer:
        """Return the buffer of a value; store the value now if it was to be inlined."""
        self.tensor(value)
        if value not in self.homes:
            buffer = self.results.get(value) or self.buffer(value)
            self.emit(buffer, self.tensors[value], self.origins.get(value, "copy"), position)
            self.place(value, buffer)
        return self.homes[value]

    def refresh(self, value: Value) -> None:
        """Read an unstored value through its operands as they are read now, since an operand may have been stored."""
        for inner in self.inside(value):
            reads = self.read_by(self.definitions[inner])
            if reads != self.reads[inner]:
                self.compute_again(inner)
                self.reads[inner] = reads

    def read_by(self, operation: Operation) -> frozenset[Buffer]:
        """Return the variables whose memory an inlined operation reads."""
        return frozenset().union(*(self.reads.get(v, frozenset()) for v in operation.operands))

    def materialize_copy(self, value: Value, position: Position | None) -> None:
        self.emit(self.results[value], self.tensor(value), "copy", position)

    def emit(self, out: Buffer, tensor: Tensor, origin: str, position: Position | None) -> None:
        """Append a kernel that stores `tensor` in `out`, and the step that runs it."""
        axes = axes_of(tensor.type)
        try:
            expression = tensor.element(*map(Affine.of, axes))
        except NotAffine:  # an inlined chain that ends in a view
            raise Problem(f"{out.name}: an index is not affine", position, kind="internal") from None
        self.kernels.append(Kernel(out, axes, expression, origin, position))
        self.step(Compute(len(self.kernels) - 1))

    def step(self, step: Step) -> None:
        self.scopes[-1].steps.append(step)

    def finish(self) -> Kernels:
        body = self.function.body
        for value, out in zip(body.yields, self.outputs):
            self.tensor(value)
            if self.results.get(value) is not out:
                self.emit(out, self.tensors[value], self.origins.get(value, "copy"), body.terminator_position)
            elif self.homes.get(value) is not out and not self.is_folded(value):
                self.emit(out, self.tensors[value], "copy", body.terminator_position)
        return Kernels(self.function.name, self.inputs, self.outputs, tuple(self.kernels),
                       checks_first(self.scopes[0].steps), self.variables.used(), tuple(self.faults))

    def is_folded(self, value: Value) -> bool:
        home = self.homes.get(value)
        return home is not None and home.role == "constant"


def refuse_foreign(function: Function) -> None:
    """Raise a Problem at the first operation of another dialect that is not a constant."""
    for operation in function.body.walk():
        if operation.op.foreign and not (operation.results and all(v.constant is not None for v in operation.results)):
            raise unsupported(operation)


def unsupported(operation: Operation) -> Problem:
    """Return the Problem of an operator that cannot be compiled."""
    name = operation.op.name or getattr(operation.op, "spelling", "")
    return Problem(f"operator {name} cannot be compiled", operation.position, kind="unsupported",
                   help=advice(name) or "convert it to TOSA, or take out what needs its results")


def shared(element: Element) -> Element:
    """Return the same element with one expression for each index, so that an element that is read twice is computed once."""
    known: dict[tuple[Affine, ...], Expr] = {}

    def once(*index: Affine) -> Expr:
        if index not in known:
            known[index] = element(*index)
        return known[index]

    return once
