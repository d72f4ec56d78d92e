"""Graphs of block-scaled tensors for the tests: run by the interpreter on records, and compiled, on values and scales."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
import numpy as np
import tosaic.lowering.dialects.tosa  # noqa: F401  registers the operators
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.block_scaled_arrays import joined, joined_all, split_all
from tosaic.lowering.graph.graph import BlockBuilder, Function, Module, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import (
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E5M2,
    MXINT8,
    BlockScaled,
    ElementType,
    TensorType,
    block_scaled,
)
from tosaic.lowering.graph.verify import verify
from tosaic.runtime.interpreter import interpret

Array = np.ndarray[Any, Any]
VALUES = (F8E4M3, F8E5M2, F6E3M2, F6E2M3, F4E2M1, MXINT8)
COMPOSITES = tuple(map(block_scaled, VALUES))
NO_NUMBERS = {"f8E4M3FN": (0x7F, 0xFF), "f8E5M2": (*range(0x7C, 0x80), *range(0xFC, 0x100))}
"""Codes of infinities and NaN."""


class Graph(BlockBuilder):
    """A block builder that takes operators by their short names."""

    def op(self, name: str, *operands: Value, **attributes: Any) -> Value:
        return self.add(OPERATORS[f"tosa.{name}"](**attributes), *operands)[0]

    def input(self, element: ElementType, *shape: int) -> Value:
        return self.argument(TensorType(shape, element), f"x{len(self.arguments)}")

    def constant(self, data: Array, element: ElementType) -> Value:
        return self.add(OPERATORS["tosa.const"](values=data, to=element))[0]

    def shape(self, *extents: int) -> Value:
        return self.add(OPERATORS["tosa.const_shape"](values=np.array(extents, np.int64)))[0]

    def zero(self, element: ElementType) -> Value:
        return self.constant(np.zeros(1, element.dtype), element)

    def module(self, *results: Value) -> Module:
        block = self.finish(*results)
        found = Module((Function("main", block, tuple(v.type for v in results)),))
        verify(found)
        return found


def codes(rng: np.random.Generator, element: ElementType, *shape: int) -> Array:
    """Random finite numbers of a type, as they are stored."""
    every = [c for c in range(1 << element.bits) if c not in NO_NUMBERS.get(element.name, ())]
    return rng.choice(np.array(every, np.uint8), shape).view(element.dtype)


def records(rng: np.random.Generator, element: BlockScaled, *shape: int, low: int = 117, high: int = 137) -> Array:
    """Random numbers of a composite type, their scales from 2^(low - 127) up."""
    scales = rng.integers(low, high, (*shape[:-1], shape[-1] // 32)).astype(np.uint8)
    return joined(codes(rng, element.value, *shape), scales, element)


def interpreted(module: Module, *arrays: Array) -> list[Array]:
    return list(interpret(module, "main", arrays))


def compiled(module: Module, *arrays: Array) -> list[Array]:
    """What the compiled function gives, brought to records."""
    function = module.function("main")
    run = Traced(module, "main").compile()
    found = run(*split_all(arrays, [a.type for a in function.arguments]))
    return joined_all(found if isinstance(found, tuple) else (found,), [y.type for y in function.body.yields])


def both(module: Module, *arrays: Array) -> list[tuple[Array, Array]]:
    """For each result, what the interpreter gives and what compiled code gives."""
    return list(zip(interpreted(module, *arrays), compiled(module, *arrays), strict=True))


def assert_same_bits(module: Module, *arrays: Array) -> list[Array]:
    """Both give the same bits; what they give."""
    pairs = both(module, *arrays)
    for number, (expected, found) in enumerate(pairs):
        assert found.dtype == expected.dtype and found.shape == expected.shape, number
        assert found.tobytes() == expected.tobytes(), number
    return [expected for expected, _ in pairs]


def one_operator(name: str, inputs: Sequence[tuple[ElementType, tuple[int, ...]]],
                 more: Callable[[Graph], Sequence[Value]] = lambda g: (), **attributes: Any) -> Module:
    """A module of one operator on arguments of these types, then on what `more` makes."""
    graph = Graph()
    operands = [graph.input(element, *shape) for element, shape in inputs]
    return graph.module(*graph.add(OPERATORS[f"tosa.{name}"](**attributes), *operands, *more(graph)))
