"""Where a program finds its memory, and the code that computes an address in an arena: base + offset, a getelementptr of
bytes. The base is a pointer of the frame, or a symbol of the module. Kernels are given these addresses; those of elements are
computed in them (`llvm.emit`, `llvm.pointers`).

The *frame* is what a run is given, as a function finds its locals in a call frame: an array of pointers, to arguments, results,
variables, the pools of the arena, and constants. It is made before the run (by the runtime in this process, by an entry
function of an object for C), and no function changes it.
"""
from __future__ import annotations

from collections.abc import Mapping

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.ir import Function
from ...machine_code.llvm_writer import Value, Writer, symbol


@dataclass(frozen=True, slots=True)
class Slot:
    """Memory `offset` bytes behind pointer number `index` of the frame."""
    index: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SymbolAddress:
    """Memory `offset` bytes behind what has a name in the module."""
    name: str
    offset: int = 0


Place = Slot | SymbolAddress


@dataclass(frozen=True, slots=True)
class BufferAddresses:
    """Where a program finds its memory: `buffers` each buffer, `flags` the byte of each variable that says whether it
    has been written, `rollback` room for `Rollback.nbytes` bytes where the program needs it, `pool` the pointer to the pool of
    threads (or null) where it has parallel steps, `interrupts` that to the interrupt flag where its loops look at it."""
    buffers: Mapping[Buffer, Place]
    flags: Mapping[Buffer, Place]
    rollback: Place | None = None
    pool: Place | None = None
    interrupts: Place | None = None


def address_of(w: Writer, place: Place, frame: Value) -> Value:
    """The address of a place."""
    match place:
        case SymbolAddress(name, offset):
            return w.address(symbol(name), offset)
        case Slot(index, offset):
            pool = w.load(w.address(frame, index, "ptr"), "ptr")
            return w.address(pool, offset)


def written_over(function: Function, places: BufferAddresses) -> frozenset[Buffer]:
    """The buffers of a function that share bytes with others that it uses, and are not the same pointer to LLVM."""
    placed = [(b, place) for b in (*function.params, *function.scratch) if (place := places.buffers.get(b)) is not None]
    return frozenset(b for b, one in placed for o, other in placed if b is not o and base_of(one) == base_of(other)
                     and max(one.offset, other.offset) < min(one.offset + b.nbytes, other.offset + o.nbytes))


def base_of(place: Place) -> int | str:
    """What an address is behind: a pointer of the frame, or a symbol."""
    return place.index if isinstance(place, Slot) else place.name
