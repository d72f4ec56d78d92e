"""BitCast: what NumPy's view of the bytes is, payloads of NaN included."""
from __future__ import annotations

import itertools

import ml_dtypes  # noqa: F401  NumPy knows bfloat16
import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")

from tosaic.lowering.dialects.onnx.element_types import BY_NUMBER
from tosaic.lowering.dialects.onnx.interpret import interpret

from .models import one_node

NUMBERS = {element.storage: number for number, element in BY_NUMBER.items() if element.bits >= 8}
PAIRS = [(a, b) for a, b in itertools.permutations(NUMBERS, 2) if np.dtype(a).itemsize == np.dtype(b).itemsize]


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


def test_other_widths_are_refused() -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(tosaic.Problem, match="f32 has 32 bits, i64 has 64"):
        tosaic.from_onnx(one_node("BitCast", [x], {"to": 7}, 26))(x)
