"""What the verifier accepts, what it proves, and ranges that it does not accept."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import INDEX, Address, Block, For, Function, Let, Literal, Type, Var
from tosaic.lowering.loops.verify import verify
from tosaic.runtime.errors import Problem

from .functions import F32, argument, blurred, everything, guarded, result, temporary, unary

I = Axis("i", 8)
I64x4 = Type("int64", 4)


def rejects(f: Function, message: str, rows: tuple[int, int] | None = None) -> None:
    with pytest.raises(Problem, match=message) as caught:
        verify(f, rows)
    assert caught.value.kind == "internal"


# ---- right functions -------------------------------------------------------------------------------------------------
def test_a_function_of_every_kind_of_statement_is_accepted() -> None:
    proof = verify(everything())
    assert proof.accesses == 10 and proof.guarded == 0 and not proof.needs


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_bounds_of_an_inner_loop_that_follow_the_outer_index_prove_its_loads(count: int) -> None:
    assert verify(blurred(argument("x", count), result("y", count), count)).guarded == 0


@pytest.mark.parametrize("stride", [1, 2, 3, -1])
def test_a_condition_proves_the_load_that_it_guards(stride: int) -> None:
    i = Axis("i", 20)
    assert verify(guarded(argument("x", 9), result("y", 20), 20, Range(Affine.of(i) * stride - 3, 0, 9))).guarded == 0


def test_remainder_and_quotient_of_an_index_are_in_range() -> None:
    b, i = Builder("divided"), Axis("i", 30)
    x, y = argument("x", 5, 6), result("y", 30)

    def body() -> None:
        at = b.index(Affine.of(i))
        six = Literal(6, INDEX)
        row = b.op("div", at, six)
        column = b.op("sub", at, b.op("mul", row, six))
        swapped = b.op("add", b.op("mul", column, Literal(5, INDEX)), row)
        indices = b.op("splat", swapped, type=I64x4)
        b.store(y, Affine.of(i), b.shuffle(b.gather(x, indices), b.gather(x, indices), (0,)))

    b.loop(i, body)
    assert verify(b.finish()).guarded == 0


def test_a_circular_buffer_is_in_range() -> None:
    b, i = Builder("circular"), Axis("i", 100)
    x, t = argument("x", 100), temporary("t", 8)
    b.loop(i, lambda: b.store(t, Affine(), b.load(x, Affine.of(i))))
    f = b.finish()
    (loop,) = f.body
    assert isinstance(loop, For)
    ring = Var(90, INDEX, 1)
    body: Block = [Let(ring, "and", (loop.index, Literal(7, INDEX))), loop.body[0],
                   replace(loop.body[1], address=Address(t, ring, 0))]
    assert verify(replace(f, body=[replace(loop, body=body)])).guarded == 0
    outside: Block = [body[0], body[1], replace(body[2], address=Address(t, ring, 1))]
    rejects(replace(f, body=[replace(loop, body=outside)]), "t: float32.8. is accessed at 1 to 8")


def test_constant_indices_are_looked_at() -> None:
    def reading(indices: list[int]) -> Function:
        b, table = Builder("table"), Buffer("table", "int64", (4,), "constant", np.array(indices))
        b.store(result("y", 4), Affine(), b.gather(argument("x", 9), b.load(table, Affine(), 4)))
        return b.finish()

    assert verify(reading([8, 0, 3, 5])).guarded == 0
    rejects(reading([8, 0, 9, 5]), "at 0 to 9")
    rejects(reading([8, 0, -1, 5]), "at -1 to 8")


def test_indices_from_data_are_rejected_unless_they_are_clamped_or_guarded() -> None:
    def reading(clamp: bool, mask: bool) -> Function:
        b, n = Builder("data"), argument("n", 4, dtype="int32")
        at = b.op("cast", b.load(n, Affine(), 4), type=I64x4)
        if clamp:
            at = b.op("min", b.op("max", at, Literal(0, I64x4)), Literal(8, I64x4))
        unknown = b.load(argument("m", 4, dtype="bool"), Affine(), 4) if mask else None
        b.store(result("y", 4), Affine(), b.gather(argument("x", 9), at, mask=unknown))
        return b.finish()

    assert verify(reading(True, False)).guarded == 0
    assert verify(reading(False, True)).guarded == 1
    rejects(reading(False, False), "x: float32.9. is accessed")


def test_an_index_that_wraps_around_is_not_trusted() -> None:
    b = Builder("wrapping")
    narrow = b.op("cast", Literal(200, INDEX), type=Type("int8"))
    indices = b.op("splat", b.op("cast", narrow, type=INDEX), type=I64x4)
    b.store(result("y", 4), Affine(), b.gather(argument("x", 201), indices))
    rejects(b.finish(), "at -128 to 127")


def test_a_guarded_access_that_is_never_in_range_is_rejected() -> None:
    i = Axis("i", 20)
    rejects(guarded(argument("x", 9), result("y", 20), 20, Range(Affine.of(i), 12, 15)), "at 12 to 14")


def test_a_condition_that_is_too_weak_counts_as_guarded() -> None:
    i = Axis("i", 20)
    assert verify(guarded(argument("x", 9), result("y", 20), 20, Range(Affine.of(i), 0, 10))).guarded == 1


def test_a_loop_that_never_runs_may_say_anything() -> None:
    b = Builder("empty")
    i = Axis("i", 8)
    b.loop(i, lambda: b.store(result("y", 4), Affine.of(i) + 100, Literal(0.0, F32)), low=Literal(5, INDEX),
           high=Literal(5, INDEX))
    assert verify(b.finish()).accesses == 1


def test_rows_are_those_that_the_caller_names() -> None:
    f = unary(result("y", 8), argument("x", 8), by_rows=True)
    assert verify(f).guarded == 0
    verify(f, (2, 8))
    rejects(f, "at 0 to 8", (0, 9))
    rejects(f, "at -1 to 7", (-1, 8))


def test_buffers_that_are_read_first_are_named() -> None:
    b, t = Builder("adding"), temporary("t", 4)
    v = b.load(t, Affine(), 4)
    b.store(t, Affine(), b.op("add", v, v))
    assert verify(b.finish()).needs == {t}
