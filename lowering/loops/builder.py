"""The builder of loop IR functions. Index arithmetic goes to the outermost block where its operands are known, and no
value is computed twice in a block, so a schedule need not hoist or share subexpressions itself.
"""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis, Computed, Range, Term, Wrapped
from ..elements.expression import COMPARISONS, Buffer
from ..elements.traverse import computed
from .ir import (
    BOOL,
    INDEX,
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    LoadTile,
    MultiplyFloatTiles,
    MultiplyTiles,
    Operand,
    Prefetch,
    ShapeTiles,
    Shuffle,
    Stmt,
    StoreTile,
    StoreTo,
    Type,
    Var,
    ZeroTile,
)


@dataclass(slots=True)
class BuilderScope:
    """An open block, and the values known in it."""
    block: Block = field(default_factory=list)
    known: dict[tuple, Var] = field(default_factory=dict)
    loads: dict[Buffer, list[tuple]] = field(default_factory=dict)
    indices: dict[tuple, Operand] = field(default_factory=dict)


class Builder:
    """A builder of one function. With `by_rows`, the function takes the bounds of its outermost loop as arguments. Up to the
    depth `keeps`, loops that run once stay loops, so that they can be divided (`schedule.parallelize`)."""

    def __init__(self, name: str, by_rows: bool = False, keeps: int = 0) -> None:
        self.name, self.keeps = name, keeps
        self._ids = itertools.count()
        self._scopes = [BuilderScope()]
        self.rows: tuple[Var, Var] | None = (self._var(INDEX), self._var(INDEX)) if by_rows else None
        self._index: dict[Axis, Operand] = {}
        self._computed: dict[Computed, Operand] = {}
        self._buffers: dict[Buffer, None] = {}
        self._scratch: list[Buffer] = []
        self.derived: list[Any] = []
        """Arrays derived from constants (`schedule.derived_constants`)."""

    def finish(self) -> Function:
        params = tuple(b for b in self._buffers if b not in self._scratch)
        return Function(self.name, params, tuple(self._scratch), self._scopes[0].block, self.rows)

    def scratch(self, buffer: Buffer) -> Buffer:
        self._scratch.append(buffer)
        return buffer

    @property
    def depth(self) -> int:
        return len(self._scopes) - 1

    # ---- values ------------------------------------------------------------------------------------------------------
    def _var(self, type: Type, depth: int | None = None) -> Var:
        return Var(next(self._ids), type, self.depth if depth is None else depth)

    def _once(self, key: tuple, depth: int, make: Callable[[Var], Stmt], type: Type, outermost: int = 0) -> Var:
        """Return the value that `make` computes, in the block at `depth`; reuse an equal value that is known there, or in an
        enclosing block up to `outermost`."""
        for scope in self._scopes[outermost:depth + 1]:
            if (found := scope.known.get(key)) is not None:
                return found
        var, scope = Var(next(self._ids), type, depth), self._scopes[depth]
        scope.block.append(make(var))
        scope.known[key] = var
        if key[0] == "load":
            scope.loads.setdefault(key[1], []).append(key)
        return var

    def op(self, name: str, *args: Operand, type: Type | None = None, hoist: bool = False) -> Var:
        """Return op(args), of `type` or the type of the last argument; with `hoist`, as far out as the arguments are known."""
        if type is None:
            last = args[-1].type
            type = Type("bool", last.lanes) if name in COMPARISONS else last
        depth = max(a.depth for a in args) if hoist else self.depth
        key = (name, type.dtype, type.lanes, *[a if isinstance(a, Var) else literal_key(a) for a in args])
        return self._once(key, depth, lambda var: Let(var, name, args), type)

    def shuffle(self, a: Operand, b: Operand, lanes: tuple[int, ...]) -> Var:
        key = ("shuffle", *[x if isinstance(x, Var) else literal_key(x) for x in (a, b)], lanes)
        return self._once(key, self.depth, lambda var: Shuffle(var, (a, b), lanes), Type(a.type.dtype, len(lanes)))

    def splat(self, x: Operand, lanes: int, hoist: bool = False) -> Operand:
        if x.type.lanes == lanes:
            return x
        type = Type(x.type.dtype, lanes)
        return Literal(x.value, type) if isinstance(x, Literal) else self.op("splat", x, type=type, hoist=hoist)

    # ---- indices -----------------------------------------------------------------------------------------------------
    def bind(self, term: Computed, value: Operand) -> None:
        """Set the value of a computed index here: an int64 in its range."""
        self._computed[term] = value

    def place(self, axis: Axis, value: Operand) -> None:
        """Set the value of an axis without a loop: an int64 in its range."""
        self._index[axis] = value

    def position(self, term: Term) -> Operand:
        match term:
            case Wrapped(_, extent):
                return self.wrapped(self.index(term.not_negative), extent)
            case Computed():
                return self._computed[term]
            case _:
                return self._index[term]

    def wrapped(self, x: Operand, extent: int) -> Operand:
        """Return x, which is not negative, modulo extent. The division is in 32 bits: few machines divide 64 bits at once, and
        no buffer has that many rows."""
        if extent & (extent - 1) == 0:
            return self.op("and", x, Literal(extent - 1, x.type), hoist=True)
        narrow = self.op("cast", x, type=Type("int32", x.type.lanes), hoist=True)
        by = Literal(extent, narrow.type)
        multiple = self.op("mul", self.op("div", narrow, by, hoist=True), by, hoist=True)
        return self.op("cast", self.op("sub", narrow, multiple, hoist=True), type=x.type, hoist=True)

    def index(self, i: Affine) -> Operand:
        """Return the value of an index expression; each partial sum is computed as far out as possible."""
        return self._index_of(i.terms, i.const)

    def _index_of(self, terms: tuple[tuple[Term, int], ...], const: int) -> Operand:
        if not terms:
            return Literal(const, INDEX)
        key = (terms, const)
        for scope in reversed(self._scopes):
            if (known := scope.indices.get(key)) is not None:
                return known
        total = self._sum(terms, const)
        if not computed((Affine(terms),)):  # a computed index has another value once it is bound again
            self._scopes[total.depth].indices[key] = total
        return total

    def _sum(self, terms: tuple[tuple[Term, int], ...], const: int) -> Operand:
        total: Operand = Literal(const, INDEX)
        found = [(self.position(term), coefficient) for term, coefficient in terms]
        for term, coefficient in sorted(found, key=lambda t: t[0].depth):
            if coefficient != 1:
                term = self.op("mul", term, Literal(coefficient, INDEX), hoist=True)
            total = term if isinstance(total, Literal) and not total.value else self.op("add", total, term, hoist=True)
        return total

    def holds(self, where: Sequence[Range]) -> Operand:
        """Return a bool value that is true where all conditions hold."""
        conditions: list[Operand] = []
        for r in where:
            i, (low, high) = self.index(r.index), r.index.bounds
            if low < r.low:
                conditions.append(self.op("lt", Literal(r.low - 1, INDEX), i))
            if high >= r.high:
                conditions.append(self.op("lt", i, Literal(r.high, INDEX)))
        return functools.reduce(lambda x, y: self.op("and", x, y), conditions) if conditions else Literal(1, BOOL)

    # ---- memory ------------------------------------------------------------------------------------------------------
    def _address(self, buffer: Buffer, i: Affine) -> Address:
        self._buffers[buffer] = None
        return Address(buffer, self._index_of(i.terms, 0), i.const)

    def _known_from(self, buffer: Buffer) -> int:
        """Return the depth of the outermost block whose loads are still valid: a loop may later store what it loads."""
        return 0 if buffer.role in ("constant", "argument") else self.depth

    def load(self, buffer: Buffer, i: Affine, lanes: int = 1, active: int | None = None,
             mask: Operand | None = None) -> Var:
        address, type = self._address(buffer, i), Type(buffer.dtype, lanes)
        count = lanes if active is None else active
        key = ("load", buffer, address.base if isinstance(address.base, Var) else address.base.value, address.offset,
               type.lanes, count, mask)
        return self._once(key, self.depth, lambda var: LoadFrom(var, address, count, mask), type,
                          self._known_from(buffer))

    def gather(self, buffer: Buffer, indices: Operand, active: int | None = None, mask: Operand | None = None) -> Var:
        """Return buffer[indices], lane by lane; indices are a vector of int64."""
        self._buffers[buffer] = None
        type, count = Type(buffer.dtype, indices.type.lanes), indices.type.lanes if active is None else active
        key = ("load", buffer, indices, count, mask)
        return self._once(key, self.depth, lambda var: GatherFrom(var, buffer, indices, count, mask), type,
                          self._known_from(buffer))

    def store(self, buffer: Buffer, i: Affine, value: Operand, active: int | None = None,
              streaming: bool = False) -> None:
        count = value.type.lanes if active is None else active
        self._scopes[-1].block.append(StoreTo(self._address(buffer, i), value, count, streaming))
        self._changed(buffer)

    def _changed(self, buffer: Buffer) -> None:
        """Forget the values that were loaded from a buffer."""
        for scope in self._scopes:
            for key in scope.loads.pop(buffer, ()):
                del scope.known[key]

    # ---- tiles of a matrix unit --------------------------------------------------------------------------------------
    def shape_tiles(self, shapes: tuple[tuple[int, int], ...]) -> None:
        self._scopes[-1].block.append(ShapeTiles(shapes))

    def zero_tile(self, tile: int) -> None:
        self._scopes[-1].block.append(ZeroTile(tile))

    def load_tile(self, tile: int, buffer: Buffer, i: Affine, stride: int) -> None:
        self._scopes[-1].block.append(LoadTile(tile, self._address(buffer, i), stride))

    def store_tile(self, tile: int, buffer: Buffer, i: Affine, stride: int) -> None:
        self._scopes[-1].block.append(StoreTile(tile, self._address(buffer, i), stride))
        self._changed(buffer)

    def multiply_tiles(self, total: int, x: int, y: int, signed: bool) -> None:
        self._scopes[-1].block.append(MultiplyTiles(total, x, y, signed))

    def multiply_float_tiles(self, total: int, x: int, y: int) -> None:
        self._scopes[-1].block.append(MultiplyFloatTiles(total, x, y))

    def prefetch(self, buffer: Buffer, i: Affine, near: bool = False, writes: bool = False) -> None:
        """Prefetch buffer[i], which is soon read, or written; i may be out of range."""
        self._scopes[-1].block.append(Prefetch(self._address(buffer, i), near, writes))

    # ---- control -----------------------------------------------------------------------------------------------------
    def when(self, condition: Operand, body: Callable[[], None], likely: bool | None = None) -> None:
        self._scopes.append(BuilderScope())
        body()
        block = self._scopes.pop().block
        self._scopes[-1].block.append(If(condition, block, likely))

    def loop(self, axis: Axis, body: Callable[..., Sequence[Operand] | None], inits: Sequence[Operand] = (),
             low: Operand | None = None, high: Operand | None = None) -> tuple[Operand, ...]:
        """Build a loop that runs body(carried values) for each value of axis; one that runs once is not built as a loop."""
        if axis.extent == 1 and low is None and (inits or self.depth >= self.keeps):
            self._index[axis] = Literal(0, INDEX)
            return tuple(body(*inits) or ())
        self._scopes.append(BuilderScope())
        index = self._index[axis] = self._var(INDEX)
        params = tuple(self._var(i.type) for i in inits)
        yields = tuple(body(*params) or ())
        block = self._scopes.pop().block
        results = tuple(self._var(i.type) for i in inits)
        first, end = low or Literal(0, INDEX), high or Literal(axis.extent, INDEX)
        self._scopes[-1].block.append(For(index, first, end, params, tuple(inits), results, block, yields))
        return results


    def depth_of(self, axes: Iterable[Axis]) -> int:
        """Return the least depth at which all of these axes that belong to open loops have their values."""
        return max((self._index[a].depth for a in axes if a in self._index), default=0)

    def outside(self, depth: int, body: Callable[[], None]) -> None:
        """Run body as if only `depth` loops were open: its statements precede the loops nested in these."""
        inner = self._scopes[depth + 1:]
        del self._scopes[depth + 1:]
        body()
        self._scopes += inner


def literal_key(x: Literal) -> tuple:
    """Return a key that distinguishes constants, fast; 0.0 and -0.0 compare equal, but are not the same constant."""
    return (x.value if x.value else str(x.value), x.type.dtype, x.type.lanes)
