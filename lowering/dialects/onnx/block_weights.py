"""Weights of two to eight bits with a scale for each block of a column, Microsoft's MatMulNBits.

The products are of floats, as in ONNX Runtime unless it is allowed to be less accurate (`accuracy_level`). In the graph weights
are bytes, with scales beside them; fusion turns both into floats at compile time, like all constants that grow no more than
that.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.contractions import batched_product
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import UI8, Array
from ..emitter import Emitter, known
from .operator import Operator, operator


@operator("com.microsoft.MatMulNBits")
class MatMulNBits(Operator):
    """A product with a matrix [K, N] whose columns are stored consecutively, each in blocks."""
    K: int
    N: int
    bits: int = 4
    block_size: int
    accuracy_level: int = 0
    weight_prepacked: int = 0

    @property
    def blocks(self) -> int:
        """Number of blocks in a column."""
        require(self.bits in (2, 4, 8) and self.block_size >= 16 and self.block_size & (self.block_size - 1) == 0,
                f"weights of {self.bits} bits in blocks of {self.block_size} are not known", kind="attribute",
                help="2, 4 or 8 bits in blocks of a power of two, 16 or more")
        require(self.K > 0 and self.N > 0 and not self.weight_prepacked, "K and N must be positive, and the weights not packed",
                kind="attribute")
        return -(-self.K // self.block_size)

    def unpacked(self, packed: Array, count: int) -> Array:
        """Return numbers of that many bits, the first in the lowest bits, in rows [N, count] that each begin at a byte."""
        per_byte = 8 // self.bits
        rows = packed.reshape(self.N, -1)
        require(rows.shape[1] == -(-count // per_byte), f"{packed.size} bytes are not {self.N} times {count} numbers of "
                f"{self.bits} bits", kind="shape")
        parts = [rows >> (self.bits * n) & ((1 << self.bits) - 1) for n in range(per_byte)]
        return np.stack(parts, -1).reshape(self.N, -1)[:, :count]

    def centre(self, zero_points: Array | None) -> Array:
        """Return the zero point of each block, [N, blocks]: the middle of the range if the node has none."""
        if zero_points is None:
            return np.full((1, 1), 1 << (self.bits - 1), np.uint8)
        if zero_points.dtype == np.uint8:
            return self.unpacked(zero_points, self.blocks)
        return zero_points.reshape(self.N, self.blocks)

    def order(self, g_idx: Array | None) -> Array | None:
        """Return the block of each row, if the node gives it; None if they are in order."""
        if g_idx is None or not g_idx.size:
            return None
        blocks = g_idx.astype(np.int64)[:self.K]
        require(len(blocks) == self.K and bool(np.all((blocks >= 0) & (blocks < self.blocks))),
                f"g_idx must have the block of each of {self.K} rows", kind="shape")
        return None if np.array_equal(blocks, np.arange(self.K) // self.block_size) else blocks

    # ---- reference and lowering ------------------------------------------------------------------------------------------
    def reference(self, a: Array, b: Array, scales: Array, zero_points: Array | None = None, g_idx: Array | None = None,
                  bias: Array | None = None) -> Array:
        count, place = self.blocks, self.order(g_idx)
        place = np.arange(self.K) // self.block_size if place is None else place
        stored = self.unpacked(b, count * self.block_size)[:, :self.K].astype(np.float32)
        zeros = np.broadcast_to(self.centre(zero_points).astype(np.float32), (self.N, count))
        factors = scales.astype(np.float32).reshape(self.N, count)
        weights = (stored - zeros[:, place]) * factors[:, place]
        found = np.matmul(a.astype(np.float64), weights.T.astype(np.float64))
        return np.asarray(found if bias is None else found + bias.astype(np.float64), a.dtype)

    def lower(self, e: Emitter, a: Value, b: Value, scales: Value, zero_points: Value | None = None,
              g_idx: Value | None = None, bias: Value | None = None) -> Value:
        require(a.tensor.rank > 0 and a.tensor.dims[-1] == self.K, f"its rows have {self.K} numbers, not those of {a.type}",
                kind="shape")
        require(b.tensor.element == UI8, f"the weights are bytes, not {b.tensor.element}", kind="type")
        if self.order(None if g_idx is None else known(g_idx, "g_idx")) is not None:
            raise Problem("rows whose blocks are not in order have no place here", kind="unsupported",
                          help="bring the weights into the order of their blocks")
        working = working_type(a.tensor.element, False, True)
        count, inner = self.blocks, self.blocks * self.block_size
        stored = self.unpacked(known(b, "the weights"), inner).reshape(self.N, count, self.block_size)
        zeros = self.centre(None if zero_points is None else known(zero_points, "the zero points"))[:, :, None]
        steps = stored.astype(np.float32) - zeros.astype(np.float32)
        if np.array_equal(steps, narrow := np.clip(steps, -128, 127).astype(np.int8)):
            weights = e.cast(e.constant(narrow), working)
        else:
            signed = (stored.astype(np.int16) - 128).astype(np.int8)
            middle = e.constant(zeros.astype(np.float32) - 128)
            weights = e.difference(e.cast(e.constant(signed), working), e.cast(middle, working))
        weights = e.product(weights, e.cast(e.reshape(scales, (self.N, count, 1)), working))
        columns = e.transpose(e.slice(e.reshape(weights, (self.N, inner)), (0, 0), (self.N, self.K)), (1, 0))
        rows = a if a.tensor.rank > 1 else e.reshape(a, (1, self.K))
        found = batched_product(e, e.cast(rows, working), columns, working)
        found = e.reshape(found, (*a.tensor.dims[:-1], self.N))
        return e.cast(found if bias is None else e.sum(found, e.cast(bias, working)), a.tensor.element)
