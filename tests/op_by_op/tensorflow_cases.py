"""Operands and attributes for every operation of TensorFlow that is a function of tensors, and the others by reason."""
from __future__ import annotations

from typing import Any

import numpy as np
from tosaic.lowering.graph.types import Array

R = np.random.default_rng(11)
F = R.uniform(0.2, 0.9, (2, 4)).astype(np.float32)
G = R.uniform(0.2, 0.9, (2, 4)).astype(np.float32)
I = R.integers(1, 9, (2, 4)).astype(np.int32)
J = R.integers(1, 9, (2, 4)).astype(np.int32)
B = np.array([[True, False, True, False], [True, True, False, False]])
IMAGE = R.uniform(-1, 1, (1, 6, 6, 2)).astype(np.float32)
SQUARE = R.uniform(-1, 1, (2, 3, 3)).astype(np.float32)
BORDERS = np.array([[1, 0], [0, 2]], np.int32)


def i32(*numbers: Any) -> Array:
    return np.array(numbers[0] if len(numbers) == 1 else numbers, np.int32)


Given = tuple[list[Array], dict[str, Any]]
CASES: dict[str, Given] = {}
for _name in (
    "Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "CheckNumerics", "Cos", "Cosh", "Digamma", "Elu", "Erf",
    "Erfc", "Exp", "Expm1", "Floor", "Identity", "Inv", "IsFinite", "IsInf", "IsNan", "L2Loss", "Lgamma", "Log", "Log1p",
    "LogSoftmax", "Neg", "OnesLike", "PreventGradient", "Rank", "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt",
    "Selu", "Shape", "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Snapshot", "Softmax", "Softplus", "Softsign", "Sqrt",
    "Square", "StopGradient", "Tan", "Tanh", "ZerosLike"):
    CASES[_name] = [F], {}
for _name in (
    "Add", "AddV2", "Atan2", "Div", "DivNoNan", "EluGrad", "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "InvGrad", "LeakyReluGrad", "Less", "LessEqual", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NotEqual", "Pow",
    "RealDiv", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad", "SoftplusGrad",
    "SoftsignGrad", "SqrtGrad", "SquaredDifference", "Sub", "TanhGrad", "Xdivy", "Xlog1py", "Xlogy"):
    CASES[_name] = [F, G], {}
for _name in (
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "TruncateDiv", "TruncateMod"):
    CASES[_name] = [I, J % 7], {}
CASES["TruncateDiv"] = CASES["TruncateMod"] = [I, J], {}
for _name in (
    "All", "Any"):
    CASES[_name] = [B, i32([1])], {"keep_dims": True}
for _name in (
    "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"):
    CASES[_name] = [F, i32([1])], {"keep_dims": False}
for _name in (
    "Cumprod", "Cumsum"):
    CASES[_name] = [F, i32(1)], {"exclusive": False, "reverse": True}
WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
VOLUME = R.uniform(-1, 1, (1, 4, 4, 4, 2)).astype(np.float32)
DIAGONAL = R.uniform(-1, 1, (2, 3)).astype(np.float32)
CASES |= {
    "LeakyReluGrad": ([F, G - 0.5], {"alpha": 0.25}),
    "Acosh": ([F + 1], {}),
    "AddN": ([F, G, F], {}),
    "LogicalAnd": ([B, ~B], {}),
    "LogicalOr": ([B, ~B], {}),
    "LogicalNot": ([B], {}),
    "Invert": ([I], {}),
    "LeakyRelu": ([F - 0.5], {"alpha": 0.25}),
    "Bitcast": ([F], {"type": np.dtype(np.int32)}),
    "Cast": ([F * 9], {"DstT": np.dtype(np.int32)}),
    "ClipByValue": ([F, np.float32(0.3), np.float32(0.6)], {}),
    "BiasAdd": ([F, G[0]], {}),
    "BiasAddV1": ([F, G[0]], {}),
    "BiasAddGrad": ([F], {"data_format": "NHWC"}),
    "Select": ([B, F, G], {}),
    "SelectV2": ([B, F, G[:1]], {}),
    "IdentityN": ([F, I], {}),
    "ShapeN": ([F, SQUARE], {}),
    "MatMul": ([F, G], {"transpose_b": True}),
    "BatchMatMul": ([SQUARE, SQUARE], {}),
    "BatchMatMulV2": ([SQUARE, SQUARE], {"adj_x": True}),
    "BatchMatMulV3": ([SQUARE, SQUARE], {}),
    "Einsum": ([F, G], {"equation": "ij,kj->ik"}),
    "ArgMax": ([F, i32(1)], {}),
    "ArgMin": ([F, i32(0)], {}),
    "TopKV2": ([F, i32(2)], {"sorted": True}),
    "Reshape": ([F, i32(4, -1)], {}),
    "Squeeze": ([F[:, None]], {"squeeze_dims": [1]}),
    "ExpandDims": ([F, i32(-1)], {}),
    "Transpose": ([SQUARE, i32(2, 0, 1)], {}),
    "ReverseV2": ([F, i32([1])], {}),
    "Roll": ([F, i32([1]), i32([1])], {}),
    "Tile": ([F, i32(2, 1)], {}),
    "Pad": ([F, BORDERS], {}),
    "PadV2": ([F, BORDERS, np.float32(7)], {}),
    "MirrorPad": ([F, BORDERS % 2], {"mode": "REFLECT"}),
    "Concat": ([i32(1), F, G], {}),
    "ConcatV2": ([F, G, i32(0)], {}),
    "ConcatOffset": ([i32(1), i32(2, 3), i32(2, 4)], {}),
    "Pack": ([F, G], {"axis": 1}),
    "Unpack": ([F], {"num": 4, "axis": 1}),
    "Split": ([i32(1), F], {"num_split": 2}),
    "SplitV": ([F, i32(1, 3), i32(1)], {"num_split": 2}),
    "Slice": ([F, i32(0, 1), i32(2, -1)], {}),
    "StridedSlice": (
        [F, i32(0, 0), i32(2, 4), i32(1, 2)],
        {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0},
    ),
    "StridedSliceGrad": (
        [i32(2, 4), i32(0, 0), i32(2, 4), i32(1, 2), F[:, :2]],
        {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0},
    ),
    "TensorStridedSliceUpdate": (
        [F, i32(0, 0), i32(2, 4), i32(1, 2), G[:, :2]],
        {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0},
    ),
    "Gather": ([F, i32(1, 0)], {}),
    "GatherV2": ([F, i32(2, 0), i32(1)], {"batch_dims": 0}),
    "GatherNd": ([F, i32([[1, 2], [0, 3]])], {}),
    "ScatterNd": ([i32([[1], [3]]), F[0, :2], i32([4])], {}),
    **{f"UnsortedSegment{name}": ([F, i32(1, 1), i32(3)], {}) for name in ("Sum", "Prod", "Max", "Min")},
    **{f"Segment{name}": ([F, i32(0, 1)], {}) for name in ("Sum", "Prod", "Max", "Min", "Mean")},
    "Bincount": ([i32(1, 1, 3), i32(4), i32(2, 5, 7)], {}),
    "DenseBincount": ([i32(1, 1, 3), i32(4), i32(2, 5, 7)], {"binary_output": False}),
    "TensorScatterUpdate": ([F, i32([[1, 2], [0, 3]]), F[0, :2]], {}),
    "TensorScatterAdd": ([F, i32([[1, 2], [0, 3]]), F[0, :2]], {}),
    "TensorScatterSub": ([F, i32([[1, 2], [0, 3]]), F[0, :2]], {}),
    "TensorScatterMax": ([F, i32([[1, 2], [0, 3]]), F[0, :2]], {}),
    "TensorScatterMin": ([F, i32([[1, 2], [0, 3]]), F[0, :2]], {}),
    "ReverseSequence": ([F, i32(2, 3)], {"seq_dim": 1, "batch_dim": 0}),
    "OneHot": ([i32(1, 3), i32(4), np.float32(2), np.float32(-1)], {"axis": -1}),
    "Fill": ([i32(2, 3), np.float32(7)], {}),
    "Range": ([i32(1), i32(9), i32(3)], {}),
    "LinSpace": ([np.float32(0), np.float32(1), i32(5)], {}),
    "BroadcastTo": ([F, i32(3, 2, 4)], {}),
    "BroadcastArgs": ([i32(3, 1), i32([4])], {}),
    "BroadcastGradientArgs": ([i32(3, 1), i32(1, 4)], {}),
    "InvertPermutation": ([i32(2, 0, 1)], {}),
    "Where": ([B], {}),
    "EnsureShape": ([F], {"shape": [2, 4]}),
    "Const": ([], {"value": F}),
    "Diag": ([F[0]], {}),
    "DiagPart": ([SQUARE[0]], {}),
    "MatrixDiag": ([DIAGONAL], {}),
    "MatrixDiagPart": ([SQUARE], {}),
    "MatrixSetDiag": ([SQUARE, DIAGONAL], {}),
    "MatrixDiagPartV2": ([SQUARE, i32(0), np.float32(0)], {}),
    "MatrixDiagPartV3": ([SQUARE, i32(0), np.float32(0)], {}),
    "MatrixDiagV2": ([DIAGONAL, i32(0), i32(-1), i32(-1), np.float32(0)], {}),
    "MatrixDiagV3": ([DIAGONAL, i32(0), i32(-1), i32(-1), np.float32(0)], {}),
    "MatrixSetDiagV2": ([SQUARE, DIAGONAL, i32(0)], {}),
    "MatrixSetDiagV3": ([SQUARE, DIAGONAL, i32(0)], {}),
    "MatrixBandPart": ([SQUARE, i32(1), i32(0)], {}),
    "BatchMatrixBandPart": ([SQUARE, i32(1), i32(0)], {}),
    "Conv2D": ([IMAGE, R.uniform(-1, 1, (3, 3, 2, 3)).astype(np.float32)], CONV),
    "DepthwiseConv2dNative": ([IMAGE, R.uniform(-1, 1, (3, 3, 2, 1)).astype(np.float32)], CONV),
    "Conv3D": ([VOLUME, R.uniform(-1, 1, (2, 2, 2, 2, 3)).astype(np.float32)], {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}),
    "Conv2DBackpropInput": (
        [i32(1, 6, 6, 2), R.uniform(-1, 1, (3, 3, 2, 3)).astype(np.float32), R.uniform(-1, 1, (1, 6, 6, 3)).astype(np.float32)],
        CONV,
    ),
    "AvgPool": ([IMAGE], WINDOW),
    "MaxPool": ([IMAGE], WINDOW),
    "AvgPool3D": ([VOLUME], {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}),
    "MaxPool3D": ([VOLUME], {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}),
    "LRN": ([IMAGE], {"depth_radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.5}),
    "FusedBatchNorm": ([IMAGE, *[F[0, :2]] * 4], {"epsilon": 0.1, "is_training": False}),
    "FusedBatchNormV2": ([IMAGE, *[F[0, :2]] * 4], {"epsilon": 0.1, "is_training": False}),
    "FusedBatchNormV3": ([IMAGE, *[F[0, :2]] * 4], {"epsilon": 0.1, "is_training": False}),
    "ResizeBilinear": ([IMAGE, i32(3, 9)], {"align_corners": False, "half_pixel_centers": True}),
    "ResizeNearestNeighbor": ([IMAGE, i32(3, 9)], {"align_corners": False, "half_pixel_centers": True}),
    "DepthToSpace": ([np.concatenate([IMAGE] * 2, 3)], {"block_size": 2}),
    "SpaceToDepth": ([IMAGE], {"block_size": 2}),
    "SpaceToBatchND": ([IMAGE, i32(2, 2), i32([[0, 0], [0, 0]])], {}),
    "SpaceToBatch": ([IMAGE, i32([[0, 0], [0, 0]])], {"block_size": 2}),
    "BatchToSpaceND": ([np.concatenate([IMAGE] * 4), i32(2, 2), i32([[0, 0], [0, 0]])], {}),
    "BatchToSpace": ([np.concatenate([IMAGE] * 4), i32([[0, 0], [0, 0]])], {"block_size": 2}),
    "FakeQuantWithMinMaxArgs": ([F], {"min": -1.0, "max": 1.0, "num_bits": 8, "narrow_range": False}),
    "FakeQuantWithMinMaxVars": ([F, np.float32(-1), np.float32(1)], {"num_bits": 8, "narrow_range": False}),
    "FakeQuantWithMinMaxVarsPerChannel": ([F, -G[0], G[1]], {"num_bits": 8, "narrow_range": False}),
    "QuantizeAndDequantizeV2": ([F, np.float32(-1), np.float32(1)], {"signed_input": True, "num_bits": 8, "range_given": True}),
    "QuantizeAndDequantizeV3": ([F, np.float32(-1), np.float32(1), i32(8)], {"signed_input": True, "range_given": True}),
    "QuantizeAndDequantizeV4": ([F, np.float32(-1), np.float32(1)], {"signed_input": True, "num_bits": 8, "range_given": True}),
}
COMPLEX = {
    "Complex",
    "ComplexAbs",
    "Conj",
    "FFT",
    "FFT2D",
    "IFFT",
    "IFFT2D",
    "IRFFT",
    "IRFFT2D",
    "Imag",
    "RFFT",
    "RFFT2D",
    "Real",
}
"""Take or give complex numbers, which are two tensors inside of a graph and none here."""
DEPENDS_ON_DATA = {
    "BooleanMask",
    "CombinedNonMaxSuppression",
    "DynamicPartition",
    "ListDiff",
    "NonMaxSuppression",
    "NonMaxSuppressionV2",
    "NonMaxSuppressionV3",
    "NonMaxSuppressionV4",
    "NonMaxSuppressionV5",
    "RaggedRange",
    "SetDiff1D",
    "SparseToDense",
    "Unique",
    "UniqueV2",
    "UniqueWithCounts",
    "UniqueWithCountsV2",
}
"""Have no lowering: the shapes of their results depend on data."""
OTHERS = {"ParallelConcat"}
"""Has no reference."""
