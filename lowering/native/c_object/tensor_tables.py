"""The parts of a header on tensors besides macros: tables of descriptors, and functions that convert floats to stored integers
and back. Each function is local to the program that includes the header, with its data inside the function: an unused function
takes no memory and gives no warning. The arithmetic is that of `Quantization` in `runtime/quantization.py`, without the
mathematics library.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ....runtime.arguments import MLIR_NAMES
from ....runtime.quantization import Quantization
from ...elements.expression import Buffer
from ...graph.quantized import Quantized, quantization_of
from .c_names import c_type, cast, macro
from .header_sections import listed
from .interface import CEntry, CInterface
from .pools import CPool

DTYPES = {dtype: f"TOSAIC_{dtype.upper()}" for dtype in MLIR_NAMES}
"""Enumerator of each dtype that stores a tensor."""

WIDE = ("int32", "uint32")
"""Storage types whose differences a float cannot hold exactly: their functions use 64-bit integers and doubles."""

COMMON = """\
#ifndef TOSAIC_TENSOR
#define TOSAIC_TENSOR
/* What stores the elements of a tensor. Floats of 16 bits and less are stored in unsigned integers of their size. */
enum tosaic_dtype {
    DTYPE_NAMES
};

/* A tensor: extents and strides (in elements) for each axis, and what its integers stand for: scale * (stored - zero point).
   There are scale_count scales and zero points: 0 where the model does not say them, 1, or one for each index along axis, which
   is -1 otherwise. */
struct tosaic_tensor {
    const char *name;
    const int32_t *shape;
    const int32_t *strides;
    const float *scales;
    const int64_t *zero_points;
    int32_t dtype; /* an enum tosaic_dtype, whose size differs between compilers */
    int32_t rank;
    int32_t scale_count;
    int32_t axis;
};

TOSAIC_ASSERT(sizeof(float) == 4 && sizeof(int8_t) == 1, tosaic_floats_have_32_bits_and_bytes_8);

/* The integer nearest to real / scale, halves away from 0, plus the zero point, from low to high; a NaN is the zero point. */
TOSAIC_INLINE int32_t tosaic_quantize(float real, float scale, int32_t zero_point, int32_t low, int32_t high) {
    const float quotient = real / scale;
    int32_t whole;
    if (quotient != quotient) {
        return zero_point;
    }
    if (quotient >= 8388608.0f || quotient <= -8388608.0f) {
        return quotient > 0.0f ? high : low;
    }
    whole = TOSAIC_CAST(int32_t, quotient);
    if (quotient - TOSAIC_CAST(float, whole) >= 0.5f) {
        whole += 1;
    } else if (quotient - TOSAIC_CAST(float, whole) <= -0.5f) {
        whole -= 1;
    }
    whole += zero_point;
    return whole < low ? low : whole > high ? high : whole;
}

/* The same for storage of 32 bits. */
TOSAIC_INLINE int64_t tosaic_quantize_wide(float real, float scale, int64_t zero_point, int64_t low, int64_t high) {
    const float quotient = real / scale;
    int64_t whole;
    if (quotient != quotient) {
        return zero_point;
    }
    if (quotient >= 8589934592.0f || quotient <= -8589934592.0f) {
        return quotient > 0.0f ? high : low;
    }
    whole = TOSAIC_CAST(int64_t, quotient);
    if (quotient - TOSAIC_CAST(float, whole) >= 0.5f) {
        whole += 1;
    } else if (quotient - TOSAIC_CAST(float, whole) <= -0.5f) {
        whole -= 1;
    }
    whole += zero_point;
    return whole < low ? low : whole > high ? high : whole;
}
#endif""".replace("DTYPE_NAMES", ",\n    ".join(DTYPES.values()))


def table_sections(interface: CInterface) -> list[str]:
    """Return all tables and functions of a model's entry functions and variables."""
    sections = [COMMON]
    for entry in interface.entries:
        for kind, names in (("input", entry.inputs), ("output", entry.outputs)):
            sections += assertions(entry, kind, names)
            sections += table(f"{entry.name}_{kind}", list(names), entry.quantized)
            for number, (buffer, name) in enumerate(names.items()):
                sections += functions_of(entry, kind, number, buffer, name)
    variables = [v.use.buffer for v in interface.variables.values()]
    sections += table(f"{interface.prefix}_variable", variables, interface.entries[0].quantized)
    return sections + [section for pool in interface.memories.of_kind("constant") for section in constants(interface, pool)]


def assertions(entry: CEntry, kind: str, names: Mapping[Buffer, str]) -> list[str]:
    """Return assertions of the sizes that the object assumes."""
    lines = []
    for buffer, name in names.items():
        size = f"{entry.name.upper()}_{kind.upper()}_{macro(name)}_SIZE"
        product = " * ".join([f"sizeof({c_type(buffer.dtype)})", *map(str, buffer.shape)])
        lines.append(f"TOSAIC_ASSERT({size} == {product}, {entry.name}_{kind}_{name}_is_row_major);")
    return ["\n".join(lines)] if lines else []


# ---- tables ----------------------------------------------------------------------------------------------------------
def table(name: str, buffers: Sequence[Buffer], quantized: Mapping[Buffer, Quantized]) -> list[str]:
    """Return the function that returns the descriptors of some tensors, and their count."""
    if not buffers:
        return []
    arrays, rows = [], []
    for number, buffer in enumerate(buffers):
        given, row = described(number, buffer, quantization_of(quantized.get(buffer)))
        arrays += given
        rows.append(row)
    lines = [f"#define {name.upper()}_TENSORS {len(buffers)}",
             f"TOSAIC_INLINE const struct tosaic_tensor *{name}_tensors(void) {{", *(f"    static const {a};" for a in arrays),
             "    static const struct tosaic_tensor tensors[] = {", ",\n".join(f"        {row}" for row in rows), "    };",
             "    return tensors;", "}"]
    return ["\n".join(lines)]


def described(number: int, buffer: Buffer, numbers: Quantization | None) -> tuple[list[str], str]:
    """Return the arrays of a descriptor, and its row of the table."""
    arrays = []
    if buffer.shape:
        steps = [math.prod(buffer.shape[axis + 1:]) for axis in range(len(buffer.shape))]
        arrays += [f"int32_t shape_{number}[] = {listed(buffer.shape)}", f"int32_t strides_{number}[] = {listed(steps)}"]
    shape, strides = (f"shape_{number}", f"strides_{number}") if buffer.shape else ("NULL", "NULL")
    scales, zeros, count, axis = "NULL", "NULL", 0, -1
    if numbers is not None:
        arrays += [f"float scales_{number}[] = {listed(list(map(c_float, numbers.scales)))}",
                   f"int64_t zero_points_{number}[] = {listed(numbers.zero_points)}"]
        scales, zeros, count = f"scales_{number}", f"zero_points_{number}", len(numbers.scales)
        axis = -1 if numbers.axis is None else numbers.axis
    row = [c_string(buffer.name), shape, strides, scales, zeros, DTYPES[buffer.dtype], len(buffer.shape), count, axis]
    return arrays, listed(row)


def constants(interface: CInterface, pool: CPool) -> list[str]:
    """Return the table of a constant pool's contents, as code reads them (weights may be packed), and their offsets in
    bytes."""
    number = interface.memories.pools.index(pool)
    found = {at.offset: buffer for entry in interface.entries for buffer, at in entry.places.items() if at.number == number}
    if not found:
        return []
    name, offsets = f"{interface.prefix}_{pool.stem}", sorted(found)
    offset_function = [f"TOSAIC_INLINE const size_t *{name}_offsets(void) {{",
                       f"    static const size_t offsets[] = {listed(offsets)};", "    return offsets;", "}"]
    return [*table(name, [found[o] for o in offsets], interface.entries[0].quantized), "\n".join(offset_function)]


# ---- functions -------------------------------------------------------------------------------------------------------
def functions_of(entry: CEntry, kind: str, number: int, buffer: Buffer, name: str) -> list[str]:
    """Return the conversions from floats to stored integers and back: of one element, which needs its index if scales differ
    along an axis, and of the whole tensor."""
    numbers = quantization_of(entry.quantized.get(buffer))
    if numbers is None:
        return []
    stored, wide = c_type(buffer.dtype), buffer.dtype in WIDE
    index = "" if numbers.axis is None else ", size_t index"
    scale, zero = scale_and_zero_point(f"{entry.name}_{kind}_tensors()[{number}]", numbers)
    if numbers.axis is not None and not wide:
        zero = cast("int32_t", zero)
    call = f"tosaic_quantize{'_wide' * wide}(real, {scale}, {zero}, {literal(numbers.low)}, {literal(numbers.high)})"
    difference = f"{cast('int64_t' if wide else 'int32_t', 'stored')} - {zero}"
    real = (cast("float", f"{cast('double', scale)} * {cast('double', difference)}") if wide
            else f"{scale} * {cast('float', difference)}")
    ending = f"{kind}_{name}"
    quantize, dequantize = f"{entry.name}_quantize_{ending}", f"{entry.name}_dequantize_{ending}"
    at = "" if numbers.axis is None else f", {index_of(buffer, numbers.axis)}"
    return ["\n".join([
        f"TOSAIC_INLINE {stored} {quantize}(float real{index}) {{", f"    return {cast(stored, call)};", "}",
        f"TOSAIC_INLINE float {dequantize}({stored} stored{index}) {{", f"    return {real};", "}",
        *loop(f"{entry.name}_quantize_array_{ending}", buffer, f"const float *real, {stored} *stored",
              f"stored[i] = {quantize}(real[i]{at});"),
        *loop(f"{entry.name}_dequantize_array_{ending}", buffer, f"const {stored} *stored, float *real",
              f"real[i] = {dequantize}(stored[i]{at});")])]


def scale_and_zero_point(descriptor: str, numbers: Quantization) -> tuple[str, str]:
    """Return scale and zero point in C: numbers, or elements of the descriptor's arrays."""
    if numbers.axis is None:
        return c_float(numbers.scales[0]), literal(numbers.zero_points[0])
    return f"{descriptor}.scales[index]", f"{descriptor}.zero_points[index]"


def index_of(buffer: Buffer, axis: int) -> str:
    """Return the index of element `i` along an axis."""
    behind = math.prod(buffer.shape[axis + 1:])
    quotient = "i" if behind == 1 else f"i / {behind}"
    return f"{quotient} % {buffer.shape[axis]}" if axis else quotient


def loop(name: str, buffer: Buffer, parameters: str, body: str) -> list[str]:
    return [f"TOSAIC_INLINE void {name}({parameters}) {{", "    size_t i;",
            f"    for (i = 0; i < {math.prod(buffer.shape)}; ++i) {{", f"        {body}", "    }", "}"]


# ---- literals --------------------------------------------------------------------------------------------------------
def c_float(x: float) -> str:
    """Return the shortest decimal number that reads back as the float32."""
    text = str(np.float32(x))
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def literal(n: int) -> str:
    """Return an integer; the least 32-bit integer has no literal of its own."""
    if n == -(1 << 31):
        return f"(-{(1 << 31) - 1} - 1)"
    return f"({n})" if n < 0 else f"{n}u" if n >= 1 << 31 else f"{n}"


def c_string(text: str) -> str:
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode(errors="replace"))
    return f'"{"".join(plain)}"'
