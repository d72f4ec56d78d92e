"""NonMaxSuppression: among boxes that overlap much, keep the box of the highest score.

The number of kept boxes depends on data, and code has fixed shapes: the operator of ai.onnx is interpreted, and evaluated at
compile time if its operands are known. The operator of that name of the domain `tosaic` has a row for each box that can be
kept: the rows of the kept boxes come first, the others are -1, and a second result is the number of kept boxes.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph.graph import Value
from ...graph.types import I64, Array, TensorType
from ..emitter import Emitter, integers
from ..suppression import sides_of, suppressed
from .gathering import depends
from .operator import Operator, operator

LOWEST = float(np.finfo(np.float32).min)


class Suppression(Operator):
    """Boxes [batch, N, 4] by two corners, or with `center_point_box` by centers and extents; scores [batch, classes, N]."""
    center_point_box: int = 0

    def kept(self, boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
                  least: Array | None = None) -> Array:
        limit = 0 if most is None else int(np.reshape(most, ()))
        allowed = 0.0 if overlap is None else float(np.reshape(overlap, ()))
        rows = []
        for batch, kind in np.ndindex(*scores.shape[:2]):
            own = scores[batch, kind]
            order = [k for k in np.argsort(-own, kind="stable") if least is None or own[k] > float(np.reshape(least, ()))]
            kept: list[int] = []
            for k in order:
                if len(kept) < limit and all(self.overlap(boxes[batch, k], boxes[batch, j]) <= allowed for j in kept):
                    kept.append(int(k))
            rows += [[batch, kind, k] for k in kept]
        return np.array(rows, np.int64).reshape(-1, 3)

    def corners(self, box: Array) -> tuple[float, float, float, float]:
        a, b, c, d = map(float, box)
        if self.center_point_box:
            return b - d / 2, a - c / 2, b + d / 2, a + c / 2
        return min(a, c), min(b, d), max(a, c), max(b, d)

    def overlap(self, first: Array, second: Array) -> float:
        a, b = self.corners(first), self.corners(second)
        height = min(a[2], b[2]) - max(a[0], b[0])
        width = min(a[3], b[3]) - max(a[1], b[1])
        if height <= 0 or width <= 0:
            return 0.0
        both = height * width
        areas = [(q[2] - q[0]) * (q[3] - q[1]) for q in (a, b)]
        return both / (sum(areas) - both) if sum(areas) > both else 0.0


@operator("NonMaxSuppression")
class NonMaxSuppression(Suppression):
    """The kept boxes: [kept, 3] of batch, class and box."""

    def reference(self, boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
                  least: Array | None = None) -> Array:
        return self.kept(boxes, scores, most, overlap, least)

    def lower(self, e: Emitter, boxes: Value, scores: Value, most: Value | None = None, overlap: Value | None = None,
              least: Value | None = None) -> Value:
        limits = (most, overlap, least)
        if boxes.constant is not None and scores.constant is not None and all(
                v is None or v.constant is not None for v in limits):
            return e.constant(self.kept(boxes.constant, scores.constant, *(None if v is None else v.constant for v in limits)))
        raise depends("how many boxes stay", "set the node's domain to tosaic: it gives as many rows as can stay, with -1 in "
                      "those that are not used, and as a second result how many are")


@operator("tosaic.NonMaxSuppression")
class PaddedSuppression(Suppression):
    """The same with as many rows as boxes can be kept, and the number of used rows."""

    def reference(self, boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
                  least: Array | None = None) -> tuple[Array, Array]:
        kept = self.kept(boxes, scores, most, overlap, least)
        rows = np.full((self.rows(scores.shape, 0 if most is None else int(np.reshape(most, ()))), 3), -1, np.int64)
        rows[:len(kept)] = kept
        return rows, np.array(len(kept), np.int64)

    def rows(self, dims: Sequence[int], limit: int) -> int:
        batches, classes, count = dims
        return batches * classes * min(max(limit, 0), count)

    def lower(self, e: Emitter, boxes: Value, scores: Value, most: Value | None = None, overlap: Value | None = None,
              least: Value | None = None) -> tuple[Value, Value]:
        limit = 0 if most is None else integers(most, "the number of boxes")[0]
        if not self.rows(scores.tensor.dims, limit):
            return e.zeros(TensorType((0, 3), I64)), e.constant(np.array(0, np.int64))
        sides = sides_of(e, boxes, bool(self.center_point_box))
        return suppressed(e, sides, scores, min(limit, scores.tensor.dims[2]), overlap, least)
