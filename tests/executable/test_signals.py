"""Handlers of signals during compiled loops: each runs soon, the loop goes on where it was, and what a handler raises ends the
call without a trace."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import Interpreter
from tosaic.runtime.variables import Context

pytestmark = [pytest.mark.skipif(os.name != "posix", reason="loops look where there are signals of POSIX"),
              pytest.mark.timeout(120, method="thread")]

LONG = np.array(20_000_000, np.int32)
"""Iterations that take some tenths of a second."""
ENDLESS = np.array(np.iinfo(np.int32).max, np.int32)
SIZE = 1 << 15
SIGNALS = (signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGINT,
           signal.SIGHUP, signal.SIGRTMIN if hasattr(signal, "SIGRTMIN") else signal.SIGWINCH)


class Late(Exception):
    """What handlers raise."""


def late(*ignored: Any) -> None:
    raise Late


@contextmanager
def handled(number: int, handler: Callable[..., Any]) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(number, before)


@contextmanager
def sent(number: int, delay: float) -> Iterator[None]:
    timer = threading.Timer(delay, os.kill, (os.getpid(), number))
    timer.start()
    try:
        yield
    finally:
        timer.join()


@tosaic.jit
def count(limit: Any) -> Any:
    return tosaic.while_loop(lambda i: i < limit, lambda i: i + 1, 0)


def summing(context: Context, threads: int) -> Any:
    """A loop that adds to a variable; on two threads, in two tasks."""
    total = tosaic.Variable("signals.total", np.zeros(SIZE, np.int32))

    @tosaic.jit(context=context, options=tosaic.CompileOptions(threads=threads))
    def run(limit: Any, x: Any) -> Any:
        def body(i: Any) -> Any:
            total.write(total.read() * 3 + x)
            return i + 1

        return tosaic.while_loop(lambda i: i < limit, body, 0)

    return run


def sums(limit: int, x: np.ndarray) -> np.ndarray:
    total = np.zeros_like(x)
    for _ in range(limit):
        total = total * np.int32(3) + x
    return total


# ---- handlers that raise -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: signal.Signals(n).name)
def test_a_handler_of_any_signal_ends_the_call_by_what_it_raises(number: int) -> None:
    for _ in range(2):
        with handled(number, late), sent(number, 0.05), pytest.raises(Late):
            count(ENDLESS)
        assert count(5) == 5


@pytest.mark.parametrize("delay", (0.00001, 0.0003, 0.001, 0.01, 0.1))
def test_an_alarm_comes_at_any_time_of_the_call(delay: float) -> None:
    count(1)
    with handled(signal.SIGALRM, late), pytest.raises(Late):
        signal.setitimer(signal.ITIMER_REAL, delay)
        count(ENDLESS)


@pytest.mark.parametrize("threads", (1, 2))
def test_a_call_that_a_handler_ends_changes_no_variable(threads: int) -> None:
    context, x = Context("signals"), np.arange(SIZE, dtype=np.int32)
    run = summing(context, threads)
    run(3, x)
    for delay in (0.002, 0.01, 0.05, 0.05):
        with handled(signal.SIGALRM, late), pytest.raises(Late):
            signal.setitimer(signal.ITIMER_REAL, delay)
            run(ENDLESS, x)
        np.testing.assert_array_equal(context.read("signals.total"), sums(3, x))
    run(2, x)
    np.testing.assert_array_equal(context.read("signals.total"), sums(5, x))


def test_the_exception_says_where_it_was_raised() -> None:
    with handled(signal.SIGALRM, late), pytest.raises(Late) as raised:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        count(ENDLESS)
    names = [entry.name for entry in raised.traceback]
    assert names[0] == "test_the_exception_says_where_it_was_raised" and names[-1] == "late"


def test_pytest_timeout_ends_a_loop(tmp_path: Path) -> None:
    (tmp_path / "test_endless.py").write_text("""
import numpy as np, pytest, tosaic

@pytest.mark.timeout(2, method="signal")
def test_endless():
    count = tosaic.jit(lambda limit: tosaic.while_loop(lambda i: i != limit, lambda i: i ^ 1, 0))
    count(np.array(7, np.int32))

def test_next():
    pass
""")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_endless.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "1 failed, 1 passed" in done.stdout and "Timeout" in done.stdout, done.stdout + done.stderr


def test_a_handler_ends_the_interpreter_without_a_trace() -> None:
    module = read_module("""
tosa.variable @v = dense<7> : tensor<i32>
func.func @main(%x: tensor<i32>, %c: tensor<i1>) -> tensor<i32> {
  %r = tosa.while_loop (%a = %x) : (tensor<i32>) -> tensor<i32> {
    tosa.yield %c : tensor<i1>
  } do {
  ^bb0(%b: tensor<i32>):
    tosa.variable_write @v, %b : tensor<i32>
    %n = tosa.add %b, %x : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.yield %n : tensor<i32>
  }
  return %r : tensor<i32>
}""")
    interpreter, one, seen = Interpreter(module), np.array(1, np.int32), list[int]()

    def handler(*ignored: Any) -> None:
        seen.append(1)
        if len(seen) == 3:
            raise Late

    interpreter(one, np.array(False))
    with handled(signal.SIGALRM, handler), pytest.raises(Late):
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        interpreter(one, np.array(True))
    assert interpreter.variables.snapshot() == {"v": 7}
    assert interpreter(one, np.array(False))[0] == 1


# ---- handlers that return ----------------------------------------------------------------------------------------------------
def test_a_loop_goes_on_though_its_handler_runs_many_times() -> None:
    seen: list[int] = []
    with handled(signal.SIGALRM, lambda *ignored: seen.append(1)):
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        assert count(LONG) == LONG
    assert len(seen) >= 5


@pytest.mark.parametrize("threads", (1, 2))
def test_what_a_loop_computes_does_not_depend_on_signals(threads: int) -> None:
    context, x, seen = Context("signals.counted"), np.arange(SIZE, dtype=np.int32), list[int]()
    run = summing(context, threads)
    with handled(signal.SIGALRM, lambda *ignored: seen.append(1)):
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        assert run(4000, x) == 4000
    np.testing.assert_array_equal(context.read("signals.total"), sums(4000, x))
    assert len(seen) >= 2


def test_a_handler_may_call_compiled_functions() -> None:
    found: list[int] = []
    count(1)
    with handled(signal.SIGALRM, lambda *ignored: found.append(int(count(10_000)))):
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        for _ in range(100):
            assert count(LONG) == LONG
            if len(found) >= 5:
                break
    assert len(found) >= 5 and set(found) == {10_000}


def test_a_handler_in_a_handler() -> None:
    found: list[int] = []

    def outer(*ignored: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with sent(signal.SIGUSR1, 0.05):
            found.append(int(count(LONG)))

    with handled(signal.SIGUSR1, lambda *ignored: found.append(0)), handled(signal.SIGALRM, outer):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert count(LONG) == LONG
    assert found == [0, LONG]


def test_a_handler_that_wants_the_variables_of_the_call_gets_a_problem() -> None:
    context, x = Context("signals.shared"), np.arange(SIZE, dtype=np.int32)
    run = summing(context, 1)
    run(1, x)
    for wanted in (lambda *ignored: run(1, x), lambda *ignored: context.read("signals.total"),
                   lambda *ignored: context.set("signals.total", x)):
        with handled(signal.SIGALRM, wanted), pytest.raises(tosaic.Problem, match="in use by the call that the handler"):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            run(ENDLESS, x)
        np.testing.assert_array_equal(context.read("signals.total"), x)


def test_a_handler_may_set_another_one() -> None:
    def first(*ignored: Any) -> None:
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.02)

    with handled(signal.SIGALRM, first), pytest.raises(Late):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        count(ENDLESS)


def test_handlers_run_in_the_main_thread_alone() -> None:
    """A signal during another thread's loop leaves that alone, and is not lost."""
    found: list[int] = []
    count(1)
    thread = threading.Thread(target=lambda: found.append(int(count(LONG))))
    with handled(signal.SIGUSR1, late):
        thread.start()
        with pytest.raises(Late):
            signal.pthread_kill(thread.ident, signal.SIGUSR1)  # type: ignore[arg-type]
            for _ in range(1000):  # a signal of another thread ends no sleep of this one
                time.sleep(0.01)
    thread.join(60)
    assert found == [LONG]


def test_handlers_in_c_stay_where_they_are() -> None:
    """faulthandler's are not Python's: none is put in their place."""
    program = """
import faulthandler, os, signal, sys, threading, numpy as np, tosaic
faulthandler.register(signal.SIGUSR2, file=sys.stdout, all_threads=False)
count = tosaic.jit(lambda limit: tosaic.while_loop(lambda i: i < limit, lambda i: i + 1, 0))
count(np.array(20_000_000, np.int32))
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR2)).start()
print(int(count(np.array(40_000_000, np.int32))), flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "40000000" in done.stdout and "most recent call first" in done.stdout, done


def test_a_process_that_began_without_any_handler() -> None:
    """As in the background of a shell that has no jobs: SIGINT is ignored."""
    program = """
import os, signal, threading, numpy as np, tosaic
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
count = tosaic.jit(lambda limit: tosaic.while_loop(lambda i: i < limit, lambda i: i + 1, 0))
count(np.array(20_000_000, np.int32))
class Late(Exception): pass
def late(*ignored): raise Late
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    count(np.array(2**31 - 1, np.int32))
except Late:
    print("late")
"""
    command = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "late\n"), done.stderr
