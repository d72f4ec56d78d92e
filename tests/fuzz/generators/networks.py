"""Random networks whose results are exact in every order, from each door: floats that are small integers, in operators that
keep them so. A network is drawn in a vocabulary of its own; a door writes it down, each as models there are written.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array

MOST = 1 << 20
"""The greatest magnitude of a value: products of small integers and their sums stay exact in float32 well beyond."""
ROWS, COLUMNS, CHANNELS = (1, 2, 5, 9, 16, 24, 40), (1, 3, 6, 12, 17), (1, 2, 3, 4, 8, 16, 24)
Pads = tuple[int, int, int, int]
Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value of the network: what the door calls it, its extents (batch, rows, columns, channels), its greatest magnitude."""
    handle: Any
    dims: Dims
    most: int


class Door(Protocol):
    """Writes operators down. Images are [N, H, W, C], weights [O, KH, KW, C], depthwise ones [KH, KW, C, 1]."""

    def input(self, dims: Dims, indices_below: int = 0) -> Any: ...
    def conv(self, x: Any, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> Any: ...
    def depthwise(self, x: Any, w: Array, b: Array, stride: int, pad: Pads, dilation: int) -> Any: ...
    def max_pool(self, x: Any, kernel: int, stride: int) -> Any: ...
    def clamp(self, x: Any, low: float, high: float) -> Any: ...
    def binary(self, name: str, x: Any, y: Any) -> Any: ...
    def scaled(self, x: Any, factors: Array) -> Any: ...
    def concat(self, x: Any, y: Any, axis: int) -> Any: ...
    def slice(self, x: Any, start: Dims, size: Dims) -> Any: ...
    def pad(self, x: Any, before: Dims, after: Dims) -> Any: ...
    def turned(self, x: Any) -> Any: ...
    def rows(self, x: Any, dims: Dims) -> Any: ...
    def product(self, x: Any, w: Array) -> Any: ...
    def gathered(self, x: Any, indices: Any, dims: Dims) -> Any: ...
    def reduced(self, name: str, x: Any, axis: int) -> Any: ...
    def select(self, x: Any, y: Any) -> Any: ...
    def finish(self, results: Sequence[Any]) -> tuple[Module, str]: ...


@dataclass(slots=True)
class Network:
    """A network that is being drawn; `data` are the arrays of its inputs."""
    rng: random.Random
    door: Door
    data: list[Array]

    @staticmethod
    def numbers(rng: random.Random) -> np.random.Generator:
        return np.random.default_rng(rng.getrandbits(32))

    def integers(self, dims: Dims, low: int = -3, high: int = 3) -> Array:
        return self.numbers(self.rng).integers(low, high, dims, endpoint=True).astype(np.float32)

    def input(self, dims: Dims) -> Value:
        self.data.append(self.integers(dims, -4, 4))
        return Value(self.door.input(dims), dims, 4)

    def small(self, x: Value, most: int = 64) -> Value:
        """The value within bounds that allow for one more sum."""
        return x if x.most <= most else Value(self.door.clamp(x.handle, -4.0, 4.0), x.dims, 4)

    # ---- steps ---------------------------------------------------------------------------------------------------
    def window(self, x: Value) -> Value | None:
        """A convolution, now and then with a stride above its extents."""
        x, rng = self.small(x), self.rng
        (n, h, w, c), kernel = x.dims, (rng.choice((1, 1, 2, 3)), rng.choice((1, 3)))
        stride, dilation, before = rng.choice((1, 1, 1, 2, 3)), rng.choice((1, 1, 2)), rng.choice((0, 1, 1))
        free = [extent + 2 * before - 1 - (k - 1) * dilation for extent, k in zip((h, w), kernel)]
        if min(free) < 0:
            return None
        after = [before + (-f) % stride for f in free]
        out = rng.choice(CHANNELS)
        deep = rng.random() < 0.4
        weight = self.integers((*kernel, c, 1) if deep else (out, *kernel, c))
        bias = self.integers((c if deep else out,))
        dims = n, *((f + a - before) // stride + 1 for f, a in zip(free, after)), c if deep else out
        make = self.door.depthwise if deep else self.door.conv
        pad = before, after[0], before, after[1]
        terms = kernel[0] * kernel[1] * (1 if deep else c)
        return Value(make(x.handle, weight, bias, stride, pad, dilation), dims, 3 * terms * x.most + 3)

    def pool(self, x: Value) -> Value | None:
        kernel = self.rng.choice((2, 3))
        stride = self.rng.choice((1, 2, 3))
        n, h, w, c = x.dims
        if min(h, w) < kernel or (h - kernel) % stride or (w - kernel) % stride:
            return None
        return Value(self.door.max_pool(x.handle, kernel, stride),
                     (n, (h - kernel) // stride + 1, (w - kernel) // stride + 1, c), x.most)

    def clamp(self, x: Value) -> Value:
        return Value(self.door.clamp(x.handle, 0.0, 6.0), x.dims, 6)

    def scaled(self, x: Value) -> Value:
        return Value(self.door.scaled(x.handle, self.integers((x.dims[-1],))), x.dims, 3 * x.most)

    def turned(self, x: Value) -> Value:
        n, h, w, c = x.dims
        return Value(self.door.turned(x.handle), (n, w, h, c), x.most)

    def padded(self, x: Value) -> Value:
        before = (0, self.rng.randint(0, 2), self.rng.randint(0, 2), 0)
        after = (0, self.rng.randint(0, 2), self.rng.randint(0, 2), 0)
        dims = tuple(b + d + a for b, d, a in zip(before, x.dims, after))
        return Value(self.door.pad(x.handle, before, after), dims, x.most)

    def sliced(self, x: Value) -> Value:
        start = tuple(self.rng.randint(0, d // 3) for d in x.dims)
        size = tuple(self.rng.randint(max(1, (d - s) // 2), d - s) for s, d in zip(start, x.dims))
        return Value(self.door.slice(x.handle, start, size), size, x.most)

    def product(self, x: Value) -> Value:
        x = self.small(x)
        n, h, w, c = x.dims
        out = self.rng.choice(CHANNELS)
        rows = self.door.rows(x.handle, (n * h * w, c))
        made = self.door.product(rows, self.integers((c, out)))
        return Value(self.door.rows(made, (n, h, w, out)), (n, h, w, out), 3 * c * x.most)

    def gathered(self, x: Value) -> Value:
        """Rows in an order that only the run knows."""
        n, h, w, c = x.dims
        count = self.rng.randint(1, 2 * h)
        self.data.append(self.numbers(self.rng).integers(0, h, (1, count)).astype(np.int32))
        indices = self.door.input((1, count), h)
        flat = self.door.rows(x.handle, (1, n * h, w * c))
        dims = (1, count, w, c)
        return Value(self.door.rows(self.door.gathered(flat, indices, (1, count, w * c)), dims), dims, x.most)

    def reduced(self, x: Value) -> Value:
        axis, name = self.rng.choice((1, 2, 3)), self.rng.choice(("sum", "max"))
        dims = tuple(1 if d == axis else n for d, n in enumerate(x.dims))
        return Value(self.door.reduced(name, x.handle, axis), dims, x.most * (x.dims[axis] if name == "sum" else 1))

    def joined(self, x: Value, seen: Sequence[Value]) -> Value | None:
        """The value with another one: of the same extents element by element, else side by side."""
        alike = [v for v in seen if v.dims == x.dims]
        if alike and self.rng.random() < 0.7:
            y = self.rng.choice(alike)
            match self.rng.choice(("add", "sub", "maximum", "mul", "select")):
                case "mul" if x.most * y.most <= MOST:
                    return Value(self.door.binary("mul", x.handle, y.handle), x.dims, x.most * y.most)
                case "select":
                    return Value(self.door.select(x.handle, y.handle), x.dims, max(x.most, y.most))
                case "maximum":
                    return Value(self.door.binary("maximum", x.handle, y.handle), x.dims, max(x.most, y.most))
                case name:
                    name = "add" if name == "mul" else name
                    return Value(self.door.binary(name, x.handle, y.handle), x.dims, x.most + y.most)
        beside = [(v, a) for v in seen for a in (1, 3) if all(m == n for d, (m, n) in enumerate(zip(v.dims, x.dims)) if d != a)]
        if not beside:
            return None
        y, axis = self.rng.choice(beside)
        dims = tuple(m + n if d == axis else m for d, (m, n) in enumerate(zip(x.dims, y.dims)))
        return Value(self.door.concat(x.handle, y.handle, axis), dims, max(x.most, y.most))

    def draw(self, size: int) -> list[Value]:
        """Emit about that many steps; return the results."""
        rng = self.rng
        x = self.input((rng.choice((1, 1, 1, 2)), rng.choice(ROWS), rng.choice(COLUMNS), rng.choice(CHANNELS)))
        seen = [x]
        steps: list[Callable[[Value], Value | None]] = [
            self.window, self.window, self.window, self.window, self.pool, self.clamp, self.scaled, self.turned, self.padded,
            self.sliced, self.product, self.gathered, self.reduced, *[lambda v: self.joined(v, seen)] * 2]
        for _ in range(size):
            start = x if rng.random() < 0.85 else rng.choice(seen)
            made = rng.choice(steps)(start)
            if made is None or np.prod(made.dims) > 60_000 or made.most > MOST:
                continue
            x = made
            seen.append(made)
        results = [x if len(seen) > 1 else self.clamp(x)]
        results += [v for v in seen[1:-1] if rng.random() < 0.12 and v is not results[0]]
        return results


@dataclass(frozen=True, slots=True)
class Drawn:
    """A function of a module, and the inputs of one call."""
    module: Module
    name: str
    call: tuple[Array, ...]


def network(seed: int, size: int, door: Door) -> Drawn:
    """The network of a seed, through a door."""
    made = Network(random.Random(seed), door, [])
    results = made.draw(size)
    module, name = door.finish([v.handle for v in results])
    return Drawn(module, name, tuple(made.data))
