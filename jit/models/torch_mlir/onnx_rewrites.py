"""What torch-mlir would make something else of, written otherwise in the ONNX model before torch-mlir sees it, or refused.

Each function of `REWRITES` is called at a node of its kind; it appends other nodes and says True, says False for a node that
is right as it is, or raises `Wrong`. Nodes whose operands are constants are computed here, so that indices and shapes are
known. Runs in the process of `torch_mlir_process`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .onnx_graph import Array, OnnxGraph
from .onnx_resize import rewrite_resize

WANTED_OPSET = 21
"""Of the versions that torch-mlir knows the operators of, the one that most files convert to."""
CHANGED_SINCE = 13
"""Operators of versions before this have other meanings under the same names (Softmax flattens)."""


def converted(model: Any) -> Any | None:
    """The model with operators of the wanted version; None where it has newer ones, or onnx cannot convert it."""
    import onnx
    version = opset_of(model)
    if version >= WANTED_OPSET:
        return None
    try:
        return onnx.version_converter.convert_version(model, WANTED_OPSET)
    except Exception:  # of whatever kind: then the model stays as it is
        return None


def opset_of(model: Any) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), WANTED_OPSET)


def open_negative_extents(model: Any) -> None:
    """Extents that are written as -1 are open."""
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.ClearField("dim_value")


def rewrite(model: Any) -> None:
    """Write the model's graph anew, where that must be."""
    rewrite_graph(OnnxGraph(model.graph, opset_of(model)))


def rewrite_graph(graph: OnnxGraph) -> None:
    for node in graph.proto.node:
        if graph.fold(node):
            continue
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                rewrite_graph(OnnxGraph(inner, graph.opset, graph))
        graph.here = node
        change = REWRITES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        if change is None or not change(graph):
            graph.nodes.append(node)
    nodes = [type(node).FromString(node.SerializeToString()) for node in graph.nodes]
    del graph.proto.node[:]
    graph.proto.node.extend(nodes)


# ---- indices ---------------------------------------------------------------------------------------------------------------
def from_front(graph: OnnxGraph, indices: Array, extents: Sequence[int | None]) -> Array | None:
    """Indices counted from the front, the last axis one for each extent; None where none is negative. Raises for indices out of
    range, and where the sign is not enough to know them."""
    if not (indices < 0).any() and None in extents:
        return None
    if None in extents:
        if (indices < 0).all():
            return None
        raise graph.refuse("has constant indices of both signs along an axis whose extent is not known",
                           "give the inputs' shapes with shapes={...}")
    limits = np.array(extents, indices.dtype)
    if ((indices < -limits) | (indices >= limits)).any():
        raise graph.refuse(f"has a constant index that is out of range of {list(extents)}", "correct the index")
    return np.where(indices < 0, indices + limits, indices).reshape(indices.shape) if (indices < 0).any() else None


def along_axis(number: int) -> Callable[[OnnxGraph], bool]:
    """A node whose operand `number` are indices of one axis."""
    def change(graph: OnnxGraph) -> bool:
        indices, shape = graph.known(number), graph.shape()
        if indices is None or shape is None:
            return False
        axis = graph.attribute("axis", 0)
        found = from_front(graph, indices, [shape[axis]])
        return found is not None and put(graph, number, found)
    return change


def of_several_axes(number: int) -> Callable[[OnnxGraph], bool]:
    """A node whose operand `number` are indices of the first axes, behind those that are batches."""
    def change(graph: OnnxGraph) -> bool:
        indices, shape = graph.known(number), graph.shape()
        if indices is None or shape is None:
            return False
        first = graph.attribute("batch_dims", 0)
        found = from_front(graph, indices, shape[first:first + indices.shape[-1]])
        return found is not None and put(graph, number, found)
    return change


def put(graph: OnnxGraph, number: int, array: Array) -> bool:
    """The node itself, with a constant operand."""
    operands = list(graph.here.input)
    operands[number] = graph.constant(array)
    graph.again(operands)
    return True


# ---- pools -----------------------------------------------------------------------------------------------------------------
def average_pool(graph: OnnxGraph) -> bool:
    """With ceil_mode windows reach beyond the padding, and count what lies within it, or within the operand: the operand is
    padded as far as windows reach, and means over whole windows are multiplied."""
    if not graph.attribute("ceil_mode", 0):
        return False
    kernel, shape = graph.attribute("kernel_shape"), graph.shape()
    rank = len(kernel)
    spatial = (None,) * rank if shape is None else shape[2:]
    if None in spatial or graph.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise graph.refuse("is a mean with ceil_mode over an open extent", "give the inputs' shapes with shapes={...}")
    strides, dilations = (graph.attribute(name, [1] * rank) for name in ("strides", "dilations"))
    pads = graph.attribute("pads", [0] * 2 * rank)
    ends, factor = [], np.ones((1,) * (rank + 2))
    for axis in range(rank):
        window = PoolAxis(int(spatial[axis] or 0), pads[axis], pads[axis + rank], kernel[axis], strides[axis], dilations[axis])
        ends.append(window.reach)
        sides = [1] * (rank + 2)
        sides[axis + 2] = -1
        factor = factor * (kernel[axis] / window.counts(bool(graph.attribute("count_include_pad", 0)))).reshape(sides)
    element = graph.element()
    sides_of_all = graph.sizes([0, 0, *pads[:rank], 0, 0, *ends])
    padded = graph.add("Pad", graph.operand(0), sides_of_all, graph.constant(np.zeros((), element)))
    means = graph.add("AveragePool", padded, kernel_shape=kernel, strides=strides,
                      **({"dilations": dilations} if set(dilations) != {1} else {}))
    graph.add("Mul", means, graph.constant(factor.astype(element)), result=graph.here.output[0])
    return True


class PoolAxis:
    """The windows of a pool along one axis."""

    def __init__(self, extent: int, before: int, behind: int, kernel: int, stride: int, dilation: int) -> None:
        self.extent, self.end, self.before, self.kernel, self.stride, self.dilation = (
            extent, extent + before + behind, before, kernel, stride, dilation)
        width = dilation * (kernel - 1) + 1
        self.count = -(-(self.end - width) // stride) + 1
        if (self.count - 1) * stride >= extent + before:  # one that begins behind the operand is none
            self.count -= 1
        self.reach = max(behind, (self.count - 1) * stride + width - extent - before)

    def counts(self, with_padding: bool) -> Array:
        """How many places of each window lie within the padding, or within the operand."""
        places = np.arange(self.count)[:, None] * self.stride + np.arange(self.kernel) * self.dilation
        first, end = (0, self.end) if with_padding else (self.before, self.before + self.extent)
        return np.asarray(((places >= first) & (places < end)).sum(axis=1))


# ---- losses, norms, random -------------------------------------------------------------------------------------------------
def loss(graph: OnnxGraph) -> bool:
    """A loss of labels: the logarithms at the labels, weighed, as a sum over all classes of which one counts."""
    shape, labels = graph.shape(), graph.operand(1)
    if shape is None or shape[1] is None:
        raise graph.refuse("is a loss of which the number of classes is not known", "give the inputs' shapes with shapes={...}")
    classes, rank, element, kind = shape[1], len(shape), graph.element(), graph.element(1)
    logs = graph.operand(0)
    if graph.here.op_type == "SoftmaxCrossEntropyLoss":
        given = graph.here.output[1] if len(graph.here.output) > 1 and graph.here.output[1] else None
        logs = graph.add("LogSoftmax", logs, axis=1, result=given)
    sides = (1, classes, *(1,) * (rank - 2))
    column = graph.add("Unsqueeze", labels, graph.sizes([1])) if graph.opset >= 13 else graph.add("Unsqueeze", labels, axes=[1])
    counts = graph.add("Equal", column, graph.constant(np.arange(classes, dtype=kind).reshape(sides)))
    ignored = graph.attribute("ignore_index")
    if ignored is not None:
        other = graph.add("Not", graph.add("Equal", column, graph.constant(np.full((1,) * rank, ignored, kind))))
        counts = graph.add("And", counts, other)
    weights = graph.constant(np.ones(sides, element))
    if graph.operand(2):
        weights = graph.add("Reshape", graph.operand(2), graph.sizes(sides))
    zero = graph.constant(np.zeros((1,) * rank, element))
    parts = graph.add("Where", counts, graph.add("Neg", graph.add("Mul", logs, weights)), zero)
    reduction, result, everything = graph.attribute("reduction", "mean"), graph.here.output[0], list(range(rank))
    if reduction == "none":
        graph.along("ReduceSum", parts, [1], result, keep=False)
    elif reduction == "sum":
        graph.along("ReduceSum", parts, everything, result, keep=False)
    else:
        total = graph.along("ReduceSum", parts, everything, keep=False)
        weight = graph.along("ReduceSum", graph.add("Where", counts, weights, zero), everything, keep=False)
        graph.add("Div", total, weight, result=result)
    return True


def lp_normalization(graph: OnnxGraph) -> bool:
    """x / norm, and 0 where the norm is."""
    x, element = graph.operand(0), graph.element()
    norm = graph.along(f"ReduceL{graph.attribute('p', 2)}", x, [graph.attribute("axis", -1)])
    rank = len(graph.shape() or (0,))
    is_zero = graph.add("Equal", norm, graph.constant(np.zeros((1,) * rank, element)))
    divisor = graph.add("Where", is_zero, graph.constant(np.ones((1,) * rank, element)), norm)
    graph.add("Div", x, divisor, result=graph.here.output[0])
    return True


def dropout(graph: OnnxGraph) -> bool:
    """Refused in training, unless nothing is dropped."""
    if graph.opset < 12:
        if graph.opset < 7 and not graph.attribute("is_test", 0):
            raise graph.refuse("drops random elements, a graph has no random numbers", "export the model for inference")
        return False
    training, ratio = graph.known(2), graph.known(1)
    if graph.operand(2) and (training is None or training.any()) and (ratio is None or ratio.any()):
        raise graph.refuse("drops random elements in training, a graph has no random numbers", "export the model for inference")
    if len(graph.here.output) > 1 and graph.here.output[1]:
        return False
    graph.add("Identity", graph.operand(0), result=graph.here.output[0])
    return True


def bit_shift(graph: OnnxGraph) -> bool:
    """Shifts by less than the width only: others would take the shift's low bits."""
    shift, element = graph.known(1), graph.element()
    width = element.itemsize * 8
    if shift is None or ((shift < 0) | (shift >= width)).any():
        raise graph.refuse(f"shifts {element} by numbers that are not known to be below {width}",
                           "shift by constants from 0 on")
    return False


def triangle(graph: OnnxGraph) -> bool:
    """The triangle as a mask, for any diagonal."""
    shape, diagonal = graph.shape(), np.zeros((), np.int64) if not graph.operand(1) else graph.known(1)
    if shape is None or None in shape[-2:] or diagonal is None:
        raise graph.refuse("has a diagonal or extents that are not known", "give the inputs' shapes with shapes={...}")
    rows, columns = (int(n or 0) for n in shape[-2:])
    ones = np.ones((rows, columns), bool)
    mask = np.triu(ones, int(diagonal.item())) if graph.attribute("upper", 1) else np.tril(ones, int(diagonal.item()))
    element, place = graph.element(), graph.constant(mask.reshape((1,) * (len(shape) - 2) + mask.shape))
    if element.kind == "b":
        graph.add("And", graph.operand(0), place, result=graph.here.output[0])
    else:
        zero = graph.constant(np.zeros((1,) * len(shape), element))
        graph.add("Where", place, graph.operand(0), zero, result=graph.here.output[0])
    return True


def space_to_depth(graph: OnnxGraph) -> bool:
    """Blocks behind the channels that they come from, a mode of newer versions that torch-mlir takes for the other."""
    if graph.attribute("mode", "DCR") != "CRD":
        return False
    old, size = graph.shape(), graph.attribute("blocksize")
    if old is None or None in old:
        raise graph.refuse("has mode CRD and extents that are not known", "give the inputs' shapes with shapes={...}")
    batch, channels, height, width = (int(n or 0) for n in old)
    parts = graph.add("Reshape", graph.operand(0), graph.sizes([batch, channels, height // size, size, width // size, size]))
    moved = graph.add("Transpose", parts, perm=[0, 1, 3, 5, 2, 4])
    shape = graph.sizes([batch, channels * size * size, height // size, width // size])
    graph.add("Reshape", moved, shape, result=graph.here.output[0])
    return True


def remainder(graph: OnnxGraph) -> bool:
    """The floored remainder of floats is the dividend, or the divisor where the signs differ, for a divisor that is
    infinite."""
    element = graph.element()
    if element.kind != "f" or graph.attribute("fmod", 0):
        return False
    x, y = graph.here.input
    rest, infinity = graph.add("Mod", x, y), graph.constant(np.array(np.inf, element))
    zero = graph.constant(np.zeros((), element))
    same = graph.add("Equal", graph.add("Less", x, zero), graph.add("Less", y, zero))
    whole = graph.add("Where", graph.add("Or", same, graph.add("Equal", x, zero)), x, y)
    is_finite = graph.add("Less", graph.add("Abs", x), infinity)
    is_far = graph.add("And", graph.add("Equal", graph.add("Abs", y), infinity), is_finite)
    graph.add("Where", is_far, whole, rest, result=graph.here.output[0])
    return True


REWRITES: dict[str, Callable[[OnnxGraph], bool]] = {
    "Gather": along_axis(1), "GatherElements": along_axis(1), "ScatterElements": along_axis(1), "Scatter": along_axis(1),
    "GatherND": of_several_axes(1), "ScatterND": of_several_axes(1), "AveragePool": average_pool,
    "SoftmaxCrossEntropyLoss": loss, "NegativeLogLikelihoodLoss": loss, "LpNormalization": lp_normalization,
    "Dropout": dropout, "BitShift": bit_shift, "Mod": remainder, "Trilu": triangle, "SpaceToDepth": space_to_depth,
    "Resize": rewrite_resize, "Upsample": rewrite_resize}
"""What to do at a node of each kind."""
