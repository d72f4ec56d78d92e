"""Operations of TensorFlow against its registry: what that does not allow is a Problem, and nothing ends in another error."""
from __future__ import annotations

import collections
from collections.abc import Sequence

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tf import interpret as interpreter
from tosaic.lowering.dialects.tf.definitions import definitions
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.dialects.tf.legalizations import LEGALIZATIONS
from tosaic.lowering.dialects.tf.references import REFERENCES
from tosaic.lowering.graph.types import Array
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.rewrite.tensorflow.special import SPECIAL
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret as interpret_tosa

from .random_operations import random_operation

SEEDS = range(12)
"""Of each operator: thousands of operations in seconds."""
NAMES = sorted(definitions())


def verdict(name: str, seed: int) -> str:
    """What a random operation comes to; whatever is no Problem and no equal result fails."""
    text, arrays = random_operation(name, seed)
    try:
        module = read_module(text)
        verify(module)
    except Problem:
        return "refused"
    try:
        tosa = to_tosa(module, "main")
        verify(tosa)
    except Problem:
        tosa = None
    if "!tf_type" in text.partition(") -> ")[0]:
        return "handles"
    try:
        expected = interpret(Environment(module), "main", arrays)
    except Problem:
        return "not interpreted" if tosa is None else "compiled alone"
    if tosa is None:
        return "not compiled"
    try:
        found = interpret_tosa(tosa, tosa.function("main"), arrays)
    except Problem:
        return "not run"
    compare(found, expected, text)
    return "equal"


def compare(found: Sequence[Array], expected: Sequence[object], text: str) -> None:
    assert len(found) == len(expected)
    for mine, right in zip(found, expected):
        if not isinstance(right, np.ndarray):
            continue
        assert mine.shape == right.shape and mine.dtype == right.dtype, text
        if right.dtype.kind in "biu":
            assert (mine == right).all(), text
        else:
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(mine.astype(np.float64), right.astype(np.float64), rtol=0.05, atol=0.02, err_msg=text)
