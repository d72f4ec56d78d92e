"""Outputs whose sums have no terms: a border wider than a window, the gaps between the windows of a transposed convolution.
Their value depends on the last axis (a bias) at most. If it pays, one contiguous loop first writes this value to the whole
result, and the pieces with sums follow; else each piece has loops of its own, whose bounds are much code for little work.
`schedule.schedule` uses this module after it has cut a nest into pieces.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from ...elements.affine import Axis
from ...elements.expression import Const, Expr, Guard, Reduce
from ...elements.traverse import loads, nodes
from ...graph.types import ITEM_SIZES
from ...target.target import Target
from ..code_size_model import price_of, share_of, tolerated
from ..nest.loop_nest import Nest, Rewriter, indices_of
from ..nest.split_nest import collapse
from ..vectorize.epilogue import operations

LOOP_LINES, BOUND_LINES, VECTOR_LINES = 6, 16, 4
"""Lines of LLVM's text for a loop, for the loop bounds that a condition adds, and for the store of a vector. Counted."""


def with_background(nest: Nest, pieces: Sequence[Nest], target: Target) -> Sequence[Nest]:
    """Return the pieces of a nest, with those without sums replaced by one first piece of all outputs, if that is less code."""
    if len(pieces) < 2 or (value := without_sum(nest)) is None:
        return pieces
    constant = [piece for piece in pieces if is_same(piece.value, value)]
    others = [piece for piece in pieces if piece not in constant]
    if not (constant and others):
        return pieces
    whole = collapse(Nest(f"{nest.name}.background", nest.out, nest.axes, nest.index, value))
    return [whole, *others] if is_better(whole, constant, others, target) else pieces


def sums_of(value: Expr) -> list[Reduce | Guard]:
    """Return the sums, and the guards that remain of sums of at most one term."""
    return [e for e in nodes(value) if isinstance(e, (Reduce, Guard))]


def without_sum(nest: Nest) -> Expr | None:
    """Return the value of a nest with one sum if that has no terms; None if the value depends on axes other than the last."""
    match sums_of(nest.value):
        case [Reduce(identity=nothing) | Guard(outside=Const(value=nothing)) as found]:
            rewriter = Rewriter({})
            rewriter.nodes[id(found)] = Const(nothing, found.dtype)
            value = rewriter.value(nest.value)
        case _:
            return None
    if nest.where or any(x.buffer is nest.out for x in loads(nest.value)):
        return None
    return value if all(i.axes <= set(nest.axes[-1:]) for e in nodes(value) for i in indices_of(e)) else None


def is_same(value: Expr, background: Expr) -> bool:
    """True if a piece's value is the value without a sum: a term would add a load or an operation."""
    if sums_of(value) or len(list(nodes(value))) != len(list(nodes(background))):
        return False
    return {x.buffer for x in loads(value)} == {x.buffer for x in loads(background)}


def is_better(whole: Nest, constant: Sequence[Nest], others: Sequence[Nest], target: Target) -> bool:
    """True if the saved lines of code are worth the outputs that are written twice; without sums it must not be slower."""
    saved, share = sum(map(lines, constant)) - lines(whole), share_of(others[0].value)
    before, beside = (sum(cycles(piece, target) for piece in pieces) for pieces in (constant, others))
    slower = cycles(whole, target) - before
    if not any(isinstance(e, Reduce) for piece in others for e in sums_of(piece.value)):
        return saved > 0 and slower <= 0
    return slower <= min(price_of(share) * saved, tolerated(before + beside, share))


def lines(nest: Nest) -> int:
    """Return the approximate lines of code of a nest without sums."""
    return LOOP_LINES * len(nest.axes) + BOUND_LINES * len(nest.where) + VECTOR_LINES + operations(nest.value)


def cycles(nest: Nest, target: Target) -> float:
    """Return the approximate cycles of a nest: its sums, at two terms a cycle, their epilogue, and the stores."""
    *outer, n = nest.axes or (Axis("one", 1),)
    lanes, rows = target.lanes(max(4, ITEM_SIZES[nest.out.dtype])), math.prod(a.extent for a in outer)
    terms = math.prod(a.extent for e in sums_of(nest.value) if isinstance(e, Reduce) for a in e.axes)
    work = operations(nest.value) if outer or sums_of(nest.value) else 0
    each = target.costs.appended_store_cycles + (work + terms * bool(sums_of(nest.value))) / 2
    return rows * (-(-n.extent // lanes) * each + target.costs.row_iteration_cycles * (len(outer) > 1))
