"""Which loops may be divided: those whose iterations are independent, and that wait for what they read."""
from __future__ import annotations

import re

import pytest
from tosaic.lowering.loops.cost import cycles
from tosaic.lowering.loops.dependence.dependence import Dependence
from tosaic.lowering.loops.ir import For, Function
from tosaic.lowering.loops.text import read_program
from tosaic.lowering.schedule.parallelize import divide, task_count

from .cases import V4, fine  # noqa: F401  a fixture


def function(body: str, scratch: str = "") -> Function:
    """A function of an argument x and a result y of 100 rows of 40 elements, and of scratch s of as many."""
    text = f"""program p
buffer @x: float32[100, 40] argument
buffer @y: float32[100, 40] result
buffer @s: float32[100, 40] scratch
input @x
output @y
kernel @y["i" 100, "j" 40] "none"
function f(@x, @y) {scratch} {{
{body}
}}
steps {{
  compute 0
}}
"""
    return read_program(text).functions[0]


def loops(f: Function) -> list[For]:
    """Each first loop, from the outside to the inside."""
    found, block = [], f.body
    while inner := [s for s in block if isinstance(s, For)]:
        found.append(inner[0])
        block = inner[0].body
    return found


def independent(f: Function) -> list[bool]:
    (result,) = [b for b in f.params if b.name == "y"]
    return [Dependence(f).are_independent(loop, {result}) for loop in loops(f)]


ROWS = """for %0 in 0 to 100 {
  %1: int64 = mul %0, 40
  for %2 in 0 to 5 {
    %3: int64 = mul %2, 8
    %4: int64 = add %1, %3
    %5: float32x8 = load @x[%4]
    store @y[%4] = %5
  }
}"""
CASES = {
    "rows and columns": (ROWS, [True, True]),
    "columns outside": ("""for %0 in 0 to 5 {
  %1: int64 = mul %0, 8
  for %2 in 0 to 50 {
    %3: int64 = mul %2, 80
    %4: int64 = add %1, %3
    %5: float32x8 = load @x[%4]
    store @y[%4] = %5
    store @y[%4 + 40] = %5
  }
}""", [True, True]),
    "columns that overlap": ("""for %0 in 0 to 4 {
  %1: int64 = mul %0, 7
  for %2 in 0 to 100 {
    %3: int64 = mul %2, 40
    %4: int64 = add %1, %3
    %5: float32x8 = load @x[%4]
    store @y[%4] = %5
  }
}""", [False, True]),
    "columns that reach into the next row": ("""for %0 in 0 to 6 {
  %1: int64 = mul %0, 8
  for %2 in 0 to 99 {
    %3: int64 = mul %2, 40
    %4: int64 = add %1, %3
    %5: float32x8 = load @x[%4]
    store @y[%4] = %5
  }
}""", [False, False]),
    "blocks of panels, the last one smaller": ("""for %0 in 0 to 2 {
  %1: int64 = mul %0, -3
  %2: int64 = add 5, %1
  %3: int64 = min 3, %2
  %4: int64 = mul %0, 24
  for %5 in 0 to 100 {
    %6: int64 = mul %5, 40
    %7: int64 = add %4, %6
    for %8 in 0 to %3 {
      %9: int64 = mul %8, 8
      %10: int64 = add %7, %9
      %11: float32x8 = load @x[%10]
      store @y[%10] = %11
    }
  }
}""", [False, True, False]),
    "blocks of panels that reach into the next row": ("""for %0 in 0 to 2 {
  %1: int64 = mul %0, -3
  %2: int64 = add 6, %1
  %3: int64 = min 3, %2
  %4: int64 = mul %0, 24
  for %5 in 0 to 99 {
    %6: int64 = mul %5, 40
    %7: int64 = add %4, %6
    for %8 in 0 to %3 {
      %9: int64 = mul %8, 8
      %10: int64 = add %7, %9
      %11: float32x8 = load @x[%10]
      store @y[%10] = %11
    }
  }
}""", [False, False, False]),
    "sums that grow": ("""for %0 in 0 to 10 {
  for %1 in 0 to 100 {
    %2: int64 = mul %1, 40
    %3: int64 = mul %0, 4
    %4: float32 = load @x[%3]
    %5: float32 = load @y[%2]
    %6: float32 = add %4, %5
    store @y[%2] = %6
  }
}""", [False, True]),
    "an iteration reads the next one's": ("""for %0 in 0 to 99 {
  %1: int64 = mul %0, 40
  %2: float32 = load @y[%1 + 40]
  store @y[%1] = %2
}""", [False]),
    "places from data": ("""for %0 in 0 to 90 {
  %1: float32 = load @x[%0]
  %2: int64 = cast %1
  %3: int64 = and %2, 63
  store @y[%3] = %1
}""", [False]),
    "backwards": ("""for %0 in 0 to 100 {
  %1: int64 = mul %0, -40
  %2: float32x8 = load @x[%1 + 3960]
  store @y[%1 + 3960] = %2
}""", [True]),
}


@pytest.mark.parametrize("name", CASES)
def test_iterations_are_independent_or_not(name: str) -> None:
    body, expected = CASES[name]
    assert independent(function(body)) == expected


def test_loops_whose_iterations_depend_on_each_other_are_not_divided(fine: None) -> None:  # noqa: F811
    for name, (body, expected) in CASES.items():
        f = function(body)
        assert (divide(f, 2, V4.costs) is not None) == any(expected), name


def test_units_are_shared_evenly(fine: None) -> None:  # noqa: F811
    for parts in (2, 3, 7, 64):
        divided = divide(function(ROWS), parts, V4.costs)
        assert divided is not None and divided.rows is not None and len(divided.phases) == 1


def test_a_loop_waits_for_the_loop_that_fills_what_it_reads(fine: None) -> None:  # noqa: F811
    two = ROWS.replace("@y", "@s") + "\n" + "\n".join(
        line.replace("%", "%1") for line in ROWS.replace("@x", "@s").splitlines())
    f = function(two, "scratch(@s)")
    divided = divide(f, 2, V4.costs)
    assert divided is not None and len(divided.phases) == 2 and divided.scratch == f.scratch


def test_scratch_that_two_loops_fill_is_filled_by_one_after_the_other(fine: None) -> None:  # noqa: F811
    """Zeros everywhere, then what is not zero: no part may begin with the second before all have done the first."""
    zeros = ROWS.replace("@y", "@s").replace("store @s[%4] = %5", "store @s[%4] = 0:float32x8")
    three = [re.sub(r"%(\d)", rf"%{n}\1", text) for n, text in enumerate((
        zeros, ROWS.replace("@y", "@s"), ROWS.replace("@x", "@s")), start=1)]
    divided = divide(function("\n".join(three), "scratch(@s)"), 2, V4.costs)
    assert divided is not None and len(divided.phases) == 3


def test_little_filling_is_done_by_each_part_for_itself() -> None:
    two = ROWS.replace("@y", "@s") + "\n" + "\n".join(
        line.replace("%", "%1") for line in ROWS.replace("@x", "@s").splitlines())
    f = function(two, "scratch(@s)")
    assert divide(f, 2, V4.costs) is None  # it is as much as all the rest
    assert task_count(f, 8, V4.costs) == 1 and cycles(f, V4.costs) < 10_000
