"""Prefetching memory before its use: it reads and changes nothing, may point outside, and is left out where a machine
cannot."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.dependence.access_order import may_overwrite
from tosaic.lowering.loops.interpret import LoopMemory, run_function
from tosaic.lowering.loops.ir import Address, Function, Literal, Prefetch, Type, buffers_read
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.machine_code.codegen import assembly
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.target.presets import target

from .functions import argument, program, result
from .test_verify import rejects

X, Y = argument("x", 8), result("y", 8)


def prefetching(distance: int, near: bool = False, writes: bool = False) -> Function:
    """y = abs(x), with what is `distance` further on asked for."""
    b, i = Builder("y"), Axis("i", 8)

    def body() -> None:
        b.prefetch(X, Affine.of(i) + distance, near, writes)
        b.store(Y, Affine.of(i), b.op("abs", b.load(X, Affine.of(i))))

    b.loop(i, body)
    return b.finish()


@pytest.mark.parametrize("distance", [1, -100, 1 << 40])
def test_it_changes_no_value_wherever_it_points(distance: int) -> None:
    f = prefetching(distance)
    assert verify(f).accesses == 2
    memory = LoopMemory()
    memory.add(X, np.arange(-4, 4, dtype=np.float32))
    run_function(f, memory)
    np.testing.assert_array_equal(memory.array(Y), np.abs(np.arange(-4, 4)))


@pytest.mark.parametrize(("near", "writes", "line"), [
    (False, False, "prefetch @x[%0 + 3]"), (True, False, "prefetch @x[%0 + 3] near"),
    (False, True, "prefetch @x[%0 + 3] writes"), (True, True, "prefetch @x[%0 + 3] near writes")])
def test_its_text_reads_back(near: bool, writes: bool, line: str) -> None:
    written = print_program(program([prefetching(3, near, writes)], [X], [Y]))
    assert f"    {line}\n" in written
    assert print_program(read_program(written)) == written


def test_a_buffer_of_nobody_is_refused() -> None:
    f = prefetching(3)
    other = Prefetch(Address(Buffer("other", "float32", (8,), "argument"), Literal(0, Type("int64")), 0))
    rejects(replace(f, body=[other, *f.body]), "other is prefetched, and is no parameter")


def test_it_is_no_read() -> None:
    b = Builder("y")
    b.prefetch(Y, Affine())
    b.store(Y, Affine(), b.load(X, Affine()))
    f = b.finish()
    assert buffers_read(f) == {X}
    assert may_overwrite(f, X, Y)


def lines_of(name: str, near: bool = False, writes: bool = False) -> list[str]:
    t = target(cpu=name) if name.startswith("znver") else target(name)
    emitted = emit_functions([prefetching(64, near, writes)], t)
    text = "\n".join([f'target triple = "{t.triple}"', *emitted.declarations, *emitted.definitions, *emitted.attributes,
                      "define void @run(ptr %p, ptr %q) { call void @y(ptr %p, ptr %q) ret void }"])
    return assembly(text, t).splitlines()


@pytest.mark.parametrize(("name", "near", "instruction"), [
    ("x86-64", False, "prefetcht1"), ("x86-64-v4", False, "prefetcht1"), ("x86-64", True, "prefetcht0"),
    ("aarch64", False, "pldl2keep"), ("aarch64", True, "pldl1keep")])
def test_machines_that_can_have_an_instruction_for_it(name: str, near: bool, instruction: str) -> None:
    assert sum(instruction in line for line in lines_of(name, near)) >= 1


@pytest.mark.parametrize(("name", "instruction"), [("znver4", "prefetchw"), ("aarch64", "pstl1keep")])
def test_lines_that_will_be_written_become_the_core_s_own(name: str, instruction: str) -> None:
    assert sum(instruction in line for line in lines_of(name, near=True, writes=True)) >= 1


def test_a_machine_without_such_an_instruction_leaves_it_out() -> None:
    assert not any("pref" in line for line in lines_of("riscv32"))
