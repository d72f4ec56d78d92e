"""ONNX's own node tests through `from_onnx`, on both engines: for each operator and combination of attributes a model of one
node, inputs, and the outputs that its reference gives. A test is right, wrong, or refused; a wrong one is the fault that is
looked for.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import tosaic
from onnx import numpy_helper

RTOL, ATOL = 1e-3, 1e-5
"""What ONNX's own runner allows (its tests say 1e-3 of a value, and 1e-7), with room for sums in another order near 0."""
LAST_PLACES = {"float16": 4 * 2.0**-10, "bfloat16": 4 * 2.0**-7}
"""Parts of a value that are four units of the last place, for types of which that is more."""
Engine = Literal["compiled", "interpreted", "onnxruntime"]
ENGINES: tuple[Engine, ...] = ("interpreted", "compiled")
"""Ours; the third is ONNX Runtime, to read them beside."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one test: with the Problem's message, or the first difference."""
    name: str
    operator: str
    engine: Engine
    verdict: Literal["right", "wrong", "refused"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:8}{self.engine:12}{self.operator:28}{self.name}: {self.reason}"


@cache
def node_tests() -> Sequence[Any]:
    """All of them: objects with `name`, `model`, `data_sets` (inputs and outputs), `rtol` and `atol`."""
    from onnx.backend.test.loader import load_node_model_tests
    return sorted(load_node_model_tests(), key=lambda test: test.name)


def operator_of(test: Any) -> str:
    """The operator that a test is of: that of its node, or of its name where there are several."""
    nodes = [n for n in test.model.graph.node if n.op_type not in ("Constant", "CastLike", "Cast")] or test.model.graph.node
    return f"{nodes[0].domain + '.' if nodes[0].domain else ''}{nodes[0].op_type}"


def judge(test: Any, engines: Sequence[Engine] = ENGINES) -> list[Verdict]:
    """A test as it is, and compiled as exporters write such nodes, too: with all inputs but the first as constants."""
    found = []
    for engine in engines:
        verdicts = [judge_model(test, test.model, test.data_sets, engine)]
        inputs, outputs = test.data_sets[0]
        tensors = [tensor_of(value) for value in inputs]
        if engine == "compiled" and len(inputs) > 1 and None not in tensors:
            verdicts.append(judge_model(test, with_constants(test.model, tensors), [(inputs[:1], outputs)], engine))
        order = ("wrong", "right", "refused")
        found.append(min(verdicts, key=lambda each: order.index(each.verdict)))
    return found


def tensor_of(value: Any) -> Any:
    """A test's input as a message; None where it is a sequence, or nothing."""
    if hasattr(value, "data_type"):
        return value
    return numpy_helper.from_array(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else None


def with_constants(model: Any, inputs: Sequence[Any]) -> Any:
    """The model, its inputs but the first bound to a test's values."""
    found = type(model).FromString(model.SerializeToString())
    names = [value.name for value in model.graph.input]
    for name, tensor in zip(names[1:], inputs[1:]):
        bound = found.graph.initializer.add()
        bound.CopyFrom(tensor)
        bound.name = name
    del found.graph.input[1:]
    return found


def judge_model(test: Any, proto: Any, data_sets: Sequence[Any], engine: Engine) -> Verdict:
    """Import a model, run it, and compare."""
    operator = operator_of(test)
    if engine == "onnxruntime":
        return judge_peer(test)
    try:
        model = tosaic.from_onnx(proto)
        for inputs, outputs in data_sets:
            found = run(model, list(map(array_of, inputs)), engine)
            reason = difference(found if isinstance(found, tuple) else (found,), list(map(array_of, outputs)), test)
            if reason:
                return Verdict(test.name, operator, engine, "wrong", reason)
    except tosaic.Problem as problem:
        return Verdict(test.name, operator, engine, "refused", problem.message)
    except Exception as error:
        return Verdict(test.name, operator, engine, "wrong", f"{type(error).__name__}: {error}")
    return Verdict(test.name, operator, engine, "right")


def judge_peer(test: Any) -> Verdict:
    """What ONNX Runtime makes of a test; whatever it raises is a refusal."""
    import onnxruntime as ort
    operator = operator_of(test)
    try:
        ort.set_default_logger_severity(4)
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = ort.InferenceSession(test.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        answers = [(session.run(None, dict(zip(names, map(array_of, inputs)))), list(map(array_of, outputs)))
                   for inputs, outputs in test.data_sets]
    except Exception as error:
        return Verdict(test.name, operator, "onnxruntime", "refused", str(error).splitlines()[0])
    reason = next(filter(None, (difference(found, right, test) for found, right in answers)), "")
    return Verdict(test.name, operator, "onnxruntime", "wrong" if reason else "right", reason)


def run(model: Any, arrays: Sequence[Any], engine: Engine) -> Any:
    if engine == "compiled":
        return model(*arrays)
    from tosaic.lowering.dialects.onnx.interpret import interpret
    return interpret(model.module, "main", arrays)


def array_of(value: Any) -> Any:
    """An array of a test's input or output, integers of four bits or two in bytes; sequences and strings stay what they are."""
    array = numpy_helper.to_array(value) if hasattr(value, "data_type") else value
    name = getattr(getattr(array, "dtype", None), "name", "")
    storage = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}.get(name)
    return array.astype(storage) if storage else array


def difference(found: Sequence[Any], right: Sequence[Any], test: Any) -> str:
    """Why results are not the right ones; nothing where they are."""
    if len(found) != len(right):
        return f"{len(found)} results, not {len(right)}"
    for number, (a, b) in enumerate(zip(found, right)):
        if isinstance(b, list | tuple):
            inner = difference(a, b, test) if isinstance(a, list | tuple) else f"{type(a).__name__} for a sequence"
            if inner:
                return f"result {number}: {inner}"
            continue
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
