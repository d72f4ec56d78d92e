"""Load: many threads, random failures and cancellations; everything ends, in a value or the right error."""
from __future__ import annotations

import random
import threading

import pytest
import tosaic
from tosaic import Problem, TensorHandle

from . import programs


def client(rt, seed, count, faults):
    """One thread: programs with half of the sources late; their results are looked at against their meaning."""
    r = random.Random(seed)
    try:
        for n in range(count):
            p = programs.program(r.randrange(1 << 30), 20)
            sources, late = [], []
            for source in p.sources:
                if r.random() < 0.5:
                    handle, resolve = TensorHandle.pending()
                    late.append((resolve, source))
                else:
                    handle = TensorHandle.of_error(Problem(source)) if isinstance(source, str) else rt.tensor(source, copy=True)
                sources.append(handle)
                del handle
            values = programs.run(rt, p, sources, "reference" if n % 7 == 0 else "cpu")
            if r.random() < 0.02:
                rt.cancel()
                rt.restart()
            for resolve, source in late:
                programs.settle(resolve, source)
            programs.check(values, programs.meaning(p), also=("cancelled",))
    except BaseException as error:
        faults.append(error)


def load(operators):
    rt = tosaic.CoreRuntime(threads=3, queue_size=64)
    programs.register(rt)
    faults: list[BaseException] = []
    threads = [threading.Thread(target=client, args=(rt, n, operators // 8 // 20, faults)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(1800)
        assert not thread.is_alive(), "it hangs"
    rt.wait()
    assert not faults, faults[0]
    assert not rt._calls and rt.buffers_reused > 0
    rt.shutdown()


def test_eight_threads_with_failures_and_cancellations():
    load(4_000)


@pytest.mark.long
def test_eight_threads_and_a_hundred_thousand_operators():
    load(100_000)
