"""The split of one item's arrays into calls: an array of an input's own shape is one call; an array with one more leading axis,
or with a multiple of the input's first extent, is several calls, one after the other, whose results are concatenated.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ..descriptors import Shape, TensorDescriptor

Form = Literal["one", "stacked", "grouped"]


class CallShapes(NamedTuple):
    """The form of an item's arrays: one call, or `times` calls that are stacked along an axis of their own or grouped along the
    first."""
    form: Form
    times: int = 1

    def calls(self, arrays: Sequence[Array], inputs: Sequence[TensorDescriptor]) -> Iterator[list[Array]]:
        """Yield the arrays of each call."""
        if self.form == "one":
            yield list(arrays)
            return
        for number in range(self.times):
            yield [self.part(array, tensor, number) for array, tensor in zip(arrays, inputs)]

    def part(self, array: Array, tensor: TensorDescriptor, number: int) -> Array:
        if self.form == "stacked":
            found: Array = array[number]
            return np.ascontiguousarray(found)
        rows = rows_of(tensor.shape)
        return np.ascontiguousarray(array[number * rows:(number + 1) * rows])

    def joined(self, results: Sequence[Sequence[Array]]) -> list[Array]:
        """Return the results of all calls, concatenated."""
        if self.form == "one":
            return list(results[0])
        return [np.concatenate(each) if self.form == "grouped" and each[0].ndim else np.stack(each)
                for each in zip(*results)]


def call_shapes(inputs: Sequence[TensorDescriptor], arrays: Sequence[Array]) -> CallShapes:
    """Return the form in which these arrays are calls of a function with these inputs; raise a Problem if they are none."""
    shapes = [tuple(a.shape) for a in arrays]
    if all(fits(t.shape, s) for t, s in zip(inputs, shapes)):
        return CallShapes("one")
    for form, count_of in COUNTS.items():
        counts = {count_of(t.shape, s) for t, s in zip(inputs, shapes)}
        if len(counts) == 1 and (count := counts.pop()):
            return CallShapes(form, count)
    got = ", ".join(f"{t.name} is {list(s)} for {t.element} {list(t.shape or ())}".replace("None", "?")
                    for t, s in zip(inputs, shapes))
    raise Problem(f"the arrays fit no call: {got}", kind="shape",
                  help="an array has the input's shape, or one more axis in front, or a multiple of its first extent")


def fits(shape: Shape, found: Sequence[int]) -> bool:
    return shape is None or (len(shape) == len(found) and all(n in (None, m) for n, m in zip(shape, found)))


def stacked(shape: Shape, found: Sequence[int]) -> int:
    return found[0] if shape is not None and len(found) == len(shape) + 1 and fits(shape, found[1:]) else 0


def grouped(shape: Shape, found: Sequence[int]) -> int:
    rows = rows_of(shape)
    is_multiple = bool(shape and found and rows and found[0] % rows == 0 and fits(shape[1:], found[1:]))
    return found[0] // rows if is_multiple else 0


def rows_of(shape: Shape) -> int:
    """Return the first extent of a shape, 0 if there is none or it is open."""
    return (shape[0] or 0) if shape else 0


COUNTS: Mapping[Form, Callable[[Shape, Sequence[int]], int]] = {"stacked": stacked, "grouped": grouped}
