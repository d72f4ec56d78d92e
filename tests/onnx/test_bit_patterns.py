"""BitCast: what NumPy's view of the bytes is, payloads of NaN included."""
from __future__ import annotations

import ml_dtypes  # noqa: F401  NumPy knows bfloat16
import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")

from onnx import helper
from tosaic.lowering.dialects.onnx.element_types import BY_NUMBER
from tosaic.lowering.dialects.onnx.interpret import interpret

from .models import one_node

NUMBERS = {element.storage: number for number, element in BY_NUMBER.items() if element.bits >= 8}
WIDTHS = [[t for t in NUMBERS if np.dtype(t).itemsize == size] for size in (1, 2, 4, 8)]
PAIRS = [(a, b) for types in WIDTHS for i, a in enumerate(types) for step in (1, 2) for b in [types[(i + step) % len(types)]]]
"""From and to each type, two others of its width."""


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_bits_are_those_of_a_view(source: str, target: str) -> None:
    random = np.random.default_rng(1)
    x = random.integers(0, 256, 35 * np.dtype(source).itemsize, np.uint8).view(source).reshape(5, 7)
    model = one_node("BitCast", [x], {"to": NUMBERS[target]}, 26)
    found = tosaic.from_onnx(model)
    for y in (found(x), interpret(found.module, "main", [x])[0]):
        assert y.dtype.name == target and y.shape == x.shape and y.tobytes() == x.view(target).tobytes()
    known = tosaic.from_onnx(one_node("BitCast", [x], {"to": NUMBERS[target]}, 26, constants=[0]))
    assert known().tobytes() == x.tobytes()


NARROW = [("int4", "uint4"), ("uint4", "int4"), ("int4", "float4_e2m1fn"), ("float4_e2m1fn", "uint4"),
          ("uint4", "float4_e2m1fn"), ("float4_e2m1fn", "int4"), ("int2", "uint2"), ("uint2", "int2")]
WHOLE = {"int4": 22, "uint4": 21, "float4_e2m1fn": 23, "int2": 26, "uint2": 25}


@pytest.mark.parametrize("is_declared", [False, True])
@pytest.mark.parametrize(("source", "target"), NARROW)
def test_bits_of_fewer_than_eight_are_those_of_a_view(source: str, target: str, is_declared: bool) -> None:
    """Of an input, and of what an operator makes whose type the file does not say."""
    count = 4 if source.endswith("2") else 16
    codes = np.arange(count).astype(np.uint8)
    x = codes.view(source) if source.startswith("float") else codes.astype(np.int8 if source[0] == "i" else np.uint8)
    if source in ("int4", "int2"):
        x = np.where(codes >= count // 2, codes.astype(np.int8) - count, codes).astype(np.int8)
    right = np.arange(count)
    if target.startswith("int"):
        right = np.where(right >= count // 2, right - count, right)
    node = helper.make_node("BitCast", ["x" if is_declared else "t"], ["y"], to=WHOLE[target])
    nodes = [node] if is_declared else [helper.make_node("Identity", ["x"], ["t"]), node]
    graph = helper.make_graph(nodes, "narrow", [helper.make_tensor_value_info("x", WHOLE[source], [count])],
                              [helper.make_tensor_value_info("y", WHOLE[target], None)])
    found = tosaic.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=10))
    for y in (found(x), interpret(found.module, "main", [x])[0]):
        assert (y.view(np.uint8) if target.startswith("float") else y).tolist() == right.tolist()


def test_other_widths_are_refused() -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(tosaic.Problem, match="f32 has 32 bits, i64 has 64"):
        tosaic.from_onnx(one_node("BitCast", [x], {"to": 7}, 26))(x)
