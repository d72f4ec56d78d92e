"""The operand and result types of each operation of the loop IR; `verify` checks every statement against them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Literal as OneOf

from ..graph.types import ITEM_SIZES
from .ir import Type

Family = OneOf["bool", "integer", "float", "half", "float16"]
HALVES = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                    "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"})
INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
FAMILIES: dict[str, Family] = {
    "bool": "bool", "float32": "float", "float64": "float", **dict.fromkeys(HALVES, "half"), "float16": "float16",
    **dict.fromkeys(INTEGERS, "integer"),
}
"""Family of each dtype of the loop IR."""

NUMBER, BITWISE = frozenset({"integer", "float"}), frozenset({"integer", "bool"})
ANY = NUMBER | BITWISE | {"half", "float16"}
ROUNDED = NUMBER | {"float16"}
"""Families of operations that also take float16: computed as if in float32, and rounded."""
ELEMENTWISE: dict[str, tuple[int, frozenset[str]]] = {
    **dict.fromkeys(("add", "sub", "mul", "div"), (2, ROUNDED)),
    **dict.fromkeys(("min", "max", "minimum", "maximum", "minnum", "maxnum"), (2, ROUNDED | {"bool"})),
    **dict.fromkeys(("and", "or", "xor"), (2, BITWISE)),
    **dict.fromkeys(("shl", "ashr", "lshr"), (2, frozenset({"integer"}))),
    "fma": (3, NUMBER), **dict.fromkeys(("rint", "floor", "ceil"), (1, frozenset({"float"}))),
    "sqrt": (1, frozenset({"float", "float16"})), "abs": (1, ROUNDED), "clz": (1, frozenset({"integer"})),
}
"""Operations whose operands and result have one type: number of operands, and families of that type."""

REDUCTIONS = {"add": NUMBER, "mul": NUMBER, **dict.fromkeys(("and", "or"), BITWISE),
              **dict.fromkeys(("min", "max", "minimum", "maximum", "minnum", "maxnum"), NUMBER | {"bool"})}


def mismatch(op: str, result: Type, args: tuple[Type, ...]) -> str | None:
    """Return what is wrong with the types of result = op(args); None if they are right."""
    for t in (result, *args):
        if t.dtype not in FAMILIES or t.lanes < 1:
            return f"{t} is no type of a value"
    if op in ELEMENTWISE:
        count, families = ELEMENTWISE[op]
        if len(args) != count or any(a != result for a in args):
            return f"{count} operands of the result's type are needed"
        return None if FAMILIES[result.dtype] in families else "it is not defined for this type"
    if op in OTHERS:
        count, rule = OTHERS[op]
        return rule(result, *args) if len(args) == count else f"{count} operands are needed"
    if op.startswith("reduce_") and op[7:] in REDUCTIONS:
        return reduction(REDUCTIONS[op[7:]], result, args)
    return "there is no such operation"


def reduction(families: frozenset[str], result: Type, args: tuple[Type, ...]) -> str | None:
    if len(args) != 1 or result != Type(args[0].dtype):
        return "a vector is needed, and its element is the result"
    return None if FAMILIES[result.dtype] in families else "it is not defined for this type"


def compare(result: Type, x: Type, y: Type) -> str | None:
    if x != y or result != Type("bool", x.lanes):
        return "two operands of one type are needed, and bool is the result"
    return "half floats are cast before they are compared" if x.dtype in HALVES else None


def select(result: Type, condition: Type, yes: Type, no: Type) -> str | None:
    if condition.dtype != "bool" or condition.lanes not in (1, result.lanes):
        return "the condition is one bool, or one for each lane"
    return None if yes == no == result else "both values have the result's type"


def splat(result: Type, x: Type) -> str | None:
    return None if x == Type(result.dtype) else "a scalar of the result's dtype is needed"


def lanes(result: Type, x: Type) -> str | None:
    return splat(result, x) if result.dtype in INTEGERS else "the result is a vector of integers"


def cast(result: Type, x: Type) -> str | None:
    return None if x.lanes == result.lanes else "the number of lanes stays"


def bits(result: Type, x: Type) -> str | None:
    if "bool" in (result.dtype, x.dtype):
        return "a bool has no bits in memory"
    same = ITEM_SIZES[x.dtype] * x.lanes == ITEM_SIZES[result.dtype] * result.lanes
    return None if same else "the number of bytes stays"


def any_false(result: Type, x: Type) -> str | None:
    right = x.dtype == "bool" and result == Type("bool")
    return None if right else "a vector of bool is needed, and bool is the result"


def dot4(result: Type, total: Type, x: Type, y: Type) -> str | None:
    if result != total or result.dtype != "int32":
        return "the first operand and the result are int32"
    four = 4 * result.lanes
    fits = all(ITEM_SIZES[t.dtype] * t.lanes == four and t.dtype in INTEGERS for t in (x, y))
    return None if fits else "four bytes for each lane are needed"


def dot2(result: Type, total: Type, x: Type, y: Type) -> str | None:
    right = result == total and result.dtype == "int32" and x == y == Type("int16", 2 * result.lanes)
    return None if right else "two int16 for each lane of int32 are needed"


def pairs(result: Type, x: Type, offset: Type) -> str | None:
    right = x in (Type("int8", 4), Type("uint8", 4)) and offset == Type("int32") and result == Type("int32", 2)
    return None if right else "four bytes and an int32 are needed, and two int32 are the result"


def dot_pairs(result: Type, total: Type, x: Type, y: Type) -> str | None:
    if result != total or result != Type("int32"):
        return "the first operand and the result are a scalar int32"
    return None if x == y and x.dtype == "int32" else "two int32 with as many lanes are needed"


def dot8(result: Type, total: Type, x: Type, y: Type) -> str | None:
    right = result == total == Type("int32", 4) and x == y == Type("int8", 16)
    return None if right else "four int32 and two vectors of sixteen int8 are needed"


def dot(result: Type, total: Type, x: Type, y: Type) -> str | None:
    if result != total or result != Type("int32"):
        return "the first operand and the result are a scalar int32"
    return None if x == y and x.dtype == "int8" else "two int8 with as many lanes are needed"


def pack(result: Type, x: Type, y: Type) -> str | None:
    half, group = {"int32": "int16", "int16": "int8"}.get(x.dtype), 16 // ITEM_SIZES[x.dtype]
    right = x == y and half and x.lanes % group == 0 and result == Type(half, 2 * x.lanes)
    return None if right else "two int32 or int16 in groups of 16 bytes are needed, and twice as many of half the size result"


def multiply_high(result: Type, x: Type, y: Type, z: Type) -> str | None:
    right = result == x == y and result.dtype == "int32" and z == Type("int64", result.lanes)
    return None if right else "two int32 and an int64 are needed, and int32 is the result"


def words(result: Type, x: Type, y: Type) -> str | None:
    return None if x == y == result and x.dtype == "int32" else "two int32 are needed, and int32 is the result"


def lookup(result: Type, x: Type, *quarters: Type) -> str | None:
    right = x == result and x.dtype == "int8" and all(t == Type("int8", 64) for t in quarters)
    return None if right else "int8 and a table of four times 64 int8 are needed, and int8 is the result"


def scaleb(result: Type, x: Type, n: Type) -> str | None:
    return None if x == n == result and result.dtype == "float32" else "two float32 are needed, and float32 is the result"


Rule = Callable[..., str | None]
OTHERS: dict[str, tuple[int, Rule]] = {
    **dict.fromkeys(("lt", "le", "eq"), (2, compare)), "select": (3, select), "splat": (1, splat), "lanes": (1, lanes),
    "cast": (1, cast), "bits": (1, bits), "any_false": (1, any_false), "pairs": (2, pairs), "dot_pairs": (3, dot_pairs),
    **dict.fromkeys(("dot4", "dot4_signed"), (3, dot4)), "dot2": (3, dot2), "dot": (3, dot), "dot8": (3, dot8),
    **dict.fromkeys(("rounded_product", "rounded_shift"), (2, words)),
    **dict.fromkeys(("multiply_high", "multiply_high_nudged"), (3, multiply_high)),
    "scaleb": (2, scaleb), "lookup": (5, lookup), "pack": (2, pack),
}
"""Operations of several types: number of operands, and the rule that finds a mismatch."""
