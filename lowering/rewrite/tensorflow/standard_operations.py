"""Operations of MLIR's own dialects as TOSA: constants, casts of types, elements, quantization, `scf`'s branches and loops."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....runtime.errors import Problem
from ...dialects.control_flow import branch, condition_of, loop
from ...dialects.data import Datum, Text, described
from ...dialects.standard.operators import (
    CONSTANT,
    DEQUANTIZE,
    EXTRACT,
    IF,
    QUANTIZE,
    STORAGE_CAST,
    TENSOR_CAST,
    WHILE,
    scalar_tensor,
)
from ...formulas import quantization
from ...graph.foreign import find
from ...graph.graph import Block, Operation, Value
from ...graph.quantized import Quantized, storage_of
from ...graph.types import I1, I8, I32, Array, TensorType, Type
from ..prune import has_effect
from .special import Scope, special

if TYPE_CHECKING:
    from .translate import Translation


# ---- values ------------------------------------------------------------------------------------------------------------
@special(CONSTANT, results=1)
def constant(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    value, type = find(operation, "value"), scalar_tensor(operation.results[0].type)
    array = getattr(value, "array", None)
    if not isinstance(type, TensorType):
        return [Text(value)]
    if array is None:
        array = np.array(getattr(value, "value", value)).astype(type.element.dtype)
    return [t.emitter.constant(array, storage_of(type.element))]


@special(TENSOR_CAST, STORAGE_CAST, operands=1, results=1)
def same(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    """Return the operands: all shapes are known while a graph becomes TOSA, and tensors have their storage types."""
    return operands


@special(EXTRACT, operands=1, results=1)
def extract(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    """Return one element: a slice for constant indices, else a gather from all elements in one row."""
    tensor, *indices = (tensor_of(x) for x in operands)
    dims, e = tensor.tensor.dims, t.emitter
    if len(dims) != len(indices):
        raise Problem(f"{tensor.type} needs {len(dims)} indices, it has {len(indices)}", kind="shape")
    known = [None if i.constant is None else int(i.constant.item()) for i in indices]
    if all(n is not None for n in known):
        place = [n for n in known if n is not None]
        if any(not 0 <= n < extent for n, extent in zip(place, dims)):
            raise Problem(f"{place} is outside of {tensor.type}", kind="shape")
        return [e.reshape(e.slice(tensor, place, [1] * len(dims)), []) if dims else tensor]
    flat = e.constant(np.int32(0))
    for index, extent in zip(indices, dims):
        narrow = e.cast(index, I32)
        inside = e("logical_not", e("greater", e.constant(np.int32(0)), narrow))
        inside = e("logical_and", inside, e("greater", e.constant(np.int32(extent)), narrow))
        t.require(inside, "an index is outside of its tensor", operation.position)
        flat = e.sum(e.product(flat, e.constant(np.int32(extent))), narrow)
    return [gathered(t, tensor, flat)]


def gathered(t: Translation, tensor: Value, place: Value) -> Value:
    """Return the element at one offset of a tensor, whose elements are counted in order."""
    e, size = t.emitter, tensor.tensor.size
    element = tensor.tensor.element
    values = e.cast(tensor, I8) if element == I1 else tensor
    found = e("gather", e.reshape(values, [1, size, 1]), e.reshape(place, [1, 1]))
    return e.cast(e.reshape(found, []), element)


# ---- quantization ------------------------------------------------------------------------------------------------------
@special(QUANTIZE, operands=1, results=1)
def quantize(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    x, element = tensor_of(operands[0]), quantized_element(operation.results[0].type)
    zero = None if not any(element.zero_points) else parameter(t, element, element.zero_points, x, np.dtype(np.int32))
    scale = parameter(t, element, element.scales, x, np.dtype(np.float32))
    return [quantization.quantized(t.emitter, x, scale, zero, element.stored, (element.minimum, element.maximum))]


@special(DEQUANTIZE, operands=1, results=1)
def dequantize(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> list[Datum]:
    x, element = tensor_of(operands[0]), quantized_element(operation.operands[0].type)
    zero = None if not any(element.zero_points) else parameter(t, element, element.zero_points, x, np.dtype(np.int32))
    scale = parameter(t, element, element.scales, x, np.dtype(np.float32))
    found = quantization.dequantized(t.emitter, x, scale, zero)
    type = operation.results[0].type
    return [t.emitter.cast(found, type.element) if isinstance(type, TensorType) else found]


def quantized_element(type: Type) -> Quantized:
    element = type.element if isinstance(type, TensorType) else None
    if not isinstance(element, Quantized) or not element.scales:
        raise Problem(f"{type} does not say its scale", kind="type")
    return element


def parameter(t: Translation, element: Quantized, numbers: Sequence[float], x: Value, dtype: np.dtype[np.generic]) -> Value:
    """Return scales or zero points as a constant that broadcasts to a tensor."""
    array: Array = np.array(numbers, dtype)
    rank = x.tensor.rank
    shape = [1] * rank if element.axis is None else [-1 if a == element.axis else 1 for a in range(rank)]
    return t.emitter.constant(array.reshape(shape))


# ---- control flow --------------------------------------------------------------------------------------------------------
@special(IF, operands=1, regions=2)
def if_(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    then, otherwise = operation.regions
    return branch(t.emitter, condition_of(t.emitter, operands[0]), lambda: t.block(then, dict(scope)),
                  lambda: t.block(otherwise, dict(scope)))


@special(WHILE, regions=2)
def while_(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    """Emit a loop that tests first if its first region only tests; else one that carries the results of that region."""
    before, after = operation.regions
    results = {r for o in before.operations for r in o.results}

    def inside(region: Block, state: Sequence[Datum]) -> Sequence[Datum]:
        return t.block(region, {**scope, **dict(zip(region.arguments, state, strict=True))})

    if results.isdisjoint(before.yields[1:]) and not any(map(has_effect, before.operations)):
        last = loop(t.emitter, operands, lambda state: inside(before, state)[0],
                    lambda state: inside(after, inside(before, state)[1:]))
        return inside(before, last)[1:]
    count = len(operands)

    def body(state: Sequence[Datum]) -> Sequence[Datum]:
        condition, *handed = inside(before, state[1:1 + count])
        again = condition_of(t.emitter, condition)
        following = branch(t.emitter, again, lambda: inside(after, handed), lambda: [None] * count)
        return [again, *following, *handed]

    begin = [t.emitter.constant(np.array(True)), *operands, *([None] * (len(before.yields) - 1))]
    return loop(t.emitter, begin, lambda state: state[0], body)[1 + count:]


def tensor_of(datum: Datum) -> Value:
    if not isinstance(datum, Value):
        raise Problem(f"it takes tensors, not {described(datum)}", kind="type")
    return datum
