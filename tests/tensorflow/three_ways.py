"""A function of TensorFlow's three ways: in the interpreter of its dialect, which says what is right, and as TOSA, in TOSA's
interpreter and as native code. What the tests of single operations and of small graphs stand on. Operation by operation it must
give what TOSA's interpreter gives."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tosaic
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import BY_STORAGE, Array, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import Interpreter

from .one_by_one import one_by_one, same, takes


class Answers(NamedTuple):
    """The results: the right ones, the native code's, the interpreter's."""
    expected: tuple[Array, ...]
    native: tuple[Array, ...]
    interpreted: tuple[Array, ...]


def type_of(array: Array) -> TensorType:
    return TensorType(array.shape, BY_STORAGE[array.dtype.name])


def tosa_of(text: str | Module, types: Sequence[TensorType] | None = None) -> Module:
    """The function @main as TOSA, verified; for arguments of these types, if they are not those of the text."""
    module = to_tosa(read_module(text) if isinstance(text, str) else text, "main", types)
    verify(module)
    return module


def three_ways(text: str, arguments: Sequence[Array], types: Sequence[TensorType] | None = None) -> tuple[Module, Answers]:
    """The function @main of a text as TOSA, and what it gives in each way."""
    module = read_module(text)
    expected = interpret(Environment(module), "main", list(arguments))
    tosa = tosa_of(module, types)
    native = Traced(tosa, "main").compile()(*arguments)
    interpreted = Interpreter(tosa, "main")(*arguments)
    if takes(module):
        same(one_by_one(runtime(), module, arguments, "reference"), interpreted)
    return tosa, Answers(tuple(map(np.asarray, expected)), native if isinstance(native, tuple) else (native,), interpreted)


@functools.cache
def runtime() -> tosaic.CoreRuntime:
    """One for all tests of a process; its kernels interpret."""
    return tosaic.CoreRuntime()
