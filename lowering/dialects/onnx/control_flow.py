"""Branches and loops: If, Loop, Scan. Subgraphs are the node's regions, in the order of their attributes' names.

A loop stays a loop for any number of iterations: its scan outputs are written row by row into one tensor. If iterations cannot
share code (a shape that changes, an index that must be known) and there are few, the loop is unrolled.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...formulas.layout import reversed_axis
from ...graph.graph import Value
from ...graph.types import I1, I64, Array
from ..control_flow import branch, loop
from ..data import Datum, ListOfTensors, described
from ..emitter import Emitter
from ..tensor_lists import element_at, list_of, tensor_of, with_element
from .along_axis import axis_of
from .gathering import depends
from .operator import Ints, Operator, operator

MOST_UNROLLED = 256
"""Maximum number of iterations that are unrolled if they cannot stay a loop."""
MOST_ITERATIONS = 1 << 24
"""Maximum number of iterations of one loop in the interpreter: more count as an infinite loop."""


def scalar(x: Any) -> Any:
    """Return the one element of an array."""
    return np.reshape(x, ())[()]


@operator("If")
class If(Operator):
    """If, with the regions else_branch and then_branch. A branch that cannot be lowered for these shapes, and is not known to
    be taken, ends the run if it is taken: a model for two sampling rates has a network for each."""

    def reference(self, condition: Array) -> tuple[Any, ...]:
        return tuple(self.inside(int(bool(scalar(condition))), []))

    def lower(self, e: Emitter, condition: Value) -> tuple[Datum, ...]:
        one = e.cast(e.reshape(condition, ()), I1)
        wrong: list[int] = []

        def side(number: int) -> Sequence[Datum]:
            try:
                return self.inside(number, [])
            except Problem as problem:
                wrong.extend([number] * (problem.kind == "shape"))
                raise
        try:
            return tuple(branch(e, one, lambda: side(1), lambda: side(0)))
        except Problem as problem:
            if not wrong or one.constant is not None:
                raise
            taken = one if wrong[-1] == 0 else e("logical_not", one)
            e.check(taken, f"a branch that cannot be computed for these shapes is taken: {problem.message}")
            return tuple(self.inside(1 - wrong[-1], []))


Step = Callable[[Value, Sequence[Datum]], tuple[Value | None, Sequence[Datum], Sequence[Value]]]
"""(number of the iteration, carried data) -> (whether to continue (None: always), carried data, scan outputs)."""


def iterated(e: Emitter, count: Value | None, go_on: Value | None, carried: Sequence[Datum], step: Step, collected: int
             ) -> tuple[Datum, ...]:
    """Return the carried data after a loop, and its scan outputs, [iterations, ...] each. `count` None: until the condition
    ends the loop."""
    known = None if count is None or count.constant is None else max(int(count.constant.reshape(())), 0)
    if go_on is not None and go_on.constant is not None and not go_on.constant.reshape(()).item():
        known = 0
    if known is not None and known <= 1:
        return written_out(e, known, go_on, carried, step, collected)
    try:
        return rolled(e, count, known, go_on, carried, step, collected)
    except Problem as problem:
        if known is None or known > MOST_UNROLLED or "depends on data" in problem.message:
            raise
        try:
            return written_out(e, known, go_on, carried, step, collected)
        except Problem:
            raise problem from None


def rolled(e: Emitter, count: Value | None, known: int | None, go_on: Value | None, carried: Sequence[Datum], step: Step,
           collected: int) -> tuple[Datum, ...]:
    """Emit a loop of TOSA."""
    if collected and known is None:
        raise depends("how often a loop runs that collects what it computes", "make the number of iterations a constant")
    first = e.constant(np.array(True)) if go_on is None else e.reshape(go_on, ())
    lists: list[Datum] = [ListOfTensors(known or 0, None) for _ in range(collected)]
    number = e.constant(np.array(0, np.int64))
    most = None if count is None else e.reshape(e.cast(count, I64), ())

    def test(state: Sequence[Datum]) -> Datum:
        place, goes = state[0], state[1]
        assert isinstance(place, Value) and isinstance(goes, Value)
        if most is None:
            return goes
        inside = e("greater", most, place)
        return inside if goes.constant is not None and goes.constant.item() else e("logical_and", inside, goes)

    def body(state: Sequence[Datum]) -> list[Datum]:
        place, goes, *rest = state
        assert isinstance(place, Value)
        again, new, items = step(place, rest[:len(carried)])
        after = goes if again is None else e.reshape(again, ())
        if collected and after is not first and not (isinstance(after, Value) and after.constant is not None):
            raise depends("how often a loop runs that collects what it computes", "let it run a known number of times")
        kept = [with_element(e, held, place, item) for held, item in zip(rest[len(carried):], items)  # type: ignore[arg-type]
                ]
        return [e.sum(place, e.constant(np.array(1, np.int64))), after, *new, *kept]

    found = loop(e, [number, first, *carried, *lists], test, body)[2:]
    return tuple(tensor_of(e, x) if isinstance(x, ListOfTensors) else x for x in found)


def written_out(e: Emitter, known: int, go_on: Value | None, carried: Sequence[Datum], step: Step, collected: int
                ) -> tuple[Datum, ...]:
    """Emit the iterations one by one. Without iterations, the types of the scan outputs follow from one that is emitted and
    dropped."""
    state: list[Datum] = list(carried)
    rows: list[list[Value]] = [[] for _ in range(collected)]
    if not known and collected:
        with e.region("dropped"):
            _, _, items = step(e.constant(np.array(0, np.int64)), state)
        return (*state, *(e.reshape(x, (0, *x.tensor.dims)) for x in items))
    for number in range(known):
        again, new, items = step(e.constant(np.array(number, np.int64)), state)
        if again is not None and again.constant is None and number + 1 < known:
            raise depends("whether a loop goes on", "let it run a known number of times")
        state = list(new)
        for row, item in zip(rows, items):
            row.append(e.reshape(item, (1, *item.tensor.dims)))
        if again is not None and again.constant is not None and not again.constant.reshape(()).item():
            break
    return (*state, *(e.concat(row, 0) for row in rows))


@operator("Loop")
class Loop(Operator):
    """Loop. The body takes the iteration's number, the condition and the carried data; it gives the next condition, the carried
    data, and the scan outputs."""

    def reference(self, count: Array | None = None, condition: Array | None = None, *carried: Any) -> tuple[Any, ...]:
        most = MOST_ITERATIONS if count is None else int(scalar(count))
        goes = True if condition is None else bool(scalar(condition))
        state, rows = list(carried), [[] for _ in range(self.results - len(carried))]  # type: list[Any], list[list[Any]]
        number = 0
        while goes and number < most:
            again, *found = self.inside(0, [np.array(number, np.int64), np.array(goes), *state])
            state, goes = list(found[:len(carried)]), bool(scalar(again))
            for row, item in zip(rows, found[len(carried):]):
                row.append(item)
            number += 1
        if number >= MOST_ITERATIONS:
            raise Problem(f"a loop of more than {MOST_ITERATIONS} iterations", kind="unsupported")
        return (*state, *(np.stack(row) if row else np.zeros((0,), np.float32) for row in rows))

    def lower(self, e: Emitter, count: Value | None = None, condition: Value | None = None, *carried: Datum
              ) -> tuple[Datum, ...]:
        def step(number: Value, state: Sequence[Datum]) -> tuple[Value | None, Sequence[Datum], Sequence[Value]]:
            goes = e.constant(np.array(True))
            again, *found = self.inside(0, [number, goes, *state])
            if not isinstance(again, Value):
                raise Problem(f"a condition is {described(again)}, not a tensor", kind="type")
            return again, found[:len(carried)], tensors(found[len(carried):])
        return iterated(e, count, condition, carried, step, max(self.results - len(carried), 0))


def tensors(data: Sequence[Datum]) -> list[Value]:
    """Return the scan outputs of a loop, which must be tensors."""
    for datum in data:
        if not isinstance(datum, Value):
            raise Problem(f"what a loop collects is {described(datum)}, not a tensor", kind="unsupported")
    return [d for d in data if isinstance(d, Value)]


@operator("Scan")
class Scan(Operator):
    """A loop over slices of tensors. In version 8 there are a leading batch axis, and an operand for the lengths of its
    sequences."""
    num_scan_inputs: int
    scan_input_axes: Ints = ()
    scan_input_directions: Ints = ()
    scan_output_axes: Ints = ()
    scan_output_directions: Ints = ()
    directions: Ints = ()

    def numbers(self, given: Sequence[int], count: int) -> list[int]:
        return [*given, *[0] * (count - len(given))]

    # ---- reference -------------------------------------------------------------------------------------------------------
    def reference(self, *operands: Any) -> tuple[Any, ...]:
        if self.version >= 9:
            return self.scanned(operands)
        lengths, *given = operands
        if lengths is not None:
            raise Problem("lengths of sequences are not known here", kind="unsupported")
        rows = [self.scanned([x[b] for x in given]) for b in range(given[0].shape[0])]
        return tuple(np.stack(column) for column in zip(*rows))

    def scanned(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        count = len(operands) - self.num_scan_inputs
        state, inputs = list(operands[:count]), operands[count:]
        axes = self.numbers(self.scan_input_axes, len(inputs))
        back = self.numbers(self.scan_input_directions or self.directions, len(inputs))
        rows = [np.moveaxis(x, axis_of(a, x.ndim), 0)[::-1 if d else 1] for x, a, d in zip(inputs, axes, back)]
        collected: list[list[Any]] = []
        for items in zip(*rows):
            found = self.inside(0, [*state, *items])
            state = list(found[:count])
            collected.append(list(found[count:]))
        outputs = []
        columns = [list(column) for column in zip(*collected)]
        to = self.numbers(self.scan_output_axes, len(columns))
        turned = self.numbers(self.scan_output_directions, len(columns))
        for column, axis, d in zip(columns, to, turned):
            whole = np.stack(column[::-1] if d else column)
            outputs.append(np.moveaxis(whole, 0, axis_of(axis, whole.ndim)))
        return (*state, *outputs)

    # ---- lowering --------------------------------------------------------------------------------------------------------
    def lower(self, e: Emitter, *operands: Datum) -> tuple[Datum, ...]:
        if self.version >= 9:
            return self.lowered_scan(e, tensors(operands))
        lengths, *given = operands
        if lengths is not None:
            raise Problem("lengths of sequences have no place in this version's Scan", kind="unsupported",
                          help="write the model with a newer opset")
        values = tensors(given)
        rows = []
        for b in range(values[0].tensor.dims[0]):
            row = [e.reshape(e.slice(v, (b, *[0] * (v.tensor.rank - 1)), (1, *v.tensor.dims[1:])), v.tensor.dims[1:])
                   for v in values]
            rows.append(tensors(self.lowered_scan(e, row)))
        return tuple(e.concat([e.reshape(v, (1, *v.tensor.dims)) for v in column], 0) for column in zip(*rows))

    def lowered_scan(self, e: Emitter, operands: Sequence[Value]) -> tuple[Datum, ...]:
        count = len(operands) - self.num_scan_inputs
        state, inputs = operands[:count], operands[count:]
        axes = self.numbers(self.scan_input_axes, len(inputs))
        back = self.numbers(self.scan_input_directions or self.directions, len(inputs))
        rows = [list_of(reversed_axis(e, y, 0) if d else y) for y, d in
                ((to_front(e, x, axis_of(a, x.tensor.rank)), d) for x, a, d in zip(inputs, axes, back))]
        if len({r.count for r in rows}) != 1:
            raise Problem("the scanned tensors have other lengths", kind="shape")

        def step(number: Value, carried: Sequence[Datum]) -> tuple[Value | None, Sequence[Datum], Sequence[Value]]:
            found = self.inside(0, [*carried, *(element_at(e, row, number) for row in rows)])
            return None, found[:count], tensors(found[count:])
        collected = self.results - count
        found = iterated(e, e.constant(np.array(rows[0].count, np.int64)), None, state, step, collected)
        outputs = []
        to, turned = (self.numbers(given, collected) for given in (self.scan_output_axes, self.scan_output_directions))
        for value, axis, d in zip(tensors(found[count:]), to, turned):
            whole = reversed_axis(e, value, 0) if d else value
            outputs.append(from_front(e, whole, axis_of(axis, value.tensor.rank)))
        return (*found[:count], *outputs)


def to_front(e: Emitter, x: Value, axis: int) -> Value:
    return e.transpose(x, (axis, *(a for a in range(x.tensor.rank) if a != axis)))


def from_front(e: Emitter, x: Value, axis: int) -> Value:
    order = [*range(1, axis + 1), 0, *range(axis + 1, x.tensor.rank)]
    return e.transpose(x, order)
