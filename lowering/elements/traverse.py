"""Walking and rebuilding expressions: what a node consists of, which nodes there are below it, and substitution of axes."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .affine import Affine, Axis, Computed, Range, Wrapped
from .expression import Apply, Cast, Const, Expr, Guard, IndexValue, Load, Reduce, guard


def children(e: Expr) -> tuple[Expr, ...]:
    """Operands, and the expressions inside computed indices."""
    match e:
        case Apply(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Guard(where, inside, outside):
            return (inside, outside, *computed(r.index for r in where))
        case Reduce(body=body, where=where):
            return (body, *computed(r.index for r in where))
        case Load(index=index):
            return computed(index)
        case IndexValue(index=single):
            return computed((single,))
    return ()


def computed(indices: Any) -> tuple[Expr, ...]:
    """The expressions of computed terms of index expressions, also inside a modulo."""
    found: list[Expr] = []
    for index in indices:
        for term, _ in index.terms:
            if isinstance(term, Axis):  # most are
                continue
            match term:
                case Computed(value, _):
                    found.append(value)
                case Wrapped(source, _):
                    found.extend(computed((source,)))
    return tuple(found)


def nodes(e: Expr) -> list[Expr]:
    """Every distinct node below and including e."""
    found: list[Expr] = []
    seen: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        found.append(node)
        if isinstance(node, Apply):  # as `children`, which is slower, and most are of these
            stack += node.args
        elif isinstance(node, Cast):
            stack.append(node.arg)
        elif isinstance(node, Load):
            stack += computed(node.index)
        elif not isinstance(node, Const):
            stack += children(node)
    return found


def loads(e: Expr) -> list[Load]:
    return [n for n in nodes(e) if isinstance(n, Load)]


def loads_beside(e: Expr, known: Expr) -> list[Load]:
    """The loads of a value of which a part is known."""
    found, seen, stack = list[Load](), {id(known)}, [e]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found += [node] if isinstance(node, Load) else []
            stack.extend(children(node))
    return found


def ranges(e: Expr) -> list[Range]:
    return [r for n in nodes(e) if isinstance(n, (Guard, Reduce)) for r in n.where]


def free_axes(e: Expr) -> frozenset[Axis]:
    """Axes of all index expressions in e."""
    result: set[Axis] = set()
    for n in nodes(e):
        match n:
            case Load(index=index):
                for i in index:
                    result |= i.axes
            case IndexValue(index=single):
                result |= single.axes
            case Guard(where=where) | Reduce(where=where):
                for r in where:
                    result |= r.index.axes
    return frozenset(result)


def rewrite(e: Expr, change: Callable[[Expr], Expr | None], index: Callable[[Affine], Affine] | None = None) -> Expr:
    """Rebuild e bottom-up, replacing every node for which `change` gives another; sharing is kept. Computed terms of
    indices are rewritten too."""
    memo: dict[int, Expr] = {}
    keep: list[Expr] = []  # memo is by id: nodes made here must live as long as it

    def go(node: Expr) -> Expr:
        if id(node) not in memo:
            new = change(node)
            keep.append(node)
            memo[id(node)] = new if new is not None else rebuild(node)
        return memo[id(node)]

    def inside(i: Affine) -> Affine:
        if not computed((i,)):
            return i
        terms = []
        for t, c in i.terms:
            match t:
                case Computed(value, extent):
                    inner = go(value)
                    t = t if inner is value else Computed(inner, extent)
                case Wrapped(source, extent):
                    t = Wrapped(inside(source), extent)
            terms.append((t, c))
        return Affine(tuple(terms), i.const)

    def conditions(where: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple(Range(inside(r.index), r.low, r.high) for r in where)

    def rebuild(node: Expr) -> Expr:
        match node:
            case Apply(primitive, args, dtype):
                new = tuple(map(go, args))
                return node if all(a is b for a, b in zip(new, args)) else Apply(primitive, new, dtype)
            case Cast(arg, dtype, bits):
                return Cast(go(arg), dtype, bits)
            case Guard(where, yes, no):
                return Guard(conditions(where), go(yes), go(no))
            case Reduce(primitive, axes, body, where):
                return Reduce(primitive, axes, go(body), conditions(where))
            case Load(buffer, indices) if computed(indices):
                return Load(buffer, tuple(map(inside, indices)))
            case IndexValue(single, dtype) if computed((single,)):
                return IndexValue(inside(single), dtype)
        return node

    return go(e)


def substitute(e: Expr, at: Mapping[Axis, Affine]) -> Expr:
    """e with axes replaced by index expressions; guards that become known disappear."""
    if not at:
        return e

    def change(node: Expr) -> Expr | None:
        match node:
            case Load(buffer, index):
                return Load(buffer, tuple(i.substitute(at) for i in index))
            case IndexValue(index, dtype):
                return IndexValue(index.substitute(at), dtype)
            case Guard(where, inside, outside):
                moved = tuple(r.substitute(at) for r in where)
                if any(r.known is False for r in moved):
                    return substitute(outside, at)
                return guard(moved, substitute(inside, at), substitute(outside, at))
            case Reduce(primitive, axes, body, where):
                moved = tuple(r.substitute(at) for r in where)
                return Reduce(primitive, axes, substitute(body, at), tuple(r for r in moved if r.known is not True))
        return None

    return rewrite(e, change)
