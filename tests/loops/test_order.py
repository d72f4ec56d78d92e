"""The order in which loops touch memory: what it says about overwriting an operand holds when the loops are run so."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load, apply, reduce
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.dependence.access_order import NEVER, may_overwrite, touches
from tosaic.lowering.loops.interpret import LoopMemory, run_function
from tosaic.lowering.loops.ir import INDEX, Address, Function, Literal, LoadFrom, StoreTo, Type, Var
from tosaic.lowering.schedule.schedule import schedule
from tosaic.lowering.target.presets import target

TARGETS = [target("x86-64-v3"), target("x86-64"), target("x86-64-v4")]


def shifted(extent: int, by: int) -> tuple[Kernel, Buffer, Buffer]:
    """out[i] = x[i + by]."""
    x, out, i = Buffer("x", "float32", (extent + abs(by),)), Buffer("out", "float32", (extent,)), Axis("i", extent)
    index = Affine.of(i) + max(by, 0)
    return Kernel(out, (i,), apply("add", Load(x, (index,)), 1.0)), x, out


def aliased(function: Function, read: Buffer, written: Buffer, data: np.ndarray) -> np.ndarray:
    """What the loops give when both buffers begin at the same byte."""
    memory = LoopMemory()
    size = max(read.size, written.size)
    both = np.zeros(size, np.float32)
    both[:read.size] = data
    for buffer in (read, written):
        memory.arrays[buffer], memory.written[buffer] = both[:buffer.size], np.ones(buffer.size, np.bool_)
    run_function(function, memory)
    return memory.arrays[written].copy()


def disjoint(function: Function, read: Buffer, written: Buffer, data: np.ndarray) -> np.ndarray:
    memory = LoopMemory()
    memory.add(read, data)
    run_function(function, memory)
    return memory.arrays[written].copy()


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 90), st.integers(0, 40), st.sampled_from(TARGETS))
def test_a_shift_towards_the_start_may_be_done_in_place(extent: int, by: int, machine: object) -> None:
    kernel, x, out = shifted(extent, by)
    function = schedule(kernel, machine)  # type: ignore[arg-type]
    assert may_overwrite(function, x, out)
    data = np.arange(x.size, dtype=np.float32)
    assert np.array_equal(aliased(function, x, out, data), disjoint(function, x, out, data))


@pytest.mark.parametrize("machine", TARGETS, ids=["avx2", "sse", "avx512"])
def test_a_shift_towards_the_end_may_not(machine: object) -> None:
    extent = 100
    x, out, i = Buffer("x", "float32", (extent,)), Buffer("out", "float32", (extent + 3,)), Axis("i", extent)
    kernel = Kernel(out, (i,), Load(x, (Affine.of(i),)))
    function = schedule(kernel, machine)  # type: ignore[arg-type]
    assert may_overwrite(function, x, out)
    turned = schedule(Kernel(out, (i,), Load(x, (Affine.of(i) * -1 + extent - 1,))), machine)  # type: ignore[arg-type]
    assert not may_overwrite(turned, x, out)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_said_to_go_in_place_does(data: st.DataObject) -> None:
    """Random accesses to a matrix: rows or columns turned, moved, summed."""
    rows, columns = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40))
    x, out = Buffer("x", "float32", (rows + 2, columns + 2)), Buffer("out", "float32", (rows, columns))
    i, j = Axis("i", rows), Axis("j", columns)
    place = [Affine.of(i), Affine.of(j)]
    for d, extent in enumerate((rows, columns)):
        if data.draw(st.booleans()):
            place[d] = place[d] * -1 + extent - 1
        place[d] = place[d] + data.draw(st.integers(0, 2))
    value = Load(x, tuple(place))
    if data.draw(st.booleans()):
        k = Axis("k", 3)
        value = reduce("add", (k,), Load(x, (Affine.of(i) + k, place[1])))  # type: ignore[assignment]
    function = schedule(Kernel(out, (i, j), value), data.draw(st.sampled_from(TARGETS)))
    numbers = np.random.default_rng(1).standard_normal((rows + 2) * (columns + 2)).astype(np.float32)
    if may_overwrite(function, x, out):
        assert np.array_equal(aliased(function, x, out, numbers), disjoint(function, x, out, numbers))


def test_times_of_single_accesses() -> None:
    a, byte = Buffer("a", "int8", (4,)), Type("int8")
    zero = Literal(0, INDEX)
    body = [LoadFrom(Var(0, byte, 0), Address(a, zero, 2), 1), StoreTo(Address(a, zero, 0), Literal(1, byte), 2),
            LoadFrom(Var(1, byte, 0), Address(a, zero, 1), 1)]
    found = touches(Function("f", (a,), (), body), [a])
    assert found is not None
    assert found[a].first_store.tolist() == [1, 1, NEVER, NEVER]
    assert found[a].last_load.tolist() == [-1, 2, 0, -1]
    assert not may_overwrite(Function("f", (a,), (), body), a, a)
    assert may_overwrite(Function("f", (a,), (), body[:2]), a, a)
