"""Operations of the loop IR -> LLVM instructions. Nothing here becomes a trap or a call of a library on any target, but for the
arithmetic of floats on one without a unit for them: where a processor has no instruction, the operation is written with those
that it has, here or in a function (`helper_functions`).

Reductions of floats combine halves (lane i with lane i + n/2) until one lane is left, on every target.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....runtime.records import dataclass
from ...loops.ir import Literal, Operand, Type
from ...machine_code.llvm_writer import Writer
from ...target.target import Target
from . import aarch64, arm, expansions, riscv, x86
from .conversions import convert
from .llvm_text import BITS, HALF, KINDS, SCALARS, Arithmetic, llvm_type, spelled, subvector, suffix

SAME = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
BINARY: dict[str, dict[str, str]] = {
    "float": {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "lt": "fcmp olt", "le": "fcmp ole",
              "eq": "fcmp oeq"},
    "signed": SAME | {"lt": "icmp slt", "le": "icmp sle", "eq": "icmp eq"},
    "unsigned": SAME | {"lt": "icmp ult", "le": "icmp ule", "eq": "icmp eq"},
    "bool": {"and": "and", "or": "or", "xor": "xor", "lt": "icmp ult", "le": "icmp ule", "eq": "icmp eq"},
    "half": {},
}
SMALLER = frozenset({"min", "minimum", "minnum"})
EXTREMES = SMALLER | {"max", "maximum", "maxnum"}
HALF_ARITHMETIC = EXTREMES | {"add", "sub", "mul", "div", "sqrt", "abs"}
"""Operations on float16."""
SHIFTS = {"shl": "shl", "lshr": "lshr", "ashr": "ashr"}
REDUCE_INTEGERS = {"add": "add", "mul": "mul", "and": "and", "or": "or"}
OwnOperation = Callable[[Writer, Target, Type, Sequence[str]], str | None]
OWN_OPERATIONS: Mapping[str, Mapping[str, OwnOperation]] = {
    "x86": x86.OPERATIONS, "aarch64": aarch64.OPERATIONS, "arm": arm.OPERATIONS, "riscv": riscv.OPERATIONS}
"""By architecture: operations for which some of its processors have instructions that LLVM has intrinsics of its own for."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Writes operations with the instructions of one target."""
    writer: Writer
    target: Target

    def op(self, name: str, result: Type, args: tuple[Operand, ...], values: list[str]) -> str:
        """The value of name(args); `values` are LLVM's names of the args."""
        type = args[-1].type
        if type.dtype == "float16" and name in HALF_ARITHMETIC:
            return self.of_halves(name, result, args, values)
        instruction = BINARY[KINDS[type.dtype]].get(name)
        if instruction is not None and name not in OTHERS:
            t = llvm_type(type)
            return self.writer.put(f"{instruction} {t} {values[0]}, {values[1]}")
        if name.startswith("reduce_"):
            return self.reduction(name[len("reduce_"):], type, values[0])
        return OTHERS[name](self, result, args, values)

    def of_halves(self, name: str, result: Type, args: tuple[Operand, ...], values: list[str]) -> str:
        """Arithmetic of float16: by instructions, or in float32, which has the same bits once it is rounded."""
        a, inside = self.over(result), Type(HALF if self.target.computes_float16 else "float32", result.lanes)
        if inside.dtype == HALF:
            given = [a.bits("i16", v, HALF) for v in values]
        else:
            given = [convert(a, self.target, v, "float16", "float32") for v in values]
        made = self.op(name, inside, tuple(Literal(1, inside) for _ in args), given)
        return a.bits(HALF, made, "i16") if inside.dtype == HALF else convert(a, self.target, made, "float32", "float16")

    def own(self, name: str, result: Type, values: list[str]) -> str | None:
        """The operation as an instruction of the target's own; None where it has none."""
        written = OWN_OPERATIONS.get(self.target.architecture, {}).get(name)
        return written(self.writer, self.target, result, values) if written else None

    def over(self, type: Type) -> Arithmetic:
        return Arithmetic(self.writer, type.lanes)

    # ---- element by element ------------------------------------------------------------------------------------------
    def extreme(self, name: str, type: Type, x: str, y: str) -> str:
        """The minimum or maximum; if they are equal or either is NaN, the result that PRIMITIVES defines, else x."""
        kind, scalar, a = KINDS[type.dtype], SCALARS[type.dtype], self.over(type)
        if kind == "bool":
            return a.op("and" if name in SMALLER else "or", scalar, x, y)
        which = "min" if name in SMALLER else "max"
        if kind != "float":
            return a.call(f"{'s' if kind == 'signed' else 'u'}{which}", scalar, x, y)
        better = a.select(a.op("fcmp olt" if which == "min" else "fcmp ogt", scalar, y, x), scalar, y, x)
        match name:
            case "minimum" | "maximum":
                return a.select(a.op("fcmp uno", scalar, y, y), scalar, y, better)
            case "minnum" | "maxnum":
                return a.select(a.op("fcmp uno", scalar, x, x), scalar, y, better)
        return better

    def division(self, type: Type, x: str, y: str, divisor: Operand) -> str:
        """Integer division that does not trap: by 0, and of the least value by -1, x is the result."""
        kind, scalar, a = KINDS[type.dtype], SCALARS[type.dtype], self.over(type)
        if not (isinstance(divisor, Literal) and divisor.value not in (0, -1)):
            unsafe = a.op("icmp eq", scalar, y, 0)
            if kind == "signed":
                least = a.op("icmp eq", scalar, x, -1 << (BITS[scalar] - 1))
                unsafe = a.op("or", "i1", unsafe, a.op("and", "i1", least, a.op("icmp eq", scalar, y, -1)))
            y = a.select(unsafe, scalar, 1, y)
        return a.op("sdiv" if kind == "signed" else "udiv", scalar, x, y)

    def shift(self, name: str, type: Type, x: str, y: str, amount: Operand) -> str:
        """A shift by as many bits as there are, or more, gives some value."""
        scalar, a = SCALARS[type.dtype], self.over(type)
        if name == "ashr" and KINDS[type.dtype] == "unsigned":
            name = "lshr"
        shifted = a.op(name, scalar, x, y)
        return shifted if isinstance(amount, Literal) else a.freeze(scalar, shifted)

    def fused(self, type: Type, values: list[str]) -> str:
        """x * y + z, rounded once where the target can do that, else twice."""
        scalar, a = SCALARS[type.dtype], self.over(type)
        if KINDS[type.dtype] == "float" and type.dtype in self.target.fused_floats:
            return a.call("fma", scalar, *values)
        add, multiply = ("fadd", "fmul") if KINDS[type.dtype] == "float" else ("add", "mul")
        return a.op(add, scalar, a.op(multiply, scalar, values[0], values[1]), values[2])

    def rounded(self, name: str, type: Type, x: str) -> str:
        """rint, floor or ceil. Adding and taking away 2^23 (2^52) rounds to an integer, to even if two are as near."""
        scalar, a = SCALARS[type.dtype], self.over(type)
        if self.target.rounds_floats:
            return a.call(name, scalar, x)
        bits = f"i{BITS[scalar]}"
        code, top = a.bits(scalar, x, bits), 1 << (BITS[scalar] - 1)
        sign, large = a.op("and", bits, code, top), 2.0 ** (23 if scalar == "float" else 52)
        size = a.bits(bits, a.op("and", bits, code, top - 1), scalar)
        near = a.op("fsub", scalar, a.op("fadd", scalar, size, large), large)
        near = a.bits(bits, a.op("or", bits, a.bits(scalar, near, bits), sign), scalar)
        if name != "rint":
            test, step = ("fcmp ogt", -1.0) if name == "floor" else ("fcmp olt", 1.0)
            moved = a.op("fadd", scalar, near, step)
            near = a.select(a.op(test, scalar, near, x), scalar, moved, near)
            near = a.bits(bits, a.op("or", bits, a.bits(scalar, near, bits), sign), scalar)  # -0.0 stays
        return a.select(a.op("fcmp olt", scalar, size, large), scalar, near, x)

    def absolute(self, type: Type, x: str) -> str:
        kind, scalar, a = KINDS[type.dtype], SCALARS[type.dtype], self.over(type)
        if kind == "float":
            return a.call("fabs", scalar, x)
        if kind != "signed":
            return x
        t = a.type(scalar)
        return self.writer.intrinsic(f"llvm.abs.{suffix(scalar, type.lanes)}", t, [(t, x), ("i1", "false")])

    def choice(self, args: tuple[Operand, ...], values: list[str]) -> str:
        t = llvm_type(args[1].type)
        return self.writer.put(f"select {llvm_type(args[0].type)} {values[0]}, {t} {values[1]}, {t} {values[2]}")

    # ---- vectors -----------------------------------------------------------------------------------------------------
    def splat(self, result: Type, type: Type, x: str) -> str:
        if result.lanes == type.lanes:
            return x
        wide = llvm_type(result)
        one = self.writer.put(f"insertelement {wide} poison, {llvm_type(type)} {x}, i32 0")
        return self.writer.put(f"shufflevector {wide} {one}, {wide} poison, <{result.lanes} x i32> zeroinitializer")

    def lanes(self, result: Type, type: Type, x: str) -> str:
        if result.lanes == 1:
            return x
        scalar = SCALARS[result.dtype]
        steps = ", ".join(f"{scalar} {i}" for i in range(result.lanes))
        return self.writer.put(f"add {llvm_type(result)} {self.splat(result, type, x)}, <{steps}>")

    def bits(self, result: Type, type: Type, x: str) -> str:
        source, target = llvm_type(type), llvm_type(result)
        return x if source == target else self.writer.put(f"bitcast {source} {x} to {target}")

    def mask_bits(self, type: Type, x: str) -> tuple[str, str]:
        """A vector of bool as an integer of as many bits."""
        whole = f"i{type.lanes}"
        return whole, x if type.lanes == 1 else self.writer.put(f"bitcast {llvm_type(type)} {x} to {whole}")

    def any_false(self, type: Type, x: str) -> str:
        whole, bits = self.mask_bits(type, x)
        return self.writer.put(f"icmp ne {whole} {bits}, -1")

    def dot4(self, name: str, result: Type, args: tuple[Operand, ...], values: list[str]) -> str:
        """acc + four products of unsigned, or of signed, bytes and signed ones in each lane."""
        byte = spelled("i8", 4 * result.lanes)
        operands = [values[0], *(self.bits_to(byte, a.type, v) for a, v in zip(args[1:], values[1:]))]
        return self.own(name, result, operands) or expansions.dot4(
            self.writer, result, operands, "zext" if name == "dot4" else "sext")

    def pairs(self, result: Type, args: tuple[Operand, ...], values: list[str]) -> str:
        """Four bytes, to which an offset is added, as two pairs of numbers of 16 bits."""
        dtype = args[0].type.dtype
        return self.own(f"pairs {dtype}", result, values) or expansions.pairs(
            self.writer, values[0], self.splat(Type("int32", 4), args[1].type, values[1]),
            "zext" if dtype == "uint8" else "sext")

    def bits_to(self, t: str, type: Type, x: str) -> str:
        source = llvm_type(type)
        return x if source == t else self.writer.put(f"bitcast {source} {x} to {t}")

    # ---- reductions --------------------------------------------------------------------------------------------------
    def reduction(self, name: str, type: Type, x: str) -> str:
        """All lanes combined by `name`, as a scalar."""
        kind, scalar = KINDS[type.dtype], SCALARS[type.dtype]
        if type.lanes == 1:
            return x
        if kind == "bool":
            whole, bits = self.mask_bits(type, x)
            every = name == "and" or name in SMALLER
            return self.writer.put(f"icmp {'eq' if every else 'ne'} {whole} {bits}, {-1 if every else 0}")
        if kind != "float":
            extreme = f"{'s' if kind == 'signed' else 'u'}{'min' if name in SMALLER else 'max'}"
            how = REDUCE_INTEGERS.get(name, extreme)
            return self.writer.intrinsic(f"llvm.vector.reduce.{how}.{suffix(scalar, type.lanes)}", scalar,
                                    [(llvm_type(type), x)])
        return self.by_halves(name, type, x)

    def by_halves(self, name: str, type: Type, x: str) -> str:
        """Lane i with lane i + n/2, then the half; an odd number of lanes one after the other."""
        scalar = SCALARS[type.dtype]
        while type.lanes > 1 and type.lanes % 2 == 0:
            half = type.lanes // 2
            low, high = (subvector(self.writer, scalar, type.lanes, x, first, half) for first in (0, half))
            type = Type(type.dtype, half)
            x = self.combined(name, type, low, high)
        one = Type(type.dtype)
        if type.lanes == 1:
            return x
        total = subvector(self.writer, scalar, type.lanes, x, 0, 1)
        for i in range(1, type.lanes):
            total = self.combined(name, one, total, subvector(self.writer, scalar, type.lanes, x, i, 1))
        return total

    def combined(self, name: str, type: Type, x: str, y: str) -> str:
        if name in EXTREMES:
            return self.extreme(name, type, x, y)
        return self.over(type).op(BINARY["float"][name], SCALARS[type.dtype], x, y)


Handler = Callable[[Instructions, Type, tuple[Operand, ...], list[str]], str]


def high_product(nudged: bool) -> Handler:
    return lambda i, result, args, v: i.own("multiply_high" + "_nudged" * nudged, result, v) or expansions.multiply_high(
        i.writer, i.target, result, v, nudged)


def extreme(name: str) -> Handler:
    return lambda i, result, args, v: i.extreme(name, result, v[0], v[1])


def dot4(name: str) -> Handler:
    return lambda i, result, args, v: i.dot4(name, result, args, v)


def shift(name: str) -> Handler:
    return lambda i, result, args, v: i.shift(name, result, v[0], v[1], args[1])


def rounded(name: str) -> Handler:
    return lambda i, result, args, v: i.rounded(name, result, v[0])


def quotient(i: Instructions, result: Type, args: tuple[Operand, ...], v: list[str]) -> str:
    if KINDS[result.dtype] == "float":
        return i.over(result).op("fdiv", SCALARS[result.dtype], v[0], v[1])
    return i.division(result, v[0], v[1], args[1])


OTHERS: dict[str, Handler] = {
    **{name: extreme(name) for name in EXTREMES}, **{name: shift(name) for name in SHIFTS},
    **{name: rounded(name) for name in ("rint", "floor", "ceil")},
    "div": quotient,
    "select": lambda i, result, args, v: i.choice(args, v),
    "fma": lambda i, result, args, v: i.fused(result, v),
    "lookup": lambda i, result, args, v: i.own("lookup", result, v) or expansions.lookup(i.writer, result, v),
    "scaleb": lambda i, result, args, v: i.own("scaleb", result, v) or expansions.scaleb(i.writer, result, v),
    "sqrt": lambda i, result, args, v: i.over(result).call("sqrt", SCALARS[result.dtype], v[0]),
    "abs": lambda i, result, args, v: i.absolute(result, v[0]),
    "clz": lambda i, result, args, v: i.over(result).leading_zeros(SCALARS[result.dtype], v[0]),
    "splat": lambda i, result, args, v: i.splat(result, args[0].type, v[0]),
    "lanes": lambda i, result, args, v: i.lanes(result, args[0].type, v[0]),
    "bits": lambda i, result, args, v: i.bits(result, args[0].type, v[0]),
    "cast": lambda i, result, args, v: convert(i.over(result), i.target, v[0], args[0].type.dtype, result.dtype),
    "any_false": lambda i, result, args, v: i.any_false(args[0].type, v[0]),
    **{name: dot4(name) for name in ("dot4", "dot4_signed")},
    "dot2": lambda i, result, args, v: i.own("dot2", result, v) or expansions.dot2(i.writer, result, v),
    "pairs": lambda i, result, args, v: i.pairs(result, args, v),
    "dot_pairs": lambda i, result, args, v: i.own(f"dot_pairs {args[1].type.lanes}", result, v) or expansions.dot_pairs(
        i.writer, args[1].type.lanes, v),
    "dot8": lambda i, result, args, v: i.own("dot8", result, v) or expansions.dot8(i.writer, v),
    "dot": lambda i, result, args, v: i.own(f"dot {args[1].type.lanes}", result, v) or expansions.dot(
        i.writer, args[1].type.lanes, v),
    "pack": lambda i, result, args, v: i.own("pack", result, v) or expansions.pack(i.writer, result, v),
    "rounded_product": lambda i, result, args, v: i.own("rounded_product", result, v) or expansions.rounded_product(
        i.writer, result, v),
    "rounded_shift": lambda i, result, args, v: i.own("rounded_shift", result, v) or expansions.rounded_shift(
        i.writer, result, v),
    "multiply_high": high_product(False), "multiply_high_nudged": high_product(True),
}
