"""The process's pool of threads: how many there are, calls from several Python threads at once, `fork`, and the end of the
process."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.machine_code.codegen import Engine
from tosaic.lowering.native.process.thread_pool import is_supported, thread_pool
from tosaic.lowering.target.presets import host
from tosaic.runtime import executable, threads
from tosaic.runtime.errors import Problem
from tosaic.runtime.threads import PoolCode, ThreadPool, of_environment

pytestmark = pytest.mark.skipif(not is_supported(), reason="there is no pool of threads for this system")

SIZE = 192


def product(number: int) -> Any:
    """A function with enough work for `number` threads, compiled for them."""
    return tosaic.jit(lambda a, b: tosaic.ops.tanh(a @ b), options=tosaic.CompileOptions(threads=number))


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((SIZE, SIZE)).astype(np.float32), rng.standard_normal((SIZE, SIZE)).astype(np.float32)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[threads.Threads]:
    """A process that has no pool yet."""
    fresh = threads.Threads()
    monkeypatch.setattr(threads, "process", fresh)
    monkeypatch.setattr(executable, "threads", fresh)
    yield fresh
    if fresh.pool is not None:
        fresh.pool.stop()


def test_threads_start_with_the_first_job_that_needs_them(own: threads.Threads, arrays: tuple[np.ndarray, ...]) -> None:
    f = product(3)
    f.compile(*arrays)
    assert own.pool is not None and own.pool.started == 0
    f(*arrays)
    assert own.pool.started == 2
    product(2)(*arrays)
    assert own.pool.started == 2


def test_one_thread_is_no_thread(own: threads.Threads, arrays: tuple[np.ndarray, ...]) -> None:
    expected = product(1)(*arrays)
    assert own.pool is None
    compiled = product(4).compile(*arrays)
    np.testing.assert_array_equal(compiled(*arrays, num_threads=1), expected)
    assert own.pool is not None and own.pool.started == 0
    own.set(1)
    np.testing.assert_array_equal(compiled(*arrays), expected)
    assert own.pool.started == 0


def test_a_program_without_work_for_threads_has_no_pool(own: threads.Threads) -> None:
    x = np.ones(64, np.float32)
    f = tosaic.jit(lambda x: x + x, options=tosaic.CompileOptions(threads=8))
    assert f(x)[0] == 2 and own.pool is None
    one = tosaic.jit(lambda x: x + x, options=tosaic.CompileOptions(threads=1))
    assert f.lower(x).show("llvm") == one.lower(x).show("llvm")


@pytest.mark.parametrize("number", (2, 3, 5, None))
def test_a_call_says_how_many_threads_it_uses(own: threads.Threads, arrays: tuple[np.ndarray, ...], number: int | None) -> None:
    compiled = product(5).compile(*arrays)
    expected = product(1)(*arrays)
    for _ in range(20):
        np.testing.assert_array_equal(compiled(*arrays, num_threads=number), expected)
    assert own.pool is not None and own.pool.started == (number or 5) - 1


def test_what_is_set_for_the_process_is_what_functions_are_compiled_for(own: threads.Threads,
                                                                        arrays: tuple[np.ndarray, ...]) -> None:
    assert tosaic.get_num_threads() == 1
    one = tosaic.jit(lambda a, b: a @ b).lower(*arrays)
    tosaic.set_num_threads(2)
    assert tosaic.get_num_threads() == 2
    two = tosaic.jit(lambda a, b: a @ b).lower(*arrays)
    assert "tasks" not in one.show("loops")
    assert re.search(r"tasks [24]$", two.show("loops"), re.MULTILINE), "one or two for each thread"
    assert "tasks" not in tosaic.jit(lambda a, b: a @ b, options=tosaic.CompileOptions(threads=1)).lower(*arrays).show("loops")
    foreign = tosaic.jit(lambda a, b: a @ b, options=tosaic.CompileOptions(tosaic.target("x86-64-v3")))
    assert "tasks" not in foreign.lower(*arrays).show("loops")


@pytest.mark.parametrize("wrong", (0, -1, 65, 1.5, True, "2"))
def test_a_wrong_number_is_refused(own: threads.Threads, wrong: Any, arrays: tuple[np.ndarray, ...]) -> None:
    compiled = product(2).compile(*arrays)
    for call in (lambda: tosaic.set_num_threads(wrong), lambda: product(wrong), lambda: tosaic.CompileOptions(threads=wrong),
                 lambda: compiled(*arrays, num_threads=wrong)):
        with pytest.raises(Problem, match="the number of threads is"):
            call()


def test_the_environment_says_how_many() -> None:
    assert [of_environment(text) for text in (None, "", "1", " 4 ")] == [1, 1, 1, 4]
    for text in ("x", "0", "65", "-1", "1.5"):
        with pytest.raises(Problem):
            of_environment(text)


def test_python_threads_that_call_at_once_get_right_results(own: threads.Threads, arrays: tuple[np.ndarray, ...]) -> None:
    compiled, expected = product(3).compile(*arrays), product(1)(*arrays)
    wrong: list[int] = []

    def calls() -> None:
        for i in range(100):
            if not np.array_equal(compiled(*arrays), expected):
                wrong.append(i)

    running = [threading.Thread(target=calls) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert wrong == [] and own.pool is not None and own.pool.started == 2


def test_a_wrong_argument_leaves_the_pool_as_it_was(own: threads.Threads, arrays: tuple[np.ndarray, ...]) -> None:
    compiled, expected = product(2).compile(*arrays), product(1)(*arrays)
    for _ in range(3):
        with pytest.raises(Problem):
            compiled(arrays[0])
        np.testing.assert_array_equal(compiled(*arrays), expected)


def test_a_fault_between_steps_in_parts_is_raised(own: threads.Threads) -> None:
    text = '''
    module {
      tosa.variable @seen : tensor<96x96xf32>
      func.func @main(%x: tensor<1x96x96xf32>) -> tensor<1x96x96xf32> {
        %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
        %y = tosa.matmul %x, %x, %z, %z : (tensor<1x96x96xf32>, tensor<1x96x96xf32>, tensor<1xf32>, tensor<1xf32>)
             -> tensor<1x96x96xf32>
        %v = tosa.variable_read @seen : tensor<96x96xf32>
        %s = tosa.const_shape {values = dense<[1, 96, 96]> : tensor<3xindex>} : () -> !tosa.shape<3>
        %w = tosa.reshape %v, %s : (tensor<96x96xf32>, !tosa.shape<3>) -> tensor<1x96x96xf32>
        %r = tosa.add %y, %w : (tensor<1x96x96xf32>, tensor<1x96x96xf32>) -> tensor<1x96x96xf32>
        return %r : tensor<1x96x96xf32>
      }
    }'''
    compiled = tosaic.load(text).main.compile(tosaic.CompileOptions(threads=2), context=tosaic.Context("faults"))
    x = np.ones((1, 96, 96), np.float32)
    for _ in range(3):
        with pytest.raises(Problem, match="seen"):
            compiled(x)


def in_child(run: Any) -> int:
    """The exit status of a child of `fork` that runs a function: 0 where it returns True."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if run() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_fork_starts_threads_of_its_own(arrays: tuple[np.ndarray, ...]) -> None:
    compiled, expected = product(3).compile(*arrays), product(1)(*arrays)
    compiled(*arrays)
    pool = threads.process.pool
    assert pool is not None and pool.started >= 2

    def child() -> bool:
        before = pool.started
        again = all(np.array_equal(compiled(*arrays), expected) for _ in range(20))
        return before == 0 and again and pool.started == 2

    for _ in range(5):
        assert in_child(child) == 0
    assert in_child(lambda: in_child(child) == 0) == 0
    np.testing.assert_array_equal(compiled(*arrays), expected)
    assert pool.started >= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork_while_another_thread_runs_a_job(arrays: tuple[np.ndarray, ...]) -> None:
    compiled, expected = product(2).compile(*arrays), product(1)(*arrays)
    ended = threading.Event()

    def calls() -> None:
        while not ended.is_set():
            compiled(*arrays)

    thread = threading.Thread(target=calls)
    thread.start()
    try:
        for _ in range(10):
            assert in_child(lambda: bool(np.array_equal(compiled(*arrays), expected))) == 0
    finally:
        ended.set()
        thread.join()


PROGRAM = """
import numpy as np, sys, threading, tosaic
f = tosaic.jit(lambda a, b: tosaic.ops.tanh(a @ b), num_threads=3)
x = np.ones((192, 192), np.float32)
f(x, x)
if "daemon" in sys.argv:
    def calls():
        while True:
            f(x, x)
    threading.Thread(target=calls, daemon=True).start()
    import time; time.sleep(0.2)
print("end")
"""


@pytest.mark.parametrize("how", ("idle", "daemon"))
def test_the_process_ends_without_a_hang(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_signals_are_for_the_threads_of_the_program(own: threads.Threads, arrays: tuple[np.ndarray, ...]) -> None:
    before = set(os.listdir("/proc/self/task"))
    product(2)(*arrays)
    (new,) = set(os.listdir("/proc/self/task")) - before
    with open(f"/proc/self/task/{new}/status") as status:
        blocked = int(next(line for line in status if line.startswith("SigBlk:")).split()[1], 16)
    assert blocked >> 1 & 1 and blocked >> 14 & 1  # SIGINT is 2, SIGTERM 15


# ---- the pool by itself ----------------------------------------------------------------------------------------------
def test_each_part_runs_once_whatever_the_number_of_threads() -> None:
    import ctypes
    code = thread_pool()
    assert isinstance(code, PoolCode)
    pool, task_type = ThreadPool(code), ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, task_type, ctypes.c_void_p, ctypes.c_int64)(code.parallel)
    ran: list[int] = []
    task = task_type(lambda argument, part: ran.append(part))
    for number in (1, 2, 3, 7):
        view = pool.of(number)
        context = ctypes.c_size_t.from_address(view + 8).value
        for parts in (0, 1, 2, 3, 8, 63, 64, 100):
            ran.clear()
            parallel(context, task, None, parts)
            assert sorted(ran) == list(range(parts))
    assert pool.started == 6
    pool.stop()
    ran.clear()
    parallel(context, task, None, 5)
    assert ran == list(range(5))  # serially, in order


def test_workers_take_over_how_the_caller_rounds_floats(own: threads.Threads) -> None:
    """One that rounds up gets the same bits from all parts as from one thread."""
    import ctypes
    x = np.linspace(-2, 2, 1 << 17, dtype=np.float32)
    compiled = tosaic.jit(lambda x: tosaic.ops.tanh(x * 1.0) * 0.5, options=tosaic.CompileOptions(threads=4)).compile(x)
    expected = compiled(x)
    library = ctypes.CDLL(None)
    upwards, nearest = 0x800, 0  # FE_UPWARD of x86
    if library.fesetround(upwards):
        pytest.skip("this processor has another number for rounding up")
    try:
        alone, together = compiled(x, num_threads=1), compiled(x)
    finally:
        library.fesetround(nearest)
    np.testing.assert_array_equal(together, alone)
    assert own.pool is not None and own.pool.started == 3
    np.testing.assert_array_equal(compiled(x), expected)


MANY = """
define void @count(ptr %cells, i64 %part) {
  %at = getelementptr i64, ptr %cells, i64 %part
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  ret void
}
define i32 @many(ptr %words) {
entry:
  %pool = load ptr, ptr %words
  %jobs.at = getelementptr i64, ptr %words, i64 1
  %cells.at = getelementptr i64, ptr %words, i64 2
  %parts.at = getelementptr i64, ptr %words, i64 3
  %context.at = getelementptr ptr, ptr %pool, i64 1
  %jobs = load i64, ptr %jobs.at
  %cells = load ptr, ptr %cells.at
  %parts = load i64, ptr %parts.at
  %parallel = load ptr, ptr %pool
  %context = load ptr, ptr %context.at
  br label %next
next:
  %i = phi i64 [0, %entry], [%following, %next]
  call void %parallel(ptr %context, ptr @count, ptr %cells, i64 %parts)
  %following = add i64 %i, 1
  %more = icmp slt i64 %following, %jobs
  br i1 %more, label %next, label %done
done:
  ret i32 0
}
"""


@pytest.fixture(scope="module")
def many() -> Engine:
    """Native code that gives many jobs to a pool, one right behind the other; each part counts its runs."""
    return Engine(f'target triple = "{host().triple}"\n{MANY}', host())


def counted(many: Engine, pool: ThreadPool, number: int, jobs: int, parts: int) -> bool:
    """True if in each of `jobs` jobs every task has run once, and the caller has seen all of it."""
    cells = np.zeros(64, np.int64)
    words = np.array([pool.of(number), jobs, cells.ctypes.data, parts], np.int64)
    many.function("many")(words.ctypes.data)
    return bool((cells[:parts] == jobs).all() and (cells[parts:] == 0).all())


def test_no_part_of_many_jobs_is_lost_or_run_twice(many: Engine) -> None:
    code = thread_pool()
    assert code is not None
    pool = ThreadPool(code)
    for number in (2, 3, 9, 2):
        for jobs, parts in ((1, 64), (2000, 2), (500, 7), (1, 3), (300, 64), (2000, 3)):
            assert counted(many, pool, number, jobs, parts), (number, jobs, parts)
    assert pool.started == 8
    pool.stop()


def test_callers_that_meet_in_the_pool_disturb_each_other_in_nothing(many: Engine) -> None:
    code = thread_pool()
    assert code is not None
    pool, right = ThreadPool(code), list[bool]()

    def caller(number: int) -> None:
        for jobs, parts in 5 * ((700, 5), (1, 64), (1500, 2)):
            right.append(counted(many, pool, 2 + number, jobs, parts))

    callers = [threading.Thread(target=caller, args=(i,)) for i in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert len(right) == 60 and all(right)
    pool.stop()
