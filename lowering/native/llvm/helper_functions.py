"""Functions in place of instructions that a small processor lacks and for which LLVM would call its compiler's library: 64-bit
arithmetic and integer division, and, on a processor without a float unit, float comparisons and square roots. They are in the
module that uses them. Sums, products, quotients and conversions of floats stay the library's, as the header says.

`writer_for` returns the writer that replaces a missing instruction by a call, so that the emitter need not know of it.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import field

from ....runtime.records import dataclass
from ...machine_code.llvm_writer import Function, Value, Writer
from ...target.target import Target

BINARY = re.compile(r"(mul|shl|lshr|ashr|udiv|sdiv|fcmp \w+) (<(\d+) x )?(i8|i16|i32|i64|float|double)>? (.*), (.*)")
UNARY = re.compile(r"call (\S+|<.*?>) @llvm\.(ctlz|sqrt)\.(?:v(\d+))?([if]\d+)\((?:<.*?>|\S+) ([^,]*)(?:, i1 \w+)?\)")
SCALARS = {"f32": "float", "f64": "double", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64"}
WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}
MANTISSAS = {32: 23, 64: 52}
"""Stored mantissa bits of a float, by its size in bits."""


@functools.lru_cache(maxsize=64)
def lacking(target: Target) -> frozenset[str]:
    """Return the operations without an instruction, such as "mul i64" and "fcmp float"."""
    found = set(target.lacking_integers)
    if not target.has_int64:
        found |= {"udiv i64", "sdiv i64"}
    for dtype, scalar in (("float32", "float"), ("float64", "double")):
        if dtype not in target.float_unit:
            found |= {f"fcmp {scalar}", f"sqrt {scalar}"}
    return frozenset(found)


def writer_for(target: Target, declared: dict[str, str]) -> Writer:
    """Return the writer of a function for a target."""
    missing = lacking(target)
    return HelpedWriter(declared, missing=missing) if missing else Writer(declared)


@dataclass(slots=True)
class HelpedWriter(Writer):
    """A writer that calls functions in place of `missing` instructions, lane by lane; `declared` collects the functions."""
    missing: frozenset[str] = field(default_factory=frozenset)

    def put(self, text: str) -> str:
        return self.helped(text) or Writer.put(self, text)

    def helped(self, text: str) -> str | None:
        """Return the result of the call that replaces an instruction; None if the instruction stays."""
        if (found := BINARY.match(text)) is not None:
            op, _, lanes, scalar, x, y = found.groups()
            if f"{op.split(' ')[0]} {scalar}" in self.missing and not is_simple(op, y):
                return self.each_lane(op, scalar, int(lanes or 1), (x, y))
        elif (found := UNARY.match(text)) is not None:
            _, op, lanes, kind, x = found.groups()
            if f"{op} {SCALARS[kind]}" in self.missing:
                return self.each_lane(op, SCALARS[kind], int(lanes or 1), (x,))
        return None

    def each_lane(self, op: str, scalar: str, lanes: int, operands: tuple[str, ...]) -> str:
        result = "i1" if op.startswith("fcmp") else scalar
        if lanes == 1:
            return self.call_helper(op, scalar, result, operands)
        total, t = "poison", f"<{lanes} x {scalar}>"
        for i in range(lanes):
            values = tuple(Writer.put(self, f"extractelement {t} {x}, i32 {i}") for x in operands)
            value = self.call_helper(op, scalar, result, values)
            total = Writer.put(self, f"insertelement <{lanes} x {result}> {total}, {result} {value}, i32 {i}")
        return total

    def call_helper(self, op: str, scalar: str, result: str, operands: tuple[str, ...]) -> str:
        name = f"tosaic.{op.replace('fcmp ', '')}{'f' * (scalar in ('float', 'double'))}{WIDTHS[scalar]}"
        if name not in self.declared:
            self.declared[name] = ""  # prevents a second definition meanwhile
            self.declared[name] = helper(name, op, scalar, result, self.declared, self.missing)
        given = ", ".join(f"{scalar} {x}" for x in operands)
        return Writer.put(self, f"call {result} @{name}({given})")


def is_simple(op: str, y: str) -> bool:
    """True if the second operand is a number for which the instruction is a few others: a shift."""
    number = re.fullmatch(r"(?:splat \(i\d+ )?(\d+)\)?", y)
    return number is not None and (op in ("shl", "lshr", "ashr") or (op == "mul" and int(number[1]).bit_count() <= 1))


class HelperFunction(Function, HelpedWriter):
    """A helper function, which may call others. Its parameters are `x` and, if the instruction takes two, `y`."""

    def __init__(self, name: str, result: str, params: dict[str, str], declared: dict[str, str],
                 missing: frozenset[str]) -> None:
        Function.__init__(self, name, result, params, declared, attributes=" noinline #0")
        self.missing = missing

    def bits(self, x: Value) -> Value:
        return self.cast("bitcast", x, f"i{WIDTHS[x.type]}")

    def halves(self, x: Value) -> tuple[Value, Value]:
        """Return the low and the high half of an i64."""
        return self.cast("trunc", x, "i32"), self.cast("trunc", self.op("lshr", x, 32), "i32")

    def joined(self, low: Value, high: Value) -> Value:
        return self.op("or", self.op("shl", self.cast("zext", high, "i64"), 32), self.cast("zext", low, "i64"))


def helper(name: str, op: str, scalar: str, result: str, declared: dict[str, str], missing: frozenset[str]) -> str:
    """Return the definition of a helper."""
    params = {"x": scalar} | ({} if op in ("ctlz", "sqrt") else {"y": scalar})
    f = HelperFunction(name, result, params, declared, missing)
    if op.startswith("fcmp "):
        comparison(f, op.removeprefix("fcmp "))
    else:
        BODIES[op](f)
    return "\n".join(f.definition())


# ---- 64-bit integers on processors that multiply and shift 32 bits ---------------------------------------------------
def product(f: HelperFunction) -> None:
    """Multiply by products of 16 bits."""
    (x, x_high), (y, y_high) = map(f.halves, f.params)
    (a, b), (c, d) = ((f.op("and", v, 0xFFFF), f.op("lshr", v, 16)) for v in (x, y))
    low, middle, other, high = (f.op("mul", p, q) for p, q in ((a, c), (a, d), (b, c), (b, d)))
    carried = f.op("add", f.op("lshr", low, 16), f.op("add", f.op("and", middle, 0xFFFF), f.op("and", other, 0xFFFF)))
    for part in (f.op("lshr", middle, 16), f.op("lshr", other, 16), f.op("lshr", carried, 16), f.op("mul", x, y_high),
                 f.op("mul", x_high, y)):
        high = f.op("add", high, part)
    f.give(f.joined(f.op("or", f.op("shl", carried, 16), f.op("and", low, 0xFFFF)), high))


def left_shift(f: HelperFunction) -> None:
    low, high = f.halves(f.params[0])
    by, back, is_far = amounts(f)
    near = f.op("or", f.op("shl", high, by), f.op("lshr", f.op("lshr", low, 1), back))
    moved = f.op("shl", low, by)
    f.give(f.joined(f.select(is_far, 0, moved, "i32"), f.select(is_far, moved, near, "i32")))


def right_shift(f: HelperFunction, name: str) -> None:
    low, high = f.halves(f.params[0])
    by, back, is_far = amounts(f)
    near = f.op("or", f.op("lshr", low, by), f.op("shl", f.op("shl", high, 1), back))
    moved = f.op(name, high, by)
    rest = f.op("ashr", high, 31) if name == "ashr" else 0
    f.give(f.joined(f.select(is_far, moved, near, "i32"), f.select(is_far, rest, moved, "i32")))


def amounts(f: HelperFunction) -> tuple[Value, Value, Value]:
    """Return the shift of a half, the shift (less one bit) of the other half into it, and whether a whole half moves over."""
    amount = f.cast("trunc", f.params[1], "i32")
    by = f.op("and", amount, 31)
    return by, f.op("sub", 31, by), f.compare("ne", f.op("and", amount, 32), 0)


def leading_zeros(f: HelperFunction) -> None:
    """Count by halves: continue in the upper part if it is not 0."""
    x, width = f.params[0], WIDTHS[f.params[0].type]
    zeros, step = Value(x.type, f"{width}"), width // 2
    while step:
        upper = f.op("lshr", x, step)
        there = f.compare("ne", upper, 0)
        zeros, x = f.select(there, f.op("sub", zeros, step), zeros, x.type), f.select(there, upper, x, x.type)
        step //= 2
    f.give(f.op("sub", zeros, x))


# ---- division --------------------------------------------------------------------------------------------------------
def unsigned_division(f: HelperFunction) -> None:
    """Divide bit by bit; the divisor must not be 0."""
    (x, y), t = f.params, f.params[0].type
    top = WIDTHS[t] - 1
    bit, done = f.blocks("bit", "done")
    f.jump(bit(top + 1, x, 0, 0))
    left, number, rest, quotient = f.enter(bit, "i32", t, t, t)
    is_over, twice = f.compare("slt", rest, 0), f.op("shl", rest, 1)
    now = f.op("or", twice, f.op("lshr", number, top))
    fits = f.op("or", is_over, f.compare("uge", now, y))
    kept = f.select(fits, f.op("sub", now, y), now, t)
    longer = f.op("or", f.op("shl", quotient, 1), f.cast("zext", fits, t))
    following, moved = f.op("sub", left, 1), f.op("shl", number, 1)
    f.branch(f.compare("ne", following, 0), bit(following, moved, kept, longer), done)
    f.enter(done)
    f.give(longer)


def signed_division(f: HelperFunction) -> None:
    t = f.params[0].type
    negative = [f.compare("slt", p, 0) for p in f.params]
    sizes = [f.select(n, f.op("sub", 0, p), p, t) for n, p in zip(negative, f.params)]
    f.missing |= {f"udiv {t}"}
    size = f.op("udiv", *sizes)
    f.give(f.select(f.op("xor", *negative), f.op("sub", 0, size), size, t))


# ---- floats on processors without a unit for them --------------------------------------------------------------------
COMPARED = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}


def comparison(f: HelperFunction, predicate: str) -> None:
    """Compare by the bits: those of negative numbers are mirrored, so that all are ordered as integers are, and -0 equals 0.
    With NaN the result is that of an unordered predicate."""
    codes = [f.bits(p) for p in f.params]
    t, width = codes[0].type, WIDTHS[codes[0].type]
    infinity = ((1 << (width - 1 - MANTISSAS[width])) - 1) << MANTISSAS[width]
    unordered = f.either([f.compare("ugt", f.op("and", c, (1 << (width - 1)) - 1), infinity) for c in codes])
    if predicate == "uno":
        return f.give(unordered)
    least = Value(t, f"{-1 << (width - 1)}")
    keys = [f.select(f.compare("slt", c, 0), f.op("sub", least, c), c, t) for c in codes]
    holds = f.compare(COMPARED[predicate[1:]], keys[0], keys[1])
    if predicate[0] == "u":
        f.give(f.op("or", unordered, holds))
    else:
        f.give(f.op("and", f.op("xor", unordered, True), holds))


def square_root(f: HelperFunction) -> None:
    """Take the root of the mantissa bit by bit, with one extra bit for rounding: the root is never halfway between two
    floats."""
    x, code = f.params[0], f.bits(f.params[0])
    t, width = code.type, WIDTHS[code.type]
    mantissa = MANTISSAS[width]
    bias, one = (1 << (width - 2 - mantissa)) - 1, 1 << mantissa
    infinity = (2 * bias + 1) << mantissa
    special, normal, ready, bit, done = f.blocks("special", "normal", "ready", "bit", "done")
    is_plain = f.compare("ult", f.op("sub", code, 1), infinity - 1)  # neither 0, infinite, NaN nor negative
    f.branch(is_plain, normal, special)
    f.enter(special)
    is_kept = f.either([f.compare("eq", f.op("shl", code, 1), 0), f.compare("ugt", f.op("and", code, (1 << (width - 1)) - 1),
                                                                            infinity), f.compare("eq", code, infinity)])
    not_a_number = Value(t, f"{infinity | one >> 1}")
    f.give(f.cast("bitcast", f.select(is_kept, code, not_a_number, t), x.type))
    f.enter(normal)
    fraction, exponent = f.op("and", code, one - 1), f.op("lshr", code, mantissa)
    is_small = f.compare("eq", exponent, 0)
    zeros = Value(t, f.intrinsic(f"llvm.ctlz.{t}", t, [(t, fraction.name), ("i1", "false")]))
    by = f.select(is_small, f.op("sub", zeros, width - 1 - mantissa), 0, t)
    whole = f.select(is_small, f.op("shl", fraction, f.op("and", by, width - 1)), f.op("or", fraction, one), t)
    power = f.op("sub", f.select(is_small, f.op("sub", 1, by), exponent, t), bias)
    is_odd = f.op("and", power, 1)
    # two bits at a time come from the top, where the highest of a pair begins
    radicand = f.op("shl", f.op("shl", whole, width - 2 - mantissa), is_odd)
    f.jump(ready)
    f.enter(ready)
    f.jump(bit(mantissa + 2, radicand, 0, 0))
    left, digits, rest, root = f.enter(bit, "i32", t, t, t)
    now = f.op("or", f.op("shl", rest, 2), f.op("lshr", digits, width - 2))
    trial = f.op("or", f.op("shl", root, 2), 1)
    fits = f.compare("uge", now, trial)
    kept = f.select(fits, f.op("sub", now, trial), now, t)
    longer = f.op("or", f.op("shl", root, 1), f.cast("zext", fits, t))
    following, moved = f.op("sub", left, 1), f.op("shl", digits, 2)
    f.branch(f.compare("ne", following, 0), bit(following, moved, kept, longer), done)
    f.enter(done)
    rounded = f.op("sub", f.op("lshr", f.op("add", longer, 1), 1), one)
    scale = f.op("shl", f.op("add", f.op("ashr", power, 1), bias), mantissa)
    f.give(f.cast("bitcast", f.op("add", scale, rounded), x.type))


BODIES: dict[str, Callable[[HelperFunction], None]] = {
    "mul": product, "shl": left_shift, "lshr": lambda f: right_shift(f, "lshr"), "ashr": lambda f: right_shift(f, "ashr"),
    "ctlz": leading_zeros, "udiv": unsigned_division, "sdiv": signed_division, "sqrt": square_root}
