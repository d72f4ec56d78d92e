"""A child of fork: callbacks that a thread of the parent was about to call are called there, once."""
from __future__ import annotations

import subprocess
import sys

LOST = """
import os, sys, threading
import numpy as np, tosaic
X = np.ones(3, np.float32)
rt = tosaic.CoreRuntime(threads=1)
x = rt.tensor(X)
entered, gate, called = threading.Event(), threading.Event(), []
start = threading.Event()
rt.register("test.start", lambda call: (start.wait(), call.arrays[0])[1], METADATA is_long=True)
value = rt.run("test.start", x)
value.then(lambda _: (called.append("first"), entered.set(), gate.wait()))
value.then(lambda _: called.append(("second", os.getpid())))
copy, after = value.copy(), value + x
after.then(lambda h: called.append(("third", os.getpid(), h.is_ready)))
start.set()
entered.wait()
pid = os.fork()
if pid == 0:
    after.wait(10)
    mine = os.getpid()
    ok = (called == ["first", ("second", mine), ("third", mine, True)] and np.array_equal(copy.get(), X)
          and np.array_equal(after.get(), 2 * X) and np.array_equal(rt.run("async.noop", x).get(), X))
    os.write(2, repr((called, copy, after)).encode())
    os._exit(0 if ok else 1)
_, status = os.waitpid(pid, 0)
gate.set()
rt.wait(after)
rt.shutdown()
assert called == ["first", ("second", os.getpid()), ("third", os.getpid(), True)], called
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_callbacks_that_a_lost_thread_had_yet_to_call_are_called_in_the_child():
    for metadata in ("", "lambda inputs, _: inputs,"):
        found = subprocess.run([sys.executable, "-c", LOST.replace("METADATA", metadata)], capture_output=True, text=True,
                               timeout=120)
        assert found.returncode == 0, found.stderr
