"""An axis in blocks, while loops over them are written: the terms of one block, one by one or by vectors."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a block of `axis`; a block has `size` of them, a multiple of the lanes of vectors, the last one may have
    fewer. `counter` numbers the blocks."""
    b: Builder
    axis: Axis
    size: int
    counter: Axis

    @staticmethod
    def of(b: Builder, axis: Axis, size: int, name: str) -> Terms:
        return Terms(b, axis, size, Axis(name, -(-axis.extent // size)))

    @property
    def blocks(self) -> int:
        return self.counter.extent

    @property
    def number(self) -> Affine:
        """Which block it is."""
        return Affine.of(self.counter)

    def over_blocks(self, run: Callable[[], None]) -> None:
        """Run for each block."""
        self.b.loop(self.counter, run)

    @property
    def start(self) -> Affine:
        return self.number * self.size

    def count(self, step: int = 1) -> Operand:
        """How many whole steps of `step` terms there are."""
        extent, size = self.axis.extent // step, self.size // step
        if extent == self.blocks * size or self.blocks == 1:
            return Literal(min(size, extent), INDEX)
        left = self.b.index(self.number * -size + extent)
        return self.b.op("min", Literal(size, INDEX), left, hoist=True)

    def loop(self, run: Callable[..., Sequence[Operand] | None], inits: Sequence[Operand] = (), step: int = 1,
             unrolled: bool = False) -> tuple[Operand, ...]:
        """Run for the place in the block of each step of `step` terms, and carried values. Without a loop where `unrolled`,
        if all blocks have as many terms."""
        count = self.count(step)
        known = int(count.value) if isinstance(count, Literal) else None
        if known == 0:
            return tuple(inits)
        if known and unrolled:
            for number in range(known):
                inits = run(Affine.of(number * step), *inits) or ()
            return tuple(inits)
        axis = Axis(self.axis.name, known or max(2, self.size // step))  # one with an extent of 1 would not stand in an index

        def body(*carried: Operand) -> Sequence[Operand] | None:
            return run(Affine.of(axis) * step, *carried)

        return self.b.loop(axis, body, inits) if known else self.b.loop(axis, body, inits, Literal(0, INDEX), count)

    def tail(self, step: int, run: Callable[[int, int], None]) -> None:
        """Run for the remainder of steps of `step` terms, in the last block: its place and how many terms."""
        left = self.axis.extent % step
        if left:
            place = self.axis.extent - left - (self.blocks - 1) * self.size
            self.when_last(lambda: run(place, left))

    def when_first(self, run: Callable[[], None]) -> None:
        self.when("eq", 0, run)

    def when_last(self, run: Callable[[], None]) -> None:
        self.when("eq", self.blocks - 1, run)

    def when_more(self, run: Callable[[], None]) -> None:
        """Run where another block follows."""
        self.when("lt", self.blocks - 1, run)

    def when(self, comparison: str, number: int, run: Callable[[], None]) -> None:
        if self.blocks == 1:
            if comparison == "eq":
                run()
        else:
            self.b.when(self.b.op(comparison, self.b.index(self.number), Literal(number, INDEX)), run)
