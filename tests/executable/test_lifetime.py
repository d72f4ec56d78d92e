"""Executables come and go, and are called from many threads: code and memory are given back, never under a running
call."""
from __future__ import annotations

import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.runtime.errors import Problem
from tosaic.runtime.executable import Executable

from .children import in_child, needs_fork
from .programs import Programs, add, mul, plus, slow

X = np.arange(8, dtype=np.float32)


def resident_kib() -> int:
    """Memory of this process that is in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.sampled(4)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's account of memory")
@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_memory_of_200_executables_is_given_back(how: str) -> None:
    p = Programs()
    x, t, r = p.input("x"), p.temporary("t"), p.output("r")
    program = p.program(p.compute(t, plus(1), x), p.compute(r, mul, t, x))
    planned = plan(program)

    def cycle() -> None:
        executable = load(program, planned)
        assert executable(X)[0][2] == 6
        if how == "closed":
            executable.close()

    for _ in range(20):
        cycle()
    gc.collect()
    before = resident_kib()
    for _ in range(200):
        cycle()
    gc.collect()
    grown = resident_kib() - before
    print(f"200 executables {how}: {grown} KiB")
    assert grown < 2048


def test_a_closed_executable_refuses_calls() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    with p.load(p.compute(r, plus(1), x)) as executable:
        other = executable.bind(executable.context)
        executable(X)
    assert executable.is_closed and other.is_closed
    for closed in executable, other:
        with pytest.raises(Problem) as caught:
            closed(X)
        assert str(caught.value) == "error[argument]: main has been closed\n  help: load it again"
    executable.close()


def test_closing_waits_for_the_calls_that_are_running() -> None:
    executable = slow(1000)
    start = np.array([1], np.int64)
    expected = executable(start)[0].item()
    inside, go = threading.Barrier(3, timeout=60), threading.Event()
    released: list[bool] = []
    original, release = executable._run, executable.code.release

    def run(frame: int) -> int:
        inside.wait()
        assert go.wait(60) and not released
        return original(frame)

    executable._run = run
    object.__setattr__(executable.code, "release", lambda: (released.append(True), release()))
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(executable, start) for _ in range(2)]
        inside.wait()
        executable.close()
        assert not released
        go.set()
        assert [c.result(60)[0].item() for c in calls] == [expected] * 2
    assert released == [True]
    with pytest.raises(Problem):
        executable(start)


def test_calls_of_one_executable_run_side_by_side() -> None:
    executable = slow()
    meeting = threading.Barrier(2, timeout=60)
    inside = []

    def run(frame: int) -> int:
        inside.append(len(inside))
        meeting.wait()  # both calls are inside at once, or this fails
        return original(frame)

    original = executable._run
    executable._run = run
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(executable, np.array([i], np.int64)) for i in (1, 2)]
        values = [r.result(60)[0].item() for r in results]
    assert len(inside) == 2 and values[0] != values[1]
    assert executable.workspaces._made == 2


def test_native_code_runs_without_the_interpreters_lock() -> None:
    executable = slow(200_000_000)
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    executable(np.array([1], np.int64))
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < t < end for t in ticks) > 3


def test_many_threads_get_their_own_answers() -> None:
    p = Programs()
    x, t, u, r = p.input("x"), p.temporary("t"), p.temporary("u"), p.output("r")
    executable = p.load(p.compute(t, plus(1), x), p.compute(u, mul, t, x), p.compute(r, add, t, u))

    def calls(seed: int) -> bool:
        value = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
        expected = executable(value)[0].copy()
        return all(np.array_equal(executable(value)[0], expected) for _ in range(500))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(calls, range(8)))
    assert executable.workspaces._made <= 8


def test_workspaces_are_used_again() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    executable = p.load(p.compute(r, plus(1), x))
    for _ in range(10):
        executable(X)
    assert executable.workspaces._made == 1


def test_a_wrong_argument_takes_no_workspace() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    executable = p.load(p.compute(r, plus(1), x))
    for _ in range(3):
        with pytest.raises(Problem):
            executable(X[:3])
    assert executable.workspaces._made == 0


def test_loading_from_several_threads_works() -> None:
    def one(number: int) -> float:
        p = Programs(f"main{number}")
        x, r = p.input("x"), p.output("r")
        return float(p.load(p.compute(r, plus(number), x))(X)[0][0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(24))) == list(range(24))


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_of_a_compiling_process_can_compile_and_call() -> None:
    def loaded(value: float) -> Executable:
        p = Programs()
        x, t, r = p.input("x"), p.temporary("t"), p.output("r")
        return p.load(p.compute(t, plus(value), x), p.compute(r, mul, t, x))

    stop, shared = threading.Event(), loaded(1)

    def run() -> None:
        while not stop.is_set():
            loaded(2)(X)
            shared(X)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert in_child(lambda: loaded(3)(X)[0][1] == 4 and shared(X)[0][1] == 2)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
