"""The loop IR: structured SSA over scalars and explicit vectors, with loops that carry values.

A function computes one kernel, all of it or a range of rows. Accumulators are values that a loop carries, so there is
no stack memory; scratch is a parameter that the memory planner places. Everything is immutable, and statements are in
order.
"""
from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from ...runtime.records import dataclass
from ..elements.expression import Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A scalar (`lanes` 1) or a vector of a NumPy dtype; bool is one bit in a value, one byte in memory. Each type has one
    object, so that comparing types and looking them up is fast."""
    dtype: str
    lanes: int = 1

    def __new__(cls, dtype: str, lanes: int = 1) -> Type:
        return TYPES.get((dtype, lanes)) or TYPES.setdefault((dtype, lanes), filled(object.__new__(cls), dtype, lanes))

    def __init__(self, dtype: str, lanes: int = 1) -> None:
        """Do nothing: `__new__` has set the fields, and setting them again for each use of a type would take time."""

    def __reduce__(self) -> tuple[type[Type], tuple[str, int]]:
        return Type, (self.dtype, self.lanes)

    def __str__(self) -> str:
        return self.dtype if self.lanes == 1 else f"{self.dtype}x{self.lanes}"


def filled(type: Type, dtype: str, lanes: int) -> Type:
    object.__setattr__(type, "dtype", dtype)
    object.__setattr__(type, "lanes", lanes)
    return type


TYPES: dict[tuple[str, int], Type] = {}
INDEX = Type("int64")
BOOL = Type("bool")


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A value. `depth` is the number of loops and conditions around its definition."""
    id: int
    type: Type
    depth: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; of a vector type, the same in each lane."""
    value: float | int
    type: Type
    depth: int = 0


Operand = Var | Literal


@dataclass(frozen=True, slots=True)
class Address:
    """buffer[base + offset], in elements of the buffer, row-major."""
    buffer: Buffer
    base: Operand
    offset: int


@dataclass(frozen=True, slots=True)
class Let:
    """result = op(args). Beside the primitives of expressions: splat (scalar to vector), cast, bits (reinterpretation), lanes
    (scalar i to i, i+1, ...), any_false (vector of bool to bool), dot4 (acc + products of u8 and s8, four to a lane),
    dot4_signed (the same of s8 and s8), dot2 (the same of s16 and s16, two to a lane), pairs (four bytes x and an
    int32 offset: x + offset as numbers of 16 bits, two to a word, bytes 0 and 2 in the first and 1 and 3 in the second),
    dot_pairs (scalar acc + the products of all numbers of 16 bits of two int32), dot8 (2 by 2 sums, acc + the products of
    two rows and two columns of eight s8), dot (scalar acc + the products of all lanes of two int8), lookup
    (int8 x and a table of 256 in four vectors: the entry x + 128), reduce_add, reduce_mul, reduce_min, reduce_max,
    reduce_minimum, reduce_maximum, reduce_minnum, reduce_maxnum, reduce_and, reduce_or (vector
    to scalar; floats by halves: lane i with lane i + n/2, until one is left)."""
    result: Var
    op: str
    args: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A selection of lanes, by number, of the two vectors concatenated."""
    result: Var
    args: tuple[Operand, Operand]
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoadFrom:
    """A load of consecutive elements, one for each lane of the result. Of the first `active` lanes, those where `mask` is
    true are read; all other lanes are 0."""
    result: Var
    address: Address
    active: int
    mask: Operand | None = None


@dataclass(frozen=True, slots=True)
class GatherFrom:
    """buffer[indices[lane]] for each lane where `mask` is true (all, without a mask); the other lanes are 0."""
    result: Var
    buffer: Buffer
    indices: Operand
    active: int
    mask: Operand | None = None


@dataclass(frozen=True, slots=True)
class StoreTo:
    """A store of the first `active` lanes; with `streaming` it bypasses the caches."""
    address: Address
    value: Operand
    active: int
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A hint that the cache line of an element is needed soon; with `near` so soon that it belongs in the cache nearest to the
    core; with `writes` it will be written. A prefetch changes no value, and the element may be outside of its buffer."""
    address: Address
    near: bool = False
    writes: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """A loop: index runs from low to high; params start as inits, then take the yields of the previous iteration; results
    are the last yields (inits if there was no iteration)."""
    index: Var
    low: Operand
    high: Operand
    params: tuple[Var, ...]
    inits: tuple[Operand, ...]
    results: tuple[Var, ...]
    body: Block
    yields: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class If:
    """A conditional block. `likely` is the usual value of the condition, if known."""
    condition: Operand
    body: Block
    likely: bool | None = None


@dataclass(frozen=True, slots=True)
class ShapeTiles:
    """From here on, tile registers 0, 1, ... of a matrix unit have these `shapes` (rows, bytes of a row), and hold zeros. The
    statement is outside of loops and conditions."""
    shapes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ZeroTile:
    tile: int


@dataclass(frozen=True, slots=True)
class LoadTile:
    """A load of the rows of a tile; each row starts `stride` elements of the buffer after the previous one."""
    tile: int
    address: Address
    stride: int


@dataclass(frozen=True, slots=True)
class StoreTile:
    tile: int
    address: Address
    stride: int


@dataclass(frozen=True, slots=True)
class MultiplyTiles:
    """total[m, n] += sum of x[m, 4 k + i] * y[k, 4 n + i] over k and i < 4: int32 that wrap around, of bytes. The bytes of y
    are signed, and those of x are where `signed`."""
    total: int
    x: int
    y: int
    signed: bool


@dataclass(frozen=True, slots=True)
class MultiplyFloatTiles:
    """total[m, n] += sum of x[m, 2 k + i] * y[k, 2 n + i] over k and i < 2: float32 of bfloat16. Terms are added in this order,
    each step a fused multiply-add from 0 on: those with i = 0 by rising k, those with i = 1, then both sums, then that and
    the total. Each result is rounded to nearest, ties to even, without exceptions; subnormal operands and results become
    zeros of their sign."""
    total: int
    x: int
    y: int


TileAccess = LoadTile | StoreTile
TileStmt = ShapeTiles | ZeroTile | LoadTile | StoreTile | MultiplyTiles | MultiplyFloatTiles
MAX_TILES, TILE_ROWS, TILE_BYTES = 8, 16, 64
"""Maximum number of tile registers, of rows of a tile, and of bytes of a row."""

Stmt = Let | Shuffle | LoadFrom | GatherFrom | StoreTo | Prefetch | For | If | TileStmt
Block = list[Stmt]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Function:
    """A function that computes one kernel. `params` are the buffers that it reads and writes, `scratch` is memory of its own
    while it runs; `rows` are the bounds of the outermost loop if the function can compute a part. With `phases`, a call does
    a share of the work: `rows` are then units of work, `phases` is the end of each phase, and a phase is complete before the
    next one begins."""
    name: str
    params: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    body: Block
    rows: tuple[Var, Var] | None = None
    phases: tuple[int, ...] = ()


_firsts: WeakKeyDictionary[Function, Function] = WeakKeyDictionary()


def note_alike(function: Function, other: Function) -> None:
    """Record that two functions differ only in their buffers, which are alike: results about the code of one hold for the
    other."""
    _firsts[function] = first_of(other)


def first_of(function: Function) -> Function:
    """Return the representative of all functions that are recorded as differing only in their buffers."""
    return _firsts.get(function, function)


def walk(block: Block) -> Iterator[Stmt]:
    """Yield every statement, nested ones too, in order."""
    for stmt in block:
        yield stmt
        if isinstance(stmt, (For, If)):
            yield from walk(stmt.body)


@dataclass(frozen=True, slots=True)
class BufferEffects:
    """The buffers that a function reads, and those that it writes."""
    read: frozenset[Buffer]
    written: frozenset[Buffer]


VALUES = Let, Shuffle
"""Statements without a memory access; most statements are of these kinds."""

_accesses: WeakKeyDictionary[Function, BufferEffects] = WeakKeyDictionary()


def access(function: Function) -> BufferEffects:
    """Return the buffers that a function reads and writes; cached."""
    if (known := _accesses.get(function)) is not None:
        return known
    read, written, blocks = set(), set(), [function.body]
    for block in blocks:
        for stmt in block:
            if isinstance(stmt, VALUES):
                continue
            match stmt:
                case LoadFrom(address=address) | LoadTile(address=address):
                    read.add(address.buffer)
                case GatherFrom(buffer=buffer):
                    read.add(buffer)
                case StoreTo(address=address) | StoreTile(address=address):
                    written.add(address.buffer)
                case For(body=body) | If(body=body):
                    blocks.append(body)
    return _accesses.setdefault(function, BufferEffects(frozenset(read), frozenset(written)))


def buffers_read(function: Function) -> frozenset[Buffer]:
    return access(function).read


def buffers_written(function: Function) -> frozenset[Buffer]:
    return access(function).written


def row_limit(function: Function) -> int:
    """Return the most rows that a caller may ask for: the limit in the function, or else the first extent above 1 of the
    buffers that it writes. A ring buffer has fewer rows than are written to it."""
    before, limits = {function.rows[1]: 0} if function.rows else {}, []
    for stmt in function.body:
        match stmt:
            case Let(result, "sub", (Var() as x, Literal(value=first))) if x in before:
                before[result] = before[x] + int(first)
            case Let(_, "min", (Var() as x, Literal(value=extent))) if x in before:
                limits.append(before[x] + int(extent))
    if limits:
        return max(limits)
    written = buffers_written(function) & set(function.params)
    return min((next((n for n in b.shape if n > 1), 1) for b in written), default=1)
