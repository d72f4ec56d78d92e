"""Generators of the operators that take or give values and their scales as two tensors, CUSTOM and IDENTITYN."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tosaic
from tosaic.lowering.dialects.tosa.custom import IMPLEMENTATIONS
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import F8E8M0, F32, Array, ElementType, TensorType

from .combinations import SETS, Types
from .contractions import CHANNELS, affordable, flat, small, whole, windows
from .draft import Dims, Draft
from .elementwise import Generator
from .layout import redistributed, rows_of

BLOCK, SIZE = 32, "BLOCK_SIZE_32"
DOMAIN, MIRROR = "tosaic.tests", "mirror"


def blocks(d: Draft, low: int = 1, high: int = 6, most: int = 0) -> Dims:
    """A shape of whole blocks."""
    return d.dims_of(SETS["MX"][0], low, high, most)


def pair(d: Draft, element: ElementType, dims: Dims, constant: float = 0.15) -> list[Value]:
    """Values and their scales."""
    return [d.tensor(element, dims, constant=constant),
            d.tensor(F8E8M0, (*dims[:-1], dims[-1] // BLOCK), constant=constant)]


def from_blocks(d: Draft, types: Types) -> Sequence[Value]:
    return [d.op("cast_from_block_scaled", *pair(d, types[0], blocks(d)), block_size=SIZE, to=types[1])]


def to_blocks(d: Draft, types: Types) -> Sequence[Value]:
    return d.ops("cast_to_block_scaled", d.tensor(types[0], blocks(d)), block_size=SIZE, to=types[1])


def matmul(d: Draft, types: Types) -> Sequence[Value]:
    inner = whole(d, d.choice(*CHANNELS), SETS["MX"])
    batch, rows, columns = affordable(d, inner, d.choice(1, 2, 3), d.choice(*CHANNELS), d.choice(*CHANNELS))
    return [d.op("matmul_t_block_scaled", *pair(d, types[0], (batch, rows, inner)),
                 *pair(d, types[0], (d.choice(1, batch), columns, inner), 0.3), block_size=SIZE)]


def convolution(d: Draft, types: Types) -> Sequence[Value]:
    axes = windows(d, 2)
    kernel, channels = tuple(w.kernel for w in axes), whole(d, d.choice(*CHANNELS), SETS["MX"])
    batch = d.choice(1, 1, 2)
    filters, = affordable(d, batch * channels * math.prod(kernel) * math.prod(w.places for w in axes), d.choice(*CHANNELS))
    shapes = (flat([w.pads for w in axes]), tuple(w.stride for w in axes), tuple(w.dilation for w in axes))
    bias = d.tensor(F32, (d.choice(1, filters),), small(F32), 0.6)
    return [d.op("conv2d_block_scaled", *pair(d, types[0], (batch, *(w.extent for w in axes), channels)),
                 *pair(d, types[0], (filters, *kernel, channels), 0.6), bias, *(d.shape(*s) for s in shapes),
                 block_size=SIZE)]


def has_scales(d: Draft, element: ElementType) -> bool:
    """True if the list holds scales, too: floats of 8 bits go with and without."""
    return element in SETS["V"] and (element not in SETS["F8"] or d.chance(0.5))


def reshape(d: Draft, types: Types) -> Sequence[Value]:
    if has_scales(d, types[0]):
        dims = blocks(d)
        return d.ops("reshape_block_scaled", *pair(d, types[0], dims),
                     d.shape(*redistributed(d, math.prod(dims), BLOCK)), block_size=SIZE)
    dims = d.dims_of(types[0])
    return d.ops("reshape_block_scaled", d.tensor(types[0], dims), d.shape(*redistributed(d, math.prod(dims))),
                 block_size="BLOCK_SIZE_1")


def row_gather(d: Draft, types: Types) -> Sequence[Value]:
    scaled = has_scales(d, types[1])
    dims = blocks(d, 3, 3) if scaled else d.dims_of(types[1], 3, 3)
    tensors = pair(d, types[1], dims) if scaled else [d.tensor(types[1], dims)]
    return d.ops("row_gather_block_scaled", *tensors, *rows_of(d, types[0], dims),
                 block_size=SIZE if scaled else "BLOCK_SIZE_1")


# ---- custom ------------------------------------------------------------------------------------------------------
def implement() -> None:
    """Register the custom operator of these tests: the last axis from its end to its start."""
    if (DOMAIN, MIRROR) in IMPLEMENTATIONS:
        return

    @tosaic.custom(DOMAIN, MIRROR)
    class Mirror(tosaic.Op):
        """The last axis turned round."""

        def infer(self, x: Any) -> TensorType:
            result: TensorType = x.type
            return result

        def reference(self, x: Array) -> Array:
            return x[..., ::-1] if x.ndim else x

        def element(self, out: TensorType, x: Any) -> Any:
            return lambda *index: x[(*index[:-1], index[-1] * -1 + (out.dims[-1] - 1)) if index else ()]


def custom(d: Draft, types: Types) -> Sequence[Value]:
    implement()
    x = d.tensor(types[0], d.dims_of(types[0]))
    return [d.op("custom", x, operator_name=MIRROR, domain_name=DOMAIN, implementation_attrs=d.choice("", "text"),
                 declared=(x.type,))]


def identities(d: Draft, types: Types) -> Sequence[Value]:
    return d.ops("identityn", *(d.tensor(types[0], d.dims_of(types[0], most=500)) for _ in range(d.choice(1, 2, 5))))


GENERATORS: dict[str, Generator] = {
    "cast_from_block_scaled": from_blocks, "cast_to_block_scaled": to_blocks, "matmul_t_block_scaled": matmul,
    "conv2d_block_scaled": convolution, "reshape_block_scaled": reshape, "row_gather_block_scaled": row_gather,
    "custom": custom, "identityn": identities}
