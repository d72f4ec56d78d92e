"""The writer of LLVM IR: parameters of blocks become phis, structured control runs as written, members lie where they say."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import pytest
from tosaic.lowering.machine_code.codegen import Engine
from tosaic.lowering.machine_code.llvm_writer import NULL, Function, Member, constant, data, module, numbers, quoted, symbol
from tosaic.lowering.target.presets import host

SUM, COUNT = Member(0, "i64"), Member(8, "i32")


def run(function: Function, words: Sequence[int], others: Sequence[Sequence[str]] = ()) -> tuple[int, list[int]]:
    """What `i32 name(ptr)` returns for an array of words, and the words afterwards."""
    memory = (ctypes.c_int64 * len(words))(*words)
    engine = Engine(module(host().triple, function.declared.values(), *others, function.definition()), host())
    try:
        return engine.function(function.name)(ctypes.addressof(memory)), list(memory)
    finally:
        engine.close()


def main(linkage: str = "") -> Function:
    return Function("main", "i32", {"memory": "ptr"}, linkage=linkage, attributes="")


def test_a_block_has_what_each_jump_gives_it() -> None:
    f = main()
    memory, = f.params
    large, small, both = f.blocks("large", "small", "both")
    x = f.load(memory, "i64")
    f.branch(f.compare("sgt", x, 10), large(x), small)
    taken, = f.enter(large, "i64")
    f.jump(both(f.op("sub", taken, 10), 1))
    f.enter(small)
    f.jump(both(x, 0))
    rest, was_large = f.enter(both, "i64", "i32")
    f.store(rest, memory)
    f.give(was_large)
    assert run(f, [13]) == (1, [3]) and run(f, [7]) == (0, [7])
    assert sum("phi" in line for line in f.lines) == 3


def test_a_jump_that_gives_too_little_is_found() -> None:
    f = main()
    end, = f.blocks("end")
    f.jump(end)
    f.give(f.enter(end, "i32")[0])
    with pytest.raises(AssertionError, match="end"):
        f.definition()


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_runs_for_each_number_below_its_end(count: int, once: bool) -> None:
    f = main()
    memory, = f.params
    with f.loop(f.load(memory, "i64"), once=once) as i:
        place = f.address(memory, f.op("add", i, 1), "i64")
        f.store(f.op("mul", i, i), place)
    f.give(constant("i32", 0))
    expected = [i * i if i < max(count, once) else -1 for i in range(6)]
    assert run(f, [count, *[-1] * 6]) == (0, [count, *expected])


def test_nested_control() -> None:
    """The sum of the odd numbers below 10, by a function of its own; a call of nothing returns early."""
    inner = Function("sum", "i64", {"count": "i64"}, attributes="")
    place, nothing = inner.room(1, "i64"), inner.blocks("nothing")[0]
    inner.store(constant("i64", 0), place)
    inner.require(inner.compare("ne", inner.params[0], 0), nothing)
    with inner.loop(inner.params[0]) as i, inner.when(inner.compare("eq", inner.op("and", i, 1), 1)):
        inner.store(inner.op("add", inner.load(place, "i64"), i), place)
    inner.give(inner.load(place, "i64"))
    inner.enter(nothing)
    inner.give(constant("i64", -1))
    f = main()
    f.store(f.call(inner.pointer, "i64", f.load(f.params[0], "i64")), f.params[0])
    f.give(constant("i32", 0))
    assert [run(f, [n], [inner.definition()])[1] for n in (10, 1, 0)] == [[25], [0], [-1]]


def test_members_and_atomic_accesses() -> None:
    f = main()
    memory, = f.params
    f.keep(f.op("add", f.load(memory, SUM), 1), memory, SUM)
    before = f.update("add", f.address(memory, COUNT.offset), constant("i32", 5), "seq_cst")
    old, was_it = f.exchange(memory, constant("i64", 42), 99, "acq_rel acquire")
    f.store(f.op("add", old, f.cast("zext", was_it, "i64")), f.address(memory, 2, "i64"))
    f.keep(f.load(memory, COUNT, "acquire"), f.address(memory, 3, "i64"), Member(0, "i32"))
    f.give(before)
    assert run(f, [41, 7, 0, 0]) == (7, [99, 12, 43, 12])
    assert run(f, [40, 7, 0, 0]) == (7, [41, 12, 41, 12])


def test_data_copies_and_a_switch() -> None:
    f = main()
    memory, = f.params
    blocks = f.blocks("first", "second", "other")
    f.switch(f.load(memory, "i64"), {0: blocks[0], 1: blocks[1]}, blocks[2])
    for block, write in zip(blocks, (lambda: f.copy(memory, symbol("two words"), 16), lambda: f.fill(memory, -1, 16),
                                     lambda: f.store(NULL, memory)), strict=True):
        f.enter(block)
        write()
        f.give(constant("i32", 0))
    words = data("two words", "private constant", *numbers((3, 4), "i64"), align=8)
    assert [run(f, [n, 5], [[words]])[1] for n in range(3)] == [[3, 4], [-1, -1], [0, 5]]


@pytest.mark.parametrize(("name", "spelled"), [("plain.name-1", "plain.name-1"), ("two words", '"two words"'), ("9", '"9"'),
                                              ('a"b', '"a\\22b"'), ("ä", '"\\C3\\A4"')])
def test_names_are_quoted_where_llvm_needs_it(name: str, spelled: str) -> None:
    assert quoted(name) == spelled


def test_structured_control_ends_in_the_block_behind() -> None:
    """What stands behind a loop or a condition is not in it."""
    f = main()
    ended: list[Callable[[], str]] = []
    with f.when("true"):
        ended.append(lambda: f.label)
        inside = f.label
    assert inside.startswith("then") and ended[0]().startswith("end")
