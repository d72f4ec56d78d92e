"""A function of TensorFlow's run operation by operation in the op-by-op runtime: the fourth way of `three_ways`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tosaic
from tosaic import OpAttrs
from tosaic.lowering.dialects.tf.operator import CONST
from tosaic.lowering.graph.foreign import find, spelling
from tosaic.lowering.graph.graph import Module, Operation
from tosaic.lowering.graph.types import F64, Array, ElementType, TensorType
from tosaic.lowering.rewrite.tensorflow.one_operation import is_function
from tosaic.lowering.text.attributes import Dense, Number, Numbers

RESULT_TYPE = {"tf.Cast": "DstT", "tf.Bitcast": "type", "tf.Shape": "out_type", "tf.ShapeN": "out_type", "tf.Size": "out_type",
               "tf.ArgMax": "output_type", "tf.ArgMin": "output_type", "tf.BatchMatMulV3": "Tout", "tf.TopKV2": "index_type"}
"""The attribute of TensorFlow's that says what MLIR has in a result's type; it is that of the last result."""


def takes(module: Module) -> bool:
    """True if every operation is one that the runtime has: no lists, no handles, no control flow, no complex numbers, no
    strings; and no ScatterNd of f64, which only has a place in TOSA where its indices are constants of a graph."""
    return all((spelling(o) == CONST and isinstance(o.results[0].type, TensorType) and find(o, "value") is not None)
               or (is_function(spelling(o)) and not is_scattered_f64(o)
                   and all(isinstance(r.type, TensorType) for r in o.results))
               for o in module.function("main").body.operations)


def is_scattered_f64(operation: Operation) -> bool:
    return spelling(operation) == "tf.ScatterNd" and operation.operands[1].tensor.element == F64


def one_by_one(rt: tosaic.CoreRuntime, module: Module, arguments: Sequence[Array], handler: str) -> list[Array]:
    """The results, each operation executed alone."""
    body = module.function("main").body
    values: dict[Any, tosaic.TensorHandle] = dict(zip(body.arguments, map(rt.tensor, arguments)))
    for operation in body.operations:
        if spelling(operation) == CONST:
            found: Any = [rt.tensor(find(operation, "value").array)]
        else:
            found = [None] * len(operation.results)
            rt.execute(spelling(operation), handler, None, [values[v].copy() for v in operation.operands],
                       attributes_of(operation), found)
        values.update(zip(operation.results, found))
    return [values[v].get() for v in body.yields]


def attributes_of(operation: Operation) -> OpAttrs:
    """Those of the text as a client sets them."""
    attributes = OpAttrs()
    properties = {**(operation.op.properties or {}), **operation.attributes}  # type: ignore[attr-defined]
    for name, value in properties.items():
        match value:
            case Number():
                attributes.set(name, value.value)
            case Numbers():
                attributes.set_array(name, value.values)
            case Dense():
                attributes.set(name, value.array)
            case ElementType():
                attributes.set(name, value.dtype)
            case tuple():
                attributes.set_array(name, [v.value if isinstance(v, Number) else v for v in value])
            case bool() | str():
                attributes.set(name, value)
    result = operation.results[-1].type if operation.results else None
    if isinstance(result, TensorType):
        attributes.set(RESULT_TYPE.get(spelling(operation), "dtype"), result.element.dtype)
    if spelling(operation) in ("tf.Split", "tf.SplitV"):
        attributes.set("num_split", len(operation.results))
    if spelling(operation) == "tf.Unpack":
        attributes.set("num", len(operation.results))
    return attributes


def same(found: Sequence[Array], right: Sequence[Array]) -> None:
    """Types and shapes, integers and bools exactly, floats nearly: constants of a graph may be folded otherwise."""
    for mine, wanted in zip(found, right, strict=True):
        assert (mine.dtype, mine.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind in "iub":
            np.testing.assert_array_equal(mine, wanted)
            continue
        with np.errstate(all="ignore"):
            a, b = mine.astype(np.float64), wanted.astype(np.float64)
            near = np.abs(a - b) <= 1e-5 * np.maximum(np.abs(b), np.abs(b[np.isfinite(b)]).max(initial=1e-30))
            assert (near | (a == b) | (np.isnan(a) & np.isnan(b))).all(), (a, b)
