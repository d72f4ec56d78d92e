"""Waiting never hangs for what nobody would do: in a region, in operators, in callbacks, at the end of a program, with
Ctrl-C."""
from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tosaic
from tosaic import Problem, TensorHandle

from .processes import PROLOGUE, good, script

X = np.arange(4, dtype=np.float32)

READS = {
    "get": lambda h: h.get(), "if": lambda h: 1 if h[0] > 0 else 2, "bool": bool, "float": lambda h: float(h[0]),
    "list": lambda h: h.tolist(),
    "asarray": np.asarray, "wait": lambda h: h.wait(), "wait a second": lambda h: h.wait(1), "copy": lambda h: h.copy().get(),
    "callback of a copy": lambda h: h.copy().copy().wait(), "runtime": lambda h: h._runtime.wait(h),
    "donate": lambda h: h.donate().get(),
    "await": lambda h: asyncio.run(awaited(h)), "dlpack": np.from_dlpack}


async def awaited(handle):
    return await handle


@pytest.mark.parametrize("how", READS)
def test_reading_a_value_in_the_region_that_records_it_is_an_error_at_that_line(rt, how):
    x = rt.tensor(X)
    with pytest.raises(Problem, match="computed when the region that records it ends") as caught, rt.capture():
        y = x + 1
        READS[how](y)
    assert "with" in caught.value.help and caught.value.position.source.name == __file__
    assert "region was left by an error" in y.error.message and np.array_equal((x + 1).get(), X + 1)


def test_a_region_may_catch_that_and_go_on(rt):
    x = rt.tensor(X)
    with rt.capture():
        y = x + 1
        with pytest.raises(Problem):
            y.get()
        assert np.array_equal(x.get(), X)
        z = y * 2
    assert np.array_equal(z.get(), (X + 1) * 2)


def test_what_depends_on_a_region_through_other_runtimes_and_threads_is_known(rt):
    other = tosaic.CoreRuntime()
    x, found = rt.tensor(X), []
    with rt.capture():
        y = x + 1
        there = other.run("async.noop", y)
        with pytest.raises(Problem, match="region"):
            there.get()
        with pytest.raises(Problem, match="region"):
            other.wait()
        thread = threading.Thread(target=lambda: found.append(there.get().tolist()))  # another thread may wait
        thread.start()
    thread.join(30)
    assert found == [(X + 1).tolist()]
    other.shutdown()


def test_a_region_inside_another_may_use_what_that_computes(rt):
    x = rt.tensor(X)
    with rt.capture() as outer:
        y = x + 1
        with rt.capture() as inner:
            z = y * 2
            w = z - x
            z * z
        assert not z.is_ready
        v = w + z
    assert np.array_equal(w.get(), (X + 1) * 2 - X) and np.array_equal(v.get(), w.get() + z.get())
    assert len(outer.steps) == 5 and np.array_equal(inner.compile(w, inputs=[y, x])(y.get(), X), w.get())


# Operators that wait

@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("depth", [1, 3, 40])
def test_operators_may_wait_for_operators_in_line(threads, depth):
    rt = tosaic.CoreRuntime(threads=threads)

    def nested(call):
        left = call.attributes.get("n")
        x = rt.tensor(call.arrays[0])
        return (rt.run("test.nested", x, n=left - 1) if left else rt.run("async.noop", x)).get() + 1

    rt.register("test.nested", nested, is_long=True)
    results = [rt.run("test.nested", rt.tensor(X), n=depth) for _ in range(2 * threads)]
    assert all(r.wait(60) for r in results), "it hangs"
    assert all(np.array_equal(r.get(), X + depth + 1) for r in results)
    for _ in range(200):  # threads that came for those that waited go away
        if rt.queue.threads <= threads:
            break
        time.sleep(0.01)
        rt.wait(*[rt.run("async.noop", rt.tensor(X)) for _ in range(2 * threads)])
    assert rt.queue.threads <= threads
    rt.shutdown()


def test_operators_that_wait_for_each_other_in_one_row_of_callbacks():
    """A worker that hears of a value starts all that waits for it: what one of these waits for comes behind it."""
    for _ in range(20):
        rt = tosaic.CoreRuntime(threads=1)
        gate, opened = rt.pending()
        first, one = TensorHandle.pending()
        second, two = TensorHandle.pending()
        rt.register("test.first", lambda call: (first.wait(), two.set(X), call.arrays[0])[2])
        rt.register("test.second", lambda call: (one.set(X), second.wait(), call.arrays[0])[2])
        start = rt.run("async.noop", gate)
        results = [rt.run("test.first", start), rt.run("test.second", start)]
        opened.set(X)
        assert all(r.wait(30) for r in results), "it hangs"
        rt.shutdown()


def test_a_callback_may_wait_for_what_waits_behind_it(rt):
    seen = []
    handle, resolve = rt.pending()
    handle.then(lambda h: seen.append(result.wait(30)))
    result = handle + 1
    resolve.set(X)
    assert seen == [True] and np.array_equal(result.get(), X + 1)


def test_an_operator_may_settle_and_read_in_one(rt):
    def operator(call):
        handle, resolve = rt.pending()
        result = handle + 1
        resolve.set(call.arrays[0])
        return result.get()

    rt.register("test.inside", operator, is_long=True)
    found = rt.run("test.inside", rt.tensor(X))
    assert found.wait(30) and np.array_equal(found.get(), X + 1)


def test_waiting_operators_without_any_thread_to_be_had(rt, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    handle, resolve = rt.pending()
    seen = []
    handle.then(lambda h: seen.append(result.wait(30)))
    result = rt.run("async.noop", handle)
    resolve.set(X)
    assert seen == [True] and np.array_equal(result.get(), X)


# The end of a program, and Ctrl-C

@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", ["never.wait()", "never.get()", "never.await_metadata()", "(never + 1).get()"])
def test_a_program_ends_although_an_operator_waits_for_what_never_comes(operator):
    found = good(script(f"""
        rt = tosaic.CoreRuntime(threads=1)
        never, resolver = rt.pending()
        rt.register("test.wait", lambda call: ({operator}, call.arrays[0])[1], is_long=True)
        result = rt.run("test.wait", rt.tensor(X))
        queued = rt.run("async.noop", rt.tensor(X))
        print("end", flush=True)
    """))
    assert found.stdout == "end\n" and found.stderr == ""


def test_the_end_of_a_program_does_what_effects_there_are():
    found = good(script("""
        rt = tosaic.CoreRuntime()
        rt.register("test.slow", lambda call: (time.sleep(0.7), call.arrays[0])[1], is_long=True)
        value = rt.run("test.slow", rt.run("test.slow", rt.tensor(X)))
        rt.run("print", value, outputs=0)
        rt.run("print", value + 1, outputs=0)
    """))
    assert found.stdout.count("DenseHostTensor") == 2, found.stderr


INTERRUPTED = PROLOGUE.format(limit=40) + """
rt = tosaic.CoreRuntime(threads=1)
started, gate = threading.Event(), threading.Event()
rt.register("test.slow", lambda call: (started.set(), gate.wait(30), call.arrays[0])[2], is_long=True)
slow, (never, resolver) = rt.run("test.slow", rt.tensor(X)), rt.pending()
started.wait()
print("ready", flush=True)
try:
    {wait}
except KeyboardInterrupt:
    gate.set()
    print("interrupted", flush=True)
    if not rt.is_shut_down:
        print(slow.get().tolist(), rt.run("async.noop", slow).tolist(), flush=True)
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wait", ["slow.get()", "never.get()", "never.await_metadata()", "rt.wait()", "(never + slow).wait()",
                                  "rt.shutdown()"])
def test_control_c_ends_a_wait_and_the_runtime_goes_on(wait):
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED.format(wait=wait)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == "interrupted\n" + "[1.0, 1.0, 1.0] [1.0, 1.0, 1.0]\n" * (wait != "rt.shutdown()")


STORM = PROLOGUE.format(limit=60) + """
import random, signal
rt = tosaic.CoreRuntime(lambda d: None, threads=2)
rt.register("test.python", lambda call: call.arrays[0] + 1)
rt.register("test.note", lambda call: (), side_effect=True)
x, interrupted = rt.tensor(X), 0
seed = random.Random({seed})
rt.wait(rt.run("test.python", rt.run("async.noop", x)) + x)  # what is imported now is not imported while Ctrl-C comes
gate, opened = rt.pending()
last = rt.run("test.python", rt.run("async.noop", gate)) + x
opened.set(X)
last.wait()
rt.run("test.note", outputs=0)
print("ready", flush=True)
end = time.monotonic() + 3
rounds = 0
while time.monotonic() < end:
    rounds += 1
    handles = []
    try:
        signal.setitimer(signal.ITIMER_REAL, seed.random() * 0.004)
        gate, opened = rt.pending()
        value = gate
        handles.append(gate)
        for n in range(30):
            value = rt.run("test.python" if n % 3 else "async.noop", value) + x
            handles.append(value)
            if n % 10 == 0:
                rt.run("test.note", value, outputs=0)
        opened.set(X)
        handles[-1].wait()
    except KeyboardInterrupt:
        interrupted += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(0.001)
    except KeyboardInterrupt:
        interrupted += 1
    opened = None
    for handle in handles:
        assert handle.wait(20), (rounds, handle)
    try:
        rt.wait()
    except Problem as problem:
        assert "KeyboardInterrupt" in problem.message or "never be settled" in problem.message, problem.message
    assert np.array_equal(rt.run("async.noop", x).get(), X)
print(rounds, interrupted)
"""


@pytest.mark.parametrize("seed", range(2))
def test_control_c_at_any_moment_leaves_nothing_pending(seed):
    program = "import signal\nsignal.signal(signal.SIGALRM, signal.default_int_handler)\n" + STORM.format(seed=seed)
    found = good(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120))
    rounds, interrupted = map(int, found.stdout.split()[1:])
    assert rounds > 20 and interrupted > 5


def test_a_fork_while_operators_wait_goes_on_in_both():
    found = good(script("""
        rt = tosaic.CoreRuntime(threads=1)
        gate, opened = rt.pending()
        rt.register("test.wait", lambda call: (rt.run("async.noop", gate).get(), call.arrays[0])[1], is_long=True)
        waiting, queued = rt.run("test.wait", rt.tensor(X)), rt.run("async.noop", rt.tensor(X))
        queued.wait()
        pid = os.fork()
        opened.set(X)
        assert waiting.wait(20) and rt.run("async.noop", rt.tensor(X)).wait(20)
        if pid == 0:
            os._exit(0 if waiting.error.kind == "cancelled" else 1)
        assert waiting.is_ready
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """))
    assert found.stderr == ""
