"""Resize and Upsample of ONNX, along one axis after the other, as gathers of rows and weighted sums of them: every mode of
coordinates, which torch-mlir knows few of, and nearest with coordinates that it rounds otherwise.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .onnx_graph import Array, OnnxGraph

Coordinates = Callable[[Array, np.float32, np.float32, np.float32], Array]
"""Places in the operand for places in the result, a scale, and the extents of operand and result."""

COORDINATES: dict[str, Coordinates] = {
    "half_pixel": lambda x, scale, old, new: (x + 0.5) / scale - 0.5,
    "half_pixel_symmetric": lambda x, scale, old, new: (
        old / 2 * (1 - new / (scale * old)) + (x + 0.5) / scale - 0.5),
    "pytorch_half_pixel": lambda x, scale, old, new: (x + 0.5) / scale - 0.5 if new > 1 else np.zeros_like(x),
    "align_corners": lambda x, scale, old, new: x * (old - 1) / (new - 1) if new > 1 else np.zeros_like(x),
    "asymmetric": lambda x, scale, old, new: x / scale,
    "tf_half_pixel_for_nn": lambda x, scale, old, new: (x + 0.5) / scale}
ROUNDING: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5), "round_prefer_ceil": lambda x: np.floor(x + 0.5), "floor": np.floor,
    "ceil": np.ceil}


@dataclass(frozen=True, slots=True)
class Taps:
    """Of each row of the result: the rows of the operand that it is made of, [rows, taps], and their weights."""
    rows: Array
    weights: Array


@dataclass(frozen=True, slots=True)
class Mode:
    """The attributes of a resize."""
    mode: str
    coordinates: str
    rounding: str
    cubic: float
    excludes_outside: bool

    def taps(self, old: int, new: int, scale: float) -> Taps:
        """What the rows of an axis are made of; places are those of float32, in which runtimes have them."""
        single = np.float32
        place = COORDINATES[self.coordinates](np.arange(new, dtype=single), single(scale), single(old), single(new))
        if self.mode == "nearest":
            rows = ROUNDING[self.rounding](place).clip(0, old - 1)
            return Taps(rows.astype(np.int64)[:, None], np.ones((new, 1)))
        first = np.floor(place)
        part = (place - first)[:, None].astype(np.float64)
        offsets = np.array([0, 1] if self.mode == "linear" else [-1, 0, 1, 2])
        weights = np.hstack((1 - part, part)) if self.mode == "linear" else keys(part, self.cubic)
        rows = first[:, None] + offsets
        if self.excludes_outside:
            weights = np.where((rows < 0) | (rows >= old), 0, weights)
            weights = weights / weights.sum(axis=1, keepdims=True)
        return Taps(rows.clip(0, old - 1).astype(np.int64), weights)


def keys(part: Array, a: float) -> Array:
    """Keys' cubic kernel at four neighbours."""
    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return np.hstack((far(part + 1), near(part), near(1 - part), far(2 - part)))


def mode_of(graph: OnnxGraph) -> Mode:
    if graph.here.op_type == "Upsample" or graph.opset < 11:
        return Mode(graph.attribute("mode", "nearest"), "asymmetric", "floor", -0.75, False)
    return Mode(graph.attribute("mode", "nearest"), graph.attribute("coordinate_transformation_mode", "half_pixel"),
                graph.attribute("nearest_mode", "round_prefer_floor"), graph.attribute("cubic_coeff_a", -0.75),
                bool(graph.attribute("exclude_outside", 0)))


def rewrite_resize(graph: OnnxGraph) -> bool:
    """Write a resize whose shapes are known; what torch-mlir would have of another is not right."""
    mode, shape = mode_of(graph), graph.shape()
    axes = list(range(len(shape or ()))) if graph.attribute("axes") is None else [
        a % len(shape or ()) for a in graph.attribute("axes")]
    known = None if shape is None else extents(graph, axes, shape)
    smooth = bool(graph.attribute("antialias", 0))
    if mode.coordinates not in COORDINATES or smooth or mode.mode not in ("nearest", "linear", "cubic"):
        raise graph.refuse(f"is a resize with {mode.coordinates}{', antialiased' * smooth}, which is not supported")
    if known is None or shape is None:
        raise graph.refuse("is a resize of which the scales or extents are not known",
                           "give the inputs' shapes with shapes={...}; sizes and scales must be constants")
    x, element = graph.operand(0), graph.element()
    if element.kind != "f" and mode.mode != "nearest":
        raise graph.refuse(f"is a resize of {element} by {mode.mode} interpolation, which is not supported")
    steps = [(axis, new, scale) for axis, new, scale in known if new != shape[axis] or not np.isclose(scale, 1)]
    for axis, new, scale in steps:
        old = shape[axis]
        assert old is not None, "extents has seen it"
        x = resized(graph, x, axis, len(shape), mode.taps(old, new, scale), element)
    graph.add("Identity", x, result=graph.here.output[0])
    return True


def extents(graph: OnnxGraph, axes: list[int], shape: tuple[int | None, ...]) -> list[tuple[int, int, float]] | None:
    """Axes, their extents in the result, and scales; None where they are not known. An open axis may only stay as it is."""
    sizes, scales = graph.known(3) if graph.here.op_type == "Resize" and graph.opset >= 11 else None, scales_of(graph)
    found = []
    if sizes is not None and sizes.size:
        if any(shape[axis] is None and int(n) != 1 for axis, n in zip(axes, sizes)):
            return None
        return kept_ratio(graph, [(axis, int(n), shape[axis] or 1) for axis, n in zip(axes, sizes)])
    if scales is None or scales.size != len(axes):
        return None
    for axis, scale in zip(axes, scales.astype(np.float64)):
        old = shape[axis]
        if old is None:
            if scale != 1:
                return None
            continue
        found.append((axis, int(np.floor(old * scale)), float(scale)))
    return found


def kept_ratio(graph: OnnxGraph, sizes: list[tuple[int, int, int]]) -> list[tuple[int, int, float]]:
    """The extents that sizes mean, by the policy of the aspect ratio."""
    policy = graph.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [(axis, new, new / old) for axis, new, old in sizes]
    scale = (min if policy == "not_larger" else max)(new / old for _, new, old in sizes)
    return [(axis, int(np.floor(scale * old + 0.5)), scale) for axis, _, old in sizes]


def scales_of(graph: OnnxGraph) -> Array | None:
    if graph.here.op_type == "Upsample" and graph.opset < 9:
        return np.array(graph.attribute("scales"), np.float32)
    return graph.known(1 if graph.here.op_type == "Upsample" or graph.opset < 11 else 2)


def resized(graph: OnnxGraph, x: str, axis: int, rank: int, taps: Taps, element: np.dtype[Any]) -> str:
    """x with new rows along an axis."""
    found = ""
    shape = [1] * rank
    shape[axis] = -1
    for rows, weights in zip(taps.rows.T, taps.weights.T):
        picked = graph.add("Gather", x, graph.constant(rows), axis=axis)
        if taps.rows.shape[1] > 1:
            picked = graph.add("Mul", picked, graph.constant(weights.astype(element).reshape(shape)))
        found = graph.add("Add", found, picked) if found else picked
    return found
