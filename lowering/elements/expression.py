"""What one output element is: scalar expressions over symbolic indices.

Nodes compare by identity, so a shared node is computed once. `PRIMITIVES` is the whole scalar language: NumPy gives each
primitive its meaning (`interpret`), the emitter gives it an instruction. A `dtype` is the name of a NumPy dtype; half
floats (float16, bfloat16, float8_*) are only loaded, stored and cast: arithmetic on them is written in float32.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..graph.types import ITEM_SIZES, Array
from .affine import Affine, Axis, Computed, Range, Wrapped


def _fma(a: Array, b: Array, c: Array) -> Array:
    return (np.asarray(a, "f8") * b + c).astype(np.result_type(a, b, c))


def _clz(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    unsigned = x.astype(np.int64) & ((1 << bits) - 1)
    return np.asarray(bits - np.ceil(np.log2(unsigned.astype("f8") + 1)), x.dtype)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    divisor = np.where(b == 0, 1, b)
    return np.asarray((a - np.fmod(a, divisor)) // divisor).astype(a.dtype)


def _shift_right_logical(a: Array, b: Array) -> Array:
    unsigned = a.view(f"u{a.dtype.itemsize}")
    return np.right_shift(unsigned, b.astype(unsigned.dtype)).view(a.dtype)


def _first(compare: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.where(compare(b, a), b, a)


PRIMITIVES: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "div": _divide,                                      # integers truncate; the divisor must not be 0
    "min": _first(np.less), "max": _first(np.greater),   # a NaN in the first operand is the result, in the second not
    "minimum": np.minimum, "maximum": np.maximum,        # a NaN anywhere is the result
    "minnum": np.fmin, "maxnum": np.fmax,                # a NaN only where both are
    "lt": np.less, "le": np.less_equal, "eq": np.equal,  # false where an operand is NaN
    "select": np.where, "fma": _fma, "rint": np.rint, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "abs": np.abs,
    "shl": np.left_shift, "ashr": np.right_shift, "lshr": _shift_right_logical,  # 0 <= shift < bits
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "clz": _clz,
}
COMPARISONS = frozenset({"lt", "le", "eq"})
IDENTITIES = {"add": 0, "mul": 1, "or": 0, "and": -1, "xor": 0}


class Expr:
    """A scalar; its operators build larger ones."""
    __slots__ = ()
    dtype: str

    def __add__(self, other: Expr | float) -> Expr: return apply("add", self, other)
    def __sub__(self, other: Expr | float) -> Expr: return apply("sub", self, other)
    def __mul__(self, other: Expr | float) -> Expr: return apply("mul", self, other)
    def __truediv__(self, other: Expr | float) -> Expr: return apply("div", self, other)
    def __lshift__(self, other: Expr | int) -> Expr: return apply("shl", self, other)
    def __rshift__(self, other: Expr | int) -> Expr: return apply("ashr", self, other)
    def __and__(self, other: Expr | int) -> Expr: return apply("and", self, other)
    def __or__(self, other: Expr | int) -> Expr: return apply("or", self, other)
    def __xor__(self, other: Expr | int) -> Expr: return apply("xor", self, other)
    def __lt__(self, other: Expr | float) -> Expr: return apply("lt", self, other)
    def __le__(self, other: Expr | float) -> Expr: return apply("le", self, other)
    def __gt__(self, other: Expr | float) -> Expr: return apply("lt", literal(other, self.dtype), self)
    def __ge__(self, other: Expr | float) -> Expr: return apply("le", literal(other, self.dtype), self)
    def equals(self, other: Expr | float) -> Expr: return apply("eq", self, other)


Role = Literal["argument", "result", "temporary", "constant", "variable", "scratch"]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Memory of one tensor, row-major. A constant carries its data; a variable's name is its symbol."""
    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role = "temporary"
    data: Array | None = None

    @property
    def size(self) -> int:
        result = 1
        for n in self.shape:
            result *= n
        return result

    @property
    def nbytes(self) -> int:
        return self.size * ITEM_SIZES[self.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major strides, in elements."""
        result, stride = [], 1
        for n in reversed(self.shape):
            result.append(stride)
            stride *= n
        return tuple(reversed(result))

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    value: float | int
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Position(Expr):
    """The value of an index expression, as an integer."""
    index: Affine
    dtype: str = "int32"


@dataclass(frozen=True, slots=True, eq=False)
class Load(Expr):
    """buffer[index]; one index for a buffer of another rank is a flat (row-major) one. Always in range."""
    buffer: Buffer
    index: tuple[Affine, ...]

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.buffer.dtype

    @property
    def is_flat(self) -> bool:
        return len(self.index) == 1


@dataclass(frozen=True, slots=True, eq=False)
class Apply(Expr):
    primitive: str
    args: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """Value conversion (float to integer: the value must be in range), or with `bits` a reinterpretation."""
    arg: Expr
    dtype: str
    bits: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Guard(Expr):
    """`inside` where all conditions hold, else `outside`; no load of `inside` is made where they do not hold."""
    where: tuple[Range, ...]
    inside: Expr
    outside: Expr

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.inside.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expr):
    """`body` combined over all values of `axes` for which `where` holds. The primitive is associative (add, mul, min, max,
    minimum, maximum, minnum, maxnum, and, or)."""
    primitive: str
    axes: tuple[Axis, ...]
    body: Expr
    where: tuple[Range, ...] = ()

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.body.dtype

    @property
    def identity(self) -> float | int:
        """The value of an empty reduction."""
        if self.primitive in IDENTITIES:
            return IDENTITIES[self.primitive] & 1 if self.dtype == "bool" else IDENTITIES[self.primitive]
        if self.primitive in ("minnum", "maxnum"):
            return float("nan")
        return extreme(self.dtype, "min" if self.primitive.startswith("max") else "max")


@dataclass(frozen=True, slots=True, eq=False)
class Likely(Expr):
    """Equals `exact`, always; where `valid` holds, as it nearly always does, the cheaper `fast` is equal too."""
    valid: Expr
    fast: Expr
    exact: Expr

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.exact.dtype


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def extreme(dtype: str, which: Literal["min", "max"]) -> float | int:
    """Least or greatest value of a dtype; infinities for floats."""
    if is_float(dtype):
        return float("-inf" if which == "min" else "inf")
    if dtype == "bool":
        return int(which == "max")
    info = np.iinfo(dtype)
    return int(info.min if which == "min" else info.max)


def literal(x: Expr | float | int, dtype: str) -> Expr:
    return x if isinstance(x, Expr) else Const(x, dtype)


def apply(primitive: str, *args: Expr | float | int) -> Expr:
    """A primitive of operands of one dtype (numbers take the dtype of the others); `select` has a bool first."""
    like = next(a for a in reversed(args) if isinstance(a, Expr)).dtype
    exprs = tuple(literal(a, like) for a in args)
    return Apply(primitive, exprs, "bool" if primitive in COMPARISONS else exprs[-1].dtype)


def select(condition: Expr, yes: Expr | float, no: Expr | float) -> Expr:
    return apply("select", condition, yes, no)


def clamp(x: Expr, low: float | int, high: float | int) -> Expr:
    """min(max(x, low), high); a NaN stays."""
    return apply("min", apply("max", x, low), high)


def cast(x: Expr, dtype: str, bits: bool = False) -> Expr:
    if x.dtype == dtype:
        return x
    if isinstance(x, Const) and not bits and not is_float(x.dtype) and not is_float(dtype) and dtype != "bool":
        return Const(int(np.asarray(int(x.value)).astype(dtype)), dtype)
    return Cast(x, dtype, bits)


def guard(where: Sequence[Range], inside: Expr, outside: Expr | float | int) -> Expr:
    """Guard, without the conditions that always hold; `outside` alone where one never holds."""
    if any(r.known is False for r in where):
        return literal(outside, inside.dtype)
    needed = tuple(r for r in where if r.known is not True)
    return Guard(needed, inside, literal(outside, inside.dtype)) if needed else inside


def reduce(primitive: str, axes: tuple[Axis, ...], body: Expr) -> Expr:
    """Reduce, with guards lifted out of the body where a guarded element contributes nothing."""
    where: list[Range] = []

    def lift(e: Expr, neutral: float) -> Expr:
        match e:
            case Guard(ranges, inside, Const(value)) if value == neutral or (value != value and neutral != neutral):
                where.extend(ranges)
                return lift(inside, neutral)
            case Apply("mul", (a, b), dtype) if neutral == 0:
                return Apply("mul", (lift(a, 0), lift(b, 0)), dtype)
            case Cast(arg, dtype, False) if neutral == 0:
                return Cast(lift(arg, 0), dtype)
        return e

    plain = Reduce(primitive, axes, body)
    lifted = lift(body, plain.identity)
    return Reduce(primitive, axes, lifted, tuple(where))


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
        case Likely(valid, fast, exact):
            return (valid, fast, exact)
        case Load(index=index):
            return computed(index)
        case Position(index=single):
            return computed((single,))
    return ()


def computed(indices: Any) -> tuple[Expr, ...]:
    """The expressions of computed terms of index expressions, also inside a modulo."""
    found: list[Expr] = []
    for index in indices:
        for term, _ in index.terms:
            match term:
                case Computed(value, _):
                    found.append(value)
                case Wrapped(source, _):
                    found.extend(computed((source,)))
    return tuple(found)


def nodes(e: Expr) -> Iterator[Expr]:
    """Every distinct node below and including e."""
    seen: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(children(node))


def loads(e: Expr) -> list[Load]:
    return [n for n in nodes(e) if isinstance(n, Load)]


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
            case Position(index=single):
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
            case Likely(valid, fast, exact):
                return Likely(go(valid), go(fast), go(exact))
            case Load(buffer, indices) if computed(indices):
                return Load(buffer, tuple(map(inside, indices)))
            case Position(single, dtype) if computed((single,)):
                return Position(inside(single), dtype)
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
            case Position(index, dtype):
                return Position(index.substitute(at), dtype)
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
