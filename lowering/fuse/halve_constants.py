"""Kernels -> kernels: a float32 constant whose numbers are all float16 numbers is stored as float16, and read through a
conversion, which is exact. So weights that are float16 in the model file take two bytes each in flash, although the model
computes in float32 and fusion has folded its casts.

The pass runs for targets with a conversion instruction and without a cache, microcontrollers: elsewhere bytes of constants are
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
"""Minimum bytes of a constant: a smaller one saves less than the code that converts it."""
SAMPLE = 64
"""Number of elements that are tested first: they rule out most constants that are not exact in float16."""


def halve_constants(kernels: Kernels, target: Target) -> Kernels:
    """Return the kernels with constants stored as float16, if the target keeps float16."""
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
    """Return the constant as float16; None if the buffer is no float32 constant, or would change, or would save little."""
    data = buffer.data
    if buffer.role != "constant" or buffer.dtype != "float32" or data is None or buffer.nbytes < LEAST_BYTES:
        return None
    if not is_exact(data.reshape(-1)[:SAMPLE]) or not is_exact(data):
        return None
    return replace(buffer, dtype="float16", data=data.astype(np.float16))


def is_exact(data: Array) -> bool:
    """True if all numbers survive conversion to float16 and back to the bit; False if there is a NaN."""
    with np.errstate(over="ignore"):
        back = data.astype(np.float16).astype(np.float32)
    return bool(np.array_equal(back, data) and np.array_equal(np.signbit(back), np.signbit(data)))
