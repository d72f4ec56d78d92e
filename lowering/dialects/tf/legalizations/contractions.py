"""Products of matrices.

TOSA's `matmul` takes two batches of one extent. Here batches broadcast: if the whole batch shares a right operand, the batch
becomes part of the rows, so that there is one product; otherwise the operands are repeated, which costs no copy. Kernels read
through transpositions, which are folded into constants at once.
"""
from __future__ import annotations

from .....runtime.errors import Problem
from ....formulas.contractions import batched_product, swapped
from ....graph.foreign import flag
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .constants import result_element
from .table import legalization


@legalization("tf.MatMul")
def matmul(e: Emitter, operation: Operation, a: Value, b: Value) -> Value:
    for x, which in ((a, "first"), (b, "second")):
        if x.tensor.rank != 2:
            raise Problem(f"the {which} operand is {x.type}, matrices are needed", kind="shape",
                          help="BatchMatMulV2 takes more axes")
    a = swapped(e, a) if flag(operation, "transpose_a") else a
    b = swapped(e, b) if flag(operation, "transpose_b") else b
    return batched_product(e, a, b, result_element(operation, a.tensor.element))


@legalization("tf.BatchMatMul", "tf.BatchMatMulV2", "tf.BatchMatMulV3")
def batch_matmul(e: Emitter, operation: Operation, a: Value, b: Value) -> Value:
    for x, which in ((a, "first"), (b, "second")):
        if x.tensor.rank < 2:
            raise Problem(f"the {which} operand is {x.type}, at least two axes are needed", kind="shape")
    a = swapped(e, a) if flag(operation, "adj_x") else a
    b = swapped(e, b) if flag(operation, "adj_y") else b
    return batched_product(e, a, b, result_element(operation, a.tensor.element))


