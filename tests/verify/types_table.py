"""Which element types the operators of TOSA 1.0 and 1.1 take together: the specification's combinations, and tosaic's own.

`TEMPLATES` are graphs with a hole for each type variable; `TABLE` has the combinations, and `BEYOND` those that tosaic takes
although the specification has none such. Composite (block-scaled) types have tests of their own.
"""
from __future__ import annotations

from itertools import product

from .legal import BIT_PAIRS, BOOL_PAIRS, COMPARISONS, FLOAT_UNARIES, I32_PAIRS, WINDOW

TYPES = ("i1", "i4", "i8", "i16", "i32", "i48", "i64", "f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
INTEGERS = ("i1", "i8", "i16", "i32")
FLOATS, BYTES = ("f16", "f32", "bf16"), ("f8E4M3FN", "f8E5M2")
NUMBERS, BITS = ("i32", "i64", *FLOATS), ("i8", "i16", "i32", "i64")
POOLED = ("i8", "i16", *FLOATS, *BYTES)
MOVED = ("i1", *BITS, *FLOATS, *BYTES)
DATA = (*MOVED, "i4", "i48")

Combination = tuple[str, ...]

TEMPLATES: dict[str, str] = {
    "argmax": "argmax 4x3x{0} -> 4x{1} | axis = 1 : i32",
    "avg_pool2d": "avg_pool2d 1x2x2x1x{0} 1x{0} 1x{0} -> 1x1x1x1x{0} | kernel = array<i64: 2, 2>, stride = array<i64: 1, 1>, "
                  "pad = array<i64: 0, 0, 0, 0>, acc_type = {1}",
    "max_pool2d": "max_pool2d 1x2x2x1x{0} -> 1x1x1x1x{1} | kernel = array<i64: 2, 2>, stride = array<i64: 1, 1>, "
                  "pad = array<i64: 0, 0, 0, 0>",
    "conv2d": "conv2d 1x6x5x2x{0} 3x4x2x2x{1} 3x{2} 1x{0} 1x{1} -> 1x3x5x3x{2} | " + WINDOW.replace("i32", "{3}"),
    "conv3d": "conv3d 1x1x6x5x2x{0} 3x1x4x2x2x{1} 3x{2} 1x{0} 1x{1} -> 1x1x3x5x3x{2} | pad = array<i64: 0, 0, 1, 1, 1, 1>, "
              "stride = array<i64: 1, 2, 1>, dilation = array<i64: 1, 1, 2>, acc_type = {3}",
    "depthwise_conv2d": "depthwise_conv2d 1x6x5x2x{0} 4x2x2x3x{1} 6x{2} 1x{0} 1x{1} -> 1x3x5x6x{2} | "
                        + WINDOW.replace("i32", "{3}"),
    "transpose_conv2d": "transpose_conv2d 1x3x4x2x{0} 3x3x2x2x{1} 3x{2} 1x{0} 1x{1} -> 1x4x5x3x{2} | "
                        "out_pad = array<i64: -2, -1, -1, 1>, stride = array<i64: 2, 1>, acc_type = {3}",
    "fft2d": "fft2d 1x2x2x{0} 1x2x2x{0} -> 1x2x2x{1} 1x2x2x{1} | inverse = true",
    "rfft2d": "rfft2d 1x2x2x{0} -> 1x2x2x{1} 1x2x2x{1}",
    "matmul": "matmul 2x3x4x{0} 2x4x5x{1} 1x{0} 1x{1} -> 2x3x5x{2}",
    "clamp": "clamp 2x{0} -> 2x{1} | min_val = 0{z} : {0}, max_val = 1{z} : {0}",
    **{name: f"{name} 2x{{0}} 2x{{0}} -> 2x{{1}}" for name in (*I32_PAIRS, *BIT_PAIRS, *BOOL_PAIRS, *COMPARISONS, "pow")},
    "arithmetic_right_shift": "arithmetic_right_shift 2x{0} 2x{0} -> 2x{1} | round = false",
    "mul": "mul 2x{0} 2x{0} 1xi8 -> 2x{1}",
    "table i8": "table 2x{0} 256x{0} -> 2x{1}",
    "table i16": "table 2x{0} 513x{0} -> 2x{1}",
    **{name: f"{name} 2x{{0}} -> 2x{{1}}" for name in (*FLOAT_UNARIES, "abs", "bitwise_not", "clz", "logical_not", "cast",
                                                        "identity")},
    "negate": "negate 2x{0} 1x{0} 1x{0} -> 2x{1}",
    "select": "select 2x{0} 2x{1} 2x{1} -> 2x{1}",
    **{f"reduce_{n}": f"reduce_{n} 3x2x{{0}} -> 1x2x{{1}} | axis = 0 : i32" for n in ("all", "any", "max", "min", "product",
                                                                                     "sum")},
    "concat": "concat 2x{0} 3x{0} -> 5x{1} | axis = 0 : i32",
    "pad": "pad 2x{0} [1,0] 1x{0} -> 3x{1}",
    "reshape": "reshape 2x{0} [2,1] -> 2x1x{1}",
    "reverse": "reverse 2x{0} -> 2x{1} | axis = 0 : i32",
    "slice": "slice 2x{0} [1] [1] -> 1x{1}",
    "tile": "tile 2x{0} [2] -> 4x{1}",
    "transpose": "transpose 2x3x{0} -> 3x2x{1} | perms = array<i32: 1, 0>",
    "gather": "gather 2x3x4x{1} 2x5x{0} -> 2x5x4x{1}",
    "scatter": "scatter 2x3x4x{1} 2x2x{0} 2x2x4x{1} -> 2x3x4x{1}",
    "resize nearest": "resize 1x3x4x2x{0} [4,2,1,1] [0,0] [0,0] -> 1x5x4x2x{1} | mode = NEAREST_NEIGHBOR",
    "resize bilinear": "resize 1x3x4x2x{0} [4,2,1,1] [0,0] [0,0] -> 1x5x4x2x{1} | mode = BILINEAR",
    **{f"rescale by {m}": f"rescale 2x{{0}} 1x{m} 1xi8 1x{{0}} 1x{{1}} -> 2x{{1}} | scale32 = {str(m == 'i32').lower()}, "
       "rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false"
       for m in ("i32", "i16")},
}


def alike(*types: str) -> set[Combination]:
    return {(t, t) for t in types}


def to(result: str, *types: str) -> set[Combination]:
    return {(t, result) for t in types}


def pairs(sources: tuple[str, ...], targets: tuple[str, ...]) -> set[Combination]:
    return set(product(sources, targets))


PLAIN_CONVOLUTIONS = {("i8", "i8", "i32", "i32"), ("i8", "i4", "i32", "i32"), ("i16", "i8", "i48", "i48"),
                      *((b, b, f, f) for b in BYTES for f in ("f16", "f32")), ("f16", "f16", "f16", "f16"),
                      ("f16", "f16", "f16", "f32"), ("bf16", "bf16", "bf16", "f32"), ("f32", "f32", "f32", "f32")}
MIXED = {(a, b, "f32", "f32") for a, b in product((*BYTES, *FLOATS), repeat=2)} \
    | {(a, b, "f16", acc) for a, b in product((*BYTES, "f16", "bf16"), repeat=2) for acc in ("bf16", "f32")}
MULTIPLICANDS = {(a, b, r) for a, b in product(BYTES, repeat=2) for r in ("f16", "f32")}

TABLE: dict[str, set[Combination]] = {
    "argmax": to("i32", *POOLED) | to("i64", *POOLED, "i32", "i64"),
    "avg_pool2d": to("i32", "i8", "i16") | to("f16", *BYTES, "f16") | to("f32", *FLOATS),
    "max_pool2d": alike(*POOLED),
    "conv2d": PLAIN_CONVOLUTIONS | MIXED,
    "conv3d": PLAIN_CONVOLUTIONS | MIXED,
    "depthwise_conv2d": PLAIN_CONVOLUTIONS,
    "transpose_conv2d": PLAIN_CONVOLUTIONS | MIXED,
    "fft2d": alike("f32"),
    "rfft2d": alike("f32"),
    "matmul": {("i8", "i8", "i32"), ("i16", "i16", "i48"), ("f16", "f16", "f16"), ("f16", "f16", "f32"),
               ("bf16", "bf16", "f32"), ("f32", "f32", "f32")} | MULTIPLICANDS,
    "clamp": alike("i8", "i16", *FLOATS),
    **dict.fromkeys(("add", "sub", "maximum", "minimum", "abs"), alike(*NUMBERS)),
    **dict.fromkeys((*BIT_PAIRS, "arithmetic_right_shift", "bitwise_not"), alike(*BITS)),
    **dict.fromkeys((*BOOL_PAIRS, "logical_not", "reduce_all", "reduce_any"), alike("i1")),
    **dict.fromkeys(COMPARISONS, to("i1", *NUMBERS)),
    **dict.fromkeys((*FLOAT_UNARIES, "pow", "reduce_product"), alike(*FLOATS)),
    **dict.fromkeys(("intdiv", "clz"), alike("i32", "i64")),
    "mul": alike(*NUMBERS) | to("i32", "i8", "i16"),
    "table i8": alike("i8"),
    "table i16": {("i16", "i32")},
    "negate": alike(*NUMBERS, "i8", "i16"),
    "select": {("i1", t) for t in ("i1", *BITS, *FLOATS)},
    **dict.fromkeys(("reduce_max", "reduce_min"), alike(*BITS, *FLOATS)),
    "reduce_sum": alike(*NUMBERS),
    **dict.fromkeys(("concat", "pad", "reshape", "reverse", "slice", "tile", "transpose"), alike(*MOVED)),
    **dict.fromkeys(("gather", "scatter"), pairs(("i32", "i64"), MOVED)),
    "resize nearest": alike("i8", "i16", *FLOATS, *BYTES),
    "resize bilinear": alike(*FLOATS, *BYTES) | {("i8", "i32"), ("i16", "i48")},
    "cast": pairs(INTEGERS, INTEGERS) - alike(*INTEGERS) | pairs(("i1", "i32"), ("i64",)) | pairs(("i64",), ("i1", "i32"))
    | {("i1", "f32"), ("f32", "i1"), ("f16", "f32"), ("f32", "f16"), ("f32", "bf16"), ("bf16", "f32")}
    | pairs(INTEGERS[1:], FLOATS) | pairs(FLOATS, INTEGERS[1:]) | pairs(FLOATS, BYTES) | pairs(BYTES, FLOATS),
    "rescale by i32": pairs(("i8", "i16", "i32"), ("i8", "i16", "i32")),
    "rescale by i16": pairs(("i8", "i16", "i32", "i48"), ("i8", "i16", "i32")),
    "identity": alike(*DATA),
}

MOVERS = ("concat", "pad", "reshape", "reverse", "slice", "tile", "transpose")
OF_THE_SUITE = {(a, b, "f16", "f16") for a, b in product((*BYTES, "f16"), repeat=2)} \
    | {(a, b, "bf16", acc) for a, b in product((*BYTES, "bf16"), repeat=2) for acc in ("bf16", "f32")}
"""What Arm's conformance suite of the 1.1 draft has besides."""
BEYOND: dict[str, set[Combination]] = {
    **dict.fromkeys(("conv2d", "conv3d", "transpose_conv2d"), OF_THE_SUITE - PLAIN_CONVOLUTIONS),
    "argmax": to("i32", "i32", "i64"),
    "cast": alike(*INTEGERS, "i64", *FLOATS, *BYTES) | pairs(BYTES, BYTES) | pairs(("i1",), ("f16", "bf16"))
    | pairs(("f16", "bf16"), ("i1",)) | {("bf16", "f16"), ("f16", "bf16")} | to("i64", "i8", "i16", *FLOATS)
    | pairs(("i64",), ("i8", "i16", *FLOATS)),
    **dict.fromkeys(MOVERS, alike("i4", "i48")),
    **dict.fromkeys(("gather", "scatter"), pairs(("i32", "i64"), ("i4", "i48"))),
}
"""What moves elements takes any; a cast takes any pair of numbers that has a meaning; converters write the others."""


def graph(name: str, types: Combination) -> str:
    """The template's graph for these types."""
    return TEMPLATES[name].format(*types, z=".0" if types[0] in (*FLOATS, *BYTES) else "")


def neighbours(name: str) -> set[Combination]:
    """Combinations that differ from a right one in one type; of convolutions, from one of those of TOSA 1.0."""
    right = TABLE[name] & PLAIN_CONVOLUTIONS or TABLE[name]
    return {(*types[:i], other, *types[i + 1:]) for types in right for i in range(len(types)) for other in TYPES}
