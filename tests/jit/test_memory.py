"""`memory=` from Python: compiled code works in several pools as it does in one, and memories that are too small are
reported."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import Memory, Pool, ops
from tosaic.runtime.variables import Context

DATA = Path(__file__).parents[1] / "data"
X = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)
TWO = Memory(pools=(Pool("fast", 300), Pool("slow", alignment=128)))


def work(x: Any) -> Any:
    y = ops.matmul(x, x)
    z = ops.matmul(y, x)
    return ops.matmul(z, y) + z


def test_a_function_works_in_several_pools() -> None:
    plain, pooled = tosaic.jit(work), tosaic.jit(options=tosaic.CompileOptions(memory=TWO))(work)
    assert np.array_equal(plain(X), pooled(X))
    plan = pooled.lower(X).plan
    assert 0 < plan.pool("fast").size_bytes <= 300 and plan.pool("slow").size_bytes > 0 and plan.pool("slow").alignment == 128


def test_compile_and_load_take_memory_too() -> None:
    once = tosaic.compile(work, X, options=tosaic.CompileOptions(memory=TWO))
    assert [p.name for p in once.lowered.plan.pools] == ["fast", "slow"]
    entry = tosaic.load(DATA / "corpus" / "f_mlp_int8.mlir").main
    memory = Memory(pools=(Pool("a", 300), Pool("b")), constant_pools=(Pool("rom"),))
    pooled = entry.compile(tosaic.CompileOptions(memory=memory))
    x = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
    assert np.array_equal(pooled(x), entry(x)) and pooled.lowered.plan.pool("rom").kind == "constant"
    assert entry.compile() is entry.compile()  # code for memory of any size is the one that is kept


def test_inputs_in_the_workspace_stay_the_callers_arrays_here() -> None:
    entry = tosaic.load(DATA / "corpus" / "v_lstm.mlir").main
    mapped = entry.compile(tosaic.CompileOptions(memory=Memory(workspace_io=True)), context=Context("mapped"))
    plain = entry.compile(context=Context("plain"))
    x = np.ones((1, 6), np.float32)
    for _ in range(3):
        assert np.array_equal(mapped(x), plain(x))
    assert (x == 1).all()
    assert {b.kind for b in mapped.lowered.plan.buffers} >= {"input", "output"}


def test_buffers_are_aligned_as_the_machine_needs_it_unless_it_is_said() -> None:
    from tosaic.lowering.native.c_object.data_symbols import alignment_of
    from tosaic.lowering.target.presets import host, target
    entry = tosaic.load(DATA / "corpus" / "f_mlp_int8.mlir").main
    for lowered, most in ((entry.lower(), alignment_of(host())), (entry.lower(tosaic.CompileOptions(target("thumbv7em"))), 8),
                          (entry.lower(tosaic.CompileOptions(memory=Memory(alignment=4))), 4)):
        assert max(b.alignment for b in lowered.plan.buffers) == most


@pytest.mark.parametrize(("memory", "message"), [
    (Memory(pools=(Pool("tiny", 100),)), "tiny holds 100 bytes and would need"),
    (Memory(pools=(Pool("fast"),), pins={"nothing": "fast"}), "there is no buffer named nothing to pin to fast"),
    (Memory(pools=(Pool("npu", target_access={"npu": "rw"}),), accessor="c"), "target c may read and write none of the pools"),
    (Memory(pools=(Pool("odd", alignment=2),)), "may lie in no pool")])
def test_memories_that_do_not_do_are_a_problem(memory: Memory, message: str) -> None:
    with pytest.raises(tosaic.Problem) as caught:
        tosaic.jit(options=tosaic.CompileOptions(memory=memory))(work)(X)
    assert message in str(caught.value)
