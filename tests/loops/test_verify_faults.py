"""The verifier finds each fault that is planted in a right function."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import (
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
from tosaic.lowering.loops.verify import verify

from .functions import F32, argument, blurred, result
from .test_verify import rejects

I = Axis("i", 8)

Change = Callable[[Stmt], list[Stmt]]


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


def edited(f: Function, kind: type, number: int, change: Change) -> Function:
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


def shifted(by: int) -> Change:
    def change(s: Stmt) -> list[Stmt]:
        assert isinstance(s, (LoadFrom, StoreTo))
        return [replace(s, address=replace(s.address, offset=s.address.offset + by))]
    return change


def with_(**fields: object) -> Change:
    return lambda s: [replace(s, **fields)]


def longer(s: Stmt) -> list[Stmt]:
    assert isinstance(s, For) and isinstance(s.high, Literal)
    return [replace(s, high=Literal(int(s.high.value) + 1, INDEX))]


def result_of(type: Type, depth: int = 1) -> Change:
    """Another result for a statement."""
    return lambda s: [replace(s, result=Var(98, type, depth))]


def address_of(**fields: object) -> Change:
    return lambda s: [replace(s, address=replace(s.address, **fields))]


def with_shuffle(lanes: int, *numbers: int) -> Change:
    """A shuffle of the loaded vector with itself, after the load."""
    return lambda s: [s, Shuffle(Var(97, Type("float32", lanes), 1), (s.result, s.result), numbers)]


def with_gather(index: int, type: Type) -> Change:
    return lambda s: [s, GatherFrom(Var(96, Type("float32", 4), 1), s.address.buffer, Literal(index, type), 4)]


def used_after(s: Stmt) -> list[Stmt]:
    """The loop's index as an address behind the loop."""
    return [s, StoreTo(Address(s.body[-2].address.buffer, s.index, 0), Literal(0.0, F32), 1)]


I64x4, F32x4 = Type("int64", 4), Type("float32", 4)
FAULTS: dict[str, tuple[type, int, Change, str]] = {
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
    "a value that is not defined": (StoreTo, 0, with_(value=Var(99, F32x4, 0)), "99 is used where it is not defined"),
    "a value of a loop used after it": (For, 0, used_after, "used where it is not defined"),
    "a value before its definition": (LoadFrom, 0, lambda s: [], "used where it is not defined"),
    "a value defined twice": (LoadFrom, 0, lambda s: [s, s], "defined twice"),
    "a wrong depth": (LoadFrom, 0, result_of(F32x4, 0), "is at depth 1, and says 0"),
    "an operation that there is not": (Let, 0, with_(op="frobnicate"), "no such operation"),
    "too many operands": (Let, 0, with_(op="abs"), "1 operands"),
    "too few operands": (Let, 0, with_(op="fma"), "3 operands"),
    "bits of a float": (Let, 1, with_(op="and"), "not defined for this type"),
    "a result of another type": (Let, 1, result_of(Type("float64", 4)), "result's type"),
    "a store of another dtype": (StoreTo, 0, with_(value=Literal(1, Type("int32", 4))), "int32 is written in y"),
    "a load of another dtype": (LoadFrom, 0, result_of(Type("int32", 4)), "int32 is read in x"),
    "a mask of too few lanes": (LoadFrom, 0, with_(mask=Literal(1, Type("bool", 3))), "a mask is boolx3"),
    "a mask that is no bool": (LoadFrom, 0, with_(mask=Literal(1, Type("int8", 4))), "a mask is int8x4"),
    "an index of 32 bits": (LoadFrom, 1, address_of(base=Literal(0, Type("int32"))), "an index is int32"),
    "a constant that its dtype cannot hold": (StoreTo, 0, with_(value=Literal(300, Type("int8", 4))), "300 is no int8"),
    "a fraction in an integer": (StoreTo, 0, with_(value=Literal(0.5, Type("int8", 4))), "0.5 is no int8"),
    "a dtype that there is not": (StoreTo, 0, with_(value=Literal(1, Type("int7", 4))), "int7x4 is no type"),
    "a loop that yields too little": (For, 0, with_(yields=()), "carries as many"),
    "a loop that starts with another type": (For, 0, with_(inits=(Literal(0, INDEX),)), "loop carries is int64"),
    "a loop that yields another type": (For, 0, with_(yields=(Literal(0, INDEX),)), "loop carries is int64"),
    "memory that is no parameter": (StoreTo, 0, address_of(buffer=result("z", 32)), "z is written, and is no param"),
    "a shuffle of lanes that there are not": (LoadFrom, 1, with_shuffle(2, 0, 8), "of 8 lanes takes"),
    "a shuffle of too few lanes": (LoadFrom, 1, with_shuffle(3, 0, 7), "result of a shuffle"),
    "a condition that is no bool": (LoadFrom, 1, lambda s: [s, If(Literal(1, INDEX), [])], "a condition is int64"),
    "a gather with narrow indices": (LoadFrom, 1, with_gather(0, Type("int32", 4)), "indices of a gather"),
    "a gather past the end": (LoadFrom, 1, with_gather(32, I64x4), "at 32 to 32"),
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
