"""An estimate of an operation's run time, from its graph alone: made before it is compiled, to decide whether its caller should
wait for it.

The figures (`target.costs`) are for one core and kernels as this compiler makes them; `tests/bench/estimates.py` compares them
with the measured times of kernels. Twice as much or half as much does no harm. A loop has no estimate, and counts as long.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from ...lowering.graph.graph import Block, Operation
from ...lowering.graph.types import TensorType
from ...lowering.target.costs import COSTS, Costs

FUNCTIONS = frozenset({"erf", "sigmoid", "tanh", "exp", "log", "sin", "cos", "pow", "intdiv", "rsqrt", "reciprocal"})
VIEWS = frozenset({"const", "const_shape", "reshape", "identity", "identityn"})
"""Operators that cost nothing in a kernel; alone they copy, which the bytes of arguments and results account for."""


def per_result(count: Callable[[Operation], int]) -> Callable[[Operation], int]:
    return lambda operation: elements(operation.results[0].type) * count(operation)


def extents(operation: Operation, operand: int) -> tuple[int, ...]:
    return dims(operation.operands[operand].type)


def kernel_of(operation: Operation) -> int:
    """Return the number of elements of a pooling window."""
    return math.prod(getattr(operation.op, "kernel", ()))


TERMS: dict[str, Callable[[Operation], int]] = {
    "matmul": per_result(lambda o: extents(o, 0)[-1]), "matmul_t": per_result(lambda o: extents(o, 0)[-1]),
    "conv2d": per_result(lambda o: math.prod(extents(o, 1)[1:])), "conv3d": per_result(lambda o: math.prod(extents(o, 1)[1:])),
    "depthwise_conv2d": per_result(lambda o: math.prod(extents(o, 1)[:2])),
    "transpose_conv2d": lambda o: elements(o.operands[0].type) * math.prod(extents(o, 1)[:3]),
    "avg_pool2d": per_result(kernel_of), "max_pool2d": per_result(kernel_of), "resize": per_result(lambda o: 4),
    "fft2d": per_result(lambda o: math.prod(extents(o, 0)[1:])), "rfft2d": per_result(lambda o: math.prod(extents(o, 0)[1:]))}
"""Number of terms in the sums of an operator."""


def nanoseconds(body: Block, costs: Costs = COSTS) -> float:
    """Return the estimate for a run of a graph's body. By default assume an unknown machine: identifying this one takes longer
    than most operations."""
    moved = sum(nbytes(v.type) for v in (*body.arguments, *body.yields))
    return costs.moved_byte_nanoseconds * moved + sum(of_operation(o, costs) for o in body.operations)


def of_operation(operation: Operation, costs: Costs) -> float:
    name: str = operation.op.name.rpartition(".")[2]
    if operation.regions:
        return math.inf if name.startswith("while") else sum(nanoseconds(r, costs) for r in operation.regions)
    if name in VIEWS:
        return 0
    work = max((elements(v.type) for v in (*operation.operands, *operation.results)), default=0)
    terms = TERMS[name](operation) if name in TERMS else 0
    each = costs.function_nanoseconds if name in FUNCTIONS else costs.element_nanoseconds
    return each * work + costs.product_nanoseconds * terms


def dims(type: object) -> tuple[int, ...]:
    return type.dims if isinstance(type, TensorType) and type.is_static else ()


def elements(type: object) -> int:
    return math.prod(dims(type)) if isinstance(type, TensorType) else 0


def nbytes(type: object) -> float:
    return elements(type) * type.element.dtype.itemsize if isinstance(type, TensorType) else 0
