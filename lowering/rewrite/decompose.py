"""Graph -> graph: block-scaled tensors (TOSA 1.1) as two tensors each, values and scales, so that no later stage meets them.

A value X of a composite type becomes X, of its values' type, and X_scale, whose last extent is 32 times smaller; so do the
arguments and results of functions and regions. Operators that move elements are applied to both. Arithmetic becomes the plain
operators in f32 between CAST_FROM_BLOCK_SCALED and the two halves of CAST_TO_BLOCK_SCALED; the casts work on rows of one block
each. The operators that take values and scales as two tensors (*_BLOCK_SCALED) become the same operators.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np

from ...runtime.errors import Position, Problem
from ...runtime.records import dataclass
from ..dialects.tosa.block_scaled import CastFromBlockScaled, CastToBlockScaled, Conv2DBlockScaled, MatMulTBlockScaled
from ..dialects.tosa.block_scaled_halves import BLOCK, BlockScale, BlockValues
from ..dialects.tosa.block_scaled_layout import ReshapeBlockScaled, RowGatherBlockScaled
from ..dialects.tosa.control_flow import CondIf, WhileLoop
from ..dialects.tosa.conversion import Cast
from ..dialects.tosa.convolution import Conv2D, Conv3D, TransposeConv2D
from ..dialects.tosa.data import Const, ConstShape, Identity
from ..dialects.tosa.gather import RowGather
from ..dialects.tosa.layout import Concat, Reshape, Reverse, Slice, Tile, Transpose
from ..dialects.tosa.matmul import MatMulT
from ..dialects.tosa.resize import Resize
from ..dialects.tosa.shape_lists import Dim
from ..graph.block_scaled_arrays import split
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.operator import Op
from ..graph.types import F32, BlockScaled, ElementType, TensorType, Type

LISTED = (CastFromBlockScaled, CastToBlockScaled, MatMulTBlockScaled, Conv2DBlockScaled, ReshapeBlockScaled,
          RowGatherBlockScaled)
"""Operators whose operands are values and scales already."""


class Pair(NamedTuple):
    """A block-scaled value as two tensors: values and scales."""
    data: Value
    scale: Value


def decompose(module: Module) -> Module:
    """The module without block-scaled types; the same object if it has none."""
    if not any(map(has_composites, module.functions)):
        return module
    for operation in module.declarations:
        if is_composite(getattr(operation.op, "type", None)):
            raise Problem("a variable cannot be block-scaled", operation.position, kind="unsupported")
    return replace(module, functions=tuple(decomposed(f) if has_composites(f) else f for f in module.functions))


def is_composite(type: Any) -> bool:
    return isinstance(type, TensorType) and isinstance(type.element, BlockScaled)


def has_composites(function: Function) -> bool:
    """True if a function has a value of composite type, or an operator that takes values and scales."""
    return any(is_composite(a.type) for a in function.arguments) or any(
        isinstance(o.op, LISTED) or any(is_composite(r.type) for r in o.results) for o in function.body.walk())


def decomposed(function: Function) -> Function:
    arguments = doubled(function.argument_attributes, [a.type for a in function.arguments])
    results = doubled(function.result_attributes, function.result_types)
    return replace(function, body=Decomposer({}).block(function.body), argument_attributes=arguments,
                   result_types=tuple(t for type in function.result_types for t in parts_of(type)),
                   result_attributes=results)


def doubled(attributes: Sequence[Mapping[str, Any]], types: Sequence[Type]) -> tuple[Mapping[str, Any], ...]:
    """Return the dictionaries of arguments or results with one more for each scale, whose name has the suffix of scales."""
    found: list[Mapping[str, Any]] = []
    for dictionary, type in zip(attributes, types):
        found.append(dictionary)
        if is_composite(type):
            found.append({k: f"{v}_scale" if k == "tosa.tensor_name" and isinstance(v, str) else v
                          for k, v in dictionary.items()})
    return tuple(found)


def parts_of(type: Type) -> tuple[Type, ...]:
    """The types of values and scales for a composite type, else the type."""
    if not isinstance(type, TensorType) or not isinstance(type.element, BlockScaled):
        return (type,)
    element = type.element
    return type.with_element(element.value), TensorType(scale_shape(type, element), element.scale)


def scale_shape(type: TensorType, element: BlockScaled) -> tuple[int | None, ...] | None:
    if type.shape is None:
        return None
    *rest, last = type.shape
    return (*rest, None if last is None else last // element.block)


@dataclass(slots=True)
class Decomposer:
    """Walks one block. `pairs` maps the block-scaled values of this block and of the enclosing blocks."""
    pairs: dict[Value, Pair]
    operations: list[Operation] = field(default_factory=list)
    reals: dict[Value, Value] = field(default_factory=dict)
    """Values of composite types as f32, if this block or an enclosing one has computed them."""
    position: Position | None = None

    def block(self, block: Block) -> Block:
        arguments = self.expanded(block.arguments, self.paired)
        for operation in block.operations:
            self.position = operation.position
            try:
                self.operation(operation)
            except Problem as problem:
                raise problem.at(operation.position) from None
        return replace(block, arguments=arguments, operations=tuple(self.operations),
                       yields=self.expanded(block.yields, self.pairs.__getitem__))

    def expanded(self, values: Sequence[Value], pair: Callable[[Value], Pair]) -> tuple[Value, ...]:
        """Return the values, two for each that is block-scaled."""
        return tuple(v for value in values for v in (pair(value) if is_composite(value.type) else (value,)))

    def paired(self, value: Value) -> Pair:
        """Return two new values for a block-scaled one."""
        data, scale = parts_of(value.type)
        pair = Pair(Value(value.name, data, value.position), Value(f"{value.name}_scale", scale, value.position))
        self.pairs[value] = pair
        return pair

    # ---- operations --------------------------------------------------------------------------------------------------
    def operation(self, operation: Operation) -> None:
        values = (*operation.operands, *operation.results)
        if isinstance(operation.op, CondIf | WhileLoop):
            self.control_flow(operation)
        elif not isinstance(operation.op, LISTED) and not any(is_composite(v.type) for v in values):
            self.operations.append(operation)
        else:
            self.replaced(operation)

    def control_flow(self, operation: Operation) -> None:
        regions = tuple(Decomposer(dict(self.pairs), reals=dict(self.reals)).block(r) for r in operation.regions)
        operands = self.expanded(operation.operands, self.pairs.__getitem__)
        results = self.expanded(operation.results, self.paired)
        self.operations.append(replace(operation, operands=operands, results=results, regions=regions))

    def replaced(self, operation: Operation) -> None:
        """Replace one operation on block-scaled tensors."""
        op, operands, results = operation.op, operation.operands, operation.results
        match op:
            case Const():
                self.constant(op, results[0])
            case Identity() | Concat() | Reverse() | Tile() | Transpose() | RowGather() | Resize():
                for member, result in enumerate(self.paired(results[0])):
                    self.add(op, *self.member(operands, member), result=result)
            case Reshape() | Slice():
                self.resized(op, operands, self.paired(results[0]))
            case Dim():
                self.add(op, *self.member(operands, 0), result=results[0])
            case Cast() if is_composite(results[0].type):
                pair = self.paired(results[0])
                self.quantized(operands[0], pair.data, pair.scale)
            case Cast():
                self.in_f32(Identity(), (self.real(operands[0]),), results[0])
            case Conv2D() | Conv3D() | TransposeConv2D():
                x, weight, bias, *zero_points = operands
                wide = bias if bias.tensor.element == F32 else self.new(Cast(to=F32), bias)
                self.in_f32(replace(op, acc_type=F32), (self.real(x), self.real(weight), wide, *zero_points), results[0])
            case MatMulT():
                a, b, *zero_points = operands
                self.in_f32(MatMulT(to=F32), (self.real(a), self.real(b), *zero_points), results[0])
            case _ if isinstance(op, LISTED):
                self.listed(op, operands, results)
            case _:
                raise Problem(f"{op.name} does not take block-scaled tensors", kind="type")

    def listed(self, op: Op, operands: tuple[Value, ...], results: tuple[Value, ...]) -> None:
        """Replace an operator with values and scales as operands."""
        match op:
            case CastFromBlockScaled(to=to):
                assert to is not None
                self.scaled_up(operands[0], operands[1], to, results[0])
            case CastToBlockScaled():
                self.quantized(operands[0], *results)
            case MatMulTBlockScaled():
                zero, (a, a_scale, b, b_scale) = self.zero(), operands
                factors = self.scaled_up(a, a_scale), self.scaled_up(b, b_scale)
                self.add(MatMulT(to=F32), *factors, zero, zero, result=results[0])
            case Conv2DBlockScaled():
                zero, (x, x_scale, weight, weight_scale, bias, *window) = self.zero(), operands
                pad, stride, dilation = (tuple(map(int, known(v).reshape(-1))) for v in window)
                self.add(Conv2D(pad=pad, stride=stride, dilation=dilation, acc_type=F32), self.scaled_up(x, x_scale),
                         self.scaled_up(weight, weight_scale), bias, zero, zero, result=results[0])
            case RowGatherBlockScaled():
                for values, result in zip(operands, results):
                    self.add(RowGather(), values, *operands[-2:], result=result)
            case _:
                for values, result in zip(operands, results):
                    self.reshaped(values, extents(result), result)

    def constant(self, op: Const, result: Value) -> None:
        element = result.tensor.element
        assert isinstance(element, BlockScaled)
        pair = Pair(*(replace(value, constant=array) for value, array in zip(self.paired(result),
                                                                             split(op.values, element))))
        self.pairs[result] = pair
        for value in pair:
            assert value.constant is not None
            self.add(Const(value.constant, value.tensor.element), result=value)

    def resized(self, op: Op, operands: tuple[Value, ...], pair: Pair) -> None:
        """Emit RESHAPE or SLICE for values and for scales: the last extent of the scales is divided by the block size."""
        self.add(op, *self.member(operands, 0), result=pair.data)
        numbers = []
        for operand in operands[1:]:
            *rest, last = map(int, known(operand).reshape(-1)) if isinstance(op, Slice) else extents(pair.data)
            numbers.append(self.shape((*rest, last // BLOCK)))
        self.add(op, *self.member(operands[:1], 1), *numbers, result=pair.scale)

    def member(self, operands: Sequence[Value], number: int) -> list[Value]:
        """Return the operands, with the values (0) or the scales (1) in place of each block-scaled one."""
        return [self.pairs[v][number] if is_composite(v.type) else v for v in operands]

    # ---- arithmetic --------------------------------------------------------------------------------------------------
    def real(self, value: Value) -> Value:
        """Return a block-scaled tensor as f32; any other unchanged."""
        if not is_composite(value.type):
            return value
        if value not in self.reals:
            self.reals[value] = self.scaled_up(*self.pairs[value])
        return self.reals[value]

    def scaled_up(self, data: Value, scale: Value, to: ElementType = F32, result: Value | None = None) -> Value:
        """Return values times scales."""
        rows = self.rows(data), self.rows(scale, 1)
        product = self.new(CastFromBlockScaled(block_size="BLOCK_SIZE_32", to=to), *rows)
        return self.reshaped(product, extents(data), result)

    def quantized(self, x: Value, data: Value, scale: Value) -> None:
        """Compute the nearest values and scales for x, as the results `data` and `scale`."""
        element, rows = data.tensor.element, self.rows(x)
        scales = self.new(BlockScale(value=element), rows)
        self.reshaped(self.new(BlockValues(value=element), rows, scales), extents(data), data)
        self.reshaped(scales, extents(scale), scale)

    def rows(self, x: Value, width: int = BLOCK) -> Value:
        return self.reshaped(x, (math.prod(extents(x)) // width, width))

    def in_f32(self, op: Op, operands: tuple[Value, ...], result: Value) -> None:
        """Emit an operator that gives f32, cast to the type of `result`."""
        element = result.tensor.element
        if element == F32:
            self.add(op, *operands, result=result)
        else:
            self.add(Cast(to=element), self.new(op, *operands), result=result)

    def zero(self) -> Value:
        return self.new(Const(np.zeros(1, np.float32)))

    # ---- building ----------------------------------------------------------------------------------------------------
    def reshaped(self, x: Value, dims: tuple[int, ...], result: Value | None = None) -> Value:
        if result is None and dims == extents(x):
            return x
        return self.add(Reshape(), x, self.shape(dims), result=result or Value(f"{x.name}_rows", x.tensor.with_shape(dims)))

    def shape(self, dims: tuple[int, ...]) -> Value:
        return self.new(ConstShape(np.array(dims, np.int64)))

    def new(self, op: Op, *operands: Value) -> Value:
        """Add an operation and return its result."""
        type, = op.types(operands)
        name = operands[0].name if operands else "constant"
        return self.add(op, *operands, result=Value(name, type, self.position, op.constant(operands)))

    def add(self, op: Op, *operands: Value, result: Value) -> Value:
        """Add an operation with the given result."""
        self.operations.append(Operation(op, operands, (result,), position=self.position))
        return result


def extents(value: Value) -> tuple[int, ...]:
    """Return the extents of a tensor, which must be known."""
    if not value.tensor.is_static:
        raise Problem(f"%{value.name} has the dynamic shape {value.type}", value.position, kind="unsupported",
                      help="give the graph static shapes, or convert it for the shapes that you call it with")
    return value.tensor.dims


def known(value: Value) -> Any:
    """Return the data of an operand that must be known at compile time."""
    if value.constant is None:
        raise Problem(f"%{value.name} must be known when compiling", kind="unsupported")
    return value.constant
