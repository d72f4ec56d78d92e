"""Walking and rebuilding expressions: the children of a node, the nodes below it, and substitution of axes.

No walk is recursive, so that chains may be long, and each visits a shared node once. `post_order` is the only walk that returns
to a node after the nodes below it; code with graphs other than expressions (values of a module) uses it, too.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from .affine import Affine, Axis, Computed, Range, Wrapped
from .expression import Apply, Cast, Const, Expr, Guard, IndexValue, Load, Reduce, guard

Node = TypeVar("Node", bound=Hashable)


def post_order(roots: Iterable[Node], below: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Return every node below and including the roots, once, each after all nodes below it; `below` is called before that, as a
    recursive walk would call it."""
    found: list[Node] = []
    seen: set[Node] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(x, False) for x in reversed(list(below(node)))]
    return found


def children(e: Expr) -> tuple[Expr, ...]:
    """Return the operands, and the expressions inside computed indices."""
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
    """Return the expressions of computed terms of index expressions, also inside a modulo."""
    found: list[Expr] = []
    for index in indices:
        for term, _ in index.terms:
            if isinstance(term, Axis):  # most are
                continue
            if isinstance(term, Computed):
                found.append(term.value)
            elif isinstance(term, Wrapped):
                found.extend(computed((term.source,)))
    return tuple(found)


def nodes(e: Expr) -> list[Expr]:
    """Return every distinct node below and including e."""
    found: dict[int, Expr] = {}
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        if isinstance(node, Apply):  # as `children`, which is slower; most nodes are of this class
            stack += node.args
        elif isinstance(node, Cast):
            stack.append(node.arg)
        elif isinstance(node, Load):
            for index in node.index:
                for term, _ in index.terms:
                    if not isinstance(term, Axis):
                        stack += computed((index,))
                        break
        elif not isinstance(node, Const):
            stack += children(node)
    return list(found.values())


def loads(e: Expr) -> list[Load]:
    return [n for n in nodes(e) if isinstance(n, Load)]


def loads_beside(e: Expr, known: Expr) -> list[Load]:
    """Return the loads of a value that are not in its part `known`."""
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
    """Return the axes of all index expressions in e."""
    result: set[Axis] = set()
    for n in nodes(e):
        match n:
            case Load(index=index):
                result.update(*map(affine_axes, index))
            case IndexValue(index=single):
                result |= affine_axes(single)
            case Guard(where=where) | Reduce(where=where):
                result.update(*[affine_axes(r.index) for r in where])
    return frozenset(result)


def affine_axes(index: Affine) -> set[Axis]:
    """Return the axes that are terms, also inside a modulo; the inside of a computed index has nodes of its own."""
    found: set[Axis] = set()
    stack = [index]
    while stack:
        for term, _ in stack.pop().terms:
            if isinstance(term, Axis):
                found.add(term)
            elif isinstance(term, Wrapped):
                stack.append(term.source)
    return found


def rewrite(e: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild e bottom-up, replacing every node for which `change` returns another; sharing is kept. Computed terms of
    indices are rewritten too."""
    memo: dict[Expr, Expr] = {}

    def below(node: Expr) -> Iterable[Expr]:
        new = change(node)
        if new is None:
            return in_order(node)
        memo[node] = new
        return ()

    for node in post_order((e,), below):
        if node not in memo:
            memo[node] = rebuilt(node, memo)
    return memo[e]


def in_order(e: Expr) -> tuple[Expr, ...]:
    """Return the children of a node, conditions first."""
    return (*computed(r.index for r in e.where), e.inside, e.outside) if isinstance(e, Guard) else children(e)


def rebuilt(e: Expr, memo: Mapping[Expr, Expr]) -> Expr:
    """Return a node with its children replaced as `memo` says."""
    match e:
        case Apply(primitive, args, dtype):
            new = tuple([memo[a] for a in args])
            return e if all(a is b for a, b in zip(new, args)) else Apply(primitive, new, dtype)
        case Cast(arg, dtype, bits):
            return Cast(memo[arg], dtype, bits)
        case Guard(where, yes, no):
            return Guard(conditions(where, memo), memo[yes], memo[no])
        case Reduce(primitive, axes, body, where):
            return Reduce(primitive, axes, memo[body], conditions(where, memo))
        case Load(buffer, indices) if computed(indices):
            return Load(buffer, tuple([reindexed(i, memo) for i in indices]))
        case IndexValue(single, dtype) if computed((single,)):
            return IndexValue(reindexed(single, memo), dtype)
    return e


def conditions(where: tuple[Range, ...], memo: Mapping[Expr, Expr]) -> tuple[Range, ...]:
    return tuple([Range(reindexed(r.index, memo), r.low, r.high) for r in where])


def reindexed(i: Affine, memo: Mapping[Expr, Expr]) -> Affine:
    """Return an index with the values of its computed terms replaced as `memo` says."""
    if not computed((i,)):
        return i
    terms = []
    for t, c in i.terms:
        match t:
            case Computed(value, extent):
                t = t if memo[value] is value else Computed(memo[value], extent)
            case Wrapped(source, extent):
                t = Wrapped(reindexed(source, memo), extent)
        terms.append((t, c))
    return Affine(tuple(terms), i.const)


def substitute(e: Expr, at: Mapping[Axis, Affine]) -> Expr:
    """Return e with axes replaced by index expressions; guards that become known disappear."""
    return AxisSubstitution(at).value(e) if at else e


class AxisSubstitution:
    """A substitution of axes in expressions; shared nodes and computed indices stay shared."""

    def __init__(self, at: Mapping[Axis, Affine]) -> None:
        self.at = at
        self.values: dict[Expr, Expr] = {}
        self.terms: dict[Computed, Affine] = {}

    def value(self, e: Expr) -> Expr:
        for node in post_order((e,), self.needed):
            self.values[node] = self.moved(node)
        return self.values[e]

    def needed(self, e: Expr) -> Iterable[Expr]:
        """Return the nodes that must be known before a node, without those that a condition leaves out."""
        if isinstance(e, Guard) and not computed(r.index for r in e.where):
            known = [r.substitute(self.at).known for r in e.where]
            return (e.outside,) if False in known else (e.inside, e.outside)
        return in_order(e)

    def moved(self, e: Expr) -> Expr:
        match e:
            case Load(buffer, index):
                return Load(buffer, tuple([i.substitute(self.at, self.term) for i in index]))
            case IndexValue(index, dtype):
                return IndexValue(index.substitute(self.at, self.term), dtype)
            case Guard(where, inside, outside):
                held = self.conditions(where)
                if any(r.known is False for r in held):
                    return self.values[outside]
                return guard(held, self.values[inside], self.values[outside])
            case Reduce(primitive, axes, body, where):
                held = self.conditions(where)
                return Reduce(primitive, axes, self.values[body], tuple(r for r in held if r.known is not True))
        return rebuilt(e, self.values)

    def conditions(self, where: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple([r.substitute(self.at, self.term) for r in where])

    def term(self, term: Computed) -> Affine:
        """Return the replacement of a computed index, whose value is known."""
        if term not in self.terms:
            self.terms[term] = of_computed(term, self.values[term.value])
        return self.terms[term]


def of_computed(term: Computed, value: Expr) -> Affine:
    """Return the index of a computed term with another value."""
    if isinstance(value, Const):
        return Affine((), min(max(int(value.value), 0), term.extent - 1))
    return Affine(((term if value is term.value else Computed(value, term.extent), 1),))
