"""The work queue: bounded, without threads until there is work, across a fork, to the end; and what a long chain costs."""
from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import tosaic
from tosaic import TensorHandle
from tosaic.runtime.op_by_op.work_queue import WorkQueue

X = np.ones(1, np.float32)


class Call:
    def __init__(self, function): self.function = function
    def begin(self, _): self.function()


def test_no_thread_before_the_first_asynchronous_operation():
    rt = tosaic.CoreRuntime()
    rt.tensor(X) + rt.tensor(X)
    assert rt.queue.threads == 0
    rt.run("async.noop", rt.tensor(X)).wait()
    assert 1 <= rt.queue.threads <= 2
    rt.shutdown()


def test_no_more_threads_than_wanted_and_no_more_tasks_than_room():
    queue, gate = WorkQueue(2, 3), threading.Event()
    started = threading.Semaphore(0)
    for _ in range(2):
        assert queue.add(Call(lambda: (started.release(), gate.wait())))
        started.acquire()
    assert [queue.add(Call(gate.wait)) for _ in range(4)] == [True, True, True, False]
    assert queue.threads == 2 and len(queue) == 3
    gate.set()
    queue.shutdown()
    assert len(queue) == 0 and not queue.add(Call(gate.wait))


def test_a_full_queue_makes_the_caller_work():
    rt = tosaic.CoreRuntime(threads=1, queue_size=1)
    gate, started, ran = threading.Event(), threading.Event(), []

    def slow(call):
        started.set()
        gate.wait()
        return call.arrays[0]

    rt.register("test.slow", slow, is_long=True)
    rt.register("test.here", lambda call: (ran.append(threading.current_thread()), call.arrays[0])[1], is_long=True)
    first = rt.run("test.slow", rt.tensor(X))
    started.wait()
    second = rt.run("test.slow", rt.tensor(X))
    here = rt.run("test.here", rt.tensor(X))
    assert here.is_ready and ran == [threading.current_thread()]
    gate.set()
    rt.wait(first, second)
    rt.shutdown()


def test_a_task_that_raises_does_not_end_its_thread(monkeypatch):
    ignored = []
    monkeypatch.setattr("sys.unraisablehook", lambda u: ignored.append(u.exc_type))
    queue, done = WorkQueue(1, 10), threading.Event()
    queue.add(Call(lambda: 1 / 0))
    queue.add(Call(done.set))
    assert done.wait(10)
    queue.shutdown()
    assert ignored == [ZeroDivisionError]


def test_threads_end_with_the_runtime_that_nobody_has_any_more():
    rt = tosaic.CoreRuntime()
    rt.run("async.noop", rt.tensor(X)).wait()
    threads, gone = list(rt.queue.state.threads), weakref.ref(rt)
    del rt
    gc.collect()
    for thread in threads:
        thread.join(10)
    assert gone() is None and not any(t.is_alive() for t in threads)


def test_a_long_row_of_pending_operations_needs_no_deep_stack_and_leaves_nothing():
    rt = tosaic.CoreRuntime()
    pending, resolve = TensorHandle.pending()
    value, one = rt.run("add", pending, rt.tensor(X)), rt.tensor(X)
    middle = []
    for n in range(5000):
        value = value + one
        if n % 1000 == 0:
            middle.append(weakref.ref(value))
    resolve.set(X)
    assert value.get()[0] == 5002
    rt.wait()
    gc.collect()
    assert [m() for m in middle] == [None] * 5 and not rt._calls
    rt.shutdown()


def test_memory_does_not_grow_with_asynchronous_operations():
    import tracemalloc
    rt = tosaic.CoreRuntime()
    one = rt.tensor(X)

    def row():
        value = rt.run("async.noop", one)
        for _ in range(1000):
            value = value + one
        assert value.get()[0] == 1001
        rt.wait()

    row()
    tracemalloc.start()
    row()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(3):
        row()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    rt.shutdown()
    assert grown < 100_000


FORK = """
import os, sys, threading
import numpy as np, tosaic
X = np.ones(3, np.float32)
rt = tosaic.CoreRuntime()
started, gate = threading.Event(), threading.Event()
rt.register("test.slow", lambda call: (started.set(), gate.wait(), call.arrays[0])[2], is_long=True)
x = rt.tensor(X)
rt.wait(x + x, rt.run("async.noop", x))
running = [rt.run("test.slow", x) for _ in range(2)]
started.wait()
queued = rt.run("async.noop", x)
after = queued + x
pid = os.fork()
if pid == 0:
    gate.set()  # the second slow operation may have waited for a thread: then the child runs it
    for value in (*running, queued, after):
        value.wait(10)
    ok = (all(r.error.kind == "cancelled" for r in running if r.is_error) and any(r.is_error for r in running)
          and np.array_equal(after.get(), 2 * X) and np.array_equal(rt.run("async.noop", x).get(), X)
          and np.array_equal((x * x).get(), X))
    os._exit(0 if ok else 1)
_, status = os.waitpid(pid, 0)
gate.set()
assert np.array_equal(after.get(), 2 * X) and all(np.array_equal(r.get(), X) for r in running)
rt.shutdown()
sys.exit(os.waitstatus_to_exitcode(status))
"""

IDLE_FORK = """
import os, sys
import numpy as np, tosaic
X = np.ones(3, np.float32)
rt = tosaic.CoreRuntime()
rt.run("async.noop", rt.tensor(X)).wait()
pid = os.fork()
if pid == 0:
    none = rt.queue.threads == 0
    works = np.array_equal(rt.run("async.noop", rt.tensor(X)).get(), X)
    os._exit(0 if none and works else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

EXIT = """
import time
import numpy as np, tosaic
rt = tosaic.CoreRuntime()
rt.register("test.slow", lambda call: (time.sleep(0.2), print("done", flush=True), call.arrays[0])[2], is_long=True)
rt.run("test.slow", rt.tensor(np.ones(1, np.float32)))
"""


def script(text):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)


def test_a_child_of_fork_finishes_what_waited_and_fails_what_ran():
    for _ in range(3):
        found = script(FORK)
        assert found.returncode == 0, found.stderr


def test_a_child_of_fork_starts_without_threads():
    found = script(IDLE_FORK)
    assert found.returncode == 0, found.stderr


def test_the_end_of_a_program_waits_for_what_runs():
    found = script(EXIT)
    assert (found.returncode, found.stdout) == (0, "done\n"), found.stderr


def test_a_kernel_is_compiled_once_while_other_threads_wait():
    rt = tosaic.CoreRuntime()
    x = rt.tensor(np.ones((5, 3), np.float32))
    barrier, found = threading.Barrier(8), []

    def work():
        barrier.wait()
        found.append((x * x).get()[0, 0])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1.0] * 8 and rt.cpu.kernels.compiles == 1


def test_kernels_that_were_not_used_for_long_are_forgotten():
    rt = tosaic.CoreRuntime(kernels=4)
    for n in range(1, 10):
        x = rt.tensor(np.ones(n, np.float32))
        assert np.array_equal((x + x).get(), np.full(n, 2))
    assert len(rt.cpu.kernels) == 4


def test_short_kernels_keep_the_interpreters_lock_and_long_ones_release_it():
    rt = tosaic.CoreRuntime()
    kernels = {}
    for n in (2, 256):
        x = rt.tensor(np.ones((n, n), np.float32))
        (x @ x).get()
        kernels[n] = rt.quick["matmul", x.metadata, x.metadata][2].kernel().call
    assert type(kernels[2]) is type(len) and type(kernels[256]).__name__ == "method"


def test_an_interrupt_is_an_error_of_what_it_meets_and_nobody_waits_for_ever(monkeypatch):
    ignored = []
    monkeypatch.setattr("sys.unraisablehook", lambda u: ignored.append(u.exc_type))
    for kind, threads in ((KeyboardInterrupt, 0), (SystemExit, 1)):
        rt = tosaic.CoreRuntime(threads=threads)

        def interrupt(call, kind=kind):
            raise kind

        rt.register("test.interrupt", interrupt, lambda inputs, _: inputs)
        pending, resolve = TensorHandle.pending(rt.tensor(X).metadata)
        bad = rt.run("test.interrupt", pending)
        after, other = bad + rt.tensor(X), rt.run("add", pending, pending)
        try:
            resolve.set(X)
            interrupted = False
        except kind:
            interrupted = True
        assert bad.wait(10) and after.wait(10) and other.wait(10) and interrupted == (threads == 0)
        assert f"failed: {kind.__name__}" in bad.error.message and after.error is bad.error and other.is_ready
        assert rt.run("async.noop", other).wait(10)
        rt.shutdown()
    assert ignored == [SystemExit]
