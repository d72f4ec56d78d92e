"""Operations of the loop IR as expressions of C: of scalars, and of one lane of vectors. What takes more than an operator is a
function of `helpers`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ....runtime.records import dataclass
from ...loops.ir import Literal, Operand, Type
from ...loops.ranges import LIMITS, Interval
from ..llvm.instructions import EXTREMES, HALF_ARITHMETIC, SHIFTS
from ..llvm.llvm_text import KINDS
from .c_text import BITS, SCALARS
from .conversions import convert
from .helpers import SIGNS, Helpers, shifted

COMPARED = {"lt": "<", "le": "<=", "eq": "=="}
BITWISE = {"and": "&", "or": "|", "xor": "^"}


@dataclass(frozen=True, slots=True)
class Operations:
    """The writer of operations with the functions that a file has; `span` returns the range of an operand, `has_fma` says
    whether products and sums are fused."""
    helpers: Helpers
    span: Callable[[Operand], Interval]
    has_fma: bool = False

    def expression(self, op: str, result: Type, args: Sequence[Operand], texts: Sequence[str]) -> str:
        """Return op(args) for one lane; `texts` are the operands in C, which the expression may contain several times."""
        dtype = args[-1].type.dtype
        if dtype == "float16" and op in HALF_ARITHMETIC:  # rounded twice, which has the same bits
            single = Type("float32")
            made = self.expression(op, single, [Literal(1, single)] * len(args), [
                convert(self.helpers, x, dtype, "float32") for x in texts])
            return convert(self.helpers, made, "float32", dtype)
        match op:
            case "add" | "sub" | "mul" | "div" if KINDS[dtype] == "float":
                sign = {**SIGNS, "div": "/"}[op]
                return f"{texts[0]} {sign} {texts[1]}"
            case "add" | "sub" | "mul":
                return self.arithmetic(op, dtype, args, texts)
            case "lt" | "le" | "eq":
                return f"{texts[0]} {COMPARED[op]} {texts[1]}"
            case "and" | "or" | "xor":
                return self.bitwise(op, dtype, texts)
            case "div":
                return self.quotient(dtype, args, texts)
            case "fma":
                return self.fused(dtype, texts)
            case "select":
                return f"{texts[0]} ? {texts[1]} : {texts[2]}"
            case "cast":
                return convert(self.helpers, texts[0], dtype, result.dtype)
            case "bits":
                return texts[0] if dtype == result.dtype else f"{self.helpers.bits(dtype, result.dtype)}({texts[0]})"
            case "splat":
                return texts[0]
        if op in EXTREMES:
            return f"{self.helpers.extreme(op, dtype)}({', '.join(texts)})"
        if op in SHIFTS:
            return self.shift(op, dtype, args[1], texts)
        return f"{self.function(op, dtype)}({', '.join(texts)})"

    def function(self, op: str, dtype: str) -> str:
        """The function that computes an operation."""
        h, is_float = self.helpers, KINDS[dtype] == "float"
        match op:
            case "abs" if KINDS[dtype] == "unsigned":
                return ""
            case "abs":
                return h.absolute_float(dtype) if is_float else h.absolute(dtype)
            case "rint" | "floor" | "ceil":
                return h.rounded(op, dtype)
            case "sqrt":
                return "SQRT_F32" if dtype == "float32" else "SQRT_F64"
            case "clz":
                return h.leading_zeros(dtype)
            case "multiply_high" | "multiply_high_nudged":
                return h.multiply_high(op.endswith("nudged"))
            case "rounded_product":
                return h.rounded_product()
            case "rounded_shift":
                return h.rounded_shift()
            case "scaleb":
                return h.scaleb()
        raise AssertionError(op)

    # ---- integers ----------------------------------------------------------------------------------------------------
    def arithmetic(self, op: str, dtype: str, args: Sequence[Operand], texts: Sequence[str]) -> str:
        """A sum, difference or product: an operator of C where it is known not to overflow."""
        if not self.wraps(op, dtype, args):
            return f"{texts[0]} {SIGNS[op]} {texts[1]}"
        return f"{self.helpers.wrapping(op, dtype)}({texts[0]}, {texts[1]})"

    def wraps(self, op: str, dtype: str, args: Sequence[Operand]) -> bool:
        """True if integers are added, subtracted or multiplied by way of the type without a sign, because they may overflow."""
        if op == "fma":
            return True
        if op not in SIGNS:
            return False
        (low, high), (least, most) = map(self.span, args)
        found = {"add": (low + least, high + most), "sub": (low - most, high - least),
                 "mul": extent([x * y for x in (low, high) for y in (least, most)])}[op]
        return not within(found, dtype)

    def bitwise(self, op: str, dtype: str, texts: Sequence[str]) -> str:
        if KINDS[dtype] == "bool":
            return f"{texts[0]} {({'and': '&&', 'or': '||', 'xor': '!='})[op]} {texts[1]}"
        return f"({SCALARS[dtype]})({texts[0]} {BITWISE[op]} {texts[1]})"

    def quotient(self, dtype: str, args: Sequence[Operand], texts: Sequence[str]) -> str:
        (low, high), (least, _) = self.span(args[1]), self.span(args[0])
        safe = low > 0 or high < -1 or (high < 0 and least > LIMITS[dtype][0])
        return f"{texts[0]} / {texts[1]}" if safe else f"{self.helpers.quotient(dtype)}({texts[0]}, {texts[1]})"

    def shift(self, op: str, dtype: str, amount: Operand, texts: Sequence[str]) -> str:
        if isinstance(amount, Literal) and 0 <= amount.value < BITS[dtype]:
            return shifted(op, dtype, texts[0], str(int(amount.value)))
        return f"{self.helpers.shift(op, dtype)}({texts[0]}, {texts[1]})"

    # ---- sums of products --------------------------------------------------------------------------------------------
    def fused(self, dtype: str, texts: Sequence[str]) -> str:
        """x * y + z, rounded once where the target can do that, else twice."""
        x, y, z = texts
        if KINDS[dtype] != "float":
            add, multiply = (self.helpers.wrapping(op, dtype) for op in ("add", "mul"))
            return f"{add}({multiply}({x}, {y}), {z})"
        if not self.has_fma:
            return f"{x} * {y} + {z}"
        return f"FMA_F{dtype[5:]}({x}, {y}, {z})"


def within(found: Interval, dtype: str) -> bool:
    """True if an integer type holds all of these."""
    return LIMITS[dtype][0] <= found[0] and found[1] <= LIMITS[dtype][1]


def extent(values: Sequence[int]) -> Interval:
    return min(values), max(values)
