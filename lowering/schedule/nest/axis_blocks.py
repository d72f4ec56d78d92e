"""An axis cut into blocks, for writing the loops over the blocks and over the terms of one block, singly or by vectors."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one block of `axis`. A block has `size` terms, a multiple of the vector lanes; the last block may have
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
        """Number of the current block."""
        return Affine.of(self.counter)

    def over_blocks(self, run: Callable[[], None]) -> None:
        """Call `run` for each block."""
        self.b.loop(self.counter, run)

    @property
    def start(self) -> Affine:
        return self.number * self.size

    def count(self, step: int = 1) -> Operand:
        """Return the number of whole steps of `step` terms in the current block."""
        extent, size = self.axis.extent // step, self.size // step
        if extent == self.blocks * size or self.blocks == 1:
            return Literal(min(size, extent), INDEX)
        left = self.b.index(self.number * -size + extent)
        return self.b.op("min", Literal(size, INDEX), left, hoist=True)

    def loop(self, run: Callable[..., Sequence[Operand] | None], inits: Sequence[Operand] = (), step: int = 1,
             unrolled: bool = False) -> tuple[Operand, ...]:
        """Call `run` with the offset in the block of each step of `step` terms, and the carried values. With `unrolled`, write
        no loop if all blocks have the same number of terms."""
        count = self.count(step)
        known = int(count.value) if isinstance(count, Literal) else None
        if known == 0:
            return tuple(inits)
        if known and unrolled:
            for number in range(known):
                inits = run(Affine.of(number * step), *inits) or ()
            return tuple(inits)
        axis = Axis(self.axis.name, known or max(2, self.size // step))  # an index omits axes of extent 1

        def body(*carried: Operand) -> Sequence[Operand] | None:
            return run(Affine.of(axis) * step, *carried)

        return self.b.loop(axis, body, inits) if known else self.b.loop(axis, body, inits, Literal(0, INDEX), count)

    def tail(self, step: int, run: Callable[[int, int], None]) -> None:
        """In the last block, call `run` with the offset and the number of the terms left over from steps of `step` terms."""
        left = self.axis.extent % step
        if left:
            place = self.axis.extent - left - (self.blocks - 1) * self.size
            self.when_last(lambda: run(place, left))

    def when_first(self, run: Callable[[], None]) -> None:
        self.when("eq", 0, run)

    def when_last(self, run: Callable[[], None]) -> None:
        self.when("eq", self.blocks - 1, run)

    def when_more(self, run: Callable[[], None]) -> None:
        """Call `run` in every block but the last."""
        self.when("lt", self.blocks - 1, run)

    def when(self, comparison: str, number: int, run: Callable[[], None]) -> None:
        if self.blocks == 1:
            if comparison == "eq":
                run()
        else:
            self.b.when(self.b.op(comparison, self.b.index(self.number), Literal(number, INDEX)), run)
