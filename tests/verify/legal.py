"""A right graph of every operator of TOSA 1.0, in the form of `graphs`; the broken ones beside it differ in one place."""
from __future__ import annotations

PAIRS = "2x3x{0} 2x1x{0} -> 2x3x{1}"
REDUCED = "{0} 4x3x2x{1} -> 4x1x2x{1} | axis = 1 : i32"
WINDOW = "pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>, acc_type = i32"
RESCALE = ("scale32 = true, rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>, per_channel = false, input_unsigned = false, "
           "output_unsigned = false")
I32_PAIRS = ("add", "intdiv", "maximum", "minimum", "sub")
BIT_PAIRS = ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_left_shift", "logical_right_shift")
BOOL_PAIRS = ("logical_and", "logical_or", "logical_xor")
COMPARISONS = ("equal", "greater", "greater_equal")
FLOAT_UNARIES = ("ceil", "cos", "erf", "exp", "floor", "log", "reciprocal", "rsqrt", "sigmoid", "sin", "tanh")

LEGAL: dict[str, str] = {
    "argmax": "argmax 4x3x2xi8 -> 4x2xi32 | axis = 1 : i32, nan_mode = #tosa.nan_mode<PROPAGATE>",
    "avg_pool2d": "avg_pool2d 1x5x4x3xi8 1xi8=3 1xi8=-3 -> 1x2x4x3xi8 | kernel = array<i64: 3, 2>, stride = array<i64: 3, 1>, "
                  "pad = array<i64: 1, 0, 0, 1>, acc_type = i32",
    "conv2d": f"conv2d 1x6x5x2xi8 3x4x2x2xi8 3xi32 1xi8=3 1xi8=-5 -> 1x3x5x3xi32 | {WINDOW}",
    "conv3d": "conv3d 1x4x6x5x2xi8 3x1x4x2x2xi8 3xi32 1xi8=3 1xi8=-5 -> 1x2x3x5x3xi32 | pad = array<i64: 1, 0, 1, 1, 1, 1>, "
              "stride = array<i64: 4, 2, 1>, dilation = array<i64: 3, 1, 2>, acc_type = i32",
    "depthwise_conv2d": f"depthwise_conv2d 1x6x5x2xi8 4x2x2x3xi8 6xi32 1xi8=3 1xi8=-5 -> 1x3x5x6xi32 | {WINDOW}",
    "transpose_conv2d": "transpose_conv2d 1x3x4x2xi8 3x3x2x2xi8 3xi32 1xi8=3 1xi8=-5 -> 1x4x5x3xi32 | "
                        "out_pad = array<i64: -2, -1, -1, 1>, stride = array<i64: 2, 1>, acc_type = i32",
    "fft2d": "fft2d 2x4x8xf32 2x4x8xf32 -> 2x4x8xf32 2x4x8xf32 | inverse = false, local_bound = false",
    "rfft2d": "rfft2d 2x4x8xf32 -> 2x4x5xf32 2x4x5xf32 | local_bound = false",
    "matmul": "matmul 2x3x4xi8 2x4x5xi8 1xi8=3 1xi8=-5 -> 2x3x5xi32",
    "max_pool2d": "max_pool2d 1x5x4x3xf32 -> 1x2x4x3xf32 | kernel = array<i64: 3, 2>, stride = array<i64: 3, 1>, "
                  "pad = array<i64: 1, 0, 0, 1>, nan_mode = #tosa.nan_mode<IGNORE>",
    "clamp": "clamp 2x3xi8 -> 2x3xi8 | min_val = -1 : i8, max_val = 1 : i8, nan_mode = #tosa.nan_mode<PROPAGATE>",
    **{name: f"{name} {PAIRS.format('i32', 'i32')}" for name in I32_PAIRS},
    "arithmetic_right_shift": f"arithmetic_right_shift {PAIRS.format('i16', 'i16')} | round = true",
    **{name: f"{name} {PAIRS.format('i16', 'i16')}" for name in BIT_PAIRS},
    **{name: f"{name} {PAIRS.format('i1', 'i1')}" for name in BOOL_PAIRS},
    "mul": "mul 2x3xi32 2x1xi32 1xi8=63 -> 2x3xi32",
    "pow": f"pow {PAIRS.format('f32', 'f32')}",
    "table": f"table 2x3xi16 513xi16={list(range(513))} -> 2x3xi32".replace(", ", ","),
    "abs": "abs 2x3xi32 -> 2x3xi32",
    "bitwise_not": "bitwise_not 2x3xi8 -> 2x3xi8",
    "clz": "clz 2x3xi32 -> 2x3xi32",
    "logical_not": "logical_not 2x3xi1 -> 2x3xi1",
    "negate": "negate 2x3xi8 1xi8=3 1xi8=-3 -> 2x3xi8",
    **{name: f"{name} 2x3xf32 -> 2x3xf32" for name in FLOAT_UNARIES},
    "select": "select 1x3xi1 2x3xi8 2x1xi8 -> 2x3xi8",
    **{name: f"{name} {PAIRS.format('i32', 'i1')}" for name in COMPARISONS},
    "reduce_all": REDUCED.format("reduce_all", "i1"),
    "reduce_any": REDUCED.format("reduce_any", "i1"),
    "reduce_max": REDUCED.format("reduce_max", "i8") + ", nan_mode = #tosa.nan_mode<IGNORE>",
    "reduce_min": REDUCED.format("reduce_min", "i8") + ", nan_mode = #tosa.nan_mode<IGNORE>",
    "reduce_product": REDUCED.format("reduce_product", "f32"),
    "reduce_sum": REDUCED.format("reduce_sum", "i32"),
    "concat": "concat 2x3xi8 2x1xi8 2x2xi8 -> 2x6xi8 | axis = 1 : i32",
    "pad": "pad 2x3xi8 [1,0,0,2] 1xi8=5 -> 3x5xi8",
    "reshape": "reshape 2x3xi8 [3,2] -> 3x2xi8",
    "reverse": "reverse 2x3xi8 -> 2x3xi8 | axis = 1 : i32",
    "slice": "slice 2x3xi8 [1,0] [1,2] -> 1x2xi8",
    "tile": "tile 2x3xi8 [1,2] -> 2x6xi8",
    "transpose": "transpose 2x3x4xi8 -> 4x2x3xi8 | perms = array<i32: 2, 0, 1>",
    "gather": "gather 2x3x4xi8 2x5xi32 -> 2x5x4xi8",
    "scatter": "scatter 2x3x4xi8 2x2xi32 2x2x4xi8 -> 2x3x4xi8",
    "resize": "resize 1x3x4x2xi8 [4,2,1,1] [0,0] [0,0] -> 1x5x4x2xi32 | mode = BILINEAR",
    "cast": "cast 2x3xi8 -> 2x3xf32",
    "rescale": f"rescale 2x3xi8 1xi32=1073741824 1xi8=30 1xi8=3 1xi8=-3 -> 2x3xi8 | {RESCALE}",
    "const": "const -> 2x3xi8 | values = dense<1> : tensor<2x3xi8>",
    "const_shape": "const_shape -> shape<2> | values = dense<[2, 3]> : tensor<2xindex>",
    "identity": "identity 2x3xi48 -> 2x3xi48",
}

VARIANTS: dict[str, str] = {
    "avg_pool2d f16": "avg_pool2d 1x5x4x3xf16 1xf16=0.0 1xf16=0.0 -> 1x2x4x3xf16 | kernel = array<i64: 3, 2>, "
                      "stride = array<i64: 3, 1>, pad = array<i64: 1, 0, 0, 1>, acc_type = f16",
    "conv2d f16": "conv2d 1x6x5x2xf16 3x4x2x2xf16 3xf16 1xf16=0.0 1xf16=0.0 -> 1x3x5x3xf16 | "
                  + WINDOW.replace("i32", "f16"),
    "conv2d i4": f"conv2d 1x6x5x2xi8 3x4x2x2xi4 3xi32 1xi8=3 1xi4=0 -> 1x3x5x3xi32 | {WINDOW}",
    "conv2d one bias": f"conv2d 1x6x5x2xi8 3x4x2x2xi8 1xi32 1xi8=3 1xi8=-5 -> 1x3x5x3xi32 | {WINDOW}",
    "conv3d i16": "conv3d 1x4x6x5x2xi16 3x1x4x2x2xi8 3xi48 1xi16=0 1xi8=-5 -> 1x2x3x5x3xi48 | "
                  "pad = array<i64: 1, 0, 1, 1, 1, 1>, stride = array<i64: 4, 2, 1>, dilation = array<i64: 3, 1, 2>, "
                  "acc_type = i48",
    "depthwise_conv2d bf16": "depthwise_conv2d 1x6x5x2xbf16 4x2x2x3xbf16 6xbf16 1xbf16=0.0 1xbf16=0.0 -> 1x3x5x6xbf16 | "
                             + WINDOW.replace("i32", "f32"),
    "transpose_conv2d f32": "transpose_conv2d 1x3x4x2xf32 3x3x2x2xf32 3xf32 1xf32=0.0 1xf32=0.0 -> 1x4x5x3xf32 | "
                            "out_pad = array<i64: -2, -1, -1, 1>, stride = array<i64: 2, 1>, acc_type = f32",
    "matmul i16": "matmul 2x3x4xi16 2x4x5xi16 1xi16=0 1xi16=0 -> 2x3x5xi48",
    "clamp f32": "clamp 2x3xf32 -> 2x3xf32 | min_val = -1.0 : f32, max_val = 1.0 : f32, nan_mode = #tosa.nan_mode<PROPAGATE>",
    "clamp equal": "clamp 2x3xi8 -> 2x3xi8 | min_val = 1 : i8, max_val = 1 : i8",
    "mul i8": "mul 2x3xi8 2x1xi8 1xi8=0 -> 2x3xi32",
    "mul of rank 0": "mul f32 f32 1xi8=0 -> f32",
    "add of rank 0": "add i32 i32 -> i32",
    "table i8": f"table 2x3xi8 256xi8={[n - 128 for n in range(256)]} -> 2x3xi8".replace(", ", ","),
    "negate i16": "negate 2x3xi16 1xi16=0 1xi16=0 -> 2x3xi16",
    "concat of one": "concat 2x3xi8 -> 2x3xi8 | axis = 0 : i32",
    "reshape of rank 0": "reshape 1x1xi8 [] -> i8",
    "transpose of rank 1": "transpose 4xi8 -> 4xi8 | perms = array<i32: 0>",
    "resize at its limits": "resize 1x1x16x2xi8 [2048,32767,1,15] [-2048,15] [-2048,0] -> 1x1x1x2xi32 | mode = BILINEAR",
    "resize nearest": "resize 1x3x4x2xi8 [4,2,1,1] [0,0] [0,0] -> 1x5x4x2xi8 | mode = NEAREST_NEIGHBOR",
    "resize f32": "resize 1x3x4x2xf32 [4,2,1,1] [0,0] [0,0] -> 1x5x4x2xf32 | mode = BILINEAR",
    "rescale i16 to i8": "rescale 2x3xi16 1xi16=16384 1xi8=14 1xi16=0 1xi8=-3 -> 2x3xi8 | "
                         + RESCALE.replace("scale32 = true", "scale32 = false"),
    "rescale u16": "rescale 2x3xi16 1xi32=1073741824 1xi8=30 1xi16=-32768 1xi8=-3 -> 2x3xi8 | "
                   + RESCALE.replace("input_unsigned = false", "input_unsigned = true"),
    "rescale to u16": "rescale 2x3xi8 1xi32=1073741824 1xi8=30 1xi8=3 1xi16=-32768 -> 2x3xi16 | "
                      + RESCALE.replace("output_unsigned = false", "output_unsigned = true"),
    "rescale i32": f"rescale 2x3xi32 1xi32=1073741824 1xi8=30 1xi32=0 1xi32=0 -> 2x3xi32 | {RESCALE}",
    "rescale i48": "rescale 2x3xi48 1xi16=16384 1xi8=14 1xi48=0 1xi8=-3 -> 2x3xi8 | "
                   + RESCALE.replace("scale32 = true", "scale32 = false"),
    "rescale channels": "rescale 2x3xi8 3xi32=1073741824 3xi8=30 1xi8=3 1xi8=-3 -> 2x3xi8 | "
                        + RESCALE.replace("per_channel = false", "per_channel = true"),
    "rescale of rank 0": f"rescale i8 1xi32=1073741824 1xi8=30 1xi8=3 1xi8=-3 -> i8 | {RESCALE}",
    "rescale twice rounded": "rescale 2x3xi8 1xi32=1073741824 1xi8=30 1xi8=3 1xi8=-3 -> 2x3xi8 | "
                             + RESCALE.replace("SINGLE_ROUND", "DOUBLE_ROUND"),
}
"""More right graphs: other types, and numbers at the edge of what a rule allows."""

ALL = LEGAL | VARIANTS
