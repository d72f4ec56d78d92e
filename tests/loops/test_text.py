"""Programs as text, and back."""
from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Fault, Loop, MarkWritten, VariableUse
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.ir import Literal, Type
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.text import print_function, print_program, read_program
from tosaic.lowering.loops.verify import verify_program
from tosaic.runtime.errors import Problem

from .functions import F32, argument, blurred, everything, program, result, temporary, unary

GOLDEN = """\
program main
buffer @x: float32[8] argument
buffer @y: float32[8] result
input @x
output @y
kernel @y[i 8] "test.y"
function y(@x, @y) {
  for %0 in 0 to 8 {
    %1: float32 = load @x[%0]
    %2: float32 = abs %1
    store @y[%0] = %2
  }
}
steps {
  compute 0
}
"""


def small() -> Program:
    x, y = argument("x", 8), result("y", 8)
    return program([unary(y, x)], [x], [y])


def large() -> Program:
    """Every kind of statement, step and declaration; names that are no words, and one name twice."""
    f = everything()
    y = f.params[-1]
    v = Buffer("a state", "bfloat16", (2, 3), "variable")
    initial = Buffer("a state", "bfloat16", (2, 3), "constant", np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16))
    table = Buffer("table", "int64", (300,), "constant", np.arange(300)[::-1])
    twin = Buffer("table", "int64", (0,), "constant", np.zeros(0, np.int64))
    b, t = Builder('odd "name" ü\n'), temporary("t", 300, dtype="int64")
    b.store(t, Affine(), b.load(table, Affine.of(7)))
    b.store(t, Affine(), Literal(-3, Type("int64", 4)))
    b.op("add", Literal(float("nan"), F32), Literal(-0.0, F32))
    b.op("add", Literal(float("-inf"), F32), Literal(3, F32))
    b.load(twin, Affine(), 1, mask=Literal(0, Type("bool")))
    c = temporary("c", dtype="bool")
    steps = (Compute(0, (0, 8)), Compute(0, (8, 40)), Compute(1), Branch(c, (Compute(1),), ()), Loop((Compute(1),), c, (
        Branch(c, (), (MarkWritten(v), CheckTrue(c, 2))),)), CheckWritten(v, 0), MarkWritten(v))
    inputs = [b for b in f.params if b.role == "argument"]
    p = program([f, b.finish(), blurred(argument("x", 9), y, 9)], inputs, [y], steps)
    faults = (Fault('not "written"', None, "write it"), Fault("again"), Fault("wrong", None, "help", "check"))
    return replace(p, variables=(VariableUse(v, "bf16", initial),), faults=faults)


def test_the_text_is_stable() -> None:
    assert print_program(small()) == GOLDEN


@pytest.mark.parametrize("make", [small, large])
def test_a_program_reads_back(make: object) -> None:
    assert callable(make)
    text = print_program(make(), constants=True)
    again = read_program(text)
    assert print_program(again, constants=True) == text


def test_what_was_read_is_the_same_program() -> None:
    x, y, t = argument("x", 8), result("y", 8), temporary("t", 8)
    p = program([blurred(x, t, 8), unary(y, t)], [x], [y])
    again = read_program(print_program(p, constants=True))
    verify_program(again)
    data = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run_program(again, [data])[0], run_program(p, [data])[0])


def test_constants_come_back_bit_by_bit() -> None:
    again = read_program(print_program(large(), constants=True))
    initial = again.variables[0].initial
    assert initial is not None and initial.data is not None and initial.name == "a state"
    assert initial.data.dtype == ml_dtypes.bfloat16 and initial.data.astype(int).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not initial.data.flags.writeable
    assert [b.name for b in again.constants] == ["table", "table", "a state"]


def test_long_constants_are_left_out_unless_they_are_asked_for() -> None:
    text = print_program(large())
    assert "int64[300] constant = ..." in text and "bfloat16[2, 3] constant = 0x0000803f" in text
    with pytest.raises(Problem, match="the data of table was left out"):
        read_program(text)


def test_a_function_prints_alone() -> None:
    lines = print_function(everything()).splitlines()
    assert lines[0] == "function everything(@m, @x, @n, @y) scratch(@s) rows(%0, %1) {"
    assert any("for %2 in %0 to %1 with" in line for line in lines)
    assert any(line.strip().startswith("if %") and line.endswith("unlikely {") for line in lines)


BROKEN = {
    "": "the text ends too early|empty",
    "program": "ends too early",
    GOLDEN[:-3]: "ends too early",
    GOLDEN + "more": "has ended here",
    GOLDEN.replace("abs %1", "abs %7"): "%7 is not defined",
    GOLDEN.replace("abs %1", "abs %2"): "%2 is not defined",
    GOLDEN.replace("%1: float32", "%0: float32"): "expected a new value, found %0",
    GOLDEN.replace("%1: float32", "%1: float31"): "no type float31",
    GOLDEN.replace("%1: float32", "%1: float32x0"): "no type float32x0",
    GOLDEN.replace("load @x", "load @z"): "expected a buffer, found @z",
    GOLDEN.replace("@x: float32[8]", "@x: float99[8]"): "no dtype float99",
    GOLDEN.replace("@x: float32[8]", "@x: float32[-8]"): "expected a shape",
    GOLDEN.replace("[8] argument", "[8] friend"): "expected a shape and one of argument",
    GOLDEN.replace("@y: float32", "@x: float32"): "expected a new buffer",
    GOLDEN.replace("compute 0", "compute zero"): "whole number, found zero",
    GOLDEN.replace("compute 0", "sleep 8"): "expected a step, found sleep",
    GOLDEN.replace("compute 0", "check @x"): "expected fault",
    GOLDEN.replace("store @y[%0] = %2", "%3 = abs %2"): "expected :, found =",
    GOLDEN.replace("store @y[%0] = %2", "store @y[%0] = %2 mask %2"): "a store has no mask",
    GOLDEN.replace("abs %1", "shuffle %1 [0]"): "two operands",
    GOLDEN.replace("8 {", "eight {"): "expected a value, found eight",
    GOLDEN.replace("output @y", "outputs @y"): "expected a section of a program, found outputs",
    GOLDEN.replace("[8] argument", "[8] constant = 0x00"): "0x and 64 hexadecimal digits",
    GOLDEN.replace("program main", 'program "\\q"'): "not a JSON string",
    GOLDEN.replace("program main", "program ?"): "no part of a program",
    GOLDEN.replace("compute 0", "if @x { " * 200): "100 blocks",
    GOLDEN.replace("store @y[%0] = %2", "if %2 { " * 200): "100 blocks",
}


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_text_that_is_no_program_is_a_problem_with_its_place(number: int) -> None:
    text, message = list(BROKEN.items())[number]
    with pytest.raises(Problem, match=message) as caught:
        read_program(text)
    assert caught.value.kind == "syntax"
    assert not text or caught.value.position is not None


def test_text_with_something_missing_or_changed_is_a_problem_or_a_program() -> None:
    """Every token left out, doubled, or replaced by another: nothing else escapes."""
    words = print_program(small()).split(" ")
    for i, word in enumerate(words):
        for new in ("", f"{word} {word}", "%1", "9", "@x", "}", "inf", "-1", "float32"):
            text = " ".join([*words[:i], new, *words[i + 1:]])
            try:
                verify_program(read_program(text))
            except Problem:
                continue


def test_an_index_may_go_back() -> None:
    b, x, y, i = Builder("back"), argument("x", 8), result("y", 8), Axis("i", 8)
    b.loop(i, lambda: b.store(y, Affine.of(i), b.load(x, Affine.of(i) * -1 + 7)))
    b.loop(i, lambda: b.store(y, Affine.of(i) * -1 + 7, b.load(x, Affine.of(i))))
    text = print_program(program([b.finish()], [x], [y]), constants=True)
    assert "+ 7]" in text and print_program(read_program(text), constants=True) == text
