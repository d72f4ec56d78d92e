"""How many tasks a function is divided into for a number of threads: several for each thread where it costs little; and no more
threads than were asked for."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.loops.cost import cycles
from tosaic.lowering.loops.ir import Function
from tosaic.lowering.native.process.thread_pool import is_supported
from tosaic.lowering.schedule import schedule
from tosaic.lowering.schedule.parallelize import MAX_DIVIDED_DEPTH, divide, share
from tosaic.runtime import executable, threads

from ..fuse.graphs import Graph, conv
from ..schedule.costs import every_machine_costs
from ..schedule.kernels import TARGETS
from ..schedule.test_saturating_pack import kernel_of

V4 = TARGETS["512 bits, dot4"]


def function(rows: int) -> Function:
    """A product of bytes with weights that are known."""
    g = Graph()
    weight = np.random.default_rng(0).integers(-127, 128, (128, 1, 1, 256)).astype(np.int8)
    x = conv(g, g.input(1, rows, 1, 256, dtype="int8"), weight, np.arange(128, dtype=np.int32), 3)
    return schedule(kernel_of(g, x), TARGETS["512 bits, dot4"], keeps=MAX_DIVIDED_DEPTH)


def tasks(f: Function, number: int) -> int:
    """How many tasks the function is divided into for `number` threads."""
    found = share(f, number, V4.costs)
    return found.tasks.count if found else 1


def test_two_parts_for_each_thread_where_there_is_much_to_do() -> None:
    f = function(4000)
    for number in (2, 3, 8):
        found = share(f, number, V4.costs)
        assert found is not None and len(found.function.phases) == 1
        assert found.tasks.count == 2 * number and found.tasks.phases == 1


def test_one_part_for_each_thread_where_there_is_little() -> None:
    f = function(40)
    assert 2 <= cycles(f, V4.costs) / V4.costs.task_grain_cycles < 4
    assert tasks(f, 2) == 2 and tasks(f, 8) <= 4


def test_no_more_parts_than_the_pool_has_bits() -> None:
    assert tasks(function(100_000), 40) == 40


def test_scratch_of_each_part_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    f = function(1000)
    every_machine_costs(monkeypatch, own_scratch_bytes=0)
    divided = divide(f, 2, V4.costs)
    assert divided is not None and any(b.copies == 2 for b in divided.scratch)
    assert tasks(f, 2) == 2


@pytest.mark.skipif(not is_supported(), reason="there is no pool of threads for this system")
def test_a_run_uses_as_many_threads_as_it_was_compiled_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where its code comes from the cache."""
    fresh = threads.Threads()
    monkeypatch.setattr(threads, "process", fresh)
    monkeypatch.setattr(executable, "threads", fresh)
    monkeypatch.setenv("TOSAIC_CACHE", str(tmp_path))
    a, b = np.random.default_rng(0).standard_normal((2, 600, 600)).astype(np.float32)
    for _ in range(2):
        f = tosaic.jit(lambda a, b: tosaic.ops.tanh(a) * tosaic.ops.tanh(b), options=tosaic.CompileOptions(threads=2))
        compiled = f.compile(a, b)
        assert compiled.executable.code.tasks == 2
        result = f(a, b)
        assert fresh.pool is not None and fresh.pool.started == 1
    assert "tasks 4" in f.lower(a, b).show("loops")
    one = tosaic.jit(lambda a, b: tosaic.ops.tanh(a) * tosaic.ops.tanh(b), options=tosaic.CompileOptions(threads=1))
    np.testing.assert_array_equal(result, one(a, b))
    fresh.pool.stop()
