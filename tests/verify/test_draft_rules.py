"""Every rule that the draft of TOSA 1.1 adds: operators with block-scaled values, shapes, adaptive pools."""
from __future__ import annotations

import pytest

from .graphs import assert_refused, changed, verified
from .legal_draft import ALL, BLOCKS, LEGAL, SHAPE_PAIRS, SHAPE_UNARIES, SIZE_1, SIZE_32

F32_BLOCKS = BLOCKS.replace("f8E5M2", "f4E2M1FN")

POOLS = [
    ("[3,2]", "[0,2]", "kernel must not be below 1"),
    ("[3,2]", "[3,2,2]", "the kernel must be !tosa.shape<2>, it is !tosa.shape<3>"),
    ("[3,1]", "[3,0]", "stride must not be below 1"),
    ("[3,1]", "[3]", "the stride must be !tosa.shape<2>"),
    ("[1,0,0,1]", "[-1,0,0,1]", "pad must not be below 0"),
    ("[1,0,0,1]", "[1,0,0,2]", "must be below the kernel"),
    ("[1,0,0,1]", "[1,1,0,1]", "the stride 3 does not divide 4"),
    ("[1,0,0,1]", "[1,0]", "the pad must be !tosa.shape<4>"),
    ("[1,0,0,1]", "", "does not take"),
    ("1x5x4x3x", "5x4x3x", "the input must have rank 4"),
    ("-> 1x2x4x3x", "-> 1x3x4x3x", "but tensor<1x3x4x3x"),
]
CONV_BLOCKS = [
    ("[1,1,1,1]", "[1,-1,1,1]", "pad must not be below 0"),
    ("[1,1,1,1]", "[1,1]", "!tosa.shape<4>"),
    ("[2,1]", "[0,1]", "stride must not be below 1"),
    ("[2,1]", "[3,1]", "the stride 3 does not divide 4"),
    ("[1,2]", "[1,0]", "dilation must not be below 1"),
    ("3xf32 [1", "2xf32 [1", "the bias has 2 numbers, for 3 output channels"),
    ("-> 1x3x5x3xf32", "-> 1x4x5x3xf32", "but tensor<1x4x5x3xf32> is declared"),
    (SIZE_32, SIZE_1, "a block must have more than one value"),
    (SIZE_32, "block_size = BLOCK_SIZE_64", "BLOCK_SIZE_64"),
    ("1x6x5x2xf8E8M0FNU", "1x6x5x3xf8E8M0FNU", "the scale of"),
    ("3x4x2x2xf8E8M0FNU", "3x4x2x2xf32", "f32"),
    ("1x6x5x64xf8E5M2 1x6x5x2xf8E8M0FNU", "1x6x5x48xf8E5M2 1x6x5x2xf8E8M0FNU", "is no multiple of 32"),
    ("3x4x2x64xf8E5M2 3x4x2x2xf8E8M0FNU", "3x4x2x32xf8E5M2 3x4x2x1xf8E8M0FNU", "the input has 64 channels, the weight 32"),
    ("3x4x2x64xf8E5M2", "3x4x2x64xf8E4M3FN", "values of one type"),
]
RULES = [
    *((name, *rule) for name in ("avg_pool2d_adaptive", "max_pool2d_adaptive") for rule in POOLS),
    ("avg_pool2d_adaptive f16", "1xf16=0.0 1xf16=0.0", "1xf16=1.0 1xf16=0.0", "the zero point of the input must be 0"),
    ("avg_pool2d_adaptive f16", "1xf16=0.0 1xf16=0.0", "1xf16=0.0 1xf16=1.0", "the zero point of the result must be 0"),
    *(("conv2d_block_scaled", *rule) for rule in CONV_BLOCKS),
    ("matmul_t", "1x5x4xi8", "3x5x4xi8", "is neither 1 nor that of"),
    ("matmul_t", "1x5x4xi8", "1x4x5xi8", "the last extents of"),
    ("matmul_t", "2x3x4xi8", "3x4xi8", "must have rank 3"),
    ("matmul_t", "-> 2x3x5xi32", "-> 1x3x5xi32", "but tensor<1x3x5xi32> is declared"),
    ("matmul_t f16", "1xf16=0.0 1xf16=0.0", "1xf16=1.0 1xf16=0.0", "the zero point of the first operand must be 0"),
    ("matmul_t f16", "1xf16=0.0 1xf16=0.0", "1xf16=0.0 1xf16=1.0", "the zero point of the second operand must be 0"),
    ("matmul_t_block_scaled", SIZE_32, SIZE_1, "a block must have more than one value"),
    ("matmul_t_block_scaled", "1x5x64xf4E2M1FN 1x5x2x", "3x5x64xf4E2M1FN 3x5x2x", "is neither 1 nor that of"),
    ("matmul_t_block_scaled", "1x5x64xf4E2M1FN 1x5x2x", "1x5x32xf4E2M1FN 1x5x1x", "the last extents of"),
    ("matmul_t_block_scaled", "2x3x64xf4E2M1FN 2x3x2x", "2x3x48xf4E2M1FN 2x3x2x", "is no multiple of 32"),
    ("matmul_t_block_scaled", "2x3x2xf8E8M0FNU", "2x3x1xf8E8M0FNU", "the scale of"),
    ("cast_from_block_scaled", SIZE_32, SIZE_1, "a block must have more than one value"),
    ("cast_from_block_scaled", "2x64xf6E2M3FN", "2x48xf6E2M3FN", "is no multiple of 32"),
    ("cast_from_block_scaled", "2x2xf8E8M0FNU", "2x1xf8E8M0FNU", "the scale of"),
    ("cast_from_block_scaled", "2x2xf8E8M0FNU", "3x2xf8E8M0FNU", "the scale of"),
    ("cast_from_block_scaled", "2x2xf8E8M0FNU", "4xf8E8M0FNU", "the scale of"),
    ("cast_from_block_scaled", "-> 2x64xf32", "-> 2x64xf16", "f16"),
    ("cast_to_block_scaled", SIZE_32, SIZE_1, "a block must have more than one value"),
    ("cast_to_block_scaled", "2x64xbf16", "2x48xbf16", "is no multiple of 32"),
    ("cast_to_block_scaled", "2x64xbf16", "bf16", "rank 0"),
    ("cast_to_block_scaled", "2x2xf8E8M0FNU", "2x4xf8E8M0FNU", "but tensor<2x4xf8E8M0FNU> is declared"),
    ("cast_to_block_scaled", "2x64xbf16", "2x64xf16", "f16"),
    ("reshape_block_scaled", SIZE_32, SIZE_1, "do not go with blocks of 1"),
    ("reshape_block_scaled plain", SIZE_1, SIZE_32, "do not go with blocks of 32"),
    ("reshape_block_scaled", "[4,32]", "[4,64]", "128 elements"),
    ("reshape_block_scaled", "[4,32]", "[8,16]", "is no multiple of 32"),
    ("reshape_block_scaled", "[4,32]", "[]", "rank 0"),
    ("reshape_block_scaled", "2x2xf8E8M0FNU", "2x1xf8E8M0FNU", "the scale of"),
    ("reshape_block_scaled", "2x2xf8E8M0FNU", "1x2x2xf8E8M0FNU", "the scale of"),
    ("reshape_block_scaled", "[4,32]", "", "needs a shape as its last operand"),
    ("reshape_block_scaled", "4x32xf8E4M3FN 4x1xf8E8M0FNU", "4x32xf8E4M3FN", "has 2 results, 1 are declared"),
    ("row_gather", "1xi32=2", "1xi32=0", "the row count must be positive, it is 0"),
    ("row_gather", "1xi32=2", "1xi64=2", "the row count must be i32"),
    ("row_gather", "2x5xi32", "1x5xi32", "the batches"),
    ("row_gather", "-> 2x10x4xi8", "-> 2x5x4xi8", "but tensor<2x5x4xi8> is declared"),
    ("row_gather_block_scaled", "1xi32=2", "1xi32=-1", "the row count must be positive, it is -1"),
    ("row_gather_block_scaled", SIZE_32, SIZE_1, "do not go with blocks of 1"),
    ("row_gather_block_scaled plain", SIZE_1, SIZE_32, "do not go with blocks of 32"),
    ("row_gather_block_scaled", "2x3x2xf8E8M0FNU", "2x3x1xf8E8M0FNU", "the scale of"),
    *((name, "[3,2]", "[3,2,1]", "the shapes have 2 and 3 extents") for name in SHAPE_PAIRS),
    *((name, "-> shape<2>", "-> shape<1>", "but !tosa.shape<1> is declared") for name in (*SHAPE_PAIRS, *SHAPE_UNARIES)),
    *((name, "-> shape<2>", "-> 2xi32", "but tensor<2xi32> is declared") for name in (*SHAPE_PAIRS, *SHAPE_UNARIES)),
    *((name, "[7,8]", "2xi32", "must be a shape") for name in (*SHAPE_PAIRS, *SHAPE_UNARIES)),
    *((name, "[3,2]", "[3,0]", "0") for name in ("div_ceil_shape", "div_floor_shape", "mod_shape")),
    *((name, "[7,8]", "[7,0]", "0") for name in ("log2_ceil_shape", "log2_floor_shape")),
    ("exp2_shape", "[7,8]", "[7,-1]", "-1"),
    ("exp2_shape", "[7,8]", "[7,31]", "31"),
    ("assert_equal_shape", "[7,8] ->", "[7,9] ->", "[7, 8] and [7, 9]"),
    ("assert_equal_shape", "[7,8] ->", "[7,1] ->", "[7, 8] and [7, 1]"),
    ("assert_equal_shape", "[7,8] ->", "[7,8,1] ->", "the shapes have 2 and 3 extents"),
    ("assert_equal_shape broadcast", "[7,1] ", "[7,2] ", "[7, 2] and [7, 8]"),
    ("concat_shape", "[7,8] [3]", "", "at least one shape"),
    ("concat_shape", "[3]", "[]", "without extents"),
    ("concat_shape", "-> shape<3>", "-> shape<2>", "but !tosa.shape<2> is declared"),
    ("dim", "axis = 1", "axis = 2", "axis 2 is outside the 2 axes"),
    ("dim", "axis = 1", "axis = -1", "axis -1 is outside the 2 axes"),
    ("dim", "-> shape<1>", "-> 1xi32", "but tensor<1xi32> is declared"),
    ("slice_shape", "1xi32=1", "1xi32=-1", "the start must not be negative, it is -1"),
    ("slice_shape", "1xi32=2", "1xi32=0", "the size must be positive, it is 0"),
    ("slice_shape", "1xi32=2", "1xi32=3", "a shape of 3 extents has no 3 from 1 on"),
    ("transpose blocks", "1, 0, 2", "0, 2, 1", "last"),
    ("reshape blocks", f"[4,32] -> 4x32x{BLOCKS}", f"[8,16] -> 8x16x{BLOCKS}", "multiple of 32"),
    ("cast to blocks", "2x32xf32 -> 2x32x", "2x16xf32 -> 2x16x", "multiple of 32"),
    ("cast to blocks", "2x32xf32 -> 2x32x", "2x32xi8 -> 2x32x", "from i8"),
    ("cast unsigned", "2xi8 ->", "2xf16 ->", "f16 has no unsigned numbers"),
]


@pytest.mark.parametrize("name", ALL)
def test_a_right_graph_of_the_draft_is_taken(name: str) -> None:
    verified(ALL[name])


@pytest.mark.parametrize(("name", "old", "new", "words"), RULES)
def test_a_broken_rule_of_the_draft_is_named(name: str, old: str, new: str, words: str) -> None:
    assert_refused(changed(ALL[name], old, new), words)


def test_every_operator_of_the_draft_has_a_right_graph() -> None:
    assert len(LEGAL) == 25


@pytest.mark.parametrize("line", [f"slice 2x64x{BLOCKS} [0,16] [2,32] -> 2x32x{BLOCKS}",
                                  f"slice 2x64x{BLOCKS} [0,0] [2,16] -> 2x16x{BLOCKS}",
                                  f"resize 1x3x4x32x{BLOCKS} [4,2,1,1] [0,0] [0,0] -> 1x5x4x32x{BLOCKS} | mode = BILINEAR",
                                  f"concat 2x32x{BLOCKS} 2x32x{F32_BLOCKS} -> 2x64x{BLOCKS} | axis = 1 : i32"])
def test_blocks_are_not_taken_apart(line: str) -> None:
    assert_refused(line, "")
