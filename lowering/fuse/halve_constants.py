"""Kernels -> kernels: a constant of float32 whose numbers are all numbers of float16 is stored as float16, and read through a
conversion, which is exact. So weights that came as float16 take two bytes each in flash, although the model computes in
float32 and fusion has folded its casts.

It is done where a conversion is an instruction and there is no cache, on microcontrollers: elsewhere bytes of constants are
cheap, and instructions are not.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..elements.expression import Buffer, Cast, Expr, Load
from ..elements.traverse import loads, rewrite
from ..graph.types import Array
from ..kernels.kernel import Kernels
from ..target.target import Target

LEAST_BYTES = 256
"""Smaller constants save less than the code that converts them."""
SAMPLE = 64
"""Numbers that are looked at first: they tell of most constants that they are not such ones."""


def halve_constants(kernels: Kernels, target: Target) -> Kernels:
    """The kernels with such constants."""
    if not target.keeps_float16:
        return kernels
    read = dict.fromkeys(load.buffer for kernel in kernels.kernels for load in loads(kernel.value))
    given = {*kernels.inputs, *kernels.outputs}
    halves = {b: half for b in read if b not in given and (half := halved(b)) is not None}

    def change(e: Expr) -> Expr | None:
        return Cast(Load(halves[e.buffer], e.index), "float32") if isinstance(e, Load) and e.buffer in halves else None

    if not halves:
        return kernels
    return replace(kernels, kernels=tuple(replace(k, value=rewrite(k.value, change)) for k in kernels.kernels))


def halved(buffer: Buffer) -> Buffer | None:
    """The constant as float16; None where it is another buffer, or that would change it or save little."""
    data = buffer.data
    if buffer.role != "constant" or buffer.dtype != "float32" or data is None or buffer.nbytes < LEAST_BYTES:
        return None
    if not is_exact(data.reshape(-1)[:SAMPLE]) or not is_exact(data):
        return None
    return replace(buffer, dtype="float16", data=data.astype(np.float16))


def is_exact(data: Array) -> bool:
    """True if all numbers come back from float16 to the bit; of a NaN nobody knows."""
    with np.errstate(over="ignore"):
        back = data.astype(np.float16).astype(np.float32)
    return bool(np.array_equal(back, data) and np.array_equal(np.signbit(back), np.signbit(data)))
