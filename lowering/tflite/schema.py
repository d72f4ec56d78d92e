"""Numbers of a TensorFlow Lite flatbuffer: operators, element types, and the slots of its tables.

Names and numbers are from version 3 of TensorFlow Lite's schema.
"""
from __future__ import annotations

from ..graph.types import BF16, F16, F32, F64, I1, I4, I8, I16, I32, I64, UI8, UI16, UI32, UI64, ElementType

IDENTIFIER = b"TFL3"

BUILTIN_NAMES = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
    FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM
    MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
    SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND
    TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT
    LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL
    LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
    ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV
    REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS
    SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG
    ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE
    HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE
    BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1
    UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR
    RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE
    STABLEHLO_CLAMP STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE
    STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR
    STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT
    STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
    STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
    STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE
    STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE"""
BUILTINS = BUILTIN_NAMES.split()
"""Operators, in the order of their numbers."""

CUSTOM = BUILTINS.index("CUSTOM")

RESOURCE = 13
"""The type of a tensor that is a variable."""

ELEMENTS: dict[int, ElementType] = {0: F32, 1: F16, 2: I32, 3: UI8, 4: I64, 6: I1, 7: I16, 9: I8, 10: F64, 12: UI64, 15: UI32,
                                    16: UI16, 17: I4, 18: BF16}
"""Element types of tensors, by their number."""

ALL_TYPES = ("FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 RESOURCE VARIANT "
             "UINT32 UINT16 INT4 BFLOAT16 INT2 UINT4")
TYPE_NAMES = ALL_TYPES.split()
"""Types of tensors, in the order of their numbers."""

MODEL = {"version": 0, "operator_codes": 1, "subgraphs": 2, "description": 3, "buffers": 4, "signature_defs": 7}
EXTERNAL_BUFFERS = 9
"""Slot of the model for the files beside it that hold its constants."""
CODE = {"deprecated_builtin_code": 0, "custom_code": 1, "version": 2, "builtin_code": 3}
SUBGRAPH = {"tensors": 0, "inputs": 1, "outputs": 2, "operators": 3, "name": 4}
TENSOR = {"shape": 0, "type": 1, "buffer": 2, "name": 3, "quantization": 4, "is_variable": 5, "shape_signature": 7}
QUANTIZATION = {"scale": 2, "zero_point": 3, "axis": 6}
OPERATOR = {"opcode_index": 0, "inputs": 1, "outputs": 2, "options_type": 3, "options": 4, "options_2_type": 11,
            "options_2": 12}
BUFFER = {"data": 0, "offset": 1, "size": 2}
SIGNATURE = {"inputs": 0, "outputs": 1, "key": 2, "subgraph": 4}
NAMED = {"name": 0, "tensor": 1}

OPTION_TYPES = {"CALL": 16, "STRIDED_SLICE": 32, "IF": 92, "WHILE": 93, "CALL_ONCE": 103, "VAR_HANDLE": 111, "GELU": 116,
                "STABLEHLO_COMPOSITE": 21, "RESIZE_NEAREST_NEIGHBOR": 74, "CUMSUM": 102, "ONE_HOT": 61, "REVERSE_SEQUENCE": 87,
                "LOCAL_RESPONSE_NORMALIZATION": 13, "BATCH_MATMUL": 101, "SOFTMAX": 9, "MEAN": 27, "UNPACK": 64,
                "L2_NORMALIZATION": 12, "DIV": 29, "CONV_3D_TRANSPOSE": 106, "AVERAGE_POOL_2D": 5, "MAX_POOL_2D": 5,
                "FULLY_CONNECTED": 8, "RESIZE_BILINEAR": 15}
"""The number of an operator's table of options among all tables, for the operators whose options are read."""

POOL = {"padding": (0, "ubyte"), "stride_w": (1, "int32"), "stride_h": (2, "int32"), "filter_w": (3, "int32"),
        "filter_h": (4, "int32"), "activation": (5, "ubyte")}
"""The options of a pool."""

SLOTS: dict[str, dict[str, tuple[int, str]]] = {
    "AVERAGE_POOL_2D": POOL, "MAX_POOL_2D": POOL,
    "FULLY_CONNECTED": {"activation": (0, "ubyte"), "weights_format": (1, "ubyte")},
    "STRIDED_SLICE": {"begin_mask": (0, "int32"), "end_mask": (1, "int32"), "ellipsis_mask": (2, "int32"),
                      "new_axis_mask": (3, "int32"), "shrink_axis_mask": (4, "int32"), "offset": (5, "bool")},
    "RESIZE_NEAREST_NEIGHBOR": {"align_corners": (0, "bool"), "half_pixel_centers": (1, "bool")},
    "RESIZE_BILINEAR": {"align_corners": (2, "bool"), "half_pixel_centers": (3, "bool")},
    "GELU": {"approximate": (0, "bool")}, "VAR_HANDLE": {"container": (0, "text"), "shared_name": (1, "text")},
    "CUMSUM": {"exclusive": (0, "bool"), "reverse": (1, "bool")}, "ONE_HOT": {"axis": (0, "int32")},
    "REVERSE_SEQUENCE": {"seq_dim": (0, "int32"), "batch_dim": (1, "int32")},
    "LOCAL_RESPONSE_NORMALIZATION": {"radius": (0, "int32"), "bias": (1, "float"), "alpha": (2, "float"), "beta": (3, "float")},
    "BATCH_MATMUL": {"adj_x": (0, "bool"), "adj_y": (1, "bool")}, "SOFTMAX": {"beta": (0, "float")},
    "MEAN": {"keep_dims": (0, "bool")}, "UNPACK": {"axis": (1, "int32")},
    "L2_NORMALIZATION": {"activation": (0, "ubyte")}, "DIV": {"activation": (0, "ubyte")},
    "CONV_3D_TRANSPOSE": {"padding": (0, "ubyte"), "stride_d": (1, "int32"), "stride_w": (2, "int32"), "stride_h": (3, "int32"),
                          "activation": (4, "ubyte"), "dilation_d": (5, "int32"), "dilation_w": (6, "int32"),
                          "dilation_h": (7, "int32")}}
"""The slots and types of the options that are read. An option that a file omits is 0, or empty."""

CALLEES: dict[str, tuple[int, ...]] = {"CALL": (0,), "IF": (0, 1), "WHILE": (0, 1), "CALL_ONCE": (0,),
                                       "STABLEHLO_COMPOSITE": (1,)}
"""Operators that run other subgraphs, and the slots of their options that hold the numbers of these subgraphs."""

OTHER_CALLERS = frozenset({"STABLEHLO_WHILE", "STABLEHLO_CASE", "STABLEHLO_REDUCE", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT",
                           "STABLEHLO_SCATTER"})
"""Operators that run other subgraphs and are not supported."""
