"""Which kernels may compute floats in vectors, on a machine whose vectors do not have IEEE's floats: Helium's flush subnormal
numbers of float32 to zero, whatever mode the processor is in. Kernels that read or write such floats, or do with them what may
end in a NaN, see a machine without vectors there; integers that are scaled in float32 on their way to integers are the same in
either.
"""
from __future__ import annotations

from ..elements.expression import Apply, Buffer, Cast, Expr, Reduce, is_float
from ..elements.traverse import children, loads, nodes
from ..target.target import Target

OF_FINITE = frozenset({"add", "sub", "mul", "fma", "min", "max"})
"""Operations of which rescaling in float32 consists."""
OF_HALVES = frozenset({"add", "sub", "mul", "min", "max", "minimum", "maximum", "minnum", "maxnum", "abs"})
"""Those that Helium has for float16, of which it flushes no subnormal numbers, unless the processor is told to (FPSCR.FZ16)."""


def machine_for(value: Expr, out: Buffer, target: Target) -> Target:
    """The machine as a kernel of this value sees it."""
    if target.has_float_vectors or not needs_all_floats(value, out):
        return target
    return target.of_scalar_floats


def is_of_halves(e: Expr) -> bool:
    """True if this is arithmetic of float16, for which vectors have instructions."""
    return isinstance(e, Apply) and e.primitive in OF_HALVES and all(x.dtype == "float16" for x in (e, *e.args))


def needs_all_floats(value: Expr, out: Buffer) -> bool:
    """True if floats of any kind are computed: moving them is no arithmetic."""
    computed = [e for e in nodes(value) if isinstance(e, (Apply, Cast, Reduce)) and not is_of_halves(e) and (
        is_float(e.dtype) or any(is_float(x.dtype) for x in children(e)))]
    given = is_float(out.dtype) or any(is_float(x.dtype) and x.buffer.role != "constant" for x in loads(value))
    return bool(computed) and (given or any(isinstance(e, Apply) and e.primitive not in OF_FINITE for e in computed))
