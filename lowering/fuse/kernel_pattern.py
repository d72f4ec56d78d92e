"""The pattern of a kernel's expression, and the inlined values that spoil it. The pattern is one reduction, or products of
which the last is computed with the sums of the others, and no guard that stays inside a reduction.
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
    """Return the numbers of the inlined operands that spoil the pattern of an operator's expression and must be stored before
    it: those with a second reduction (of several products, all but the last), or a guard that stays inside a reduction."""
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
    """True if a node is a guard on an index from data: cutting the loops cannot remove the guard."""
    return any(isinstance(e, Guard) and any(isinstance(t, Computed) for r in e.where for t, _ in r.index.terms) for e in every)


def containing(inlined: Sequence[Tensor], kind: type[Expr]) -> list[int]:
    """Return the numbers of the operands whose expressions have a node of this kind."""
    return [n for n, tensor in enumerate(inlined) if any(isinstance(e, kind) for e in inside_of(tensor))]


def is_product(tensor: Tensor) -> bool:
    """True if a tensor has one reduction, a product: work on it and on other tensors of its size can run with its sums."""
    found = [e for e in inside_of(tensor) if isinstance(e, Reduce)]
    return len(found) == 1 and contracts(found[0])


def inside_of(tensor: Tensor) -> Iterable[Expr]:
    """Return the nodes of the expression of an element of a tensor."""
    return nodes(tensor.element(*map(Affine.of, axes_of(tensor.type))))
