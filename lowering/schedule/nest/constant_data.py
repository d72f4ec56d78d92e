"""The data of constant expressions: whether an expression is constant, its elements, and whether the elements stay float16."""
from __future__ import annotations

import numpy as np

from ...elements.affine import Axis
from ...elements.expression import PRIMITIVES, Apply, Cast, Const, Expr, Load
from ...elements.interpret import evaluate, numpy_dtype
from ...elements.traverse import loads
from ...graph.types import Array
from ...target.target import Target


def is_constant(e: Expr) -> bool:
    return all(x.buffer.data is not None for x in loads(e))


def stays_half(e: Expr, target: Target) -> bool:
    """True if an expression converts float16 numbers that are kept as float16 and converted at each use."""
    is_half = isinstance(e, Cast) and (e.arg.dtype, e.dtype, e.bits) == ("float16", "float32", False)
    return is_half and target.keeps_float16


def constant(e: Expr, axes: tuple[Axis, ...]) -> Array:
    """Return the data of a constant expression over `axes`. Plain loads become strided views, without index arrays."""
    match e:
        case Load(buffer=buffer, index=(i,)) if buffer.data is not None and {t for t, _ in i.terms} <= set(axes):
            low, high = i.bounds
            if low >= 0 and high < buffer.size:
                flat = np.ascontiguousarray(buffer.data).reshape(-1)
                shape, strides = [a.extent for a in axes], [i.coefficient(a) * flat.itemsize for a in axes]
                raw = flat.view(f"u{flat.itemsize}")  # NumPy makes no strided views of dtypes that are not its own
                return np.lib.stride_tricks.as_strided(raw[i.const:], shape, strides, writeable=False).view(flat.dtype)
        case Cast(arg=arg, dtype=dtype, bits=False):
            return constant(arg, axes).astype(numpy_dtype(dtype))
        case Apply("sub" | "add" | "mul" as primitive, (x, Const(value, dtype))):
            return np.asarray(PRIMITIVES[primitive](constant(x, axes), np.asarray(value, numpy_dtype(dtype))))
    return evaluate(e, axes)
