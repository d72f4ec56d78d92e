"""A right graph of every operator that the draft of TOSA 1.1 adds, and of block-scaled tensors; in the form of `graphs`."""
from __future__ import annotations

BLOCKS = "!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f8E5M2>"
POOL = "[3,2] [3,1] [1,0,0,1]"
SHAPE_PAIRS = ("add_shape", "div_ceil_shape", "div_floor_shape", "max_shape", "min_shape", "mod_shape", "mul_shape",
               "sub_shape")
SHAPE_UNARIES = ("exp2_shape", "log2_ceil_shape", "log2_floor_shape")
SIZE_32, SIZE_1 = ("block_size = BLOCK_SIZE_32", "block_size = BLOCK_SIZE_1")

LEGAL: dict[str, str] = {
    "avg_pool2d_adaptive": f"avg_pool2d_adaptive 1x5x4x3xi8 1xi8=3 1xi8=-3 {POOL} -> 1x2x4x3xi8 | acc_type = i32",
    "max_pool2d_adaptive": f"max_pool2d_adaptive 1x5x4x3xf32 {POOL} -> 1x2x4x3xf32",
    "conv2d_block_scaled": "conv2d_block_scaled 1x6x5x64xf8E5M2 1x6x5x2xf8E8M0FNU 3x4x2x64xf8E5M2 3x4x2x2xf8E8M0FNU 3xf32 "
                           f"[1,1,1,1] [2,1] [1,2] -> 1x3x5x3xf32 | {SIZE_32}",
    "matmul_t": "matmul_t 2x3x4xi8 1x5x4xi8 1xi8=3 1xi8=-5 -> 2x3x5xi32",
    "matmul_t_block_scaled": "matmul_t_block_scaled 2x3x64xf4E2M1FN 2x3x2xf8E8M0FNU 1x5x64xf4E2M1FN 1x5x2xf8E8M0FNU -> "
                             f"2x3x5xf32 | {SIZE_32}",
    "cast_from_block_scaled": f"cast_from_block_scaled 2x64xf6E2M3FN 2x2xf8E8M0FNU -> 2x64xf32 | {SIZE_32}",
    "cast_to_block_scaled": f"cast_to_block_scaled 2x64xbf16 -> 2x64xf6E3M2FN 2x2xf8E8M0FNU | {SIZE_32}",
    "reshape_block_scaled": "reshape_block_scaled 2x64xf8E4M3FN 2x2xf8E8M0FNU [4,32] -> 4x32xf8E4M3FN 4x1xf8E8M0FNU | "
                            f"{SIZE_32}",
    "row_gather": "row_gather 2x3x4xi8 2x5xi32 1xi32=2 -> 2x10x4xi8",
    "row_gather_block_scaled": "row_gather_block_scaled 2x3x64xf8E4M3FN 2x3x2xf8E8M0FNU 2x5xi64 1xi32=2 -> "
                               f"2x10x64xf8E4M3FN 2x10x2xf8E8M0FNU | {SIZE_32}",
    **{name: f"{name} [7,8] [3,2] -> shape<2>" for name in SHAPE_PAIRS},
    **{name: f"{name} [7,8] -> shape<2>" for name in SHAPE_UNARIES},
    "assert_equal_shape": "assert_equal_shape [7,8] [7,8] -> | allow_broadcast = false",
    "concat_shape": "concat_shape [7,8] [3] -> shape<3>",
    "dim": "dim 2x3xf32 -> shape<1> | axis = 1 : i32",
    "slice_shape": "slice_shape [7,8,9] 1xi32=1 1xi32=2 -> shape<2>",
}
VARIANTS: dict[str, str] = {
    "avg_pool2d_adaptive f16": f"avg_pool2d_adaptive 1x5x4x3xf16 1xf16=0.0 1xf16=0.0 {POOL} -> 1x2x4x3xf16 | acc_type = f32",
    "matmul_t f16": "matmul_t 2x3x4xf16 2x5x4xf16 1xf16=0.0 1xf16=0.0 -> 2x3x5xf16",
    "matmul_t blocks": f"matmul_t 2x3x64x{BLOCKS} 2x5x64x{BLOCKS} 1xf32 1xf32 -> 2x3x5xf32",
    "reshape_block_scaled plain": f"reshape_block_scaled 2x3xi8 [3,2] -> 3x2xi8 | {SIZE_1}",
    "row_gather_block_scaled plain": f"row_gather_block_scaled 2x3x4xi8 2x5xi32 1xi32=2 -> 2x10x4xi8 | {SIZE_1}",
    "assert_equal_shape broadcast": "assert_equal_shape [7,1] [7,8] -> | allow_broadcast = true",
    "transpose blocks": f"transpose 2x3x32x{BLOCKS} -> 3x2x32x{BLOCKS} | perms = array<i32: 1, 0, 2>",
    "reshape blocks": f"reshape 2x64x{BLOCKS} [4,32] -> 4x32x{BLOCKS}",
    "concat blocks": f"concat 2x32x{BLOCKS} 2x64x{BLOCKS} -> 2x96x{BLOCKS} | axis = 1 : i32",
    "cast to blocks": f"cast 2x32xf32 -> 2x32x{BLOCKS}",
    "cast from blocks": f"cast 2x32x{BLOCKS} -> 2x32xf32",
    "cast unsigned": "cast 2xi8 -> 2xf32 | input_unsigned = true",
    "dim blocks": f"dim 2x32x{BLOCKS} -> shape<1> | axis = 1 : i32",
}
ALL = LEGAL | VARIANTS
