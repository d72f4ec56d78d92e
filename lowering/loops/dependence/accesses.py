"""The accesses of a function of the loop IR, each represented once for all iterations of the loops around it. All dependence
queries use them. One walk finds them; the start of an access is a linear form of loop indices (`loops.ranges`).
"""
from __future__ import annotations

from dataclasses import field
from weakref import WeakKeyDictionary

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import ITEM_SIZES
from ..ir import (
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
    Operand,
    ShapeTiles,
    Shuffle,
    StoreTile,
    StoreTo,
    Var,
)
from ..ranges import LinearForm, Ranges

NO_TERMS = LinearForm({})
MAX_ROWS = 1 << 40
"""Maximum number of rows in a call of a function that takes the bounds of its outermost loop."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An access to `rows` rows of `active` neighbours of a buffer, each row `stride` elements after the previous one, from
    `base + offset` on. If `base` is None, the access may be anywhere in the buffer. Accesses with the same base share its
    object."""
    buffer: Buffer
    is_store: bool
    base: LinearForm | None
    offset: int
    active: int
    rows: int = 1
    stride: int = 0

    @property
    def offsets(self) -> range:
        """Offset of each row from the base, in elements."""
        return range(self.offset, self.offset + self.rows * self.stride, self.stride) if self.rows > 1 else range(
            self.offset, self.offset + 1)

    @property
    def extent(self) -> int:
        """Number of elements from the first to the last one."""
        return (self.rows - 1) * self.stride + self.active


@dataclass(frozen=True, slots=True, eq=False)
class BlockAccesses:
    """The accesses of a block. `events` are its own accesses, and the loops and conditions that contain accesses, in order;
    `accesses` are all, nested ones too; `loaded` and `stored` are the buffers of these."""
    events: list[Access | For | If]
    accesses: list[Access]
    loaded: set[Buffer]
    stored: set[Buffer]


class Symbols(Ranges):
    """Ranges that record the value that each symbol represents: `origins`."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[int, Var] = {}

    def derived(self, x: Var) -> LinearForm:
        form = Ranges.derived(self, x)
        if len(form.terms) == 1 and not form.const:
            ((symbol, coefficient),) = form.terms.items()
            if coefficient == 1:
                self.origins.setdefault(symbol, x)
        return form


@dataclass(slots=True, eq=False)
class Accesses:
    """The accesses of a function. `blocks` is keyed by the identity of a block; `iterations` has the most iterations of each
    loop, and `loops` the loop, by its index."""
    symbols: Symbols = field(default_factory=Symbols)
    blocks: dict[int, BlockAccesses] = field(default_factory=dict)
    iterations: dict[Var, int] = field(default_factory=dict)
    loops: dict[Var, For] = field(default_factory=dict)
    tiles: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(function: Function) -> Accesses:
        """Return the accesses of a function; cached."""
        if (known := _found.get(function)) is not None:
            return known
        found = Accesses()
        for var in function.rows or ():
            found.symbols.given(var, (0, MAX_ROWS))
            found.symbols.origins.update(dict.fromkeys(found.symbols.form(var).terms, var))
        found.add(function.body)
        return _found.setdefault(function, found)

    def inside(self, block: Block) -> BlockAccesses:
        return self.blocks[id(block)]

    def symbol(self, loop: For) -> int:
        """Return the symbol of a loop's index."""
        (symbol,) = self.symbols.form(loop.index).terms
        return symbol

    # ---- the walk ----------------------------------------------------------------------------------------------------
    def add(self, block: Block) -> BlockAccesses:
        inside = self.blocks[id(block)] = BlockAccesses([], [], set(), set())
        definitions = self.symbols.definitions
        for stmt in block:
            match stmt:
                case Let(result=result) | Shuffle(result=result):
                    definitions[result] = stmt
                case LoadFrom(result, address, active):
                    definitions[result] = stmt
                    note(inside, self.access(address, False, active))
                case StoreTo(address, _, active):
                    note(inside, self.access(address, True, active))
                case ShapeTiles(shapes):
                    self.tiles = shapes
                case LoadTile(tile, address, stride) | StoreTile(tile, address, stride):
                    rows, nbytes = self.tiles[tile]
                    active = nbytes // ITEM_SIZES[address.buffer.dtype]
                    note(inside, self.access(address, isinstance(stmt, StoreTile), active, rows, stride))
                case GatherFrom(result=result, buffer=buffer):
                    definitions[result] = stmt
                    note(inside, Access(buffer, False, None, 0, 1))
                case For():
                    self.enter(stmt)
                    self.nest(inside, stmt)
                case If():
                    self.nest(inside, stmt)
        return inside

    def enter(self, loop: For) -> None:
        low, high = self.symbols.loop(loop.index, loop.low, loop.high)
        self.symbols.origins[self.symbol(loop)] = loop.index
        self.iterations[loop.index], self.loops[loop.index] = high - low + 1, loop

    def nest(self, inside: BlockAccesses, stmt: For | If) -> None:
        inner = self.add(stmt.body)
        if inner.accesses:
            inside.events.append(stmt)
            inside.accesses.extend(inner.accesses)
            inside.loaded.update(inner.loaded)
            inside.stored.update(inner.stored)

    def access(self, address: Address, is_store: bool, active: int, rows: int = 1, stride: int = 0) -> Access:
        base, offset = self.place(address.base)
        return Access(address.buffer, is_store, base, offset + address.offset, active, rows, stride)

    def place(self, base: Operand) -> tuple[LinearForm, int]:
        return (NO_TERMS, int(base.value)) if isinstance(base, Literal) else (self.symbols.form(base), 0)


def note(inside: BlockAccesses, access: Access) -> None:
    inside.events.append(access)
    inside.accesses.append(access)
    (inside.stored if access.is_store else inside.loaded).add(access.buffer)


_found: WeakKeyDictionary[Function, Accesses] = WeakKeyDictionary()
