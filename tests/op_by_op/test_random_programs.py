"""Random programs: asynchronous runs, in any order of arrival, end as sequential ones do, on every handler."""
from __future__ import annotations

import random
import threading

import numpy as np
import pytest
import tosaic
from tosaic import Problem, TensorHandle

from . import programs


@pytest.fixture
def runtime():
    rt = tosaic.CoreRuntime(threads=3)
    programs.register(rt)
    yield rt
    rt.shutdown()


def ready(rt, source):
    return TensorHandle.of_error(Problem(source)) if isinstance(source, str) else rt.tensor(source, copy=True)


def sequential(rt, seed, handler="cpu"):
    p = programs.program(seed)
    programs.check(programs.run(rt, p, [ready(rt, s) for s in p.sources], handler), programs.meaning(p))


def asynchronous(rt, seed):
    p, r = programs.program(seed), random.Random(seed)
    pairs = [TensorHandle.pending() for _ in p.sources]
    values = programs.run(rt, p, [h for h, _ in pairs])
    work = [lambda s=s, resolve=resolve: programs.settle(resolve, s) for s, (_, resolve) in zip(p.sources, pairs)]
    r.shuffle(work)
    threads = [threading.Thread(target=w) for w in work[:2]]
    for thread in threads:
        thread.start()
    for w in work[2:]:
        w()
    programs.check(values, programs.meaning(p))
    for thread in threads:
        thread.join()


def all_of_them(rt, seeds):
    for seed in seeds:
        sequential(rt, seed)
        sequential(rt, seed, "reference")
        asynchronous(rt, seed)


def test_random_programs_end_alike_however_they_run(runtime):
    all_of_them(runtime, range(100))
    assert runtime.buffers_reused > 0


@pytest.mark.long
def test_a_thousand_random_programs(runtime):
    all_of_them(runtime, range(100, 1100))


def test_random_programs_in_a_region_are_those_run_one_by_one(runtime):
    for seed in range(20):
        p = programs.program(seed, 8)
        steps = [s for s in p.steps if s.op in programs.OPERATIONS]
        values = [runtime.tensor(np.array([seed, n, -n], np.int32)) for n in range(4)]
        arrays = [v.get() for v in values]
        with runtime.capture():
            for step in steps:
                a, b = (n % len(values) for n in step.operands)
                values.append(runtime.run(step.op, values[a], values[b]))
            assert all(v.is_pending for v in values[4:])
        for step in steps:
            a, b = (n % len(arrays) for n in step.operands)
            arrays.append(programs.OPERATIONS[step.op](arrays[a], arrays[b]))
        for value, array in zip(values, arrays):
            assert np.array_equal(value.get(), array)
