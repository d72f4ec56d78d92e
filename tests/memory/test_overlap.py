"""Buffers that share bytes while both are live: what is occupied when, what distance that keeps between them, and that plans
which use it stand the test of running.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.kernels.kernel import Compute
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.check.verify import plan_faults
from tosaic.lowering.memory.lifetimes import access_of, lifetimes
from tosaic.lowering.memory.plan import names_of
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.lowering.memory.sharing.instants import INSTANTS
from tosaic.lowering.memory.sharing.occupancy import Occupied, occupancy, spacing, table
from tosaic.lowering.memory.sharing.overlap import most_occupied, with_place_over
from tosaic.lowering.native.process.load import load
from tosaic.lowering.row_tiling.row_tiling import RowPolicy
from tosaic.lowering.schedule.schedule import lower
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import interpret

from ..fuse.graphs import Graph, conv

SMALL = replace(target("host"), l2_bytes=512)
"""With a cache so small that kernels run by rows."""


@st.composite
def stairs(draw: st.DrawFn) -> list[Occupied]:
    rows, nbytes = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    return [Occupied(i * nbytes, (i + 1) * nbytes, written := draw(st.integers(0, 9)), written + draw(st.integers(0, 4)))
            for i in range(rows)]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(stairs(), stairs())
def test_spacing_is_what_byte_by_byte_comparison_finds(one: list[Occupied], other: list[Occupied]) -> None:
    refused = spacing(one, other)
    for offset in range(-30, 31):
        clash = any(a.first < offset + b.end and offset + b.first < a.end and a.written <= b.read and b.written <= a.read
                    for a in one for b in other)
        assert clash == any(low < offset < high for low, high in refused), offset


@settings(max_examples=200, deadline=None, derandomize=True)
@given(stairs(), stairs())
def test_a_result_may_lie_over_an_operand_whatever_their_rows_say(one: list[Occupied], other: list[Occupied]) -> None:
    """Exactly there, and at no distance else that the rows refuse."""
    refused = spacing(one, other)
    over = with_place_over(refused)
    for offset in range(-30, 31):
        assert any(low < offset < high for low, high in over) == (offset != 0 and any(
            low < offset < high for low, high in refused))


def residual(rows: int = 24, channels: int = 8) -> Graph:
    """Convolutions whose input is added to their output, between kernels that do not run by rows: the last sum takes the
    first input's place, row by row."""
    g, rng = Graph(), np.random.default_rng(5)
    x = g.op("tanh", g.input(1, rows, 6, channels))
    for _ in range(2):
        weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((channels, 3, 3, channels), (channels,)))
        x = g.op("add", x, conv(g, x, weight, bias, pad=(1, 1, 1, 1)))
    g.result = g.op("reduce_sum", x, axis=1)  # type: ignore[attr-defined]
    return g


def program_of(g: Graph, rows: RowPolicy = "cache") -> tuple[Program, Module]:
    module = g.module(g.result)  # type: ignore[attr-defined]
    return lower(fuse(module, module.function("main")), SMALL, rows), module


def test_a_plan_may_be_smaller_than_all_that_is_live_together() -> None:
    program, module = program_of(residual())
    live = lifetimes(program.steps, [access_of(f) for f in program.functions])
    together = max(sum(b.nbytes for b, spans in live.items() if b.role == "temporary" and any(a <= t <= z for a, z in spans))
                   for t in range(len(program.steps)))
    shared, without = plan(program), plan(program, Memory(overlap=False))
    assert without.size_bytes >= together > shared.size_bytes >= shared.live_bytes
    data = np.random.default_rng(2).standard_normal(program.inputs[0].shape).astype(np.float32)
    expected = interpret(module, module.function("main"), [data])[0]
    for found in (shared, without):
        assert np.allclose(load(program, found, SMALL)(data)[0], expected, rtol=1e-4, atol=1e-4)


def test_rows_are_occupied_from_their_writing_to_their_last_reading() -> None:
    program, _ = program_of(residual())
    live = lifetimes(program.steps, [access_of(f) for f in program.functions])
    finer = {b: spans for b, spans in occupancy(program, live, {}).pieces.items() if len(spans) > 1}
    assert finer
    for buffer, spans in finer.items():
        assert [s.first for s in spans] == [0, *(s.end for s in spans[:-1])] and spans[-1].end == buffer.nbytes
        assert (min(s.written for s in spans) // INSTANTS, max(s.read for s in spans) // INSTANTS) == live[buffer][0]


def test_one_row_too_near_is_caught() -> None:
    """Each pair that shares bytes is moved together until it clashes: the verifier sees it, without the planner's code."""
    program, _ = program_of(residual())
    found = plan(program)
    names = {name: b for b, name in names_of(program).items()}
    caught = 0
    for i, buffer in enumerate(found.buffers):
        for step in (-1, 1):
            size = names[buffer.name].nbytes // 24
            moved = replace(buffer, byte_offset=buffer.byte_offset + step * size)
            if moved.byte_offset < 0 or moved.byte_offset % buffer.alignment or size == 0:
                continue
            changed = replace(found, buffers=(*found.buffers[:i], moved, *found.buffers[i + 1:]),
                              pools=tuple(replace(p, size_bytes=p.size_bytes + 4096) for p in found.pools))
            caught += bool(plan_faults(changed, program))
    assert caught >= 2


@pytest.mark.parametrize("size", [5, 64, 250])
def test_an_elementwise_kernel_writes_over_its_operand(size: int) -> None:
    """The exponentials of a softmax, which lie in the place of the scores."""
    g, zero = Graph(), np.zeros(1, np.float32)
    x = g.input(1, 3, size)
    scores = g.op("matmul", x, g.op("reshape", x, g.shape(1, size, 3)), zero, zero)
    scores = g.op("matmul", scores, x, zero, zero)
    exponentials = g.op("exp", g.op("sub", scores, g.op("reduce_max", scores, axis=2)))
    shares = g.op("mul", exponentials, g.op("reciprocal", g.op("reduce_sum", exponentials, axis=2)), zero.astype(np.int8))
    g.result = g.op("matmul", shares, g.op("reshape", x, g.shape(1, size, 3)), zero, zero)  # type: ignore[attr-defined]
    program, module = program_of(g, "never")
    found = plan(program)
    assert found.size_bytes < plan(program, Memory(overlap=False)).size_bytes
    data = np.random.default_rng(2).uniform(-0.1, 0.1, (1, 3, size)).astype(np.float32)
    expected = interpret(module, module.function("main"), [data])[0]
    assert np.allclose(load(program, found, SMALL)(data)[0], expected, rtol=1e-4, atol=1e-4)


def test_an_output_that_is_read_by_rows_stays_until_the_end() -> None:
    g, rng = Graph(), np.random.default_rng(5)
    x = g.op("tanh", g.input(1, 24, 6, 8))
    found = []
    for _ in range(4):
        weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((8, 3, 3, 8), (8,)))
        x = conv(g, x, weight, bias, pad=(1, 1, 1, 1))
        found.append(x)
    module = g.module(found[1], g.op("reduce_sum", x, axis=1))
    program = lower(fuse(module, module.function("main")), SMALL)
    output = program.outputs[0]
    assert any(isinstance(s, Compute) and s.rows and program.kernels[s.kernel].out is output for s in program.steps)
    planned = plan(program, Memory(workspace_io=True, alignment=1))
    spans = {p.name: p.live for p in planned.buffers}
    live = {b: spans[name] for b, name in names_of(program).items() if name in spans}
    assert {o.read // INSTANTS for o in occupancy(program, live, {}).pieces[output]} == {live[output][0][1]}


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(stairs(), max_size=5), st.dictionaries(st.integers(0, 12), st.integers(0, 3)))
def test_what_is_occupied_most_is_what_counting_finds(occupied: list[list[Occupied]], shared: dict[int, int]) -> None:
    counted = [sum(o.end - o.first for spans in occupied for o in spans if o.written <= tick <= o.read) - shared.get(tick, 0)
               for tick in range(20)]
    assert most_occupied(map(table, occupied), shared) == max(0, *counted)
