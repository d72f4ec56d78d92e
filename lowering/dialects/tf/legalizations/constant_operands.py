"""Operands that legalizations need at compile time: shapes, axes, numbers of elements. The op-by-op runtime looks operations up
by the contents of these operands."""
from __future__ import annotations

REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum", "Cumprod", "Cumsum", "ArgMax", "ArgMin")
AXES = ("ExpandDims", "ReverseV2", "Transpose")
SHAPES = ("BroadcastTo", "MirrorPad", "Pad", "PadV2", "Reshape", "ResizeBilinear", "ResizeNearestNeighbor", "Tile", "TopKV2",
          "OneHot", "BatchToSpace", "SpaceToBatch", "IRFFT", "IRFFT2D", "RFFT", "RFFT2D", "MatrixDiagPartV2",
          "MatrixDiagPartV3")
OTHERS: dict[str, tuple[int, ...]] = {
    "BatchMatrixBandPart": (1, 2), "BatchToSpaceND": (1, 2), "BroadcastArgs": (0, 1), "BroadcastGradientArgs": (0, 1),
    "Concat": (0,), "ConcatV2": (-1,), "Conv2DBackpropInput": (0,), "Fill": (0,), "GatherV2": (2,), "InvertPermutation": (0,),
    "LinSpace": (0, 1, 2), "MatrixBandPart": (1, 2), "MatrixDiagV2": (1, 2, 3), "MatrixDiagV3": (1, 2, 3),
    "MatrixSetDiagV2": (2,), "MatrixSetDiagV3": (2,), "QuantizeAndDequantizeV3": (3,), "Range": (0, 1, 2), "Roll": (1, 2),
    "ScatterNd": (2,), "Slice": (1, 2), "SpaceToBatchND": (1, 2), "Split": (0,), "SplitV": (1, 2), "StridedSlice": (1, 2, 3),
    "StridedSliceGrad": (0, 1, 2, 3), "TensorStridedSliceUpdate": (1, 2, 3), "Where": (0,),
    **dict.fromkeys(("Bincount", "DenseBincount"), (1,)),
    **dict.fromkeys((f"UnsortedSegment{name}" for name in ("Sum", "Prod", "Max", "Min")), (2,)),
    **dict.fromkeys((f"Segment{name}" for name in ("Sum", "Prod", "Max", "Min", "Mean")), (1,))}
EVERY = frozenset({"tf.ConcatOffset"})
"""Operations that need all of their operands."""

CONSTANT_OPERANDS: dict[str, tuple[int, ...]] = {
    f"tf.{name}": numbers for name, numbers in (dict.fromkeys((*REDUCTIONS, *AXES, *SHAPES), (1,)) | OTHERS).items()}
"""Numbers of these operands by operation, counted from the end if negative."""


def constant_operands(name: str, count: int) -> tuple[int, ...]:
    """Return the numbers of these operands, for an operation of `count` operands."""
    if name in EVERY:
        return tuple(range(count))
    return tuple(sorted({n % count for n in CONSTANT_OPERANDS.get(name, ()) if -count <= n < count}))
