"""The memory planner's data: buffers that conflict, pools that hold them, and the offset of a buffer in a pool.

This is the interface of TVM's Unified Static Memory Planner: an algorithm sees nothing else, so that it can be
exchanged. Sizes and offsets are bytes. Ticks are the numbers of a program's steps in their linear order.
"""
from __future__ import annotations

import bisect
import dataclasses
import heapq
import itertools
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...runtime.errors import ValueProblem
from ...runtime.public_names import checked_fields
from ...runtime.records import shown_changes

Kind = Literal["intermediate", "input", "output", "constant"]
PoolKind = Literal["workspace", "constant"]
PoolAccess = Literal["rw", "ro"]
Ticks = tuple[int, int]
"""First and last tick of a span, both inclusive."""


def is_alignment(value: int) -> bool:
    """True if `value` is a power of two."""
    return value > 0 and value & (value - 1) == 0


def aligned(offset: int, alignment: int) -> int:
    """Return the least multiple of `alignment` (a power of two) that is not below `offset`."""
    return -(-offset // alignment) * alignment


@dataclass(frozen=True, slots=True)
class PoolInfo:
    """A memory that buffers may be planned into. `size_hint_bytes` is the most it may hold (None: no limit),
    `alignment` the alignment of its first byte (None: whatever its buffers need), `target_access` the access that each
    target has (empty: every target reads and writes). Bandwidths and latencies are for algorithms that weigh pools;
    `target_burst_bytes` is the number of bytes that each target moves through it at once, so that fewer cost as much. The
    first `pool_offset` bytes belong to somebody else: offsets and sizes count them, and buffers begin at the next byte
    that is aligned for all of them.
    """
    __repr__ = shown_changes
    name: str = ""
    size_hint_bytes: int | None = None
    alignment: int | None = None
    target_access: Mapping[str, PoolAccess] = field(default_factory=dict, hash=False)
    clock_frequency_hz: int | None = None
    read_bandwidth_bytes_per_cycle: int | None = None
    write_bandwidth_bytes_per_cycle: int | None = None
    read_latency_cycles: int = 0
    write_latency_cycles: int = 0
    target_burst_bytes: Mapping[str, int] = field(default_factory=dict, hash=False)
    pool_offset: int = 0

    def __new__(cls, *values: Any, **named: Any) -> PoolInfo:
        checked_fields("tosaic.Pool", cls, values, named)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueProblem("a pool has no name", kind="option", help='tosaic.Pool("sram", ...)')
        if self.size_hint_bytes is not None and self.size_hint_bytes < 0:
            raise ValueProblem(f"pool {self.name} has a size of {self.size_hint_bytes} bytes", kind="option",
                               help="give None for a pool without a limit")
        if self.alignment is not None and not is_alignment(self.alignment):
            raise ValueProblem(f"pool {self.name} has an alignment of {self.alignment} bytes, not a power of two",
                               kind="option")
        if self.pool_offset < 0 or (self.size_hint_bytes is not None and self.pool_offset > self.size_hint_bytes):
            size = "" if self.size_hint_bytes is None else f" and a size of {self.size_hint_bytes}"
            raise ValueProblem(f"pool {self.name} has an offset of {self.pool_offset} bytes{size}", kind="option",
                               help="give the number of bytes at its beginning that are somebody else's")
        for target, nbytes in self.target_burst_bytes.items():
            if nbytes < 1:
                raise ValueProblem(f"pool {self.name} has a burst of {nbytes} bytes for {target}", kind="option",
                                   help="a burst has one byte at least")

    @property
    def burst_bytes(self) -> int:
        """Bytes of a burst of the target that moves most at once."""
        return max(self.target_burst_bytes.values(), default=1)

    def seen_by(self, target: str | None) -> PoolInfo:
        """Return the pool with the bursts of `target` (None: any) alone."""
        if target is None or not self.target_burst_bytes:
            return self
        bursts = {target: self.target_burst_bytes[target]} if target in self.target_burst_bytes else {}
        return dataclasses.replace(self, target_burst_bytes=bursts)

    def allows(self, target: str | None, access: PoolAccess = "rw") -> bool:
        """True if `target` (None: any) may access the pool that way."""
        if target is None or not self.target_access:
            return True
        return self.target_access.get(target) in (("rw",) if access == "rw" else ("rw", "ro"))

    def suits(self, buffer: BufferInfo) -> bool:
        """True if the first byte of the pool is aligned well enough for `buffer`."""
        return self.alignment is None or self.alignment % buffer.alignment == 0


@dataclass(frozen=True, slots=True)
class BufferInfo:
    """A buffer to be placed. `pool_candidates` names pools, the best first (empty: all pools, in their order);
    `conflicts` names the buffers that it may share no byte with. `live` is its live range, if known: spans of ticks in
    ascending order, from which the conflicts then follow (`with_conflicts`). `bytes_read` and `bytes_written` are its
    traffic in a run (None: not known, and then the buffer counts as written once and read once).
    """
    name: str
    size_bytes: int
    alignment: int = 1
    pool_candidates: tuple[str, ...] = ()
    conflicts: frozenset[str] = frozenset()
    kind: Kind = "intermediate"
    live: tuple[Ticks, ...] | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None

    def __post_init__(self) -> None:
        if self.size_bytes < 0:
            raise ValueProblem(f"buffer {self.name} has a size of {self.size_bytes} bytes", kind="option")
        if not is_alignment(self.alignment):
            raise ValueProblem(f"buffer {self.name} has an alignment of {self.alignment} bytes, not a power of two",
                               kind="option")
        if self.live is not None and not are_spans(self.live):
            raise ValueProblem(f"buffer {self.name} is live at {self.live!r}", kind="option",
                               help="give spans of ticks in ascending order, first and last tick of each: ((0, 3), (5, 5))")

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes of the buffer that a run reads, and bytes that it writes."""
        return (self.size_bytes if self.bytes_read is None else self.bytes_read,
                self.size_bytes if self.bytes_written is None else self.bytes_written)

    @property
    def lifetime(self) -> int:
        """Number of ticks that the buffer is live; 0 if that is not known."""
        return sum(last - first + 1 for first, last in self.live or ())

    def candidates(self, pools: Sequence[PoolInfo]) -> list[PoolInfo]:
        """Return the pools that may hold the buffer, the best first."""
        if not self.pool_candidates:
            return [p for p in pools if p.suits(self)]
        known = {p.name: p for p in pools}
        return [known[name] for name in self.pool_candidates if name in known and known[name].suits(self)]


def are_spans(live: object) -> bool:
    """True if `live` is a sequence of pairs (first, last) of integers that ascend and have no tick in common."""
    if not isinstance(live, Sequence) or not all(isinstance(span, Sequence) and len(span) == 2 for span in live):
        return False
    ticks = [tick for span in live for tick in span]
    if not all(isinstance(tick, numbers.Integral) for tick in ticks):
        return False
    return all(first <= last for first, last in live) and all(a[1] < b[0] for a, b in itertools.pairwise(live))


def packed(sizes: Iterable[tuple[int, int]]) -> int:
    """Return the bytes of objects (bytes, alignment) stored one after the other, each aligned; the end is aligned, too."""
    end, most = 0, 1
    for nbytes, alignment in sizes:
        end, most = aligned(end, alignment) + nbytes, max(most, alignment)
    return aligned(end, most)


def own_alignment(nbytes: int, element: int, most: int) -> int:
    """Return the alignment of a buffer of that many bytes: its element at least, a vector (`most` bytes) if it has one."""
    return max(element, min(most, 1 << max(nbytes.bit_length() - 1, 0)))


@dataclass(frozen=True, slots=True)
class PoolAllocation:
    """The allocation of a buffer: a pool's name, and the offset of the buffer's first byte in the pool."""
    pool: str
    byte_offset: int


def sizes_of(buffers: Iterable[BufferInfo], pools: Sequence[PoolInfo], allocations: Mapping[str, PoolAllocation]) -> list[int]:
    """Return the bytes that a plan needs of each pool, the least wanted one first."""
    ends = {p.name: 0 for p in pools}
    for b in buffers:
        place = allocations[b.name]
        ends[place.pool] = max(ends[place.pool], place.byte_offset + b.size_bytes)
    return list(reversed(ends.values()))


def by_name(buffers: Iterable[BufferInfo]) -> dict[str, BufferInfo]:
    """Return the buffers by name; raise a Problem if two have the same name."""
    found: dict[str, BufferInfo] = {}
    for buffer in buffers:
        if found.setdefault(buffer.name, buffer) is not buffer:
            raise ValueProblem(f"two buffers have the name {buffer.name}", kind="option")
    return found


def symmetric(buffers: Sequence[BufferInfo]) -> tuple[BufferInfo, ...]:
    """Return the buffers with conflicts that hold both ways and none with themselves; given lists may be one-way.

    Raises a Problem if a conflict names no buffer of the list, or two buffers have the same name.
    """
    known = by_name(buffers)
    both: dict[str, set[str]] = {name: set() for name in known}
    for buffer in buffers:
        if not known.keys() >= buffer.conflicts:
            unknown = min(buffer.conflicts - known.keys())
            raise ValueProblem(f"buffer {buffer.name} conflicts with {unknown}, which is not in the list", kind="option")
        both[buffer.name] |= buffer.conflicts
        for other in buffer.conflicts:
            both[other].add(buffer.name)
    return tuple(dataclasses.replace(b, conflicts=frozenset(both[b.name] - {b.name})) for b in buffers)


def with_conflicts(buffers: Sequence[BufferInfo]) -> tuple[BufferInfo, ...]:
    """Return the buffers with symmetric conflicts: those given, and those of two buffers that are live at the same tick.

    A buffer without bytes gets no conflict from its lifetime, nor does one whose lifetime is not known. Raises as `symmetric`.
    """
    spans = sorted((first, last, b.name) for b in buffers if b.size_bytes for first, last in b.live or ())
    starts, names = [first for first, _, _ in spans], [name for _, _, name in spans]
    found: dict[str, set[str]] = {b.name: set(b.conflicts) for b in buffers}
    ends: list[tuple[int, str]] = []
    for i, (first, last, name) in enumerate(spans):  # those live already, and those that begin meanwhile
        while ends and ends[0][0] < first:
            heapq.heappop(ends)
        found[name].update([other for _, other in ends], names[i + 1:bisect.bisect_right(starts, last)])
        heapq.heappush(ends, (last, name))
    return symmetric([dataclasses.replace(b, conflicts=frozenset(found[b.name])) for b in buffers])
