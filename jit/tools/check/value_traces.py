"""The operation at which the values of a translation depart from those of its source: both are run with all their values, and
the results of the source's operations are compared in the source's order, call by call and iteration by iteration. It finds
errors that no operation alone shows: a branch, a loop-carried value, the order of writes, whether something runs at all.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....lowering.dialects.tf.values import TensorList
from ....lowering.graph.graph import Operation, Value
from ....lowering.graph.types import Array
from ....lowering.rewrite.translation_record import Translated
from .following import MISSING, Follower
from .operator_bounds import near, plain

DRIFT = 1e-2
"""Relative drift of floats that is ignored: the faults that this stage looks for are larger."""


@dataclass(slots=True, eq=False)
class Trace:
    """The values of the source in one call, over time, and the writes to variables. `order` holds the operations by the time of
    their first result, in the source's order."""
    values: dict[Value, list[Any]] = field(default_factory=dict)
    writes: dict[str, list[tuple[Operation, Array]]] = field(default_factory=dict)
    order: list[Operation] = field(default_factory=list)
    seen: set[Operation] = field(default_factory=set)
    carried: set[Value] = field(default_factory=set)
    """Loop-carried values: they appear once in each iteration, from the first on."""

    def came(self, operation: Operation, results: Sequence[Any]) -> None:
        """Record an operation of the source that has run; dead results are None."""
        if operation not in self.seen:
            self.seen.add(operation)
            self.order.append(operation)
        for value, datum in zip(operation.results, results):
            if datum is not None:
                self.values.setdefault(value, []).append(datum)

    def written(self, operation: Operation, name: str, array: Array) -> None:
        self.writes.setdefault(name, []).append((operation, array))
        if operation not in self.seen:
            self.seen.add(operation)
            self.order.append(operation)

    def complete(self, follower: Follower, record: Translated) -> None:
        """Record the results of a complete record of the translation."""
        found = [follower.datum(d) for d in record.results]
        self.carried.update(v for v, d in zip(record.operation.results, record.results)
                            if d in follower.arguments and d not in record.operands)
        self.came(record.operation, [None if x is MISSING else x for x in found])


def first_apart(source: Trace, translated: Trace, right: set[Operation]) -> Operation | None:
    """Return the first operation of the source whose results or writes differ in the translation; operations in `right` differ
    because of others."""
    writes = writes_apart(source.writes, translated)
    found = next((o for o in source.order if o in writes or (o not in right and any(
        apart(source.values.get(v), translated.values.get(v), v in translated.carried) for v in o.results))), None)
    alone = next((o for o in translated.order if o in writes and o not in source.seen), None)
    if alone is None or found is None:
        return found or alone
    return next((o for o in translated.order if o is alone or o is found), found)


def writes_apart(source: Mapping[str, Sequence[tuple[Operation, Array]]], translated: Trace) -> list[Operation]:
    """Return the writes to variables that the other side lacks, or has with another value."""
    found: list[Operation] = []
    for name in dict.fromkeys((*source, *translated.writes)):
        one, other = source.get(name, ()), translated.writes.get(name, ())
        for (operation, value), (_, again) in zip(one, other):
            if differs(value, again):
                found.append(operation)
                break
        else:
            found += [operation for operation, _ in (*one[len(other):], *other[len(one):])][:1]
    return found


def apart(source: Sequence[Any] | None, translated: Sequence[Any] | None, is_carried: bool) -> bool:
    """True if the values over time differ. Values that one side has computed a different number of times are not compared,
    unless a loop carries them."""
    if not source or not translated or (len(source) != len(translated) and not is_carried):
        return False
    return any(differs(a, b) for a, b in zip(source, translated))


def differs(a: Any, b: Any) -> bool:
    if not all(isinstance(x, np.ndarray | np.generic | TensorList) for x in (a, b)):
        return False
    one, other = plain(a), plain(b)
    if one.shape != other.shape or one.dtype.kind in "OUS" or other.dtype.kind in "OUS":
        return one.shape != other.shape
    if one.dtype.kind in "iub":
        return bool((one != other).any())
    with np.errstate(all="ignore"):
        finite = np.abs(one[np.isfinite(one)]).astype(np.float64)
        return not near(one, other, DRIFT * float(finite.max(initial=0.0))).all()
