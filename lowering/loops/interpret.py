"""The interpreter of the loop IR in NumPy, statement by statement: the semantics of the IR, and a check of the passes that
make it and of the backend that compiles it. Each access is checked lane by lane; memory that nothing has written holds
0xA5, and reading such memory is an error.

`lane_operations` defines the operations independently of `PRIMITIVES` and the emitter, so that all three check each
other. A value is an array of its lanes.
"""
from __future__ import annotations

from dataclasses import field
from typing import NoReturn

import numpy as np

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..graph.types import ITEM_SIZES, NUMPY_NAMES, Array
from .ir import (
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    LoadTile,
    MultiplyFloatTiles,
    MultiplyTiles,
    Operand,
    ShapeTiles,
    Shuffle,
    StoreTile,
    StoreTo,
    Type,
    Var,
    ZeroTile,
)
from .lane_operations import apply, converted
from .tile_products import multiply_float_tiles, multiply_tiles

POISON = 0xA5


def dtype_of(name: str) -> np.dtype:
    if name not in NUMPY_NAMES:
        import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
    return np.dtype(name)


@dataclass(slots=True)
class LoopMemory:
    """Flat arrays of buffers, and for each a mask of the elements that have been written."""
    arrays: dict[Buffer, Array] = field(default_factory=dict)
    written: dict[Buffer, Array] = field(default_factory=dict)

    def add(self, buffer: Buffer, data: Array | None = None) -> None:
        """Add memory for a buffer: a copy of the data, or memory that nothing has written."""
        if data is None:
            raw = np.full(buffer.size * ITEM_SIZES[buffer.dtype], POISON, np.uint8)
            if buffer.dtype == "bool":
                raw &= 1
            self.arrays[buffer] = raw.view(dtype_of(buffer.dtype))
        else:
            self.arrays[buffer] = np.array(data, dtype_of(buffer.dtype)).reshape(-1)
        self.written[buffer] = np.full(buffer.size, data is not None)

    def array(self, buffer: Buffer) -> Array:
        """Return the contents of the buffer, in its shape."""
        return self.arrays[buffer].reshape(buffer.shape)


def run_function(function: Function, memory: LoopMemory, rows: tuple[int, int] | None = None, keep: bool = False) -> None:
    """Run a function over the memory of its parameters. Make scratch anew, so that nothing is kept between calls (unless
    `keep` retains the scratch that all tasks share). Make parameters that `memory` lacks, too: constants from their data,
    others with nothing written."""
    for b in function.params:
        if b not in memory.arrays:
            memory.add(b, b.data)
    for b in function.scratch:
        if not keep or b.copies > 1:
            memory.add(b)
    run = FunctionRun(function.name, memory)
    if function.rows:
        if rows is None:
            run.fail("it needs the rows to compute")
        run.values |= {v: np.array([n], np.int64) for v, n in zip(function.rows, rows)}
    with np.errstate(all="ignore"):
        run.block(function.body)


@dataclass(slots=True)
class FunctionRun:
    """One call of a function."""
    name: str
    memory: LoopMemory
    values: dict[Var, Array] = field(default_factory=dict)
    tiles: list[Array] = field(default_factory=list)
    """Bytes of the tile registers, row by row."""

    def fail(self, what: str) -> NoReturn:
        raise Problem(f"{self.name}: {what}", kind="internal")

    def value(self, x: Operand) -> Array:
        if isinstance(x, Var):
            return self.values[x]
        return np.full(x.type.lanes, literal(x), dtype_of(x.type.dtype))

    def number(self, x: Operand) -> int:
        return int(self.value(x)[0])

    def block(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let(result, op, args):
                    self.values[result] = self.let(result.type, op, [self.value(a) for a in args])
                case Shuffle(result, (a, b), lanes):
                    self.values[result] = np.concatenate([self.value(a), self.value(b)])[list(lanes)]
                case LoadFrom(result, address, active, mask):
                    first = self.number(address.base) + address.offset
                    indices = np.arange(first, first + result.type.lanes)
                    self.values[result] = self.read(address.buffer, result.type, indices, active, mask)
                case GatherFrom(result, buffer, where, active, mask):
                    self.values[result] = self.read(buffer, result.type, self.value(where), active, mask)
                case StoreTo():
                    self.store(stmt)
                case For():
                    self.loop(stmt)
                case If(condition, body):
                    if self.value(condition)[0]:
                        self.block(body)
                case ShapeTiles(shapes):
                    self.tiles = [np.zeros(shape, np.uint8) for shape in shapes]
                case ZeroTile(tile):
                    self.tiles[tile][:] = 0
                case LoadTile(tile, address, stride):
                    self.load_tile(self.tiles[tile], address, stride)
                case StoreTile(tile, address, stride):
                    held = self.tiles[tile].view(dtype_of(address.buffer.dtype))
                    self.write(address.buffer, self.rows(held, address, stride), held)
                case MultiplyTiles(total, x, y, signed):
                    self.tiles[total] = multiply_tiles(self.tiles[total], self.tiles[x], self.tiles[y], signed)
                case MultiplyFloatTiles(total, x, y):
                    self.tiles[total] = multiply_float_tiles(self.tiles[total], self.tiles[x], self.tiles[y])

    def let(self, type: Type, op: str, args: list[Array]) -> Array:
        if op == "cast":
            return converted(args[0], dtype_of(type.dtype))
        if op == "bits":
            return args[0].view(dtype_of(type.dtype))
        result = np.asarray(apply(op, type.lanes, args))
        if result.dtype != dtype_of(type.dtype) or result.shape != (type.lanes,):
            self.fail(f"{op} gives {result.dtype} in {result.shape} lanes, not {type}")
        return result

    def loop(self, f: For) -> None:
        carried = [self.value(i) for i in f.inits]
        for i in range(self.number(f.low), self.number(f.high)):
            self.values[f.index] = np.array([i], np.int64)
            self.values |= zip(f.params, carried)
            self.block(f.body)
            carried = [self.value(y) for y in f.yields]
        self.values |= zip(f.results, carried)

    # ---- memory ------------------------------------------------------------------------------------------------------
    def checked(self, buffer: Buffer, indices: Array, how: str) -> None:
        if buffer not in self.memory.arrays:
            self.fail(f"{how} {buffer.name}, which is no parameter")
        outside = indices[(indices < 0) | (indices >= buffer.size)]
        if outside.size:
            self.fail(f"{how} element {outside[0]} of {buffer!r}, which has {buffer.size}")

    def read(self, buffer: Buffer, type: Type, indices: Array, active: int, mask: Operand | None) -> Array:
        on = np.arange(type.lanes) < active
        if mask is not None:
            on &= self.value(mask)
        result = np.zeros(type.lanes, dtype_of(type.dtype))
        result[on] = self.elements(buffer, indices[on])
        return result

    def elements(self, buffer: Buffer, indices: Array) -> Array:
        """Return the elements of the buffer at `indices`."""
        self.checked(buffer, indices, "reads")
        fresh = indices[~self.memory.written[buffer][indices]]
        if fresh.size:
            self.fail(f"reads element {fresh[0]} of {buffer!r}, which nothing has written")
        return np.asarray(self.memory.arrays[buffer][indices])

    def store(self, stmt: StoreTo) -> None:
        first = self.number(stmt.address.base) + stmt.address.offset
        self.write(stmt.address.buffer, np.arange(first, first + stmt.active), self.value(stmt.value)[:stmt.active])

    def write(self, buffer: Buffer, indices: Array, values: Array) -> None:
        self.checked(buffer, indices, "writes")
        if buffer.role in ("argument", "constant"):
            self.fail(f"writes {buffer.name}, which is read only")
        self.memory.arrays[buffer][indices] = values
        self.memory.written[buffer][indices] = True

    def rows(self, tile: Array, address: Address, stride: int) -> Array:
        """Return the offsets of a tile's elements."""
        rows, count = tile.shape
        first = self.number(address.base) + address.offset
        return first + np.arange(rows)[:, None] * stride + np.arange(count)

    def load_tile(self, tile: Array, address: Address, stride: int) -> None:
        held = tile.view(dtype_of(address.buffer.dtype))
        held[:] = self.elements(address.buffer, self.rows(held, address, stride))


def literal(x: Literal) -> Array:
    """Return a constant as an element; -1 has all bits set, in an unsigned type too."""
    dtype = dtype_of(x.type.dtype)
    if dtype.kind == "u":
        return np.asarray(int(x.value) & ((1 << 8 * dtype.itemsize) - 1), np.uint64).astype(dtype)
    return np.asarray(x.value).astype(dtype)
