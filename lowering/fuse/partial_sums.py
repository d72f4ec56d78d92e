"""Splitting of a reduction over a concatenation at the boundaries of the operands: the sum over each operand is stored
separately, and the last sum continues from there, so that the concatenation is never stored.

A streaming convolution reads its state followed by new input: the sum over the state is a few numbers, whereas the
concatenation is as large as the state.
"""
from __future__ import annotations

import itertools

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis
from ..elements.expression import Apply, Buffer, Expr, Guard, Load, Reduce
from ..elements.traverse import free_axes, nodes, rewrite, substitute

MOST_PIECES = 8
"""Maximum number of operands of a concatenation that are summed separately."""


@dataclass(frozen=True, slots=True, eq=False)
class PartialSums:
    """A split reduction. `expression` replaces the original one and loads the buffers of `sums`: (buffer, axes, reduction)."""
    expression: Expr
    sums: tuple[tuple[Buffer, tuple[Axis, ...], Reduce], ...]

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer, _, _ in self.sums)


def partial_sums(name: str, axes: tuple[Axis, ...], expression: Expr) -> PartialSums | None:
    """Return `expression` with its one reduction split so that no guard is left inside; None if that is impossible."""
    reductions = [e for e in nodes(expression) if isinstance(e, Reduce)]
    if len(reductions) != 1:
        return None
    pieces = sums_of_operands(reductions[0])
    if pieces is None:
        return None
    own = tuple(a for a in axes if a in free_axes(reductions[0]))
    shape = tuple(a.extent for a in own)
    sums = tuple((Buffer(f"{name}.sum{i}", r.dtype, shape), own, r) for i, r in enumerate(pieces[:-1]))
    total: Expr = pieces[-1]
    for buffer, _, r in sums:
        total = Apply(r.primitive, (Load(buffer, tuple(map(Affine.of, own))), total), r.dtype)
    return PartialSums(rewrite(expression, lambda e: total if e is reductions[0] else None), sums)


def sums_of_operands(reduction: Reduce) -> list[Reduce] | None:
    """Return the reductions over the segments of one axis in which every guard of the body is known; None if there are none, or
    if guards depend on something else."""
    guards = [e for e in nodes(reduction.body) if isinstance(e, Guard)]
    terms = {t for g in guards for r in g.where for t, _ in r.index.terms}
    if len(terms) != 1:
        return None
    (axis,) = terms
    if not isinstance(axis, Axis) or axis not in reduction.axes:
        return None
    where = [r for g in guards for r in g.where]
    known = [tuple(r.substitute({axis: Affine.of(k)}).known for r in where) for k in range(axis.extent)]
    ends = [*(k for k in range(1, axis.extent) if known[k] != known[k - 1]), axis.extent]
    if not 1 < len(ends) <= MOST_PIECES:
        return None
    pieces = [piece(reduction, axis, low, high) for low, high in itertools.pairwise([0, *ends])]
    return None if any(isinstance(e, Guard) for p in pieces for e in nodes(p.body)) else pieces


def piece(reduction: Reduce, axis: Axis, low: int, high: int) -> Reduce:
    """Return the reduction over `axis` from `low` to before `high`."""
    segment = Axis(axis.name, high - low)
    at = {axis: Affine.of(segment) + low}
    axes = tuple(segment if a is axis else a for a in reduction.axes)
    where = tuple(r.substitute(at) for r in reduction.where)
    return Reduce(reduction.primitive, axes, substitute(reduction.body, at), tuple(r for r in where if r.known is not True))
