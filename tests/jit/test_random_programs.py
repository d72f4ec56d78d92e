"""Programs made at random from NumPy's operators: compiled, they compute what NumPy does on the same arrays.

Floats hold small whole numbers or halves, so that sums and products are exact in any order and results can be compared
bit for bit.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic

Step = Callable[[Any], Any]
LIMIT = 1 << 10
"""Elements of a value, and its largest magnitude: beyond, it is cut down."""


class Program:
    """A list of steps; each takes all values so far and makes one more. `sample` holds the values on arrays."""

    def __init__(self, seed: int, length: int) -> None:
        self.random = np.random.default_rng(seed)
        self.inputs = [self.fresh(self.shape()) for _ in range(2)]
        self.sample: list[Any] = list(self.inputs)
        self.steps: list[Step] = []
        while len(self.steps) < length:
            self.add()

    def shape(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.random.choice([1, 2, 3, 5, 8, 17], self.random.integers(1, 4)))

    def fresh(self, shape: tuple[int, ...]) -> Any:
        if self.random.random() < 0.3:
            return self.random.integers(-9, 10, shape).astype(np.int32)
        return (self.random.integers(-8, 9, shape) / 2).astype(np.float32)

    def add(self) -> None:
        """Append a step that works on the sample."""
        step = self.candidate()
        try:
            value = step(self.sample)
        except (ValueError, IndexError, TypeError):
            return
        if not 0 < np.size(value) <= LIMIT or np.ndim(value) > 4:
            return
        if np.asarray(value).dtype not in (np.float32, np.int32, np.bool_):
            return
        if np.asarray(value).dtype != np.bool_ and np.abs(value).max() > LIMIT:
            plain = step

            def step(values: Any) -> Any:
                return np.clip(plain(values), -7, 7)
            value = step(self.sample)
        self.steps.append(step)
        self.sample.append(value)

    def candidate(self) -> Step:
        """A step that may or may not fit: on the latest value or any other, and on another one of its type."""
        random = self.random
        a = len(self.sample) - 1 if random.random() < 0.5 else int(random.integers(len(self.sample)))
        x = np.asarray(self.sample[a])
        like = [i for i, y in enumerate(self.sample) if np.asarray(y).dtype == x.dtype]
        b, number, axis = int(random.choice(like)), int(random.integers(8)), int(random.integers(max(1, x.ndim)))
        width, key = random.integers(0, 3, (x.ndim, 2)).tolist(), self.key(x.shape)
        moves: list[Step] = [
            lambda v: np.transpose(v[a]), lambda v: np.concatenate([v[a], v[b]], axis),
            lambda v: np.stack([v[a], v[b]], axis), lambda v: np.flip(v[a], axis), lambda v: v[a][key],
            lambda v: v[a].reshape(-1), lambda v: v[a].reshape((*x.shape[:-1], -1, 1)), lambda v: np.tile(v[a], 2),
            lambda v: np.squeeze(v[a]), lambda v: v[a] == v[b], lambda v: np.where(v[a] == v[b], v[a], v[b])]
        numbers: list[Step] = [
            lambda v: BINARY[number](v[a], v[b]), lambda v: BINARY[number](v[b], v[a]), lambda v: v[a] * 2 - 1,
            lambda v: -abs(v[a]), lambda v: np.where(v[a] > 0, v[a], v[b]), lambda v: np.pad(v[a], width),
            lambda v: reduced(v[a], axis, number), lambda v: v[a] @ np.swapaxes(v[b], -1, -2),
            lambda v: v[a] * (v[b] < 1), lambda v: np.take(v[a], [0, x.shape[axis] - 1, 0], axis),
            lambda v: np.floor(v[a] / 2).astype(np.int32)]
        chosen = moves if x.dtype == np.bool_ or random.random() < 0.4 else numbers
        return chosen[int(random.integers(len(chosen)))]

    def key(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        keys = []
        for n in shape:
            low, high = sorted(int(i) for i in self.random.integers(0, n + 1, 2))
            step = int(self.random.choice([1, 1, 2, 3, -1]))
            keys.append(slice(None, None, step) if low == high or step < 0 else slice(low, high, step))
        return tuple(keys)

    def __call__(self, *inputs: Any) -> Any:
        values = list(inputs)
        for step in self.steps:
            values.append(step(values))
        return tuple(values[len(inputs):])


BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, np.maximum, np.minimum, lambda x, y: x > y,
    lambda x, y: x >= y, lambda x, y: x + y * 2]


def reduced(x: Any, axis: int, which: int) -> Any:
    """A maximum, or a sum of the operand's type."""
    if not x.ndim:
        return x + 1
    if which % 3 == 0:
        return np.max(x, axis=axis)
    return np.sum(x, axis=axis, keepdims=which % 3 == 1).astype(x.dtype)


@pytest.mark.parametrize("seed", range(20))
def test_a_random_program_computes_what_numpy_does(seed: int) -> None:
    program = Program(seed, length=12)
    function = tosaic.jit(program)
    results = function(*program.inputs)
    for number, (actual, expected) in enumerate(zip(results, program.sample[2:], strict=True)):
        assert actual.dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(actual, expected, err_msg=f"value {number}")


@pytest.mark.parametrize("seed", range(40, 60))
def test_the_last_value_alone_is_the_same(seed: int) -> None:
    program = Program(seed, length=10)
    actual = tosaic.jit(lambda *inputs: program(*inputs)[-1])(*program.inputs)
    np.testing.assert_array_equal(actual, program.sample[-1])
