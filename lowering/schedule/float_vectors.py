"""Choice of the kernels that may compute floats in vectors, on a machine whose vectors do not have IEEE's floats: Helium
flushes subnormal float32 numbers to zero in every mode of the processor. A kernel that computes floats sees a machine without
float vectors if it reads or writes floats, or if an operation may yield a NaN. Rescaling integers to integers through float32
gives the same bits either way.
"""
from __future__ import annotations

from ..elements.expression import Apply, Buffer, Cast, Expr, Reduce, is_float
from ..elements.traverse import children, loads, nodes
from ..target.target import Target

OF_FINITE = frozenset({"add", "sub", "mul", "fma", "min", "max"})
"""The operations of rescaling in float32."""
OF_HALVES = frozenset({"add", "sub", "mul", "min", "max", "minimum", "maximum", "minnum", "maxnum", "abs"})
"""Helium's float16 operations, which flush no subnormal numbers, unless the processor is told to (FPSCR.FZ16)."""


def machine_for(value: Expr, out: Buffer, target: Target) -> Target:
    """Return the machine that a kernel of this value sees."""
    if target.has_float_vectors or not needs_all_floats(value, out):
        return target
    return target.of_scalar_floats


def is_of_halves(e: Expr) -> bool:
    """True if an expression is float16 arithmetic for which vectors have instructions."""
    return isinstance(e, Apply) and e.primitive in OF_HALVES and all(x.dtype == "float16" for x in (e, *e.args))


def needs_all_floats(value: Expr, out: Buffer) -> bool:
    """True if a kernel computes floats (moving floats is no arithmetic), and either reads or writes floats, or has an operation
    outside `OF_FINITE`."""
    computed = [e for e in nodes(value) if isinstance(e, (Apply, Cast, Reduce)) and not is_of_halves(e) and (
        is_float(e.dtype) or any(is_float(x.dtype) for x in children(e)))]
    given = is_float(out.dtype) or any(is_float(x.dtype) and x.buffer.role != "constant" for x in loads(value))
    return bool(computed) and (given or any(isinstance(e, Apply) and e.primitive not in OF_FINITE for e in computed))
