"""STRIDED_SLICE and SLICE that a TensorFlow Lite converter gets wrong or cannot convert: a test for them, and the indices that
they take.

A slice with constant indices selects indices of each axis, as in NumPy. A slice that begins at indices from a tensor takes rows
by their number along each such axis; its size must be known. The converter lowers slices with steps of 1 within their tensor.
"""
from __future__ import annotations

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from .constants import integers
from .records import OperatorRecord, SubgraphRecord, TensorRecord

Shape = tuple[int, ...]
OpenShape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Indices:
    """Indices of one axis: `count` of them from `start` on, `step` apart; None for a whole axis of unknown extent. `keep` is
    false for an axis that is removed."""
    start: int
    step: int
    count: int | None
    keep: bool = True


NEW_AXIS = Indices(0, 1, 1)


@dataclass(frozen=True, slots=True)
class StridedSlice:
    """A STRIDED_SLICE in terms of its operands: one entry for each axis named."""
    begin: Shape
    end: Shape
    step: Shape
    begin_mask: int
    end_mask: int
    ellipsis_mask: int
    new_axis_mask: int
    shrink_axis_mask: int


# ---- selection of slices -------------------------------------------------------------------------------------------
def is_slice_of_ours(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True if this package lowers a slice; the converter lowers the others."""
    tensors = [graph.tensors[t] if t >= 0 else None for t in operator.inputs]
    match operator.kind, tensors:
        case "STRIDED_SLICE", [TensorRecord() as x, TensorRecord(), TensorRecord(), TensorRecord()]:
            spec = spec_of(graph, operator)
            return row_axes(graph, operator) is not None if spec is None else not is_plain(spec, x.shape)
        case "SLICE", [TensorRecord() as x, TensorRecord(), TensorRecord()]:
            return is_static(x) and row_axes(graph, operator) is not None
    return False


def is_static(tensor: TensorRecord) -> bool:
    return None not in tensor.shape


def dims(tensor: TensorRecord) -> Shape:
    return tuple(n for n in tensor.shape if n is not None)


def spec_of(graph: SubgraphRecord, operator: OperatorRecord) -> StridedSlice | None:
    """Return the slice if begin, end and steps are constants with at most as many entries each as the tensor has axes."""
    begin, end, step = (integers(graph.tensors[t]) for t in operator.inputs[1:])
    if begin is None or end is None or step is None or not len(begin) == len(end) == len(step):
        return None
    if operator.options["offset"]:
        end = tuple(b + e for b, e in zip(begin, end))
    return StridedSlice(begin, end, step, *(int(operator.options[f"{name}_mask"])
                                            for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")))


def is_plain(spec: StridedSlice, shape: OpenShape) -> bool:
    """True if all steps are 1, no mask is set that the converter might not know, and no index is out of bounds."""
    if not set(spec.step) <= {1} or len(spec.begin) > len(shape) or spec.ellipsis_mask or spec.new_axis_mask:
        return False
    if spec.begin_mask & spec.shrink_axis_mask:
        return False
    free = spec.end_mask | spec.shrink_axis_mask
    return all(is_whole(spec, i) if n is None else
               (spec.begin_mask >> i & 1 or -n <= b < n) and (free >> i & 1 or -n <= e <= n)
               for i, (b, e, n) in enumerate(zip(spec.begin, spec.end, shape)))


def is_whole(spec: StridedSlice, i: int) -> bool:
    """True if entry `i` takes all of its axis, in its order."""
    return bool(spec.begin_mask & spec.end_mask & ~spec.shrink_axis_mask & 1 << i) and spec.step[i] == 1


# ---- constant indices ----------------------------------------------------------------------------------------------
def axes_of(spec: StridedSlice, shape: OpenShape) -> list[tuple[Indices, bool]]:
    """Return the indices of each axis of the result and of each removed axis, in order; True for axes that are new."""
    found: list[tuple[Indices, bool]] = []
    named = [i for i in range(len(spec.begin)) if not (spec.new_axis_mask >> i & 1 and not spec.ellipsis_mask >> i & 1)]
    ellipses = sum(spec.ellipsis_mask >> i & 1 for i in range(len(spec.begin)))
    rest = len(shape) - (len(named) - ellipses)
    if ellipses > 1:
        raise Problem(f"a slice has {ellipses} ellipses, there can be one", kind="attribute")
    if rest < 0:
        raise Problem(f"a slice of {len(named)} axes, the tensor has {len(shape)}", kind="shape")
    axis = 0
    for i in range(len(spec.begin)):
        if spec.ellipsis_mask >> i & 1:
            found += [(Indices(0, 1, n), False) for n in shape[axis:axis + rest]]
            axis += rest
        elif spec.new_axis_mask >> i & 1:
            found.append((NEW_AXIS, True))
        else:
            found.append((indices_of(spec, i, shape[axis]), False))
            axis += 1
    return found + [(Indices(0, 1, n), False) for n in shape[axis:]]


def indices_of(spec: StridedSlice, i: int, extent: int | None) -> Indices:
    """Return the indices that entry `i` selects of an axis. TensorFlow Lite applies masks before it reads the indices."""
    begin = None if spec.begin_mask >> i & 1 else spec.begin[i]
    end = None if spec.end_mask >> i & 1 else spec.end[i]
    step = spec.step[i]
    if extent is None:
        if not is_whole(spec, i):
            raise Problem("a slice along an axis of unknown extent is not supported", kind="unsupported")
        return Indices(0, 1, None)
    if step == 0:
        raise Problem("a step of the slice is 0", kind="attribute")
    if spec.shrink_axis_mask >> i & 1:
        first = (0 if step > 0 else extent - 1) if begin is None else begin + extent * (begin < 0)
        if not 0 <= first < extent:
            raise Problem(f"index {begin} is outside of an axis of {extent}", kind="shape")
        return Indices(first, 1, 1, False)
    chosen = range(*slice(begin, end, step).indices(extent))
    if not chosen:
        raise Problem(f"the slice takes nothing of an axis of {extent}, tensors without elements are not supported",
                      kind="unsupported")
    return Indices(chosen.start, step if len(chosen) > 1 else 1, len(chosen))


# ---- indices from a tensor -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RowAxes:
    """A slice that begins at indices from a tensor: the number of indices that it takes of each axis (None for all), and the
    axes that are removed."""
    counts: tuple[int | None, ...]
    dropped: frozenset[int]
    wraps: bool


def row_axes(graph: SubgraphRecord, operator: OperatorRecord) -> RowAxes | None:
    """Return the axes of a slice whose start is a tensor; None if it cannot be lowered."""
    x, begin = graph.tensors[operator.inputs[0]], graph.tensors[operator.inputs[1]]
    rank, named = len(x.shape), begin.shape[0] if len(begin.shape) == 1 else None
    if begin.data is not None or named is None or named > rank or begin.type not in (2, 4) or not is_static(x):
        return None
    if operator.kind == "SLICE":
        sizes = integers(graph.tensors[operator.inputs[2]])
        if sizes is None or not len(sizes) == named == rank or not all(0 < n <= m for n, m in zip(sizes, dims(x))):
            return None
        return RowAxes(tuple(None if n == m else n for n, m in zip(sizes, dims(x))), frozenset(), False)
    options, step = operator.options, integers(graph.tensors[operator.inputs[3]])
    if step != (1,) * named or options["ellipsis_mask"] or options["new_axis_mask"]:
        return None
    shrunk, whole = int(options["shrink_axis_mask"]), int(options["begin_mask"]) & int(options["end_mask"])
    if any((shrunk >> i & 1) == (whole >> i & 1) for i in range(named)):
        return None
    dropped = frozenset(i for i in range(named) if shrunk >> i & 1)
    return RowAxes(tuple(1 if i in dropped else None for i in range(rank)), dropped, True)
