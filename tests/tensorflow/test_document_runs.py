"""The examples of the dialects' design document run as they are written, interpreted and compiled."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array, tensor_type
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

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
    check(interpret(Environment(document(texts)), name, inputs), expected)


@pytest.mark.parametrize(("name", "texts", "inputs", "expected"), [c for c in CASES if c[0] != "spellings"])
def test_an_example_compiles_as_it_is_written(name: str, texts: tuple[str, ...], inputs: tuple[Array, ...],
                                              expected: tuple[Array, ...]) -> None:
    """All but the spellings, which take a string."""
    found = Traced(to_tosa(document(texts), name, [tensor_type(a) for a in inputs]), name).compile()(*inputs)
    check(found if isinstance(found, tuple) else (found,), expected)


def test_an_argument_of_strings_is_refused_by_its_name() -> None:
    with pytest.raises(Problem, match="argument %s is a"):
        to_tosa(document(("other_spellings",)), "spellings", [tensor_type(F), tensor_type(np.array(0, np.int32))])


def check(found: Sequence[Any], expected: Sequence[Array]) -> None:
    for result, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result), right)
