"""Interpretation of operations of MLIR's own dialects and of TOSA in a module that is interpreted like TensorFlow's
(`tf.interpret`).

A program counter runs blocks as they are written: nothing here uses the structure that a compiler finds in them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ....runtime.errors import Problem
from ...graph.foreign import find, spelling
from ...graph.graph import Operation
from ...graph.operator import UnknownOp
from ...graph.quantized import Quantized
from ...graph.types import Array, TensorType
from ..tf.interpret import MAX_ITERATIONS, Environment, Scope, call_function, is_true, run_block
from ..tf.values import Datum
from .blocks import COND_BRANCH, NAME, RETURN, Blocks
from .operators import (
    CALL,
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

Run = Callable[[Environment, Operation, Sequence[Datum], Scope], Sequence[Datum]]


def run_operation(environment: Environment, operation: Operation, scope: Scope) -> Sequence[Datum]:
    """Return the results of one operation that is not TensorFlow's."""
    operands = [scope[v] for v in operation.operands]
    found = RUNS.get(spelling(operation))
    if found is not None:
        return found(environment, operation, operands, scope)
    if isinstance(operation.op, UnknownOp):
        raise Problem(f"operator {spelling(operation)} is not known", operation.position, kind="unsupported")
    with np.errstate(all="ignore"):
        result = operation.op.reference(*operands)
    return result if isinstance(result, tuple) else (result,)


# ---- values ----------------------------------------------------------------------------------------------------------
def constant(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    value = find(operation, "value")
    array = getattr(value, "array", None)
    if array is not None:
        return [array]
    type = scalar_tensor(operation.results[0].type)
    if not isinstance(type, TensorType):
        raise Problem(f"a constant of {operation.results[0].type} has no numbers", operation.position, kind="unsupported")
    return [np.array(getattr(value, "value", value)).astype(type.element.dtype)]


def tensor_cast(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    type, array = operation.results[0].type, np.asarray(operands[0])
    if isinstance(type, TensorType) and type.shape is not None and not (
            len(type.shape) == array.ndim and all(n in (None, m) for n, m in zip(type.shape, array.shape))):
        raise Problem(f"a tensor of shape {list(array.shape)} is no {type}", operation.position, kind="shape")
    return [array]


def extract(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    tensor, *indices = operands
    place = tuple(int(i) for i in indices)
    if any(not 0 <= i < n for i, n in zip(place, np.shape(tensor))):
        raise Problem(f"{list(place)} is outside of {list(np.shape(tensor))}", operation.position, kind="check")
    return [np.asarray(tensor[place])]


def quantize(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    """Return the nearest step, ties to even, within the storage's range."""
    element, x = quantized_element(operation.results[0].type), np.asarray(operands[0])
    scale, zero = spread(element.scales, element.axis, x.ndim), spread(element.zero_points, element.axis, x.ndim)
    with np.errstate(all="ignore"):
        steps = np.rint((x.astype(np.float32) / scale.astype(np.float32)).astype(np.float64))
        found = np.clip(np.nan_to_num(steps) + zero, element.low, element.high)
    return [found.astype(element.dtype)]


def dequantize(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    element, x = quantized_element(operation.operands[0].type), np.asarray(operands[0])
    scale, zero = spread(element.scales, element.axis, x.ndim), spread(element.zero_points, element.axis, x.ndim)
    real = (x.astype(np.int64) - zero.astype(np.int64)).astype(np.float32) * scale.astype(np.float32)
    type = operation.results[0].type
    return [real.astype(type.element.dtype if isinstance(type, TensorType) else np.float32)]


def quantized_element(type: object) -> Quantized:
    element = type.element if isinstance(type, TensorType) else None
    if not isinstance(element, Quantized) or not element.scales:
        raise Problem(f"{type} does not say its scale", kind="type")
    return element


def spread(numbers: Sequence[float], axis: int | None, rank: int) -> Array:
    """Return one value per tensor, or one per index along an axis."""
    array = np.array(numbers, np.float64)
    return array[0] if axis is None else array.reshape([-1 if a == axis else 1 for a in range(rank)])


def same(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    return [operands[0]]


# ---- control flow ------------------------------------------------------------------------------------------------------
def if_(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    region = operation.regions[0 if is_true(operands[0]) else 1]
    return run_block(environment, region, {**scope, **dict(zip(region.arguments, operands[1:]))})


def scf_while(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    before, after = operation.regions
    state = operands
    for _ in range(MAX_ITERATIONS):
        condition, *handed = run_block(environment, before, {**scope, **dict(zip(before.arguments, state, strict=True))})
        if not is_true(condition):
            return handed
        state = run_block(environment, after, {**scope, **dict(zip(after.arguments, handed, strict=True))})
    raise Problem(f"a loop of more than {MAX_ITERATIONS} iterations", operation.position, kind="unsupported")


def tosa_while(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    test, body = operation.regions
    state = operands
    for _ in range(MAX_ITERATIONS):
        if not is_true(run_block(environment, test, {**scope, **dict(zip(test.arguments, state, strict=True))})[0]):
            return state
        state = run_block(environment, body, {**scope, **dict(zip(body.arguments, state, strict=True))})
    raise Problem(f"a loop of more than {MAX_ITERATIONS} iterations", operation.position, kind="unsupported")


def blocks(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    """Run block after block, until one returns."""
    op, at, given = operation.op, 0, list(operands)
    assert isinstance(op, Blocks)
    values = dict(scope)
    for _ in range(MAX_ITERATIONS):
        block, end = operation.regions[at], op.exits[at]
        values.update(zip(block.arguments, given))
        yields = run_block(environment, block, values)
        if end.spelling == RETURN:
            return yields
        way = 0
        if end.spelling == COND_BRANCH:
            way = 0 if is_true(yields[0]) else 1
        elif end.cases:
            way = next((n for n, case in enumerate(end.cases, 1) if int(yields[0]) == case), 0)
        first = end.decides + sum(end.counts[:way])
        at, given = end.targets[way], list(yields[first:first + end.counts[way]])
    raise Problem(f"more than {MAX_ITERATIONS} branches", operation.position, kind="unsupported")


# ---- variables of TOSA ---------------------------------------------------------------------------------------------------
def declare(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    environment.declare(operation)
    return []


def read(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    name = operation.op.symbol  # type: ignore[attr-defined]
    value = environment.variables.get(name)
    if value is None:
        raise Problem(f"variable @{name} is read before it has a value", operation.position, kind="variable")
    return [np.array(value)]


def write(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    environment.variables[operation.op.symbol] = np.array(operands[0])  # type: ignore[attr-defined]
    return []


RUNS: Mapping[str, Run] = {
    CONSTANT: constant, TENSOR_CAST: tensor_cast, EXTRACT: extract, CALL: call_function, IF: if_, WHILE: scf_while,
    QUANTIZE: quantize, DEQUANTIZE: dequantize, STORAGE_CAST: same, NAME: blocks, "tosa.cond_if": if_,
    "tosa.while_loop": tosa_while, "tosa.variable": declare, "tosa.variable_read": read, "tosa.variable_write": write}
