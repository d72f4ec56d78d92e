"""Which kernels may compute floats in vectors, on a machine whose vectors do not have IEEE's floats: Helium's flush subnormal
numbers to zero, whatever mode the processor is in. Kernels that read or write floats, or do with them what may end in a NaN,
see a machine without vectors there; integers that are scaled in float32 on their way to integers are the same in either.
"""
from __future__ import annotations

from ..elements.expression import Apply, Buffer, Cast, Expr, Reduce, is_float
from ..elements.traverse import children, loads, nodes
from ..target.target import Target

OF_FINITE = frozenset({"add", "sub", "mul", "fma", "min", "max"})
"""Operations of which rescaling in float32 consists."""


def machine_for(value: Expr, out: Buffer, target: Target) -> Target:
    """The machine as a kernel of this value sees it."""
    if target.has_float_vectors or not needs_all_floats(value, out):
        return target
    return target.of_scalar_floats


def needs_all_floats(value: Expr, out: Buffer) -> bool:
    """Whether floats of any kind are computed: moving them is no arithmetic."""
    computed = [e for e in nodes(value) if isinstance(e, (Apply, Cast, Reduce)) and (
        is_float(e.dtype) or any(is_float(x.dtype) for x in children(e)))]
    given = is_float(out.dtype) or any(is_float(x.dtype) and x.buffer.role != "constant" for x in loads(value))
    return bool(computed) and (given or any(isinstance(e, Apply) and e.primitive not in OF_FINITE for e in computed))
