"""NonMaxSuppression: of boxes that overlap much the one of the highest score.

How many boxes stay depends on data, and code has fixed shapes: the operator of ai.onnx is interpreted, and computed where its
operands are known. The operator of that name of the domain `tosaic` has a row for each box that can stay: the rows of those
that do come first, -1 stands in the others, and a second result says how many they are.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from ...formulas.division import divided
from ...formulas.indexing import gathered
from ...formulas.layout import part
from ...formulas.term import Term, maximum, minimum, select
from ...graph.graph import Value
from ...graph.types import F32, I32, I64, Array, TensorType
from ..control_flow import loop
from ..data import Datum, ListOfTensors
from ..emitter import Emitter, integers
from ..tensor_lists import tensor_of, with_element
from .gathering import depends
from .operator import Operator, operator

LOWEST = float(np.finfo(np.float32).min)


class Suppression(Operator):
    """Boxes [batch, N, 4] by two corners, or with `center_point_box` by middles and extents; scores [batch, classes, N]."""
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
    """Which boxes stay: [kept, 3] of batch, class and box."""

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
    """The same with as many rows as can stay, and how many are used."""

    def reference(self, boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
                  least: Array | None = None) -> tuple[Array, Array]:
        kept = self.kept(boxes, scores, most, overlap, least)
        rows = np.full((self.rows(scores.shape, 0 if most is None else int(np.reshape(most, ()))), 3), -1, np.int64)
        rows[:len(kept)] = kept
        return rows, np.array(len(kept), np.int64)

    def rows(self, dims: Sequence[int], limit: int) -> int:
        batches, classes, count = dims
        return batches * classes * min(max(limit, 0), count)

    # ---- lowering ----------------------------------------------------------------------------------------------------
    def lower(self, e: Emitter, boxes: Value, scores: Value, most: Value | None = None, overlap: Value | None = None,
              least: Value | None = None) -> tuple[Value, Value]:
        """All classes of all images together choose their best boxes, one after the other."""
        limit = 0 if most is None else integers(most, "the number of boxes")[0]
        rows = self.rows(scores.tensor.dims, limit)
        if not rows:
            return e.zeros(TensorType((0, 3), I64)), e.constant(np.array(0, np.int64))
        turns = min(limit, scores.tensor.dims[2])
        given = Term(e, e.cast(scores, F32))
        alive = given.equals(given) if least is None else given > self.number(e, least)
        picks = self.chosen(e, self.sides(e, boxes), maximum(given, LOWEST), alive.value, turns, self.number(e, overlap))
        return self.put_together(e, picks)

    def number(self, e: Emitter, given: Value | None) -> Term:
        """A threshold, for every class."""
        return Term(e, e.constant(np.zeros((1, 1, 1), np.float32)) if given is None else e.reshape(given, (1, 1, 1)))

    def sides(self, e: Emitter, boxes: Value) -> list[Term]:
        """Top, left, bottom, right of each box, [batch, 1, N] each."""
        batches, count, _ = boxes.tensor.dims
        a, b, c, d = (Term(e, e.reshape(part(e, boxes, 2, k, k + 1), (batches, 1, count))) for k in range(4))
        if self.center_point_box:
            return [b - d * 0.5, a - c * 0.5, b + d * 0.5, a + c * 0.5]
        return [minimum(a, c), minimum(b, d), maximum(a, c), maximum(b, d)]

    def chosen(self, e: Emitter, sides: list[Term], scores: Term, alive: Value, turns: int, allowed: Term) -> Value:
        """[turns, batch, classes]: the box that each turn chooses, -1 where there is none."""
        batches, classes, count = scores.value.tensor.dims
        table = e.concat([e.reshape(s.value, (batches, count, 1)) for s in sides], 2)
        number = Term(e, e.constant(np.arange(count, dtype=np.int32).reshape(1, 1, count)))
        none = TensorType((batches, classes), I32)
        empty = e.constant(np.full((turns, *none.dims), -1, np.int32))

        def body(state: list[Datum]) -> Sequence[Datum]:
            turn, here, picks = state
            assert isinstance(turn, Value) and isinstance(here, Value) and isinstance(picks, ListOfTensors)
            left = Term(e, here)
            best = e("argmax", select(left, scores, scores.term(-math.inf)).value, axis=2)
            box = gathered(e, table, best, 1, 1)
            own = [Term(e, part(e, box, 2, k, k + 1)) for k in range(4)]
            stays = left & ~(overlap_of(own, sides) > allowed) & number.differs(Term(e, e.reshape(best, (batches, classes, 1))))
            is_some = e.reshape(e("reduce_any", here, axis=2), none.dims)
            found = e.select(is_some, best, e.splat(-1, best))
            return e.sum(turn, e.splat(1, turn)), stays.value, with_element(e, picks, turn, found)

        def test(state: list[Datum]) -> Value:
            turn, here, _ = state
            assert isinstance(turn, Value) and isinstance(here, Value)
            some = e("reduce_any", e.reshape(here, (here.tensor.size,)), axis=0)
            return e("logical_and", e.reshape(e("greater", e.splat(turns, turn), turn), ()), e.reshape(some, ()))
        start: list[Datum] = [e.constant(np.array(0, np.int32)), alive, ListOfTensors(turns, none, empty)]
        _, _, items = loop(e, start, test, body)
        assert isinstance(items, ListOfTensors)
        return tensor_of(e, items)

    def put_together(self, e: Emitter, picks: Value) -> tuple[Value, Value]:
        """The boxes of all classes one after the other: of each row it is found to which class it belongs."""
        turns, batches, classes = picks.tensor.dims
        groups = batches * classes
        boxes = Term(e, e.reshape(e.transpose(picks, (1, 2, 0)), (groups, turns)))
        counts = (boxes >= 0).cast(I32).reduced("reduce_sum", 1)
        across = e.reshape(counts.value, (1, groups))
        before = e.constant(np.tri(groups, k=-1, dtype=bool))
        starts = Term(e, e("reduce_sum", e.select(before, across, e.splat(0, across)), axis=1))
        row = Term(e, e.constant(np.arange(groups * turns, dtype=np.int32)[:, None]))
        ends = Term(e, e.reshape((starts + counts).value, (1, groups)))
        group = minimum((ends <= row).cast(I32).reduced("reduce_sum", 1), groups - 1)
        place = group * turns + row - Term(e, gathered(e, e.reshape(starts.value, (groups,)), group.value, 0))
        box = gathered(e, e.reshape(boxes.value, (groups * turns,)), place.value, 0)
        batch = Term(e, e("intdiv", group.value, e.splat(classes, group.value)))
        rows = Term(e, e.concat([batch.value, (group - batch * classes).value, box], 1))
        total = Term(e, e("reduce_sum", counts.value, axis=0))
        return select(row < total, rows, -1).cast(I64).value, e.reshape(e.cast(total.value, I64), ())


def overlap_of(first: Sequence[Term], second: Sequence[Term]) -> Term:
    """The part of their union that two boxes share; 0 where one has no area."""
    top, left = (maximum(a, b) for a, b in zip(first[:2], second[:2]))
    bottom, right = (minimum(a, b) for a, b in zip(first[2:], second[2:]))
    both = maximum(bottom - top, 0) * maximum(right - left, 0)
    areas = [(q[2] - q[0]) * (q[3] - q[1]) for q in (first, second)]
    union = reduce(lambda a, b: a + b, areas) - both
    return select((both > 0) & (union > 0), divided(both, union), both.term(0))
