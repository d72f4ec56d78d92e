"""Variables under threads and forks: calls that share one are serialised, a child finds whole values and free
locks."""
from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from tosaic.runtime import variables
from tosaic.runtime.executable import Executable
from tosaic.runtime.variables import Context

from ..executable.children import in_child, needs_fork
from ..executable.programs import Programs, add, copy, counter, plus

THREADS, CALLS = 8, 500
SIZE = 1 << 14


def test_increments_from_many_threads_are_all_counted() -> None:
    context = Context("test")
    counts = [counter(context) for _ in range(2)]

    def run(number: int) -> list[int]:
        return [counts[number % 2]()[0].item() for _ in range(CALLS)]

    with ThreadPoolExecutor(THREADS) as pool:
        seen = [value for values in pool.map(run, range(THREADS)) for value in values]
    assert context.read("counter").item() == THREADS * CALLS
    assert sorted(seen) == list(range(1, THREADS * CALLS + 1))


def pair(context: Context) -> Executable:
    """Two large variables that hold the same number everywhere between calls; a call adds 1 to both."""
    p = Programs("pair")
    a, b = (p.variable(n, (SIZE,), "int64", np.zeros(SIZE)) for n in ("a", "b"))
    r = p.output("r", (SIZE,), "int64")
    return p.load(*p.write(a, plus(1, "int64"), a), *p.write(b, plus(1, "int64"), b), p.compute(r, add, a, b),
                  context=context)


def test_snapshots_reads_and_restores_see_whole_values() -> None:
    context = Context("test")
    step = pair(context)
    stop = threading.Event()
    torn: list[object] = []

    def look() -> None:
        while not stop.is_set():
            found = context.snapshot()
            if len({*found["a"].tolist(), *found["b"].tolist()}) != 1:  # type: ignore[union-attr]
                torn.append(found)
            if len(set(context.read("a").tolist())) != 1:
                torn.append("read")

    def change() -> None:
        while not stop.is_set():
            context.restore({"a": np.full(SIZE, -5), "b": np.full(SIZE, -5)})
            context.reset()

    watchers = [threading.Thread(target=f) for f in (look, look, change)]
    for thread in watchers:
        thread.start()
    for _ in range(200):
        result = step()[0]
        if len(set(result.tolist())) != 1:
            torn.append(result)
    stop.set()
    for thread in watchers:
        thread.join()
    assert not torn


def test_programs_that_take_several_variables_in_any_order_do_not_block_each_other() -> None:
    context = Context("test")

    def swapped(first: str, second: str) -> Executable:
        p = Programs(f"{first}{second}")
        x, y = (p.variable(n, (1,), "int64", 0) for n in (first, second))
        r = p.output("r", (1,), "int64")
        return p.load(*p.write(x, plus(1, "int64"), x), *p.write(y, plus(1, "int64"), y), p.compute(r, copy, y),
                      context=context)

    programs = [swapped("a", "b"), swapped("b", "a"), swapped("b", "c"), swapped("c", "a")]

    def run(number: int) -> None:
        for _ in range(CALLS):
            programs[number % 4]()

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(run, i) for i in range(THREADS)]:
            future.result(timeout=120)
    assert [context.read(n).item() for n in "abc"] == [6 * CALLS, 6 * CALLS, 4 * CALLS]


def test_contexts_in_threads_never_meet() -> None:
    base = counter(Context("base"))

    def run(number: int) -> list[int]:
        own = base.bind(Context(f"user {number}"))
        return [own()[0].item() for _ in range(CALLS)]

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(values == list(range(1, CALLS + 1)) for values in pool.map(run, range(THREADS)))


def test_deleting_while_others_run_loses_nothing_but_the_value() -> None:
    context = Context("test")
    count = counter(context)
    stop = threading.Event()

    def delete() -> None:
        while not stop.is_set():
            context.clear()
            time.sleep(0.0005)

    thread = threading.Thread(target=delete)
    thread.start()
    values = [count()[0].item() for _ in range(2000)]
    stop.set()
    thread.join()
    assert all(b in (a + 1, 1) for a, b in pairwise(values))


# ---- forks -----------------------------------------------------------------------------------------------------------
@needs_fork
def test_a_child_goes_on_with_the_values_and_the_parent_does_not_see_it() -> None:
    count = counter(Context("test"))
    assert count()[0].item() == 1
    assert in_child(lambda: count()[0].item() == 2 and count()[0].item() == 3)
    assert count()[0].item() == 2


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_of_a_busy_process_finds_free_locks_and_whole_values() -> None:
    context = Context("test")
    step = pair(context)
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            step()

    def check() -> bool:
        found = context.snapshot()
        whole = len({*found["a"].tolist(), *found["b"].tolist()}) == 1  # type: ignore[union-attr]
        before = context.read("a")[0]
        result = step()[0]
        return whole and bool((result == 2 * (before + 1)).all())

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert [in_child(check) for _ in range(20)] == [True] * 20
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not any(v.lock.locked() for v in context._variables.values())


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_does_not_wait_for_ever_for_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "FORK_WAIT", 0.05)
    context = Context("test")
    count = counter(context)
    variable = context._get("counter")
    with variable.lock:  # as a call that never ends
        start = time.monotonic()
        assert in_child(lambda: count()[0].item() == 1)
        assert time.monotonic() - start < 30
    assert count()[0].item() == 1
