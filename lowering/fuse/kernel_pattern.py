"""The pattern that a kernel's expression must have, and which of the values inlined in it spoil it: one reduction, or products
of which the last is computed with the others' sums; no guard that stays inside a reduction.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..elements.affine import Affine, Computed
from ..elements.expression import Expr, Guard, Reduce
from ..elements.tensor import Tensor
from ..elements.traverse import nodes
from .row_fusion import contracts
from .values import axes_of


def troublesome(expression: Expr, inlined: Sequence[Tensor]) -> list[int]:
    """Which of the inlined operands (their numbers) spoil the pattern of an operator's expression, and are to be stored before
    it: a second reduction (of several products, all but the last), a guard that stays inside a reduction."""
    every = nodes(expression)
    reductions = [e for e in every if isinstance(e, Reduce)]
    result = containing(inlined, Reduce) if len(reductions) > 1 else []
    if len(result) > 1 and not any(isinstance(e, Reduce) for r in reductions for e in nodes(r.body)):
        result = result[:-1] if is_product(inlined[result[-1]]) else result
    if guards_inside(reductions) or guards_data(every):
        result += [n for n in containing(inlined, Guard) if n not in result]
    return result


def guards_inside(reductions: Iterable[Reduce]) -> bool:
    """True if a guard is left inside a reduction."""
    return any(isinstance(e, Guard) for r in reductions for e in nodes(r.body))


def guards_data(every: Iterable[Expr]) -> bool:
    """True if one of these is a guard on an index from data, which cannot be cut out of the loops."""
    return any(isinstance(e, Guard) and any(isinstance(t, Computed) for r in e.where for t, _ in r.index.terms) for e in every)


def containing(inlined: Sequence[Tensor], kind: type[Expr]) -> list[int]:
    """The numbers of those whose expressions have such a node."""
    return [n for n, tensor in enumerate(inlined) if any(isinstance(e, kind) for e in inside_of(tensor))]


def is_product(tensor: Tensor) -> bool:
    """True if it has one reduction, a product: what others of its size are computed from can be done with its sums."""
    found = [e for e in inside_of(tensor) if isinstance(e, Reduce)]
    return len(found) == 1 and contracts(found[0])


def inside_of(tensor: Tensor) -> Iterable[Expr]:
    """The nodes of the expression of one of its elements."""
    return nodes(tensor.element(*map(Affine.of, axes_of(tensor.type))))
