"""Non-maximum suppression with as many rows as boxes can be kept: the common code of ONNX's and TensorFlow Lite's operators."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from ..formulas.division import divided
from ..formulas.indexing import gathered
from ..formulas.layout import part
from ..formulas.term import Term, maximum, minimum, select
from ..graph.graph import Value
from ..graph.types import F32, I32, I64, TensorType
from .control_flow import loop
from .data import Datum, ListOfTensors
from .emitter import Emitter
from .tensor_lists import tensor_of, with_element

LOWEST = float(np.finfo(np.float32).min)


def suppressed(e: Emitter, sides: list[Term], scores: Value, most: int, overlap: Value | None, least: Value | None
               ) -> tuple[Value, Value]:
    """Return the rows (batch, class, box) of the kept boxes, at most `most` of each class, -1 in unused rows, and the number of
    kept boxes. All classes of all images choose their best boxes together, one after the other."""
    given = Term(e, e.cast(scores, F32))
    alive = given.equals(given) if least is None else given > threshold(e, least)
    return put_together(e, chosen(e, sides, maximum(given, LOWEST), alive.value, most, threshold(e, overlap)))


def threshold(e: Emitter, given: Value | None) -> Term:
    """Return a threshold for every class."""
    return Term(e, e.constant(np.zeros((1, 1, 1), np.float32)) if given is None else e.reshape(given, (1, 1, 1)))


def sides_of(e: Emitter, boxes: Value, by_middles: bool = False) -> list[Term]:
    """Return top, left, bottom, right of each box, [batch, 1, N] each; with `by_middles` boxes are given as centers and
    extents."""
    batches, count, _ = boxes.tensor.dims
    a, b, c, d = (Term(e, e.reshape(part(e, boxes, 2, k, k + 1), (batches, 1, count))) for k in range(4))
    if by_middles:
        return [b - d * 0.5, a - c * 0.5, b + d * 0.5, a + c * 0.5]
    return [minimum(a, c), minimum(b, d), maximum(a, c), maximum(b, d)]


def chosen(e: Emitter, sides: list[Term], scores: Term, alive: Value, most: int, allowed: Term) -> Value:
    """Return the box that each iteration chooses, -1 if there is none: [most, batch, classes]."""
    batches, classes, count = scores.value.tensor.dims
    table = e.concat([e.reshape(s.value, (batches, count, 1)) for s in sides], 2)
    number = Term(e, e.constant(np.arange(count, dtype=np.int32).reshape(1, 1, count)))
    none = TensorType((batches, classes), I32)
    empty = e.constant(np.full((most, *none.dims), -1, np.int32))

    def body(state: list[Datum]) -> Sequence[Datum]:
        iteration, here, picks = state
        assert isinstance(iteration, Value) and isinstance(here, Value) and isinstance(picks, ListOfTensors)
        left = Term(e, here)
        best = e("argmax", select(left, scores, scores.term(-math.inf)).value, axis=2)
        box = gathered(e, table, best, 1, 1)
        own = [Term(e, part(e, box, 2, k, k + 1)) for k in range(4)]
        stays = left & ~(overlap_of(own, sides) > allowed) & number.differs(Term(e, e.reshape(best, (batches, classes, 1))))
        is_some = e.reshape(e("reduce_any", here, axis=2), none.dims)
        found = e.select(is_some, best, e.splat(-1, best))
        return e.sum(iteration, e.splat(1, iteration)), stays.value, with_element(e, picks, iteration, found)

    def test(state: list[Datum]) -> Value:
        iteration, here, _ = state
        assert isinstance(iteration, Value) and isinstance(here, Value)
        some = e("reduce_any", e.reshape(here, (here.tensor.size,)), axis=0)
        return e("logical_and", e.reshape(e("greater", e.splat(most, iteration), iteration), ()), e.reshape(some, ()))
    start: list[Datum] = [e.constant(np.array(0, np.int32)), alive, ListOfTensors(most, none, empty)]
    _, _, items = loop(e, start, test, body)
    assert isinstance(items, ListOfTensors)
    return tensor_of(e, items)


def put_together(e: Emitter, picks: Value) -> tuple[Value, Value]:
    """Return the boxes of all classes in order: for each row, the class that it belongs to is searched."""
    most, batches, classes = picks.tensor.dims
    groups = batches * classes
    boxes = Term(e, e.reshape(e.transpose(picks, (1, 2, 0)), (groups, most)))
    counts = (boxes >= 0).cast(I32).reduced("reduce_sum", 1)
    across = e.reshape(counts.value, (1, groups))
    before = e.constant(np.tri(groups, k=-1, dtype=bool))
    starts = Term(e, e("reduce_sum", e.select(before, across, e.splat(0, across)), axis=1))
    row = Term(e, e.constant(np.arange(groups * most, dtype=np.int32)[:, None]))
    ends = Term(e, e.reshape((starts + counts).value, (1, groups)))
    group = minimum((ends <= row).cast(I32).reduced("reduce_sum", 1), groups - 1)
    place = group * most + row - Term(e, gathered(e, e.reshape(starts.value, (groups,)), group.value, 0))
    box = gathered(e, e.reshape(boxes.value, (groups * most,)), place.value, 0)
    batch = Term(e, e("intdiv", group.value, e.splat(classes, group.value)))
    rows = Term(e, e.concat([batch.value, (group - batch * classes).value, box], 1))
    total = Term(e, e("reduce_sum", counts.value, axis=0))
    return select(row < total, rows, -1).cast(I64).value, e.reshape(e.cast(total.value, I64), ())


def overlap_of(first: Sequence[Term], second: Sequence[Term]) -> Term:
    """Return the part of their union that two boxes share; 0 if one has no area."""
    top, left = (maximum(a, b) for a, b in zip(first[:2], second[:2]))
    bottom, right = (minimum(a, b) for a, b in zip(first[2:], second[2:]))
    both = maximum(bottom - top, 0) * maximum(right - left, 0)
    areas = [(q[2] - q[0]) * (q[3] - q[1]) for q in (first, second)]
    union = reduce(lambda a, b: a + b, areas) - both
    return select((both > 0) & (union > 0), divided(both, union), both.term(0))
