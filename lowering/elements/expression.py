"""Scalar expressions over symbolic indices: the value of one output element.

Nodes compare by identity, so a shared node is computed once. `PRIMITIVES` is the whole scalar language: NumPy gives each
primitive its meaning (`interpret`), the emitter gives it an instruction. A `dtype` is the name of a NumPy dtype; half
floats (float16, bfloat16, float8_*) are only loaded, stored and cast: arithmetic on them is written in float32.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ...runtime.records import dataclass
from ..graph.types import ITEM_SIZES, Array
from .affine import Affine, Axis, Range


def _fma(a: Array, b: Array, c: Array) -> Array:
    return (np.asarray(a, "f8") * b + c).astype(np.result_type(a, b, c))


def _clz(x: Array) -> Array:
    """Count leading zeros by halves of the rest, from the top: where a half is zero, add its bits."""
    rest, zeros = x.view(f"u{x.dtype.itemsize}"), np.zeros(x.shape, x.dtype)
    step = bits = x.dtype.itemsize * 8
    while step > 1:
        step //= 2
        empty = np.right_shift(rest, bits - step) == 0
        zeros, rest = zeros + empty * step, np.where(empty, np.left_shift(rest, step), rest)
    return np.asarray(zeros + (np.right_shift(rest, bits - 1) == 0), x.dtype)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    divisor = np.where(b == 0, 1, b)
    return np.asarray((a - np.fmod(a, divisor)) // divisor).astype(a.dtype)


def _scaleb(x: Array, n: Array) -> Array:
    return np.asarray(np.ldexp(x, np.nan_to_num(n).astype("i4")), x.dtype)


def _shift_right_logical(a: Array, b: Array) -> Array:
    unsigned = a.view(f"u{a.dtype.itemsize}")
    return np.right_shift(unsigned, b.astype(unsigned.dtype)).view(a.dtype)


def _multiply_high(x: Array, y: Array, z: Array) -> Array:
    return np.asarray((x.astype("i8") * y + z) >> 32).astype("i4")


def _multiply_high_nudged(x: Array, y: Array, z: Array) -> Array:
    return _multiply_high(x, y, z - np.where(x < 0, 1 << 31, 0))


def _rounded_product(x: Array, y: Array) -> Array:
    return np.asarray(x.astype("i8") * y + (1 << 30) >> 31).astype("i4")


def _rounded_shift(x: Array, n: Array) -> Array:
    return np.asarray((x.astype("i8") << 1 >> -n.astype("i8")) + 1 >> 1).astype("i4")


def _of_quiet(choose: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """Return `choose` on floats whose NaNs are made quiet: from a signalling NaN, C's fmax makes a NaN."""
    return lambda a, b: choose(a * a.dtype.type(1), b * b.dtype.type(1))


def _first(compare: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.where(compare(b, a), b, a)


PRIMITIVES: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "div": _divide,                                      # integers truncate; the divisor must not be 0
    "min": _first(np.less), "max": _first(np.greater),   # a NaN in the first operand is the result, in the second not
    "minimum": np.minimum, "maximum": np.maximum,        # a NaN anywhere is the result
    "minnum": _of_quiet(np.fmin), "maxnum": _of_quiet(np.fmax),  # a NaN only where both are
    "lt": np.less, "le": np.less_equal, "eq": np.equal,  # false where an operand is NaN
    "select": np.where, "fma": _fma, "rint": np.rint, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "abs": np.abs,
    "shl": np.left_shift, "ashr": np.right_shift, "lshr": _shift_right_logical,  # 0 <= shift < bits
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "clz": _clz,
    "scaleb": _scaleb,                                   # x * 2**n: n is whole, at most 252 in size; NaN only where x is
    "multiply_high": _multiply_high,                     # upper half of x * y + z: two int32 and an int64 make an int32
    "multiply_high_nudged": _multiply_high_nudged,       # the same, of 2^31 less where x is negative
    "rounded_product": _rounded_product,                 # x * y / 2**31 of int32, rounded half up; y is not negative
    "rounded_shift": _rounded_shift,                     # x * 2**n of int32, rounded half up; -31 <= n <= 0
}
COMPARISONS = frozenset({"lt", "le", "eq"})
IDENTITIES = {"add": 0, "mul": 1, "or": 0, "and": -1, "xor": 0}


class Expr:
    """A scalar expression; its operators build larger ones."""
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
    """Memory of one tensor, row-major. A constant carries its data; a variable's name is its symbol. If steps run as tasks
    at the same time, a buffer may hold `copies` copies, one after the other: each task sees its own copy as the whole."""
    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role = "temporary"
    data: Array | None = None
    copies: int = 1

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
class IndexValue(Expr):
    """The value of an index expression, as an integer."""
    index: Affine
    dtype: str = "int32"


@dataclass(frozen=True, slots=True, eq=False)
class Load(Expr):
    """buffer[index]; a single index for a buffer of another rank is flat (row-major). Always in range."""
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
        """Value of an empty reduction."""
        if self.primitive in IDENTITIES:
            return IDENTITIES[self.primitive] & 1 if self.dtype == "bool" else IDENTITIES[self.primitive]
        if self.primitive in ("minnum", "maxnum"):
            return float("nan")
        return extreme(self.dtype, "min" if self.primitive.startswith("max") else "max")


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def extreme(dtype: str, which: Literal["min", "max"]) -> float | int:
    """Return the least or greatest value of a dtype; infinities for floats."""
    if is_float(dtype):
        return float("-inf" if which == "min" else "inf")
    if dtype == "bool":
        return int(which == "max")
    info = np.iinfo(dtype)
    return int(info.min if which == "min" else info.max)


def literal(x: Expr | float | int, dtype: str) -> Expr:
    return x if isinstance(x, Expr) else Const(x, dtype)


def apply(primitive: str, *args: Expr | float | int) -> Expr:
    """Return a primitive of operands of one dtype (numbers take the dtype of the others); `select` has a bool first."""
    like = next(a for a in reversed(args) if isinstance(a, Expr)).dtype
    exprs = tuple(literal(a, like) for a in args)
    match primitive, exprs:
        case ("max", (x, Const(bound))) if bound == extreme(like, "min"):
            return x
        case ("min", (x, Const(bound))) if bound == extreme(like, "max"):
            return x
    return Apply(primitive, exprs, "bool" if primitive in COMPARISONS else exprs[-1].dtype)


def select(condition: Expr, yes: Expr | float, no: Expr | float) -> Expr:
    return apply("select", condition, yes, no)


def clamp(x: Expr, low: float | int, high: float | int) -> Expr:
    """Return min(max(x, low), high); a NaN stays."""
    return apply("min", apply("max", x, low), high)


def cast(x: Expr, dtype: str, bits: bool = False) -> Expr:
    if x.dtype == dtype:
        return x
    if isinstance(x, Const) and not bits and not is_float(x.dtype) and not is_float(dtype) and dtype != "bool":
        return Const(int(np.asarray(int(x.value)).astype(dtype)), dtype)
    if isinstance(x, Const) and bits and "int" in x.dtype and "int" in dtype:
        return Const(int(np.asarray(x.value, x.dtype).view(dtype)), dtype)
    return Cast(x, dtype, bits)


def guard(where: Sequence[Range], inside: Expr, outside: Expr | float | int) -> Expr:
    """Return a Guard without the conditions that always hold, or `outside` alone if one never holds."""
    if any(r.known is False for r in where):
        return literal(outside, inside.dtype)
    needed = tuple(r for r in where if r.known is not True)
    return Guard(needed, inside, literal(outside, inside.dtype)) if needed else inside


def reduce(primitive: str, axes: tuple[Axis, ...], body: Expr) -> Expr:
    """Return a Reduce, with guards lifted out of the body where a guarded element contributes nothing. A reduction of the
    same kind in the body is merged into it, unless that one multiplies: contractions have schedules of their own."""
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
    if isinstance(lifted, Reduce) and lifted.primitive == primitive and not multiplies(lifted.body):
        return Reduce(primitive, axes + lifted.axes, lifted.body, (*where, *lifted.where))
    return Reduce(primitive, axes, lifted, tuple(where))


def multiplies(e: Expr) -> bool:
    """True if an element is a product of two factors that load different elements, perhaps converted."""
    from .traverse import loads
    while isinstance(e, Cast):
        e = e.arg
    if not isinstance(e, Apply) or e.primitive != "mul":
        return False
    one, other = ({(load.buffer, load.index) for load in loads(factor)} for factor in e.args)
    return bool(one and other and not one & other)
