"""The memory of several threads by the rules of C++20 and LLVM, where an access has no more order than it asks for.

Each atomic place has its writes in the order of modification. A thread may read every write that is not older than what it
knows; a release write hands over all that its thread knows, an acquire read takes it over; seq_cst reads and writes of a place
know those before them in their one order. A plain access has to know every write of its place (and a plain write every read,
too): else it is a data race. What a thread knows is one integer, a View, so that to learn is `|`. There are no reads of values
that are written later (LLVM's monotonic accesses permit them; the pool's have nothing that could be moved so).
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

View = int
"""Of atomic place number n, bits 16 n and up: one for each write but the oldest that is kept. Above them, one for each fact."""
FIELD = 16
PLACES = 8
FULL = (1 << FIELD) - 1


class Race(Exception):
    """Two accesses without an order, one of them plain."""


class Weaker(Exception):
    """A place that was taken for one with seq_cst accesses alone has another one."""


class Write(NamedTuple):
    """`is_joined` to the write before, where it has read that: nothing may come between."""
    value: int
    view: View
    is_joined: bool = False


class Memory(NamedTuple):
    """`writes` by atomic place; `ordered` is what seq_cst accesses know, `kernel` what those know who have woken sleepers;
    `facts` are those that somebody does not know; `plain` the values of plain places."""
    writes: tuple[tuple[Write, ...], ...]
    ordered: View = 0
    kernel: View = 0
    facts: View = 0
    plain: tuple[tuple[int, int], ...] = ()


Views = tuple[View, ...]


class Rules:
    """The rules for memory with these atomic places; where it is not `weak`, every read sees the last write, and nothing can be
    a race. Of places that are `strong`, whose accesses are all seq_cst, nothing but the last write is kept."""

    def __init__(self, places: tuple[int, ...], weak: bool, strong: set[int]) -> None:
        assert len(places) <= PLACES
        self.weak, self.strong = weak, strong
        self.number = {place: n for n, place in enumerate(places)}
        self.facts: dict[tuple[int, int], View] = {}
        self.all_reads: dict[int, View] = {}

    # ---- atomic accesses ---------------------------------------------------------------------------------------------
    def known(self, view: View, n: int) -> int:
        """The newest write of a place that a view knows."""
        return (view >> FIELD * n & FULL).bit_length()

    def learnt(self, n: int, write: int) -> View:
        return ((1 << write) - 1) << FIELD * n

    def first(self, memory: Memory, view: View, n: int, order: str) -> int:
        """The oldest write that an access may read."""
        if not self.weak:
            return len(memory.writes[n]) - 1
        if order != "seq_cst" and n in self.strong:
            self.strong.discard(n)
            raise Weaker
        return max(self.known(view, n), self.known(memory.ordered, n) if order == "seq_cst" else 0)

    def at_least_ordered(self, memory: Memory, view: View, place: int) -> View:
        """The view of a thread whose next access is a seq_cst one of that place."""
        return view | memory.ordered & FULL << (FIELD * self.number[place]) if self.weak else view

    def reads(self, memory: Memory, views: Views, thread: int, place: int, order: str) -> Iterator[tuple[int, Memory, Views]]:
        """What an atomic read may give."""
        n = self.number[place]
        writes, view = memory.writes[n], views[thread]
        for at in range(self.first(memory, view, n, order), len(writes)):
            yield writes[at].value, *self.taken(memory, views, thread, n, at, order)

    def taken(self, memory: Memory, views: Views, thread: int, n: int, at: int, order: str) -> tuple[Memory, Views]:
        """A read has seen that write."""
        if not self.weak:
            return memory, views
        learnt = self.learnt(n, at)
        view = views[thread] | learnt
        if order in ("acquire", "acq_rel", "seq_cst"):
            view |= memory.writes[n][at].view
        if order == "seq_cst":
            memory = memory._replace(ordered=memory.ordered | learnt)
        return memory, (*views[:thread], view, *views[thread + 1:])

    def stores(self, memory: Memory, views: Views, thread: int, place: int, value: int, order: str
               ) -> Iterator[tuple[Memory, Views]]:
        """An atomic write, wherever it may come in the order of modification."""
        n = self.number[place]
        self.check_plain_reads(memory, views[thread], place)
        for at in range(self.first(memory, views[thread], n, order) + 1, len(memory.writes[n]) + 1):
            if at == len(memory.writes[n]) or not memory.writes[n][at].is_joined:
                yield self.put(memory, views, thread, n, at, Write(value, 0), order)

    def put(self, memory: Memory, views: Views, thread: int, n: int, at: int, write: Write, order: str) -> tuple[Memory, Views]:
        """Put a write at a place in the order of modification."""
        writes = memory.writes[n]
        if not self.weak:
            alone = write._replace(is_joined=False),
            return memory._replace(writes=(*memory.writes[:n], alone, *memory.writes[n + 1:])), views
        assert len(writes) < FIELD
        if at < len(writes):
            memory, views = shifted(memory, views, n, at)
            writes = memory.writes[n]
        view = views[thread] | self.learnt(n, at)
        if order in ("release", "acq_rel", "seq_cst"):
            write = write._replace(view=write.view | view)
        writes = (*writes[:at], write, *writes[at:])
        ordered = memory.ordered | (self.learnt(n, at) if order == "seq_cst" else 0)
        return (memory._replace(writes=(*memory.writes[:n], writes, *memory.writes[n + 1:]), ordered=ordered),
                (*views[:thread], view, *views[thread + 1:]))

    def updates(self, memory: Memory, views: Views, thread: int, place: int, change: Callable[[int], int | None], order: str,
                failing: str = "monotonic") -> Iterator[tuple[int, bool, Memory, Views]]:
        """A read and a write with nothing between; a read alone, of the order `failing`, where `change` gives None."""
        n = self.number[place]
        self.check_plain_reads(memory, views[thread], place)
        writes = memory.writes[n]
        for at in range(self.first(memory, views[thread], n, order), len(writes)):
            before = writes[at]
            after = change(before.value)
            if after is None:
                yield before.value, False, *self.taken(memory, views, thread, n, at, failing)
            elif at + 1 == len(writes) or not writes[at + 1].is_joined:
                taken, seen = self.taken(memory, views, thread, n, at, order)
                yield before.value, True, *self.put(taken, seen, thread, n, at + 1, Write(after, before.view, True), order)

    # ---- the kernel --------------------------------------------------------------------------------------------------
    def compared(self, memory: Memory, views: Views, thread: int, place: int) -> set[int]:
        """What the kernel may find at a place when a thread is about to sleep there: nothing that is older than what those know
        who have woken sleepers before, by the lock of the row of sleepers."""
        n = self.number[place]
        first = self.first(memory, views[thread] | memory.kernel, n, "")
        return {write.value for write in memory.writes[n][first:]}

    def woken(self, memory: Memory, views: Views, thread: int) -> Memory:
        return memory._replace(kernel=memory.kernel | views[thread]) if self.weak else memory

    # ---- plain accesses ----------------------------------------------------------------------------------------------
    def fact(self, place: int, reader: int = -1) -> View:
        """The bit of: the last write of a plain place, or its last read by a thread."""
        if (fact := self.facts.get((place, reader))) is None:
            fact = self.facts[place, reader] = 1 << PLACES * FIELD + len(self.facts)
            if reader >= 0:
                self.all_reads[place] = self.all_reads.get(place, 0) | fact
        return fact

    def plain_read(self, memory: Memory, views: Views, thread: int, place: int) -> tuple[int, Memory, Views]:
        if (n := self.number.get(place)) is not None:
            value = memory.writes[n][-1].value
            is_known = self.first(memory, views[thread], n, "") == len(memory.writes[n]) - 1
        else:
            value = dict(memory.plain).get(place, 0)
            is_known = not memory.facts & self.fact(place) & ~views[thread]
        if not is_known:
            raise Race(f"a read of {place} does not know the last write")
        if self.weak:
            memory, views = noted(memory, views, thread, self.fact(place, thread))
        return value, memory, views

    def plain_write(self, memory: Memory, views: Views, thread: int, place: int, value: int) -> tuple[Memory, Views]:
        if place in self.number:
            raise Race(f"a plain write of {place}, which is atomic elsewhere")
        self.check_plain_reads(memory, views[thread], place)
        if memory.facts & self.fact(place) & ~views[thread]:
            raise Race(f"a write of {place} does not know the last one")
        plain = dict(memory.plain)
        plain[place] = value
        memory = memory._replace(plain=tuple(sorted(plain.items())))
        return noted(memory, views, thread, self.fact(place)) if self.weak else (memory, views)

    def check_plain_reads(self, memory: Memory, view: View, place: int) -> None:
        """A write has to come after all plain reads of the one before."""
        if memory.facts & self.all_reads.get(place, 0) & ~view:
            raise Race(f"a write of {place} does not know a read")

    def forget(self, memory: Memory, places: range) -> Memory:
        """These plain places are given back."""
        return memory._replace(plain=tuple((place, value) for place, value in memory.plain if place not in places))

    # ---- equal states ------------------------------------------------------------------------------------------------
    def shortened(self, memory: Memory, views: Views, alive: list[int]) -> tuple[Memory, Views]:
        """Without writes that no thread can read any more, and facts that all of them know."""
        if not self.weak:
            return memory, views
        common = -1
        for thread in alive:
            common &= views[thread]
        for n in self.strong:
            common |= self.learnt(n, len(memory.writes[n]) - 1)
        gone = common & memory.facts
        drop = [(common >> FIELD * n & FULL).bit_length() for n in range(len(memory.writes))]
        if not gone and not any(drop):
            return memory, views
        moves = [(n, count) for n, count in enumerate(drop) if count]

        def moved(view: View) -> View:
            view &= ~gone
            for n, count in moves:
                field = view >> FIELD * n & FULL
                view ^= (field ^ field >> count) << FIELD * n
            return view

        writes = list(memory.writes)
        for n, count in moves:
            writes[n] = (writes[n][count]._replace(is_joined=False), *writes[n][count + 1:])
        kept = tuple(tuple(Write(w.value, moved(w.view), w.is_joined) for w in place) for place in writes)
        return (Memory(kept, moved(memory.ordered), moved(memory.kernel), memory.facts & ~gone, memory.plain),
                tuple(map(moved, views)))


def noted(memory: Memory, views: Views, thread: int, fact: View) -> tuple[Memory, Views]:
    """A fact is new: only this thread knows it."""
    if memory.facts & fact:
        memory, views = every_view(memory, views, lambda view: view & ~fact)
    return memory._replace(facts=memory.facts | fact), (*views[:thread], views[thread] | fact, *views[thread + 1:])


def shifted(memory: Memory, views: Views, n: int, at: int) -> tuple[Memory, Views]:
    """Make room for a write in front of another one: who knows that knows the new one."""
    low = FIELD * n

    def moved(view: View) -> View:
        field = view >> low & FULL
        return view | 1 << low + field.bit_length() if field.bit_length() >= at else view

    return every_view(memory, views, moved)


def every_view(memory: Memory, views: Views, moved: Callable[[View], View]) -> tuple[Memory, Views]:
    writes = tuple(tuple(Write(w.value, moved(w.view), w.is_joined) for w in place) for place in memory.writes)
    return (Memory(writes, moved(memory.ordered), moved(memory.kernel), memory.facts, memory.plain), tuple(map(moved, views)))
