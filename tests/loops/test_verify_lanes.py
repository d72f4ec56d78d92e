"""What the verifier knows of lanes: quotients and remainders of ramps that go up or down, of which some lanes are accessed, and
masks that are true of none.
"""
from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.interpret import LoopMemory, run_function
from tosaic.lowering.loops.ir import Function, Literal, Operand, Type
from tosaic.lowering.loops.verify import verify
from tosaic.runtime.errors import Problem

from .functions import argument, result


@dataclass(frozen=True)
class Ramp:
    """For each i below `count`, lanes at start + step * i + stride * lane, of which `active` exist; divided by `by`."""
    start: int
    stride: int
    lanes: int
    active: int
    by: int
    step: int
    count: int

    @staticmethod
    def drawn(seed: int) -> Ramp:
        """One of which no active lane is negative; others may be."""
        r = random.Random(seed)
        lanes = r.choice((2, 4, 8, 16))
        active, stride, count = r.randint(1, lanes), r.choice((1, 1, 2, 3, -1, -1, -2)), r.choice((1, 1, 2, 5))
        step = r.choice((0, abs(stride) * active, r.randint(1, 9))) if count > 1 else 0
        return Ramp(max(0, -stride * (active - 1)) + r.choice((0, 1, 37, r.randint(0, 40))), stride, lanes, active,
                    r.choice((2, 3, 5, 7, 8)), step, count)

    @property
    def type(self) -> Type:
        return Type("int32", self.lanes)

    @property
    def places(self) -> list[int]:
        return [self.start + self.step * i + self.stride * n for i in range(self.count) for n in range(self.active)]

    def quotient_and_rest(self, b: Builder, i: Axis) -> tuple[Operand, Operand]:
        """As a schedule writes them."""
        base = b.op("cast", b.index(Affine.of(i) * self.step + self.start), type=Type("int32"))
        steps = b.op("mul", b.op("lanes", Literal(0, Type("int32")), type=self.type), Literal(self.stride, self.type))
        place = b.op("add", b.splat(base, self.lanes), steps)
        quotient = b.op("div", place, Literal(self.by, self.type))
        return quotient, b.op("sub", place, b.op("mul", quotient, Literal(self.by, self.type)))

    def reading(self, size: int, rest: bool) -> Function:
        """x[quotient], or x[rest]."""
        b, i = Builder("reading"), Axis("i", self.count)

        def body() -> None:
            at = b.op("cast", self.quotient_and_rest(b, i)[rest], type=Type("int64", self.lanes))
            b.store(result("y", self.lanes), Affine(), b.gather(argument("x", size), at, self.active))

        b.loop(i, body)
        return b.finish()

    def masked(self, most: int, offset: int, size: int) -> Function:
        """x[quotient + offset] where the rest is less than `most`."""
        b, i = Builder("masked"), Axis("i", self.count)

        def body() -> None:
            quotient, rest = self.quotient_and_rest(b, i)
            wide = Type("int64", self.lanes)
            at = b.op("add", b.op("cast", quotient, type=wide), Literal(offset, wide))
            mask = b.op("lt", rest, Literal(most, self.type))
            b.store(result("y", self.lanes), Affine(), b.gather(argument("x", size), at, self.active, mask))

        b.loop(i, body)
        return b.finish()


def runs(f: Function) -> bool:
    """True if all that is accessed exists, as the interpreter finds."""
    memory = LoopMemory()
    for buffer in f.params:
        memory.add(buffer, np.zeros(buffer.size, np.float32))
    try:
        run_function(f, memory)
    except Problem:
        return False
    return True


def is_accepted(f: Function) -> bool:
    try:
        verify(f)
    except Problem:
        return False
    return True


@pytest.mark.parametrize("rest", [False, True], ids=["quotients", "remainders"])
def test_what_inactive_lanes_are_divided_to_says_nothing_of_the_others(rest: bool) -> None:
    """A ramp that goes down is negative after its last active lane."""
    for ramp in map(Ramp.drawn, range(2000)):
        most = max(n % ramp.by if rest else n // ramp.by for n in ramp.places)
        assert is_accepted(ramp.reading(ramp.by if rest else most + 1, rest)), ramp
        if most:
            assert not is_accepted(ramp.reading(most, rest)), ramp


def test_a_mask_that_is_true_of_no_lane_guards_anything() -> None:
    """And one that is true of some guards nothing that never is in range."""
    found = set()
    for seed, ramp in enumerate(map(Ramp.drawn, range(2000))):
        most = random.Random(seed).randint(0, ramp.by)
        happens = any(n % ramp.by < most for n in ramp.places)
        found.add(happens)
        f = ramp.masked(most, 100, 40)
        assert is_accepted(f) is not happens, (ramp, most)
    assert found == {False, True}


def test_the_interpreter_agrees() -> None:
    for seed, ramp in enumerate(map(Ramp.drawn, range(60))):
        most = random.Random(seed).randint(0, ramp.by)
        size = max(n // ramp.by for n in ramp.places) + 1
        assert runs(ramp.reading(size, False)) and runs(ramp.reading(ramp.by, True))
        assert runs(ramp.masked(most, 100, 40)) is not any(n % ramp.by < most for n in ramp.places)
