"""Graph -> graph: transposes move below the operators that read them, if these can work on the untransposed axes as well, and
two that meet become one, or none (layout propagation).

A network that was written for images with channels first (PyTorch, ONNX) has a transpose before each convolution, which wants
channels last, and one after it. This pass computes everything between two convolutions with channels last and leaves transposes
only at the ends of the graph. The computation of each element and the order of its sums do not change.

An operator moves if every operand is a transpose of one order, or is only a reshape in that order (a constant, or a tensor
whose axes longer than 1 keep their order), and if the transpose is not of less than its result.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...runtime.records import dataclass
from ..dialects.tosa.conversion import Cast
from ..dialects.tosa.data import ConstShape
from ..dialects.tosa.elementwise import Elementwise
from ..dialects.tosa.layout import Concat, Pad, Reshape, Reverse, Slice, Transpose, regrouped
from ..dialects.tosa.reduction import Reduction
from ..dialects.tosa.rescale import Rescale
from ..dialects.tosa.table import Table
from ..graph.graph import Block, BlockBuilder, Module, Operation, Value
from ..graph.types import BlockScaled, TensorType

Order = tuple[int, ...]
"""TRANSPOSE's `perms`: axis i of the result is axis order[i] of the source."""
MAX_CONSTANT_BYTES = 1 << 20
"""Maximum number of bytes of a constant that is transposed: the limit of folding at compile time (`fuse.folding`)."""


@dataclass(frozen=True, slots=True)
class Transposed:
    """A value as a transpose of a source; any other value as itself, in the order of its axes."""
    source: Value
    order: Order

    def behind(self, order: Order) -> Transposed:
        """Return the view whose transpose in that order gives this value."""
        return Transposed(self.source, composed(self.order, inverse(order)))

    @property
    def is_free(self) -> bool:
        """True if the transpose costs nothing: its source is known at compile time, or the elements keep their order in
        memory."""
        constant = self.source.constant
        return keeps_order(dims(self.source), self.order) or (constant is not None and constant.nbytes <= MAX_CONSTANT_BYTES)

    @property
    def moves(self) -> bool:
        """True if the transpose changes the order of elements in memory."""
        return not keeps_order(dims(self.source), self.order)


View = Callable[[Value], Transposed]
Found = Transposed | None
"""The operator's result before the transpose, and the transpose's order; None if the operator does not move."""


def sink_transposes(module: Module) -> Module:
    """Return the module with fewer transposes between its operators; the same object if it has none."""
    if not any(isinstance(o.op, Transpose) for f in module.functions for o in f.body.walk()):
        return module
    return replace(module, functions=tuple(replace(f, body=Sinking({}, {}).block(f.body)) for f in module.functions))


@dataclass(frozen=True, slots=True)
class Sinking:
    """The state of the pass at one point of a function: the replacements of values, and the values that are transposes."""
    values: dict[Value, Value]
    transposes: dict[Value, Transposed]

    def block(self, block: Block) -> Block:
        operations = [made for operation in block.operations for made in self.operation(operation)]
        return replace(block, operations=tuple(operations), yields=tuple(self.values.get(v, v) for v in block.yields))

    def operation(self, operation: Operation) -> Sequence[Operation]:
        """Return the operations that replace an operation."""
        regions = tuple(Sinking(dict(self.values), dict(self.transposes)).block(r) for r in operation.regions)
        operation = replace(operation, operands=tuple(self.values.get(v, v) for v in operation.operands), regions=regions)
        if len(operation.results) != 1 or not has_elements(operation.results[0]):
            return [operation]
        if isinstance(operation.op, Transpose):
            return self.transpose(operation, operation.op)
        if not any(operand in self.transposes for operand in operation.operands):
            return [operation]
        return self.sunk(operation)

    def view(self, value: Value) -> Transposed:
        return self.transposes.get(value) or Transposed(value, tuple(range(len(dims(value)))))

    def transpose(self, operation: Operation, op: Transpose) -> Sequence[Operation]:
        """Replace a transpose of a transpose by one transpose of the source, or by the source itself."""
        result, before = operation.results[0], self.view(operation.operands[0])
        order = composed(before.order, op.perms)
        if order == tuple(range(len(order))):
            self.values[result] = before.source
            return ()
        self.transposes[result] = Transposed(before.source, order)
        return [replace(operation, op=Transpose(order), operands=(before.source,))]

    def sunk(self, operation: Operation) -> Sequence[Operation]:
        """Return the operator on the source's axes followed by the transpose; or the operation unchanged."""
        result = operation.results[0]
        builder = BlockBuilder(f"{result.name}_")
        found = move(Mover(builder, operation, self.view))
        if found is None:
            return [operation]
        last = builder.operations.pop()
        builder.operations.append(replace(last, location=operation.location, attributes=operation.attributes))
        if found.order == tuple(range(len(found.order))):
            self.values[result] = found.source
            return builder.operations
        self.transposes[result] = found
        return [*builder.operations, Operation(Transpose(found.order), (found.source,), (result,), position=operation.position)]


@dataclass(frozen=True, slots=True)
class Mover:
    """An operation that may move, and the builder of its replacement before the transpose."""
    builder: BlockBuilder
    operation: Operation
    view: View

    @property
    def result(self) -> TensorType:
        return self.operation.results[0].tensor

    def add(self, op: object, *operands: Value) -> Value:
        return self.builder.add(op, *operands, position=self.operation.position)[0]  # type: ignore[arg-type]

    def laid_out(self, value: Transposed) -> Value:
        """Return the source itself, or its transpose."""
        stays = value.order == tuple(range(len(value.order)))
        return value.source if stays else self.add(Transpose(value.order), value.source)

    def in_order(self, operands: Sequence[Value], candidates: Iterable[Value]) -> tuple[Order, list[Transposed]] | None:
        """Return the order of a transpose among the candidates that can move below the operator for all operands, and the
        operands before it."""
        for candidate in candidates:
            seen = self.view(candidate)
            if seen.moves and seen.source.constant is None:
                behind = [self.view(v).behind(seen.order) for v in operands]
                if all(b.is_free for b in behind):
                    return seen.order, behind
        return None


def move(mover: Mover) -> Found:
    match mover.operation.op:
        case Rescale(per_channel=True):
            return None
        case Elementwise() | Cast() | Table() | Rescale():
            return elementwise(mover)
        case Reduction() | Reverse():
            return along_axis(mover)
        case Concat():
            return concat(mover)
        case Pad() | Slice():
            return with_numbers(mover)
        case Reshape():
            return reshape(mover)
        case _:
            return None


def elementwise(mover: Mover) -> Found:
    """Move an elementwise operator. Operands of the result's rank move; tables and factors are not images. A transpose of less
    than the result stays."""
    operands, shape = mover.operation.operands, mover.result.dims
    images = [v for v in operands if len(dims(v)) == len(shape)]
    found = mover.in_order(images, (v for v in images if dims(v) == shape))
    if found is None:
        return None
    order, behind = found
    moved = dict(zip(images, map(mover.laid_out, behind)))
    return Transposed(mover.add(mover.operation.op, *(moved.get(v, v) for v in operands)), order)


def along_axis(mover: Mover) -> Found:
    """Move a reduction or a reversal."""
    (x,), op = mover.operation.operands, mover.operation.op
    assert isinstance(op, (Reduction, Reverse))
    seen = mover.view(x)
    return Transposed(mover.add(replace(op, axis=seen.order[op.axis]), seen.source), seen.order) if seen.moves else None


def concat(mover: Mover) -> Found:
    operands, op = mover.operation.operands, mover.operation.op
    assert isinstance(op, Concat)
    found = mover.in_order(operands, operands)
    if found is None:
        return None
    order, behind = found
    return Transposed(mover.add(replace(op, axis=order[op.axis]), *map(mover.laid_out, behind)), order)


def with_numbers(mover: Mover) -> Found:
    """Move a pad or a slice, which has one or two numbers for each axis."""
    x, *others = mover.operation.operands
    seen, rank = mover.view(x), len(mover.result.dims)
    if not seen.moves:
        return None
    arguments: list[Value] = []
    for value in others:
        if value.constant is None:
            return None
        numbers = value.constant.reshape(-1)
        if isinstance(value.type, TensorType) and len(numbers) == 1 and isinstance(mover.operation.op, Pad):
            arguments.append(value)  # the pad value
            continue
        permuted = numbers.reshape(rank, -1)[list(inverse(seen.order))].reshape(-1)
        arguments.append(mover.add(ConstShape(read_only(permuted))))
    return Transposed(mover.add(mover.operation.op, seen.source, *arguments), seen.order)


def reshape(mover: Mover) -> Found:
    """Move a reshape. Axes that are joined or split must be adjacent in the source, in the same order."""
    seen, result = mover.view(mover.operation.operands[0]), mover.result.dims
    if not seen.moves:
        return None
    source = dims(seen.source)
    long_axes = [axis for axis, extent in enumerate(source) if extent != 1]
    groups: list[tuple[int, list[int]]] = []
    for left, right in regrouped(tuple(source[a] for a in seen.order), result):
        places = [long_axes.index(seen.order[axis]) for axis in left]
        if places != list(range(places[0], places[0] + len(places))):
            return None
        groups.append((places[0], right))
    axes = [axis for _, right in sorted(groups) for axis in right]
    for axis, extent in enumerate(result):
        if extent == 1:
            axes.insert(axis, axis)  # at its old position
    order = inverse(tuple(axes))
    if keeps_order(tuple(result[a] for a in axes), order):  # no transpose is left
        axes, order = list(range(len(result))), tuple(range(len(result)))
    shape = mover.add(ConstShape(read_only(np.array([result[a] for a in axes], np.int64))))
    return Transposed(mover.add(mover.operation.op, seen.source, shape), order)


def has_elements(value: Value) -> bool:
    """True if the value is a tensor of a known shape, with elements of their own."""
    type = value.type
    return isinstance(type, TensorType) and type.is_static and type.size > 0 and not isinstance(type.element, BlockScaled)


def dims(value: Value) -> tuple[int, ...]:
    """Return the shape of a tensor; () for a list of extents."""
    return value.type.dims if isinstance(value.type, TensorType) else ()


def read_only(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def composed(first: Order, then: Order) -> Order:
    """Return the order of a transpose of a transpose."""
    return tuple(first[axis] for axis in then)


def inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def keeps_order(shape: tuple[int, ...], order: Order) -> bool:
    """True if the axes longer than 1 keep their order."""
    long_axes = [axis for axis in order if shape[axis] != 1]
    return long_axes == sorted(long_axes)
