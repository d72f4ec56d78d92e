"""Lowering of a scalar expression at given positions to values of the loop IR, `lanes` neighbours along one axis at a time.

This is the general path: it lowers everything that an expression may contain (an open guard, a computed index, a reduction
inside an epilogue) correctly. Schedules make it fast by using it at points where little of that is left.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...elements.affine import Affine, Axis, Computed, Range, Term, Wrapped
from ...elements.expression import Apply, Cast, Const, Expr, Guard, IndexValue, Load, Reduce
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand, Type
from ...target.target import Target
from ..derived_constants import Made, derive
from ..nest.index_arithmetic import value_bounds
from ..nest.loop_nest import At, operands
from .lane_groups import NOTHING, Repeated, Repeats
from .strided_load import gathered, spread
from .table_lookup import look_up, looked_up
from .vector_reduction import reduced

Vectors = list[tuple[Operand, int, int]]
"""Parts of an index that differ irregularly between lanes: a vector of int64, its coefficient, its extent."""


class Vectorizer:
    """The values of expressions at one point: `at` maps each axis to an index; along `axis` the lanes hold at[axis],
    at[axis] + 1, ... (only the first `active`). Lanes where `mask` is false hold anything and access nothing out of range.

    Values that `outer`, an enclosing point, already has are reused. `repeats` are values that groups of lanes share.
    """

    def __init__(self, b: Builder, target: Target, at: At, axis: Axis | None = None, lanes: int = 1,
                 active: int | None = None, given: Mapping[Expr, Operand] = {},
                 outer: Vectorizer | None = None, mask: Operand | None = None, repeats: Repeats = NOTHING) -> None:
        self.b, self.target, self.at, self.outer, self.mask = b, target, at, outer, mask
        self.axis, self.lanes = axis if lanes > 1 else None, lanes
        self.active = lanes if active is None else active
        self.repeats = repeats if lanes > 1 else NOTHING
        self.memo: dict[int, Operand] = {id(e): value for e, value in given.items()}
        self.indices: dict[Computed, Operand] = {}
        self.masked: dict[Operand, Vectorizer] = {}

    def inner(self, at: At, mask: Operand | None = None) -> Vectorizer:
        """Return the same lanes at a point inside this one."""
        return Vectorizer(self.b, self.target, at, self.axis, self.lanes, self.active, outer=self,
                          mask=self.mask if mask is None else mask, repeats=self.repeats)

    def along(self, at: At, axis: Axis, lanes: int, active: int) -> Vectorizer:
        """Return lanes along another axis, for a value that is equal in all lanes here."""
        return Vectorizer(self.b, self.target, at, axis, lanes, active, outer=self, mask=self.uniform_mask())

    def uniform_mask(self) -> Operand | None:
        """Return a scalar mask: true if any lane is active in the mask."""
        if self.mask is None or self.mask.type.lanes == 1:
            return self.mask
        return self.b.op("reduce_or", self.mask, type=Type("bool"))

    # ---- values ------------------------------------------------------------------------------------------------------
    def vector(self, e: Expr) -> Operand:
        return self.b.splat(self.value(e), self.lanes)

    def known(self, e: Expr) -> Operand | None:
        key, scope = id(e), self
        while (found := scope.memo.get(key)) is None and scope.outer is not None:
            scope = scope.outer
        return found

    def value(self, e: Expr) -> Operand:
        """Return a vector, or a scalar if all lanes are equal. Do not recurse over arithmetic: chains may be long."""
        found = self.known(e)
        if found is not None:
            return found
        stack = [e]
        while stack:
            node = stack[-1]
            if self.repeats and self.known(node) is None and (shared := self.repeated(node)) is not None:
                self.memo[id(node)] = shared
                stack.pop()
                continue
            if below := operands(node):
                pending = [x for x in below if self.known(x) is None]
                if pending:
                    stack.extend(reversed(pending))
                    continue
            stack.pop()
            if id(node) not in self.memo:
                self.memo[id(node)] = self.compute(node)
        return self.memo[id(e)]

    def repeated(self, e: Expr) -> Operand | None:
        """Return a value that groups of lanes share, computed once for each group; None for others and for unaligned groups."""
        if id(e) not in self.repeats or (self.mask is not None and self.mask.type.lanes > 1):
            return None
        found = self.repeats[id(e)]
        i, stride, vectors = self.place(found.by.source)
        divided = i.divide(found.by.by)
        if stride != 1 or vectors or divided is None or divided[1].terms:
            return None
        return self.of_groups(found, divided[0], tuple((divided[1].const + n) // found.by.by for n in range(self.active)))

    def of_groups(self, found: Repeated, first: Affine, groups: tuple[int, ...]) -> Operand:
        """Return the value of each lane: active lane i is in group `groups[i]`, counted from `first`."""
        count = groups[-1] + 1
        lanes = 1 << (count - 1).bit_length()
        inner = Vectorizer(self.b, self.target, {**self.at, found.group: first}, found.group, lanes, count, mask=self.mask)
        x = inner.value(found.inner)
        if x.type.lanes == 1:
            return x
        return self.b.shuffle(x, x, groups + groups[-1:] * (self.lanes - self.active))

    def compute(self, e: Expr) -> Operand:
        match e:
            case Apply():
                values = [self.value(a) for a in e.args]
                lanes = max([v.type.lanes for v in values])
                if lanes > 1:
                    values = [v if v.type.lanes == lanes else self.b.splat(v, lanes) for v in values]
                return self.b.op(e.primitive, *values, type=Type(e.dtype, lanes))
            case Load():
                return self.load(e)
            case Const(value, dtype):
                return Literal(value, Type(dtype))
            case Cast(arg, dtype, bits):
                x = self.value(arg)
                return self.b.op("bits" if bits else "cast", x, type=Type(dtype, x.type.lanes))
            case IndexValue(index, dtype):
                return self.position(index, dtype)
            case Guard():
                return self.guard(e)
            case Reduce():
                return reduced(self, e)
        raise TypeError(e)

    # ---- conditions --------------------------------------------------------------------------------------------------
    def guard(self, e: Guard) -> Operand:
        holds = self.holds(e.where)
        if isinstance(holds, bool):
            return self.value(e.inside if holds else e.outside)
        return self.choose(holds, self.under(holds).value(e.inside), self.under(self.negation(holds)).value(e.outside))

    def choose(self, condition: Operand, yes: Operand, no: Operand) -> Operand:
        lanes = max(condition.type.lanes, yes.type.lanes, no.type.lanes)
        operands = [self.b.splat(x, lanes) for x in (condition, yes, no)]
        return self.b.op("select", *operands, type=Type(yes.type.dtype, lanes))

    def negation(self, condition: Operand) -> Operand:
        return self.b.op("xor", condition, Literal(1, condition.type))

    def under(self, condition: Operand) -> Vectorizer:
        """Return the same point, masked by the condition."""
        if condition not in self.masked:
            both = condition
            if self.mask is not None:
                lanes = max(self.mask.type.lanes, condition.type.lanes)
                both = self.b.op("and", self.b.splat(self.mask, lanes), self.b.splat(condition, lanes))
            child = self.inner(self.at, both)
            self.masked[condition] = child
        return self.masked[condition]

    def holds(self, where: Iterable[Range]) -> Operand | bool:
        """True if all conditions hold: a bool that is known, a scalar, or a bool for each lane."""
        tests: list[Operand] = []
        for r in where:
            i, stride, vectors = self.place(r.index)
            low, high = i.bounds
            low += min(stride * (self.active - 1), 0) + sum(min(c * (n - 1), 0) for _, c, n in vectors)
            high += max(stride * (self.active - 1), 0) + sum(max(c * (n - 1), 0) for _, c, n in vectors)
            if high < r.low or low >= r.high:
                return False
            if low >= r.low and high < r.high:
                continue
            if stride or vectors:
                tests += self.compare(i, stride, vectors, r, low, high)
            else:
                tests.append(self.b.holds((Range(i, r.low, r.high),)))
        if not tests:
            return True
        lanes = max(p.type.lanes for p in tests)
        result = tests[0]
        for p in tests[1:]:
            result = self.b.op("and", self.b.splat(result, lanes), self.b.splat(p, lanes))
        return result

    def compare(self, i: Affine, stride: int, vectors: Vectors, r: Range, low: int, high: int) -> list[Operand]:
        """Return the tests, lane by lane, for the sides of r that can fail."""
        small = not vectors and min(low, r.low) > -1 << 31 and max(high, r.high, stride * self.lanes) < 1 << 31
        x = self.ramp(i, stride, "int32") if small else self.index_vector(i, stride, vectors)
        tests: list[Operand] = []
        if low < r.low:
            tests.append(self.b.op("lt", Literal(r.low - 1, x.type), x))
        if high >= r.high:
            tests.append(self.b.op("lt", x, Literal(r.high, x.type)))
        return tests

    # ---- indices -----------------------------------------------------------------------------------------------------
    def place(self, i: Affine) -> tuple[Affine, int, Vectors]:
        """Return an index here: its value in the first lane, its stride between lanes, and its irregular parts."""
        total: dict[Term, int] = {}
        const, stride, vectors = i.const, 0, []
        at, axis = self.at, self.axis
        for term, c in i.terms:
            if isinstance(term, Axis):
                if term is axis:
                    stride += c
                moved = at.get(term)
                if moved is None:
                    total[term] = total.get(term, 0) + c
                    continue
                const += moved.const * c
                for t, k in moved.terms:
                    total[t] = total.get(t, 0) + k * c
                continue
            value = self.special(term)
            if isinstance(value, Affine):
                const += value.const * c
                for t, k in value.terms:
                    total[t] = total.get(t, 0) + k * c
            else:
                vectors.append((value, c, term.extent))
        return Affine(tuple([(t, k) for t, k in total.items() if k]), const), stride, vectors

    def special(self, term: Wrapped | Computed) -> Affine | Operand:
        """Return a term that is no axis: an index expression, or a vector of int64 if the term differs between lanes."""
        if isinstance(term, Wrapped):
            i, stride, vectors = self.place(term.not_negative)
            if stride or vectors:
                return self.b.wrapped(self.index_vector(i, stride, vectors), term.extent)
            return Affine(((Wrapped(i, term.extent), 1),)) if i.terms else Affine((), i.const % term.extent)
        position = self.indices.get(term)
        if position is None:
            position = self.indices[term] = self.clamped(term)
        if isinstance(position, Literal):
            return Affine((), int(position.value))
        if position.type.lanes > 1:
            return position
        self.b.bind(term, position)
        return Affine(((term, 1),))

    def clamped(self, term: Computed) -> Operand:
        """Return a computed index as an int64, clamped to range(extent)."""
        x, most = self.value(term.value), term.extent - 1
        if isinstance(x, Literal):
            return Literal(min(max(int(x.value), 0), most), INDEX)
        least, largest = self.bounds(term.value)
        if least < 0:
            x = self.b.op("max", x, Literal(0, x.type))
        if largest > most:
            x = self.b.op("min", x, Literal(most, x.type))
        return x if x.type.dtype == "int64" else self.b.op("cast", x, type=Type("int64", x.type.lanes))

    def bounds(self, e: Expr) -> tuple[int, int]:
        """Return the least and the greatest value of an integer expression, which may depend on the data of a constant."""
        derive(self.b, (), (e,), lambda e: Made((), value_bounds(e)))
        return value_bounds(e)

    def ramp(self, i: Affine, stride: int, dtype: str) -> Operand:
        """Return i, i + stride, i + 2 stride, ... as a vector."""
        base, type = self.b.index(i), Type(dtype, self.lanes)
        if dtype != "int64":
            base = Literal(base.value, Type(dtype)) if isinstance(base, Literal) else self.b.op(
                "cast", base, type=Type(dtype), hoist=True)
        if stride == 1:
            return self.b.op("lanes", base, type=type, hoist=True)
        steps = self.b.op("lanes", Literal(0, Type(dtype)), type=type, hoist=True)
        steps = self.b.op("mul", steps, Literal(stride, type), hoist=True)
        return self.b.op("add", self.b.splat(base, self.lanes, hoist=True), steps, hoist=True)

    def index_vector(self, i: Affine, stride: int, vectors: Vectors) -> Operand:
        """Return the index of each lane, as a vector of int64."""
        total = self.ramp(i, stride, "int64") if stride else self.b.splat(self.b.index(i), self.lanes, hoist=True)
        for x, c, _ in vectors:
            product = x if c == 1 else self.b.op("mul", x, Literal(c, x.type))
            total = product if total == Literal(0, total.type) else self.b.op("add", total, product)
        return total

    def position(self, index: Affine, dtype: str) -> Operand:
        i, stride, vectors = self.place(index)
        if vectors:
            x = self.index_vector(i, stride, vectors)
        elif stride:
            return self.ramp(i, stride, dtype)
        else:
            x = self.b.index(i)
        if x.type.dtype == dtype:
            return x
        if isinstance(x, Literal):
            return Literal(x.value, Type(dtype))
        return self.b.op("cast", x, type=Type(dtype, x.type.lanes), hoist=True)

    # ---- memory ------------------------------------------------------------------------------------------------------
    def load(self, e: Load) -> Operand:
        if (byte := looked_up(e, self.target)) is not None and (x := self.value(byte)).type.lanes > 1:
            return look_up(self.b, e, x)
        i, stride, vectors = self.place(e.index[0])
        if vectors:
            return self.b.gather(e.buffer, self.index_vector(i, stride, vectors), self.active, self.mask_of(self.lanes))
        mask = None
        if self.mask is not None:
            low, high = i.bounds
            span = stride * (self.active - 1)
            if low + min(span, 0) < 0 or high + max(span, 0) >= e.buffer.size:
                mask = self.mask_of(self.lanes if stride else 1)
        if stride == 0:
            return self.b.load(e.buffer, i, mask=mask)
        if stride == 1:
            return self.b.load(e.buffer, i, self.lanes, self.active, mask)
        if mask is None and (values := spread(self.b, e.buffer, i, stride, self.lanes, self.active)) is not None:
            return values
        if mask is None and not (self.target.has_gather and e.buffer.dtype not in NARROW):
            return gathered(self.b, e.buffer, i, stride, self.lanes, self.active)
        return self.b.gather(e.buffer, self.ramp(i, stride, "int64"), self.active, mask)

    def mask_of(self, lanes: int) -> Operand | None:
        """Return the mask for an access of `lanes` lanes."""
        if self.mask is None:
            return None
        return self.b.splat(self.mask, lanes) if lanes > 1 else self.uniform_mask()


def interleaved_values(places: Sequence[Vectorizer], e: Expr) -> list[Operand]:
    """Return the value of e at each point, computed operation by operation, so that no operation waits for the one before. Skip
    values that are known at all points, and their operands."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack = [(e, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen and any(v.known(node) is None for v in places):
            seen.add(id(node))
            stack.append((node, True))
            stack.extend([(x, False) for x in reversed(operands(node))])
    for node in order:
        for v in places:
            v.value(node)
    return [v.vector(e) for v in places]


NARROW = frozenset(dtype for dtype, size in ITEM_SIZES.items() if size <= 2)
"""Dtypes that no processor can gather."""
