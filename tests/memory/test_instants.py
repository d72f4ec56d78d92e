"""Liveness inside kernels: scratch, operands and results of one step share bytes where the loops are done with one before they
use the other. The verifier looks at the accesses anew, and what it accepts runs right on real memory.
"""
from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.loops.dependence.access_order import NEVER, touches
from tosaic.lowering.loops.ir import INDEX, Address, Function, Literal, LoadFrom, StoreTo, Type, Var
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.check.step_order import are_apart
from tosaic.lowering.memory.check.verify import plan_faults
from tosaic.lowering.memory.plan import Plan
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.lowering.memory.sharing.instants import by_elements, by_stages
from tosaic.lowering.native.process.load import load
from tosaic.lowering.schedule.schedule import lower
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import interpret

from ..fuse.graphs import Graph, conv

HOST, SMALL = target("host"), replace(target("host"), l2_bytes=512)
BYTE, ZERO = Type("int8"), Literal(0, INDEX)


def padded_chain(count: int, size: int, channels: int) -> Graph:
    """Padded convolutions, one after the other."""
    g, rng = Graph(), np.random.default_rng(count)
    x = g.input(1, size, size, channels)
    for _ in range(count):
        weight = rng.standard_normal((channels, 3, 3, channels)).astype(np.float32) / 8
        x = conv(g, x, weight, np.ones(channels, np.float32), pad=(1, 1, 1, 1))
    g.result = x  # type: ignore[attr-defined]
    return g


def lowered(g: Graph, rows: str = "never") -> tuple[Program, Module]:
    module = g.module(g.result)  # type: ignore[attr-defined]
    return lower(fuse(module, module.function("main")), SMALL, rows), module  # type: ignore[arg-type]


@pytest.mark.parametrize("machine", ["host", "x86-64-v4", "cortex-m4"])
def test_a_result_takes_the_place_of_an_operand_that_was_copied_into_a_halo(machine: str) -> None:
    """Each step has a halo of 3,168 bytes, and an operand or a result of 2,592."""
    g = padded_chain(4, 9, 8)
    module = g.module(g.result)  # type: ignore[attr-defined]
    program = lower(fuse(module, module.function("main")), target(machine), "never")
    assert plan(program, Memory(alignment=64)).size_bytes <= 5792
    assert plan(program, Memory(overlap=False)).size_bytes >= plan(program).size_bytes


def test_no_byte_of_a_program_is_planned_worse_for_knowing_more() -> None:
    for count, size, channels in ((2, 5, 4), (3, 12, 8), (5, 7, 16)):
        for rows in ("cache", "memory", "never"):
            program, _ = lowered(padded_chain(count, size, channels), rows)
            assert plan(program).size_bytes <= plan(program, Memory(overlap=False)).size_bytes


# ---- random programs -------------------------------------------------------------------------------------------------
@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A few operators with windows, sums, halos and elementwise values, some of which are read again later."""
    g, rng = Graph(), np.random.default_rng(draw(st.integers(0, 99)))
    size, channels = draw(st.integers(3, 9)), draw(st.sampled_from([1, 3, 8]))
    values = [g.input(1, size, size, channels)]
    for _ in range(draw(st.integers(2, 5))):
        x = values[-1]
        match draw(st.sampled_from(["conv", "conv", "add", "tanh", "pool", "sum"])):
            case "conv":
                weight = rng.standard_normal((channels, 3, 3, channels)).astype(np.float32) / 8
                x = conv(g, x, weight, np.ones(channels, np.float32), pad=(1, 1, 1, 1))
            case "add":
                x = g.op("add", x, draw(st.sampled_from(values)))
            case "tanh":
                x = g.op("tanh", x)
            case "pool":
                x = g.op("max_pool2d", x, kernel=(3, 3), stride=(1, 1), pad=(1, 1, 1, 1))
            case "sum":
                x = g.op("sub", x, g.op("reduce_max", x, axis=draw(st.integers(1, 3))))
        values.append(x)
    g.result = values[-1]  # type: ignore[attr-defined]
    return g


@functools.cache
def data(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)


def is_right(program: Program, module: Module, found: Plan) -> bool:
    x = data(program.inputs[0].shape)
    expected = interpret(module, module.function("main"), [x])[0]
    return np.allclose(load(program, found, SMALL)(x)[0], expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(graphs(), st.sampled_from(["cache", "memory", "never"]))
def test_programs_run_right_on_memory_that_is_shared_inside_kernels(g: Graph, rows: str) -> None:
    program, module = lowered(g, rows)
    found = plan(program)
    assert found.size_bytes <= plan(program, Memory(overlap=False)).size_bytes
    assert is_right(program, module, found)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(graphs(), st.sampled_from(["cache", "memory", "never"]), st.data())
def test_a_plan_that_the_verifier_accepts_runs_right(g: Graph, rows: str, choice: st.DataObject) -> None:
    """Buffers moved at random: the verifier never says yes to a wrong result."""
    program, module = lowered(g, rows)
    found = plan(program, Memory(alignment=4))
    for _ in range(6):
        if not found.buffers:
            return
        i = choice.draw(st.integers(0, len(found.buffers) - 1))
        buffer = found.buffers[i]
        offset = choice.draw(st.integers(0, found.size_bytes // 4 + 8)) * 4 // buffer.alignment * buffer.alignment
        size = max(found.size_bytes, offset + buffer.size_bytes)
        moved = replace(found, pools=(replace(found.pools[0], size_bytes=size),), buffers=tuple(
            replace(b, byte_offset=offset) if b is buffer else b for b in found.buffers))
        if not plan_faults(moved, program):
            assert is_right(program, module, moved)


# ---- accesses --------------------------------------------------------------------------------------------------------
A, S, R = Buffer("a", "int8", (4,)), Buffer("s", "int8", (4,), "scratch"), Buffer("r", "int8", (4,))


def staged() -> Function:
    """s = a; r = s."""
    one, other = (Var(number, Type("int8", 4), 0) for number in range(2))
    return Function("f", (A, R), (S,), [
        LoadFrom(one, Address(A, ZERO, 0), 4), StoreTo(Address(S, ZERO, 0), one, 4),
        LoadFrom(other, Address(S, ZERO, 0), 4), StoreTo(Address(R, ZERO, 0), other, 4)])


def test_first_and_last_accesses() -> None:
    f = staged()
    found = touches(f, [A, S, R])
    assert found is not None
    assert [(t.first.tolist(), t.last.tolist()) for t in (found[A], found[S], found[R])] == [([0], [0]), ([1], [2]), ([3], [3])]
    half = touches(Function("f", (A,), (), f.body[:1]), [A, R])
    assert half is not None and half[R].first.tolist() == [NEVER]
    for known in (by_stages(f), by_elements(f)):
        assert known is not None
        assert [(int(known[b].first[0]), int(known[b].last[0])) for b in (A, S, R)] == [(0, 0), (1, 2), (3, 3)]


@pytest.mark.parametrize("is_whole", [True, False])
def test_an_operand_scratch_and_a_result_are_apart_in_their_order_alone(is_whole: bool) -> None:
    f = staged()
    turned = replace(f, body=[*f.body[2:], *f.body[:2]])
    for distance in (-3, 0, 2):
        assert all(are_apart(f, one, other, distance, is_whole) for one, other in ((A, S), (A, R), (S, R), (R, A)))
        assert not are_apart(turned, A, R, distance, is_whole) and not are_apart(turned, R, S, distance, is_whole)


def test_elements_that_no_access_touches_are_needed_all_the_time() -> None:
    f = Function("f", (A, R), (), [LoadFrom(Var(0, BYTE, 0), Address(A, ZERO, 0), 1),
                                   StoreTo(Address(R, ZERO, 0), Literal(1, BYTE), 1)])
    assert are_apart(f, A, R, 3, is_whole=True) is False and not are_apart(f, A, R, 0, is_whole=True)
