"""Loops of which an iteration reads what an earlier one has stored in scratch are not divided; those that fill scratch anew
are."""
from __future__ import annotations

import pytest
from tosaic.lowering.loops.dependence.dependence import Dependence
from tosaic.lowering.loops.ir import For, Literal
from tosaic.lowering.schedule.parallelize import divide

from .cases import V4, fine  # noqa: F401  a fixture
from .test_independent_iterations import function

FILL = """  for %10 in 0 to 5 {
    %11: int64 = mul %10, 8
    %12: int64 = add %1, %11
    %13: float32x8 = load @x[%12]
    store @s[%11] = %13
  }"""
USE = """  for %20 in 0 to 5 {
    %21: int64 = mul %20, 8
    %22: int64 = add %1, %21
    %23: float32x8 = load @s[%21]
    store @y[%22] = %23
  }"""
BEGINNING = """  %2: bool = lt %0, 1"""
ALIKE = {
    "filled anew": f"{FILL}\n{USE}",
    "a row, or zeros": f"""{BEGINNING}
  if %2 {{
{FILL.replace("  ", "    ")}
  }}
  %3: bool = xor %2, 1:bool
  if %3 {{
    for %30 in 0 to 5 {{
      %31: int64 = mul %30, 8
      store @s[%31] = 0:float32x8
    }}
  }}
{USE}""",
    "as many rows as are left": f"""  %2: int64 = sub 100, %0
  %3: int64 = min 5, %2
{FILL.replace("0 to 5", "0 to %3")}
{USE.replace("0 to 5", "0 to %3")}""",
    "moves on": f"""{FILL.replace("store @s[%11]", "store @s[%12]")}
{USE.replace("load @s[%21]", "load @s[%22]")}""",
}
CARRIED = {
    "read first": f"{USE}\n{FILL}",
    "filled once": f"""{BEGINNING}
  if %2 {{
{FILL.replace("  ", "    ")}
  }}
{USE}""",
    "a row, or fewer zeros": ALIKE["a row, or zeros"].replace("%30 in 0 to 5", "%30 in 0 to 4"),
    "a ring": f"""  %2: int64 = and %0, 3
  %3: int64 = mul %2, 40
{FILL.replace("store @s[%11]", "store @s[%14]").replace("    store", "    %14: int64 = add %11, %3" + chr(10) + "    store")}
{USE}""",
    "fewer rows each iteration": f"""  %2: int64 = sub 100, %0
  %3: int64 = min 5, %2
{FILL.replace("0 to 5", "0 to %3")}
{USE}""",
    "a sum": """  %2: float32x8 = load @x[%1]
  %3: float32x8 = load @s[0]
  %4: float32x8 = add %2, %3
  store @s[0] = %4
  for %20 in 0 to 5 {
    %21: int64 = mul %20, 8
    %22: int64 = add %1, %21
    store @y[%22] = %4
  }""",
}


def rows(body: str) -> str:
    return f"for %0 in 0 to 99 {{\n  %1: int64 = mul %0, 40\n{body}\n}}"


def is_divided(body: str) -> bool:
    """True if the loop of the rows is; loops inside it may be, as each part goes through all rows then."""
    found = divide(function(body, "scratch(@s)"), 2, V4.costs)
    return found is not None and not all(isinstance(s.low, Literal) for s in found.body if isinstance(s, For))


def carried(body: str) -> bool:
    f = function(rows(body), "scratch(@s)")
    (loop,) = [s for s in f.body if isinstance(s, For)]
    return Dependence(f).is_carried(loop, set(f.scratch))


@pytest.mark.parametrize("name", ALIKE)
def test_iterations_that_fill_scratch_anew_are_divided(name: str, fine: None) -> None:  # noqa: F811
    assert not carried(ALIKE[name])
    assert is_divided(rows(ALIKE[name]))


@pytest.mark.parametrize("name", CARRIED)
def test_iterations_that_read_what_earlier_ones_stored_are_not(name: str, fine: None) -> None:  # noqa: F811
    assert carried(CARRIED[name])
    assert not is_divided(rows(CARRIED[name]))


def test_sums_of_an_earlier_loop_stay_with_their_iteration(fine: None) -> None:  # noqa: F811
    """What is read first was stored by an earlier loop, each iteration reads and stores a place of its own."""
    first = """for %0 in 0 to 99 {
  %1: int64 = mul %0, 40
  %2: float32x8 = load @x[%1]
  store @s[%1] = %2
}
"""
    second = """for %40 in 0 to 99 {
  %41: int64 = mul %40, 40
  %42: float32x8 = load @s[%41]
  store @s[%41] = %42
  store @y[%41] = %42
}"""
    f = function(first + second, "scratch(@s)")
    found, loop, scratch = Dependence(f), f.body[1], set(f.scratch)
    assert isinstance(loop, For)
    assert found.are_independent(loop, scratch) and not found.is_carried(loop, scratch)


def test_what_was_stored_before_the_loop_is_not_of_an_iteration(fine: None) -> None:  # noqa: F811
    """Each iteration stores the row of the next one: all are alike, but what the first loads is from outside."""
    later = FILL.replace("store @s[%11]", "store @s[%12 + 40]")
    body = f"{later}\n{USE.replace('load @s[%21]', 'load @s[%22]')}"
    assert carried(body)
    assert not is_divided(f"store @s[0] = 0:float32x8\n{rows(body)}")
