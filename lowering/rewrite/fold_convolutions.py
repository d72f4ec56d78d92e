"""Graph -> graph: constant operations next to a convolution are folded into it: factors and terms per output channel (a bias, a
batch normalisation) into its weights and its bias, zeros around its input into its padding.

Only floats of 32 bits and more are folded, whose weights lose no more than a rounding, and only if nothing else reads the
convolution's result.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..dialects.tosa.convolution import Convolution, DepthwiseConv2D, TransposeConv2D
from ..formulas.tosa_builder import PlacedBuilder
from ..graph.graph import Block, BlockBuilder, Function, Module, Operation, Value, uses
from ..graph.types import Array, TensorType

FACTORS, TERMS = ("tosa.mul",), ("tosa.add", "tosa.sub")


def fold_convolutions(module: Module) -> Module:
    """Return the module with fewer operations around its convolutions."""
    return replace(module, functions=tuple(Folding(f).function() for f in module.functions))


class Folding:
    """The folding of one function: the new constants, the readers of each value, and the operation of the same block that
    defines it."""

    def __init__(self, source: Function) -> None:
        self.source = source
        self.constants = BlockBuilder("folded")
        self.definitions: dict[Value, Operation] = {}
        self.readers: Mapping[Value, list[Operation | None]] = uses(source.body)

    def function(self) -> Function:
        body = self.block(self.source.body)
        return replace(self.source, body=replace(body, operations=(*self.constants.operations, *body.operations)))

    def block(self, source: Block) -> Block:
        """Return the block. Operations that were folded into another one stay, to be pruned."""
        around, self.definitions = self.definitions, {}
        operations = tuple(map(self.operation, source.operations))
        self.definitions = around
        return replace(source, operations=operations)

    def operation(self, operation: Operation) -> Operation:
        if operation.regions:
            operation = replace(operation, regions=tuple(map(self.block, operation.regions)))
        elif operation.op.name in FACTORS + TERMS:
            operation = self.scaled(operation) or operation
        elif isinstance(operation.op, Convolution):
            operation = self.padded(operation, operation.op) or operation
        self.definitions.update((r, operation) for r in operation.results)
        return operation

    def constant(self, array: Array, like: Value) -> Value:
        return PlacedBuilder(self.constants, like.position).constant(array.astype(like.tensor.element.dtype))

    # ---- after a convolution -------------------------------------------------------------------------------------
    def scaled(self, operation: Operation) -> Operation | None:
        """Return a product or a sum of a convolution and a constant as one convolution."""
        a, b = operation.operands[:2]
        if operation.op.name != "tosa.sub" and a.constant is not None:
            a, b = b, a
        found = self.definitions.get(a)
        if found is None or len(self.readers.get(a, ())) != 1 or not is_foldable(found, operation) or b.constant is None:
            return None
        numbers = per_channel(b.constant, a.tensor.dims[-1])
        if numbers is None:
            return None
        x, weight, bias, *zeros = found.operands
        assert weight.constant is not None and bias.constant is not None
        weights, terms = weight.constant.astype(np.float64), bias.constant.astype(np.float64)
        with np.errstate(all="ignore"):
            match operation.op.name:
                case "tosa.mul":
                    weights, terms = weights * along_outputs(found, weights, numbers), terms * numbers
                case "tosa.add":
                    terms = terms + numbers
                case _:
                    terms = terms - numbers
            narrow = weights.astype(a.tensor.element.dtype), terms.astype(a.tensor.element.dtype)
        if not all(np.isfinite(v).all() for v in narrow):
            return None
        operands = x, self.constant(weights, weight) if operation.op.name in FACTORS else weight, self.constant(terms, bias)
        return replace(operation, op=found.op, operands=(*operands, *zeros))

    # ---- before a convolution ------------------------------------------------------------------------------------
    def padded(self, operation: Operation, op: Convolution) -> Operation | None:
        """Return a convolution whose input is padded with zeros around its spatial axes as one convolution of the unpadded
        input."""
        x, *rest = operation.operands
        found = self.definitions.get(x)
        if found is None or found.op.name != "tosa.pad" or not x.tensor.element.is_float:
            return None
        image, amounts, pad_value = (*found.operands, None)[:3]
        if amounts is None or amounts.constant is None or (
                pad_value and (pad_value.constant is None or pad_value.constant.any())):
            return None
        numbers = [int(n) for n in amounts.constant.reshape(-1)]
        if any(numbers[:2]) or any(numbers[-2:]) or min(numbers) < 0 or image is None:
            return None
        pad = tuple(a + b for a, b in zip(op.pad, numbers[2:-2], strict=True))
        return replace(operation, op=replace(op, pad=pad), operands=(image, *rest))


def is_foldable(convolution: Operation, operation: Operation) -> bool:
    """True if `convolution` is a convolution with constant weights and bias, whose result has the type of the folded
    operation's result."""
    if not isinstance(convolution.op, Convolution | TransposeConv2D):
        return False
    _, weight, bias, *_ = convolution.operands
    type = convolution.results[0].type
    return (weight.constant is not None and bias.constant is not None and type == operation.results[0].type
            and isinstance(type, TensorType) and type.is_static and type.element.is_float and type.element.bits >= 32
            and weight.tensor.element == bias.tensor.element == type.element)


def per_channel(constant: Array, channels: int) -> Array | None:
    """Return one number for each output channel; None if the constant is something else."""
    if constant.size not in (1, channels) or (constant.size > 1 and constant.shape[-1:] != (channels,)):
        return None
    return np.broadcast_to(constant.astype(np.float64).reshape(-1), (channels,))


def along_outputs(convolution: Operation, weights: Array, numbers: Array) -> Array:
    """Return the numbers for the output channels, reshaped so that they broadcast to the weights."""
    if isinstance(convolution.op, DepthwiseConv2D):
        return numbers.reshape(weights.shape[2:])
    return numbers.reshape(-1, *[1] * (weights.ndim - 1))
