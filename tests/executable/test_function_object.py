"""Function objects: the same results and errors as the ordinary call, which does what they cannot do."""
from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.machine_code.codegen import parse
from tosaic.lowering.native.process import function_object_code as native
from tosaic.runtime import function_object as runtime
from tosaic.runtime import python_layout
from tosaic.runtime.errors import Problem
from tosaic.runtime.function_object import function_object
from tosaic.runtime.variables import Context

from .children import in_child, needs_fork
from .programs import Programs, add, mul, plus

BUILT_IN = type(len)
X = np.arange(8, dtype=np.float32)
Y = np.linspace(-3, 3, 8, dtype=np.float32)

pytestmark = pytest.mark.skipif(not python_layout.is_known(), reason="this Python's objects are not known: calls are ordinary")


class Counted:
    """An executable, its function object, and how often that one went the ordinary way."""

    def __init__(self, executable: Any, in_tuple: bool = False, gate: ctypes.c_int64 = runtime.NEVER) -> None:
        self.executable, self.ways = executable, 0

        def slow(*arguments: Any, **named: Any) -> Any:
            self.ways += 1
            results = executable(*arguments, **named)
            return results if in_tuple or len(results) != 1 else results[0]

        made = function_object(executable, slow, in_tuple, gate)
        assert isinstance(made, BUILT_IN)
        self.call: Callable[..., Any] = made


def two() -> Any:
    """Two inputs, two outputs."""
    p = Programs()
    x, y, r, s = p.input("x"), p.input("y"), p.output("r"), p.output("s")
    return p.load(p.compute(r, add, x, y), p.compute(s, mul, x, y))


def one() -> Any:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    return p.load(p.compute(r, plus(1), x))


def test_results_are_those_of_the_ordinary_call() -> None:
    counted = Counted(two())
    for x, y in ((X, Y), (Y, X), (X, X), (X.reshape(8), np.require(Y, requirements="C"))):
        result = counted.call(x, y)
        assert type(result) is tuple and [type(r) for r in result] == [np.ndarray] * 2
        assert all(np.array_equal(r, e) and r.dtype == e.dtype for r, e in zip(result, (x + y, x * y), strict=True))
        assert all(r.flags.owndata and r.flags.writeable and sys.getrefcount(r) == 3 for r in result)
    assert counted.ways == 0
    single, packed = Counted(one()), Counted(one(), in_tuple=True)
    assert np.array_equal(single.call(X), X + 1) and np.array_equal(packed.call(X)[0], X + 1)
    assert (single.ways, packed.ways) == (0, 0)


def test_results_are_written_where_out_says() -> None:
    counted, r, s = Counted(two()), np.zeros(8, np.float32), np.zeros(8, np.float32)
    result = counted.call(X, Y, out=(r, s))
    assert result[0] is r and result[1] is s and np.array_equal(r, X + Y) and np.array_equal(s, X * Y)
    single = Counted(one())
    assert single.call(X, out=r) is r and single.call(Y, out=(r,)) is r and np.array_equal(r, Y + 1)
    assert (counted.ways, single.ways) == (0, 0)
    assert counted.call(X, Y, out=[r, s])[0] is r and counted.call({"x": X, "y": Y})[1][1] == X[1] * Y[1]
    assert counted.ways == 2


WRONG: dict[str, tuple[Callable[..., tuple[Any, ...]], dict[str, Any]]] = {
    "too few": (lambda: (X,), {}), "too many": (lambda: (X, Y, X), {}), "none": (lambda: (), {}),
    "dtype": (lambda: (X, Y.astype(np.float64)), {}), "shape": (lambda: (X[:7], Y), {}), "rank": (lambda: (X[None], Y), {}),
    "not an array": (lambda: (3.0, Y), {}), "nothing": (lambda: (None, Y), {}), "masked": (lambda: (np.ma.array(X), Y), {}),
    "unknown keyword": (lambda: (X, Y), {"over": X}), "two keywords": (lambda: (X, Y), {"out": X, "over": X}),
    "out is too short": (lambda: (X, Y), {"out": (np.zeros(8, np.float32),)}),
    "out of another shape": (lambda: (X, Y), {"out": (np.zeros(8, np.float32), np.zeros((8, 1), np.float32))}),
    "out is no array": (lambda: (X, Y), {"out": (np.zeros(8, np.float32), 3)}), "out is one": (lambda: (X, Y), {"out": X}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_the_ordinary_calls_error(case: str) -> None:
    executable = two()
    counted, (arguments, named) = Counted(executable), WRONG[case]
    with pytest.raises((Problem, TypeError)) as wanted:
        executable(*arguments(), **named)
    with pytest.raises((Problem, TypeError)) as found:
        counted.call(*arguments(), **named)
    assert str(found.value) == str(wanted.value) and counted.ways == 1
    assert np.array_equal(counted.call(X, Y)[0], X + Y) and counted.ways == 1


def test_out_may_neither_overlap_nor_be_read_only() -> None:
    counted, room, fixed = Counted(two()), np.zeros(24, np.float32), np.zeros(8, np.float32)
    fixed.flags.writeable = False
    first, overlapping, disjoint = room[:8], room[4:12], room[8:16]
    for arguments, out, reason in (
            ((X, Y), (first, overlapping), "shares memory with output r"), ((X, Y), (first, first), "shares memory"),
            ((first, Y), (overlapping, X), "shares memory with input x"), ((X, Y), (first, fixed), "read-only")):
        with pytest.raises(Problem, match=reason):
            counted.call(*arguments, out=out)
    assert counted.ways == 4 and counted.call(X, Y, out=(first, disjoint))[1] is disjoint and counted.ways == 4
    assert np.array_equal(disjoint, X * Y)


def test_no_reference_is_lost_or_kept() -> None:
    counted, out = Counted(two()), (np.zeros(8, np.float32), np.zeros(8, np.float32))
    fixed = np.zeros(8, np.float64)
    objects = X, Y, X.dtype, np.ndarray, out, *out, fixed
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(1000):
        counted.call(X, Y)
        counted.call(X, Y, out=out)
        with pytest.raises(Problem):
            counted.call(X, fixed)
    assert max(abs(sys.getrefcount(o) - n) for o, n in zip(objects, before)) < 100  # which tracebacks may hold, not calls


def test_a_failure_of_the_run_is_raised_and_keeps_nothing() -> None:
    context = Context("failing")
    program = tosaic.load("""func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      "tosa.variable"() <{sym_name = "never", type = f32, var_shape = dense<8> : tensor<1xindex>}> : () -> ()
      %r = "tosa.variable_read"() <{name = "never"}> : () -> tensor<8xf32>
      %s = tosa.add %x, %r : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %s : tensor<8xf32>
    }""").main.compile(context=context)
    counted = Counted(program.executable)
    with pytest.raises(Problem) as wanted:
        program(X)
    before = sys.getrefcount(X), sys.getrefcount(X.dtype)
    for _ in range(1000):
        with pytest.raises(Problem) as found:
            counted.call(X)
    assert str(found.value) == str(wanted.value) and counted.ways == 0
    assert max(abs(sys.getrefcount(X) - before[0]), abs(sys.getrefcount(X.dtype) - before[1])) < 100
    context.set("never", Y)
    assert np.array_equal(counted.call(X), X + Y) and counted.ways == 0


# ---- state -----------------------------------------------------------------------------------------------------------
def counter(context: Context) -> Any:
    """Adds its input to a variable of 8 floats, which it returns."""
    total = tosaic.Variable("total", np.zeros(8, np.float32))

    def step(x: Any) -> Any:
        total.write(total.read() + x)
        return total.read()

    return tosaic.jit(step, context=context).compile(X).executable


def test_variables_are_looked_up_again_when_they_were_deleted() -> None:
    context = Context("deleted")
    counted = Counted(counter(context))
    assert [counted.call(X)[1], counted.call(X)[1]] == [1, 2] and counted.ways == 0
    context.delete("total")
    assert [counted.call(X)[1], counted.call(X)[1]] == [1, 2] and counted.ways == 1
    assert context.read("total")[1] == 2


def test_each_context_has_its_own_state() -> None:
    here, there = Context("here"), Context("there")
    first = counter(here)
    one, other = Counted(first), Counted(first.bind(there))
    assert [c.call(X)[1] for c in (one, other, one, one, other)] == [1, 1, 2, 3, 2] and one.ways == other.ways == 0


def test_a_variable_in_use_is_left_to_the_ordinary_call_which_waits() -> None:
    context = Context("in use")
    counted = Counted(counter(context))
    lock, done = context._get("total").lock, threading.Event()
    lock.acquire()
    thread = threading.Thread(target=lambda: (counted.call(X), done.set()))
    thread.start()
    assert not done.wait(0.2) and counted.ways == 1
    lock.release()
    thread.join()
    assert done.is_set() and counted.call(X)[1] == 2 and counted.ways == 1


def test_threads_share_a_state_without_losing_a_step() -> None:
    context = Context("threads")
    executable = counter(context)
    counted = Counted(executable)

    def run(call: Callable[..., Any]) -> None:
        for _ in range(500):
            call(X)

    threads = [threading.Thread(target=run, args=(c,)) for c in (counted.call, executable, counted.call, executable)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert context.read("total").tolist() == (2000 * X).tolist()


# ---- workspaces ------------------------------------------------------------------------------------------------------
def test_a_workspace_in_use_is_left_alone() -> None:
    executable = one()
    counted = Counted(executable)
    workspace = executable.workspaces.take()
    assert np.array_equal(counted.call(X), X + 1) and counted.ways == 1
    executable.workspaces.give(workspace)
    assert np.array_equal(counted.call(X), X + 1) and counted.ways == 1
    assert len(executable.workspaces._free) == 2


def test_a_closed_executable_refuses() -> None:
    executable = one()
    counted = Counted(executable)
    counted.call(X)
    executable.close()
    with pytest.raises(Problem, match="main has been closed"):
        counted.call(X)


def test_while_the_gate_is_shut_all_calls_are_ordinary() -> None:
    gate = ctypes.c_int64(0)
    counted = Counted(one(), gate=gate)
    for shut, ways in ((0, 0), (1, 1), (2, 2), (0, 2)):
        gate.value = shut
        assert np.array_equal(counted.call(X), X + 1) and counted.ways == ways


@needs_fork
def test_a_child_calls_too() -> None:
    counted = Counted(one())
    counted.call(X)
    assert in_child(lambda: bool(np.array_equal(counted.call(X), X + 1)) and counted.ways == 0)


# ---- which programs, which Pythons -------------------------------------------------------------------------------------
def test_llvm_takes_the_code() -> None:
    assert "tosaic.call" in [f.name for f in parse(native.text()).functions if not f.is_declaration]


def test_long_runs_and_unknown_objects_are_called_the_ordinary_way(monkeypatch: pytest.MonkeyPatch) -> None:
    @tosaic.jit
    def product(x: Any) -> Any:
        return x @ x

    small, large = (product.compile(np.zeros((n, n), np.float32)) for n in (8, 512))
    for compiled, n in ((small, 8), (large, 512)):
        compiled(np.eye(n, dtype=np.float32))
    assert isinstance(small.__call__, BUILT_IN) and not isinstance(large.__call__, BUILT_IN)
    monkeypatch.setattr(runtime, "is_known", lambda: False)
    assert function_object(small.executable, print, False) is None


def test_a_run_that_vectors_make_short_is_called_directly() -> None:
    """A product of 512 by 512 numbers and a vector has more terms than a short run, but fewer cycles."""
    weights = np.ones((512, 512), np.float32)

    @tosaic.jit
    def product(x: Any) -> Any:
        return x @ weights

    x = np.ones((1, 512), np.float32)
    compiled = product.compile(x)
    assert weights.size > runtime.MAX_LOCKED_STEPS > compiled.executable.code.steps
    assert np.array_equal(compiled(x), x @ weights) and isinstance(compiled.__call__, BUILT_IN)


def test_an_object_of_another_layout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for offset in ("DATA", "RANK", "EXTENTS", "DTYPE", "FLAGS"):
        with monkeypatch.context() as changed:
            changed.setattr(python_layout, offset, getattr(python_layout, offset) + 8)
            assert not all(map(python_layout.array_is_known, python_layout.arrays()))
    with monkeypatch.context() as changed:
        changed.setattr(python_layout, "ITEMS", 32)
        assert not python_layout.tuple_is_known()


# ---- who uses them -----------------------------------------------------------------------------------------------------
def test_models_entries_and_traced_functions_become_function_objects() -> None:
    model = tosaic.load("""func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %r = tosa.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %r : tensor<8xf32>
    }""")

    @tosaic.jit
    def twice(x: Any) -> Any:
        return x + x

    for call in (model, model.main, model.main.compile(), twice):
        assert [np.array_equal(call(v), 2 * v) for v in (X, Y, X)] == [True] * 3
        assert isinstance(call.__call__, BUILT_IN)


def test_a_traced_function_still_takes_any_argument() -> None:
    @tosaic.jit
    def plus_one(x: Any) -> Any:
        return x + 1

    for argument, expected in ((X, X + 1), (X.reshape(2, 4), X.reshape(2, 4) + 1), (X, X + 1), (np.int32(3), 4), (2.5, 3.5)):
        assert np.array_equal(plus_one(argument), expected)
    assert plus_one.cache_info().compiles == 4 and np.array_equal(plus_one(x=X), X + 1)
    plus_one.cache_clear()
    assert not isinstance(plus_one.__call__, BUILT_IN) and np.array_equal(plus_one(X), X + 1)


def test_inside_another_traced_function_it_is_traced() -> None:
    """Also with an array for an argument, which the function object would take."""
    total = tosaic.Variable("traced_total", np.zeros(8, np.float32))

    @tosaic.jit
    def step(x: Any) -> Any:
        total.write(total.read() + x)
        return total.read()

    @tosaic.jit
    def outer(y: Any) -> Any:
        return step(X) * y

    step(X)
    guarded: Any = step.__call__  # looks whether `total` is the variable that it was, and then calls the built-in object
    assert any(isinstance(cell.cell_contents, BUILT_IN) for cell in guarded.__closure__)
    assert [outer(np.ones(8, np.float32))[1] for _ in range(3)] == [2, 3, 4] and step(X)[1] == 5


def test_results_in_a_nest_come_in_it() -> None:
    @tosaic.jit
    def named(x: Any) -> Any:
        return {"twice": x + x, "same": [x * 1.0]}

    @tosaic.jit
    def pair(x: Any) -> Any:
        return x + x, x * 3.0

    for _ in range(3):
        assert np.array_equal(named(X)["twice"], 2 * X) and np.array_equal(named(X)["same"][0], X)
        assert type(pair(X)) is tuple and np.array_equal(pair(X)[1], 3 * X)
    assert isinstance(pair.__call__, BUILT_IN) and not isinstance(named.__call__, BUILT_IN)
