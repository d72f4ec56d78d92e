"""The examples of the dialects' design document run as they are written, interpreted and compiled."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array, tensor_type
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.reader import read_module

from .corpus import DATA

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)
Y = np.array([[2.0, 1.0, -1.0], [4.0, 3.0, 0.25]], np.float32)
F = np.array(1.5, np.float32)
CASES = [
    ("some_function", ("function", "functions"), (X,), (X * 4,)),
    ("islands", ("islands",), (X, Y), ((Y + X) * Y, Y + X)),
    *(("spellings", ("other_spellings",), (F, np.array(n, np.int32), np.array(0)), (F, F + 1)) for n in (0, 1, 7)),
    *(("loop", ("loop",), (np.array(n, np.int32),), (np.array(0, np.int32),)) for n in (1, 2, 7)),
]


def document(names: tuple[str, ...]) -> Module:
    folder = DATA.parent / "tensorflow_document"
    return read_module("\n".join((folder / f"{name}.mlir").read_text() for name in names))


@pytest.mark.parametrize(("name", "texts", "inputs", "expected"), CASES)
def test_an_example_runs_as_it_is_written(name: str, texts: tuple[str, ...], inputs: tuple[Array, ...],
                                          expected: tuple[Array, ...]) -> None:
    module = document(texts)
    found = interpret(Environment(module), name, inputs)
    numbers = [a for a, v in zip(inputs, module.function(name).arguments) if hasattr(v.type, "is_static")]
    if len(numbers) == len(inputs):
        compiled = Traced(to_tosa(module, name, [tensor_type(a) for a in inputs]), name).compile()(*inputs)
        for result, right in zip(compiled if isinstance(compiled, tuple) else (compiled,), expected, strict=True):
            np.testing.assert_array_equal(result, right)
    for result, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result), right)
