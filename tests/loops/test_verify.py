"""The verifier accepts what is right and finds each planted fault."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.fuse.kernel import Branch, CheckWritten, Compute, Fault, Loop, MarkWritten
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import (
    BOOL,
    INDEX,
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    Shuffle,
    Stmt,
    StoreTo,
    Type,
    Var,
)
from tosaic.lowering.loops.verify import verify, verify_program
from tosaic.runtime.errors import Problem

from .functions import F32, argument, blurred, everything, guarded, program, result, temporary, unary

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


# ---- planted faults --------------------------------------------------------------------------------------------------
def base() -> Function:
    """y[4i .. 4i + 4] = x[4i ..] + x[0 ..], with a sum that the loop carries."""
    b = Builder("base")
    x, y, s = argument("x", 32), result("y", 32), result("s", 4)

    def body(total: Var) -> list[Var]:
        v = b.load(x, Affine.of(I) * 4, 4)
        b.store(y, Affine.of(I) * 4, b.op("add", v, b.load(x, Affine(), 4)))
        return [b.op("add", total, v)]

    (total,) = b.loop(I, body, [Literal(0.0, Type("float32", 4))])
    b.store(s, Affine(), total)
    return b.finish()


def edited(f: Function, kind: type, number: int, change: Callable[[Stmt], list[Stmt]]) -> Function:
    """The function with statement number `number` of a kind replaced."""
    seen = [0]

    def block(statements: Block) -> Iterator[Stmt]:
        for s in statements:
            if isinstance(s, (For, If)):
                s = replace(s, body=list(block(s.body)))
            if isinstance(s, kind):
                seen[0] += 1
                if seen[0] == number + 1:
                    yield from change(s)
                    continue
            yield s

    new = replace(f, body=list(block(f.body)))
    assert seen[0] > number
    return new


def shifted(by: int) -> Callable[[Stmt], list[Stmt]]:
    def change(s: Stmt) -> list[Stmt]:
        assert isinstance(s, (LoadFrom, StoreTo))
        return [replace(s, address=replace(s.address, offset=s.address.offset + by))]
    return change


def with_(**fields: object) -> Callable[[Stmt], list[Stmt]]:
    return lambda s: [replace(s, **fields)]


def longer(s: Stmt) -> list[Stmt]:
    assert isinstance(s, For) and isinstance(s.high, Literal)
    return [replace(s, high=Literal(int(s.high.value) + 1, INDEX))]


STRAY = Var(99, Type("float32", 4), 0)
FAULTS: dict[str, tuple[type, int, Callable[[Stmt], list[Stmt]], str]] = {
    "load past the end": (LoadFrom, 0, shifted(1), "at 1 to 32, and has 32"),
    "load before the start": (LoadFrom, 0, shifted(-1), "at -1 to 30"),
    "constant load past the end": (LoadFrom, 1, shifted(29), "at 29 to 32"),
    "store past the end": (StoreTo, 0, shifted(1), "at 1 to 32"),
    "store before the start": (StoreTo, 0, shifted(-4), "at -4 to 27"),
    "last store past the end": (StoreTo, 1, shifted(1), "at 1 to 4"),
    "one iteration too many": (For, 0, longer, "at 0 to 35"),
    "one iteration before the first": (For, 0, with_(low=Literal(-1, INDEX)), "at -4 to 31"),
    "no lane": (StoreTo, 0, with_(active=0), "0 of 4 lanes"),
    "more lanes than there are": (LoadFrom, 0, with_(active=5), "5 of 4 lanes"),
    "a value that is not defined": (StoreTo, 0, with_(value=STRAY), "value 99 is used where it is not defined"),
    "a value of a loop used after it": (For, 0, lambda s: [s, StoreTo(Address(s.body[1].address.buffer, s.index, 0), Literal(
        0.0, F32), 1)], "used where it is not defined"),
    "a value before its definition": (LoadFrom, 0, lambda s: [], "used where it is not defined"),
    "a value defined twice": (LoadFrom, 0, lambda s: [s, s], "defined twice"),
    "a wrong depth": (LoadFrom, 0, lambda s: [replace(s, result=Var(98, s.result.type, 0))], "is at depth 1, and says 0"),
    "an operation that there is not": (Let, 0, with_(op="frobnicate"), "no such operation"),
    "operands of another type": (Let, 0, with_(op="fma"), "3 operands"),
    "too few operands": (Let, 0, lambda s: [replace(s, args=s.args[:1])], "operands"),
    "bits of a float": (Let, 1, with_(op="and"), "not defined for this type"),
    "a result of another type": (Let, 1, lambda s: [replace(s, result=Var(97, Type("float64", 4), 1))], "result's type"),
    "a store of another dtype": (StoreTo, 0, with_(value=Literal(1, Type("int32", 4))), "int32 is written in y"),
    "a load of another dtype": (LoadFrom, 0, lambda s: [replace(s, result=Var(96, Type("int32", 4), 1))], "int32 is read in x"),
    "a mask of too few lanes": (LoadFrom, 0, with_(mask=Literal(1, Type("bool", 3))), "a mask is boolx3"),
    "a mask that is no bool": (LoadFrom, 0, with_(mask=Literal(1, Type("int8", 4))), "a mask is int8x4"),
    "an index of 32 bits": (LoadFrom, 1, lambda s: [replace(s, address=replace(s.address, base=Literal(0, Type("int32"))))], "index is int64"),
    "a constant that its dtype cannot hold": (StoreTo, 0, with_(value=Literal(300, Type("int8", 4))), "300 is no int8"),
    "a fraction in an integer": (StoreTo, 0, with_(value=Literal(0.5, Type("int8", 4))), "0.5 is no int8"),
    "a loop that yields too little": (For, 0, with_(yields=()), "carries as many"),
    "a loop that starts with another type": (For, 0, with_(inits=(Literal(0, INDEX),)), "loop carries is int64"),
    "a loop that yields another type": (For, 0, with_(yields=(Literal(0, INDEX),)), "loop carries is int64"),
    "a memory that is no parameter": (StoreTo, 0, lambda s: [replace(s, address=replace(s.address, buffer=result("z", 32)))], "z is written, and is no parameter"),
    "a shuffle of lanes that there are not": (LoadFrom, 1, lambda s: [s, Shuffle(Var(95, Type("float32", 2), 1), (s.result, s.result), (0, 8))], "of 8 lanes takes"),
    "a shuffle of too few lanes": (LoadFrom, 1, lambda s: [s, Shuffle(Var(95, Type("float32", 3), 1), (s.result, s.result), (0, 7))], "result of a shuffle"),
    "a condition that is no bool": (LoadFrom, 1, lambda s: [s, If(Literal(1, INDEX), [])], "a condition is int64"),
    "a gather with narrow indices": (LoadFrom, 1, lambda s: [s, GatherFrom(Var(94, Type("float32", 4), 1), s.address.buffer, Literal(0, Type("int32", 4)), 4)], "indices of a gather"),
    "a gather past the end": (LoadFrom, 1, lambda s: [s, GatherFrom(Var(94, Type("float32", 4), 1), s.address.buffer, Literal(32, I64x4), 4)], "at 32 to 32"),
}


def test_the_function_without_a_fault_is_accepted() -> None:
    verify(base())


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    kind, number, change, message = FAULTS[name]
    rejects(edited(base(), kind, number, change), message)


@pytest.mark.parametrize("by", [-2, -1, 1, 2])
def test_bounds_of_an_inner_loop_that_are_off_are_found(by: int) -> None:
    f = blurred(argument("x", 50), result("y", 50), 50)
    rejects(edited(f, LoadFrom, 0, shifted(by)), "x: float32.50. is accessed")


@pytest.mark.parametrize("buffer", [argument("x", 4), Buffer("c", "float32", (4,), "constant", np.zeros(4, "f4"))])
def test_memory_that_is_not_ours_is_not_written(buffer: Buffer) -> None:
    b = Builder("writer")
    b.store(buffer, Affine(), Literal(0.0, Type("float32", 4)))
    rejects(b.finish(), f"{buffer.name} is written, and is")


def test_scratch_is_written_before_it_is_read() -> None:
    b, s, y = Builder("reader"), Buffer("s", "float32", (4,), "scratch"), result("y", 4)
    b.scratch(s)
    b.store(y, Affine(), b.load(s, Affine(), 4))
    b.store(s, Affine(), Literal(0.0, Type("float32", 4)))
    rejects(b.finish(), "scratch s is read before")


def test_a_buffer_is_a_parameter_once() -> None:
    f = base()
    rejects(replace(f, params=(*f.params, f.params[0])), "a parameter twice")


# ---- steps -----------------------------------------------------------------------------------------------------------
X, T, Y = argument("x", 8), temporary("t", 8), result("y", 8)
FLAG = Buffer("flag", "bool", (), "temporary")
STATE = Buffer("state", "float32", (8,), "variable")


def steps_are_rejected(message: str, *steps: object, faults: tuple[Fault, ...] = ()) -> None:
    p = program([unary(T, X), unary(Y, T)], [X], [Y], steps)
    with pytest.raises(Problem, match=message) as caught:
        verify_program(replace(p, faults=faults))
    assert caught.value.kind == "internal"


def test_steps_in_order_are_accepted() -> None:
    proofs = verify_program(program([unary(T, X), unary(Y, T)], [X], [Y]))
    assert [p.accesses for p in proofs] == [2, 2]


def test_a_step_reads_only_what_a_step_before_has_written() -> None:
    steps_are_rejected("y reads t: float32.8. before", Compute(1), Compute(0))
    steps_are_rejected("the caller reads y", Compute(0))
    steps_are_rejected("a branch reads flag", Branch(FLAG, (), ()), Compute(0), Compute(1))
    steps_are_rejected("a loop reads flag", Loop((), FLAG, ()), Compute(0), Compute(1))


def test_what_one_side_of_a_branch_writes_is_not_written_after_it() -> None:
    condition = argument("c", dtype="bool")
    steps_are_rejected("y reads t", Branch(condition, (Compute(0),), ()), Compute(1))
    both = Branch(condition, (Compute(0),), (Compute(0),))
    verify_program(program([unary(T, X), unary(Y, T)], [X], [Y], [both, Compute(1)]))


def test_what_the_body_of_a_loop_writes_is_not_written_after_it() -> None:
    condition = argument("c", dtype="bool")
    steps_are_rejected("y reads t", Loop((), condition, (Compute(0),)), Compute(1))
    verify_program(program([unary(T, X), unary(Y, T)], [X], [Y], [Loop((Compute(0),), condition, ()), Compute(1)]))


def test_steps_name_kernels_and_faults_that_there_are() -> None:
    steps_are_rejected("kernel 2 of 2", Compute(0), Compute(2))
    steps_are_rejected("fault 0 of 0", CheckWritten(STATE, 0), Compute(0), Compute(1))
    steps_are_rejected("is no variable", MarkWritten(T), Compute(0), Compute(1))
    steps_are_rejected("cannot compute rows 0 to 4", Compute(0, (0, 4)), Compute(1))


@pytest.mark.parametrize(("rows", "message"), [
    ([(0, 4), (5, 8)], "row 4 is never computed"), ([(0, 4)], "row 4 is never computed"), ([(1, 8)], "row 0 is never"),
    ([(0, 9)], "rows 0 to 9 of 8"), ([(0, 8), (4, 4)], "rows 4 to 4 of 8")])
def test_rows_are_all_computed_and_no_others(rows: list[tuple[int, int]], message: str) -> None:
    f = unary(Y, X, by_rows=True)
    verify_program(program([f], [X], [Y], [Compute(0, (4, 8)), Compute(0, (0, 5))]))
    verify_program(program([f], [X], [Y], [Compute(0)]))
    with pytest.raises(Problem, match=message):
        verify_program(program([f], [X], [Y], [Compute(0, r) for r in rows]))


def test_a_bool_is_the_condition_of_steps() -> None:
    assert Type("bool") == BOOL
