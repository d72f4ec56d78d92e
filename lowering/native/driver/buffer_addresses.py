"""The memory of a program, and the code that computes an address in an arena: base + offset, a getelementptr of bytes. The base
is a pointer of the frame, or a symbol of the module. The driver passes these addresses to kernels, which compute those of
elements (`llvm.emit`, `llvm.pointers`).

The *frame* is the argument of a run, as a call frame holds the locals of a function: an array of pointers, to arguments,
results, variables, the pools of the arena, and constants. It is made before the run (by the runtime in this process, by an
entry function of an object for C), and no function changes it.
"""
from __future__ import annotations

from collections.abc import Mapping

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.ir import Function
from ...machine_code.llvm_writer import Value, Writer, symbol


@dataclass(frozen=True, slots=True)
class Slot:
    """Memory at `offset` bytes from pointer number `index` of the frame."""
    index: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SymbolAddress:
    """Memory at `offset` bytes from a symbol of the module."""
    name: str
    offset: int = 0


Place = Slot | SymbolAddress


@dataclass(frozen=True, slots=True)
class BufferAddresses:
    """The addresses of a program's memory: `buffers` of each buffer, `flags` of the byte of each variable that says whether it
    has been written, `rollback` of room for `Rollback.nbytes` bytes if the program needs it, `pool` of the pointer to the
    thread pool (or null) if it has parallel steps, `interrupts` of the pointer to the interrupt flag if its loops poll it."""
    buffers: Mapping[Buffer, Place]
    flags: Mapping[Buffer, Place]
    rollback: Place | None = None
    pool: Place | None = None
    interrupts: Place | None = None


def address_of(w: Writer, place: Place, frame: Value) -> Value:
    """Return the address of a place."""
    match place:
        case SymbolAddress(name, offset):
            return w.address(symbol(name), offset)
        case Slot(index, offset):
            pool = w.load(w.address(frame, index, "ptr"), "ptr")
            return w.address(pool, offset)


def written_over(function: Function, places: BufferAddresses) -> frozenset[Buffer]:
    """Return the buffers of a function that share bytes with others that it uses, and that are distinct pointers to LLVM."""
    placed = [(b, place) for b in (*function.params, *function.scratch) if (place := places.buffers.get(b)) is not None]
    return frozenset(b for b, one in placed for o, other in placed if b is not o and base_of(one) == base_of(other)
                     and max(one.offset, other.offset) < min(one.offset + b.nbytes, other.offset + o.nbytes))


def base_of(place: Place) -> int | str:
    """Return the base of an address: the index of a pointer of the frame, or a symbol."""
    return place.index if isinstance(place, Slot) else place.name
