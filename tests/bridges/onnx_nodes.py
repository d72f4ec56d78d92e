"""ONNX's own node tests through `from_onnx`: for each operator and combination of attributes a model of one node, inputs, and
the outputs that its reference gives. A test is right, wrong, or refused; a wrong one is the fault that is looked for.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import tosaic
from onnx import numpy_helper

RTOL, ATOL = 1e-3, 1e-5
"""What ONNX's own runner allows (its tests say 1e-3 of a value, and 1e-7), with room for sums in another order near 0."""
LAST_PLACES = {"float16": 4 * 2.0**-10, "bfloat16": 4 * 2.0**-7}
"""Parts of a value that are four units of the last place, for types of which that is more."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one test: with the Problem's message, or the first difference."""
    name: str
    verdict: Literal["right", "wrong", "refused"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:8}{self.name}: {self.reason}"


def node_tests() -> Sequence[Any]:
    """All of them: objects with `name`, `model`, `data_sets` (inputs and outputs), `rtol` and `atol`."""
    from onnx.backend.test.loader import load_node_model_tests
    return sorted(load_node_model_tests(), key=lambda test: test.name)


def judge(test: Any) -> Verdict:
    """A test as it is, and as exporters write such nodes: with all inputs but the first as constants."""
    verdicts = [judge_model(test, test.model, test.data_sets)]
    inputs, outputs = test.data_sets[0]
    if len(inputs) > 1 and all(hasattr(value, "data_type") for value in inputs):
        verdicts.append(judge_model(test, with_constants(test.model, inputs), [(inputs[:1], outputs)]))
    order = ("wrong", "right", "refused")
    return min(verdicts, key=lambda each: order.index(each.verdict))


def with_constants(model: Any, inputs: Sequence[Any]) -> Any:
    """The model, its inputs but the first bound to a test's values."""
    found = type(model).FromString(model.SerializeToString())
    for value, tensor in zip(model.graph.input[1:], inputs[1:]):
        bound = found.graph.initializer.add()
        bound.CopyFrom(tensor)
        bound.name = value.name
    del found.graph.input[1:]
    return found


def judge_model(test: Any, proto: Any, data_sets: Sequence[Any]) -> Verdict:
    """Import a model, compile it, and compare."""
    try:
        model = tosaic.from_onnx(proto)
        for inputs, outputs in data_sets:
            found = model(*map(array_of, inputs))
            reason = difference(found if isinstance(found, tuple) else (found,), list(map(array_of, outputs)), test)
            if reason:
                return Verdict(test.name, "wrong", reason)
    except tosaic.Problem as problem:
        return Verdict(test.name, "refused", problem.message)
    return Verdict(test.name, "right")


def array_of(value: Any) -> Any:
    """An array of a test's input or output; sequences, optionals and strings stay what they are."""
    return numpy_helper.to_array(value) if hasattr(value, "data_type") else value


def difference(found: Sequence[Any], right: Sequence[Any], test: Any) -> str:
    """Why results are not the right ones; nothing where they are."""
    if len(found) != len(right):
        return f"{len(found)} results, not {len(right)}"
    for number, (a, b) in enumerate(zip(found, right)):
        a, b = np.asarray(a), np.asarray(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"result {number} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        wide = np.float64 if b.dtype.kind in "fV" else b.dtype
        x, y = a.astype(wide), b.astype(wide)
        part = LAST_PLACES.get(b.dtype.name, RTOL)
        with np.errstate(all="ignore"):
            same = np.isclose(x, y, part, ATOL * part / RTOL, equal_nan=True) if wide == np.float64 else x == y
        if not np.all(same):
            index = tuple(int(i) for i in np.argwhere(~same)[0])
            count = f"{int((~same).sum())} of {same.size} differ"
            return f"result {number} has {a[index]} at {list(index)}, not {b[index]} ({count})"
    return ""


def counted(verdicts: Iterable[Verdict]) -> Mapping[str, int]:
    counts = {"right": 0, "wrong": 0, "refused": 0}
    for each in verdicts:
        counts[each.verdict] += 1
    return counts
