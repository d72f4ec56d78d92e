"""Functions of a small part of Python give the same answer as machine code, and nothing else is compiled."""
from __future__ import annotations

import dataclasses
import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.memory.algorithms import compiled_python as module
from tosaic.lowering.memory.algorithms.compiled_python import Ints, as_array, compiled

BASE = 7


@dataclasses.dataclass(slots=True)
class Tape:
    """Two arrays for the functions below."""
    a: Ints
    b: Ints


def arithmetic(s: Tape, x: int, y: int) -> int:
    s.b[0] = x + y * 3 - (x & y) + (x | 5) - (x ^ y)
    s.b[1] = (x << 3) + (y >> 2) - BASE
    s.b[2] = -x + min(x, y) * max(x, y) + (x if x > y else y)
    s.b[3] = max(x, 0) // 3 + max(y, 0) % 5
    s.b[4], s.b[5] = s.b[5], s.b[4]
    s.b[6] += 2
    s.b[6] -= x
    s.b[6] *= 3
    return x - y


def conditions(s: Tape, x: int, y: int) -> int:
    """What stands behind `and` and `or` is only looked at where it matters."""
    found = 0
    if x >= 0 and s.a[x] > 0:
        found += 1
    if x < 0 or s.a[x] == 0:
        found += 2
    if not (x == y or (x != 3 and y <= 2)):
        found += 4
    elif x:
        found += 8
    else:
        found += 16
    found += s.a[x] if x >= 0 else 32
    return found


def loops(s: Tape, count: int, stop: int) -> int:
    total, i = 0, 0
    while True:
        i += 1
        if i > count:
            break
        if i & 1:
            continue
        for k in range(i):
            if k == stop:
                break
            for m in range(k, i):
                if m * k > 9:
                    continue
                total += m - k
        s.b[i & 7] = total
    for _ in range(count, 0):
        total = -1
    return total


def helper(s: Tape, x: int) -> int:
    for i in range(8):
        if s.a[i] > x:
            return i
    return -1


def calls(s: Tape, x: int, y: int) -> int:
    store(s, helper(s, y) + 1, x)
    return helper(s, x) * 100 + helper(s, helper(s, y))


def store(s: Tape, at: int, x: int) -> int:
    s.b[at] = x
    return 0


@pytest.mark.parametrize("function", [arithmetic, conditions, loops, calls])
def test_python_and_machine_code_agree(function: Callable[..., int]) -> None:
    code = compiled(function, Tape)
    assert code is not None
    draw = random.Random(0)
    for _ in range(300):
        a = [draw.randint(-3, 12) for _ in range(8)]
        lists, arrays = Tape(list(a), [0] * 9), Tape(as_array(a), as_array([0] * 9))
        x, y = draw.randint(-1, 7), draw.randint(-1, 7)
        assert function(lists, x, y) == code(arrays, x, y)
        assert (lists.a, lists.b) == (arrays.a.tolist(), arrays.b.tolist())


def test_a_function_is_compiled_once() -> None:
    assert compiled(helper, Tape) is compiled(helper, Tape)


def test_arrays_of_another_type_are_refused() -> None:
    code = compiled(helper, Tape)
    assert code is not None
    with pytest.raises(AssertionError):
        code(Tape(np.zeros(8, np.int32), as_array([0] * 8)), 0)


def test_without_source_there_is_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(function: Any) -> str:
        raise OSError("could not get source code")

    monkeypatch.setattr(inspect, "getsource", gone)

    def fresh(s: Tape, x: int) -> int:
        return x

    assert compiled(fresh, Tape) is None
    del module.MADE[fresh]


def test_where_no_code_can_be_made_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(text: str, target: Any) -> Any:
        raise RuntimeError("the engine cannot be made")

    monkeypatch.setattr(module, "Engine", refused)
    monkeypatch.setattr(module, "MADE", {})
    assert compiled(helper, Tape) is None and not module.is_compiled(helper)


def power(s: Tape, x: int) -> int:
    return x ** 2


def chained(s: Tape, x: int) -> int:
    return 1 if 0 < x < 3 else 0


def with_else(s: Tape, x: int) -> int:
    while x:
        x -= 1
    else:
        return 1
    return 0


def whole_array(s: Tape, x: int) -> int:
    s.a = s.b
    return 0


@pytest.mark.parametrize("function, part", [(power, "x ** 2"), (chained, "0 < x < 3"), (with_else, "while x:"),
                                            (whole_array, "s.b")])
def test_other_python_is_no_part_of_a_kernel(function: Callable[..., int], part: str) -> None:
    with pytest.raises(AssertionError, match="no part of the planner's kernels") as error:
        compiled(function, Tape)
    assert part in str(error.value)
