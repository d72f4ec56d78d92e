"""Small functions that C kernels call: the operations of the loop IR that are not one C operator, because that operator has
undefined behaviour (overflowing sums, shifts too far, division by 0) or the operation needs a library. A file defines each
function once, if something uses it.
"""
from __future__ import annotations

from dataclasses import field

from ....runtime.records import dataclass
from ...loops.ir import Type
from ..llvm.expansions import ROUNDER
from ..llvm.llvm_text import KINDS
from .c_text import BITS, SCALARS, SHORT, WRAPPING, memory_type, vector, vector_definition

PAIRS = "defined(__ARM_FEATURE_SIMD32)"
"""True if a compiler has the instructions for pairs of 16 bits, by Arm's rules for C (ACLE)."""
SIGNS = {"add": "+", "sub": "-", "mul": "*"}


@dataclass(slots=True)
class Helpers:
    """The helpers that a file needs so far: vector types, and functions by name, each after the functions that it calls."""
    vectors: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)

    def vector(self, type: Type) -> str:
        self.vectors.setdefault(vector(type), vector_definition(type))
        return vector(type)

    def define(self, name: str, text: str) -> str:
        self.functions.setdefault(name, text)
        return name

    def function(self, name: str, returns: str, parameters: str, *body: str) -> str:
        lines = "\n".join(f"    {line}" for line in body)
        return self.define(name, f"static inline {returns} {name}({parameters}) {{\n{lines}\n}}")

    # ---- memory ------------------------------------------------------------------------------------------------------
    def get(self, dtype: str) -> str:
        """Return the function that loads an element of memory shared by several types."""
        t = memory_type(dtype)
        return self.function(f"get_{SHORT[dtype]}", t, "const void *memory, ptrdiff_t i", f"{t} x;",
                             f"COPY(&x, ALIGNED_AS((const unsigned char *)memory + i * (ptrdiff_t)sizeof x, {t}), sizeof x);",
                             "return x;")

    def put(self, dtype: str) -> str:
        t = memory_type(dtype)
        return self.function(f"put_{SHORT[dtype]}", "void", f"void *memory, ptrdiff_t i, {t} x",
                             f"COPY(ALIGNED_AS((unsigned char *)memory + i * (ptrdiff_t)sizeof x, {t}), &x, sizeof x);")

    def bits(self, source: str, result: str) -> str:
        """A value's bits as a value of another type of the same size."""
        return self.function(f"bits_{SHORT[source]}_{SHORT[result]}", SCALARS[result], f"{SCALARS[source]} x",
                             f"{SCALARS[result]} y;", "COPY(&y, &x, sizeof y);", "return y;")

    # ---- integers ----------------------------------------------------------------------------------------------------
    def wrapping(self, op: str, dtype: str) -> str:
        """Return the function of a wrapping sum, difference or product."""
        t, u = SCALARS[dtype], WRAPPING[BITS[dtype]]
        return self.function(f"{op}_{SHORT[dtype]}", t, f"{t} x, {t} y", f"return ({t})(({u})x {SIGNS[op]} ({u})y);")

    def absolute(self, dtype: str) -> str:
        """Return the function of the absolute value; the least integer stays as it is."""
        t, u = SCALARS[dtype], WRAPPING[BITS[dtype]]
        return self.function(f"abs_{SHORT[dtype]}", t, f"{t} x", f"return x < 0 ? ({t})(0u - ({u})x) : x;")

    def quotient(self, dtype: str) -> str:
        """Division towards 0; by 0, and of the least integer by -1, the result is x."""
        t = SCALARS[dtype]
        least = f" || (y == -1 && x == INT{BITS[dtype]}_MIN)" if KINDS[dtype] == "signed" else ""
        return self.function(f"div_{SHORT[dtype]}", t, f"{t} x, {t} y", f"return y == 0{least} ? x : ({t})(x / y);")

    def shift(self, op: str, dtype: str) -> str:
        """A shift; only the low bits of the amount count."""
        t, bits = SCALARS[dtype], BITS[dtype]
        by = f"((unsigned)y & {bits - 1}u)"
        return self.function(f"{op}_{SHORT[dtype]}", t, f"{t} x, {t} y", f"return {shifted(op, dtype, 'x', by)};")

    def leading_zeros(self, dtype: str) -> str:
        """Return the function that counts leading zeros; for 0, all bits."""
        t, bits = SCALARS[dtype], BITS[dtype]
        u = f"uint{bits}_t"
        halves, step = [], bits // 2
        while step:
            halves.append(f"if ((rest >> {bits - step}) == 0) {{ zeros += {step}; rest = ({u})(rest << {step}); }}")
            step //= 2
        return self.function(f"clz_{SHORT[dtype]}", t, f"{t} x", f"{u} rest = ({u})x;", "int zeros = 0;",
                             f"if (rest == 0) return {bits};", *halves, f"return ({t})zeros;")

    def multiply_high(self, nudged: bool) -> str:
        """Bits 32 to 63 of x * y + z; if `nudged`, of the sum minus 2^31 where x is negative."""
        nudge = ["if (x < 0) sum -= UINT64_C(0x80000000);"] * nudged
        return self.function("multiply_high" + "_nudged" * nudged, "int32_t", "int32_t x, int32_t y, int64_t z",
                             "uint64_t sum = (uint64_t)((int64_t)x * y) + (uint64_t)z;", *nudge,
                             "return (int32_t)(uint32_t)(sum >> 32);")

    def rounded_product(self) -> str:
        """x * y / 2**31, rounded half up."""
        return self.function("rounded_product", "int32_t", "int32_t x, int32_t y",
                             "return (int32_t)(((int64_t)x * y + (INT64_C(1) << 30)) >> 31);")

    def rounded_shift(self) -> str:
        """x * 2**n, rounded half up."""
        return self.function("rounded_shift", "int32_t", "int32_t x, int32_t n",
                             "return n == 0 ? x : (int32_t)(((int64_t)x + (INT64_C(1) << (-n - 1))) >> -n);")

    # ---- the smaller and the larger ----------------------------------------------------------------------------------
    def extreme(self, op: str, dtype: str) -> str:
        """The minimum or maximum; for floats with a NaN operand, the result that `PRIMITIVES` defines."""
        kind, t = KINDS[dtype], SCALARS[dtype]
        which = "min" if op in ("min", "minimum", "minnum") else "max"
        better = f"y {'<' if which == 'min' else '>'} x"
        if kind == "bool":
            return self.function(f"{which}_bool", t, f"{t} x, {t} y", f"return x {'&&' if which == 'min' else '||'} y;")
        if kind != "float":
            return self.function(f"{which}_{SHORT[dtype]}", t, f"{t} x, {t} y", f"return {better} ? y : x;")
        too = {"minimum": " || y != y", "maximum": " || y != y", "minnum": " || x != x", "maxnum": " || x != x"}.get(op, "")
        return self.function(f"{op}_{SHORT[dtype]}", t, f"{t} x, {t} y", f"return {better}{too} ? y : x;")

    # ---- floats ------------------------------------------------------------------------------------------------------
    def absolute_float(self, dtype: str) -> str:
        t, whole, mask = SCALARS[dtype], *whole_of(dtype)
        return self.function(f"abs_{SHORT[dtype]}", t, f"{t} x",
                             f"return {self.bits(whole, dtype)}({self.bits(dtype, whole)}(x) & {mask});")

    def rounded(self, op: str, dtype: str) -> str:
        """rint, floor or ceil: adding and subtracting 2^23 (2^52) rounds to an integer, with ties to even."""
        t, whole, mask = SCALARS[dtype], *whole_of(dtype)
        large = "8388608.0f" if dtype == "float32" else "4503599627370496.0"
        one = "1.0f" if dtype == "float32" else "1.0"
        of, to, size = self.bits(dtype, whole), self.bits(whole, dtype), self.absolute_float(dtype)
        test = {"floor": f"if (near > x) near -= {one};", "ceil": f"if (near < x) near += {one};"}.get(op)
        sign = f"near = {to}({of}(near) | ({of}(x) & ~{mask}));"  # -0.0 stays
        return self.function(
            f"{op}_{SHORT[dtype]}", t, f"{t} x", f"const {t} size = {size}(x);", f"{t} near;",
            f"if (!(size < {large})) return x;", f"near = (size + {large}) - {large};", sign, *([test, sign] if test else []),
            "return near;")

    def scaleb(self) -> str:
        """x * 2**n for whole numbers n, -252 <= n <= 252: two products, so that a result below the normal numbers is rounded
        once."""
        of, to = self.bits("float32", "uint32"), self.bits("uint32", "float32")
        return self.function(
            "scaleb_f32", "float", "float x, float n", f"const uint32_t low = {of}(n + {ROUNDER}f);",
            "const uint32_t whole = low << 23, half = (low << 22) & 0xff800000u;",
            f"return x * {to}(half + 0x3f800000u) * {to}(whole - half + 0x3f800000u);")

    # ---- vectors -----------------------------------------------------------------------------------------------------
    def lookup(self) -> str:
        """Entry x + 128 of a table that is stored in four quarters."""
        quarter = self.vector(Type("int8", 64))
        return self.function(
            "lookup_i8", "int8_t", f"int8_t x, const {quarter} *a, const {quarter} *b, const {quarter} *c, const {quarter} *d",
            "const int at = x + 128;", f"const {quarter} *const quarters[4] = {{a, b, c, d}};",
            "return quarters[at / 64]->at[at % 64];")

    # ---- pairs of 16 bits --------------------------------------------------------------------------------------------
    def of_pairs(self, name: str, parameters: str, instruction: str, otherwise: str) -> str:
        """Return a function that is one instruction of Arm's DSP extension."""
        self.define("arm_acle", f"#if {PAIRS}\n#include <arm_acle.h>\n#endif")
        return self.function(name, "int32_t", parameters, f"#if {PAIRS}", f"return {instruction};", "#else",
                             f"return {otherwise};", "#endif")

    def pair(self, dtype: str) -> str:
        """Bytes 0 and 2 of a word, each plus an offset, as two 16-bit numbers."""
        both, byte = "(uint32_t)(offset & 0xffff) * 0x10001u", SCALARS[dtype]
        wide = "(int32_t)__uxtab16({0}, word)" if dtype == "uint8" else "__sxtab16((int32_t)({0}), (int32_t)word)"
        first, second = (f"(uint32_t)({byte})({word} & 0xffu) + (uint32_t)offset" for word in ("word", "(word >> 16)"))
        return self.of_pairs(f"pair_{SHORT[dtype]}", "uint32_t word, int32_t offset", wide.format(both),
                             f"(int32_t)((({first}) & 0xffffu) | ({second}) << 16)")

    def dot_pair(self) -> str:
        """acc + the products of two pairs of 16-bit numbers."""
        low, high = (" * ".join(f"(int16_t)({part} & 0xffffu)" for part in parts) for parts in (
            ("(uint32_t)x", "(uint32_t)y"), ("((uint32_t)x >> 16)", "((uint32_t)y >> 16)")))
        return self.of_pairs("dot_pair", "int32_t total, int32_t x, int32_t y", "__smlad(x, y, total)",
                             f"(int32_t)((uint32_t)total + (uint32_t)({low}) + (uint32_t)({high}))")

    def saturated(self, source: str, result: str) -> str:
        """Saturation to an integer of half the size."""
        s, r, bits = SCALARS[source], SCALARS[result], BITS[result]
        return self.function(f"saturated_{SHORT[result]}", r, f"{s} x",
                             f"return ({r})(x < INT{bits}_MIN ? INT{bits}_MIN : x > INT{bits}_MAX ? INT{bits}_MAX : x);")


def whole_of(dtype: str) -> tuple[str, str]:
    """Return the integer type of a float's size, and the mask of all its bits but the sign."""
    return ("uint32", "0x7fffffffu") if dtype == "float32" else ("uint64", "UINT64_C(0x7fffffffffffffff)")


def shifted(op: str, dtype: str, x: str, by: str) -> str:
    """Return x shifted by less than its bit width."""
    t, bits = SCALARS[dtype], BITS[dtype]
    if op == "shl":
        return f"({t})(({WRAPPING[bits]}){x} << {by})"
    if op == "ashr" and KINDS[dtype] == "signed":
        return f"({t})({x} >> {by})"
    return f"({t})((uint{bits}_t){x} >> {by})"
