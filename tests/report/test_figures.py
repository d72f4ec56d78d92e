"""The figures of a report against sums made anew from the plan, the kernels and the object file."""
from __future__ import annotations

import itertools
import pathlib

import llvmlite.binding as llvm
import pytest
import tosaic
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.jit.tools.report import report
from tosaic.jit.tools.report.build_report import planned_lines, ticks
from tosaic.jit.tools.report.live import live_bytes, peak_of, sharing
from tosaic.jit.tools.report.page import page
from tosaic.lowering.elements.traverse import loads
from tosaic.lowering.kernels.kernel import Compute, walk
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.traffic import program_traffic
from tosaic.lowering.memory.buffers import PoolInfo
from tosaic.lowering.memory.planner import Memory, plan

from ..memory.programs import programs
from .subjects import MODELS, buffer, by_rows, in_pools, lowered, made

GREEDY = Memory(algorithm="greedy_by_size", workspace_io=True)


@pytest.mark.parametrize("model", MODELS)
def test_the_peak_is_the_largest_sum_of_live_buffers(model: str) -> None:
    found = in_pools(lowered(model), GREEDY)
    facts = report(found)
    sums = [sum(b.size_bytes for b in found.plan.buffers if any(first <= tick <= last for first, last in b.live))
            for tick in range(len(facts.timeline))]
    assert facts.peak is not None and facts.peak.nbytes == max(sums) == sums[facts.peak.tick]
    assert facts.peak.tick == sums.index(max(sums))
    assert sum(b.nbytes for b in facts.buffers if b.name in facts.peak.alive) == facts.peak.nbytes
    assert facts.waste == found.plan.size_bytes - found.plan.live_bytes >= 0 and facts.peak.nbytes <= facts.live_bytes


@pytest.mark.parametrize("model", MODELS)
def test_producers_and_readers_are_those_of_the_kernels(model: str) -> None:
    facts, found = report(lowered(model)), lowered(model)
    order = [s.kernel for s in walk(found.program.steps) if isinstance(s, Compute)]
    kernels = [(k.out.name, {x.buffer.name for x in loads(k.value)}) for k in found.program.kernels]
    for b in facts.buffers:
        if b.kind != "scratch":
            assert b.producer == next(i for i in order if kernels[i][0] == b.name)
            assert b.last_reader == next((i for i in reversed(order) if b.name in kernels[i][1]), None)


def test_a_kernel_knows_its_line() -> None:
    path = pathlib.Path(__file__).parents[1] / "data" / "corpus" / "f_mobilenet_block.mlir"
    lines = path.read_text().split("\n")
    for kernel in report(lowered("corpus/f_mobilenet_block")).kernels:
        assert kernel.place is not None and kernel.source is not None
        number = int(kernel.place.split(":")[-2])
        assert lines[number - 1].strip().startswith(kernel.source.removesuffix("..."))
        assert f"tosa.{kernel.operators.split()[0]}" in kernel.source


@settings(max_examples=60, deadline=None, derandomize=True)
@given(programs())
def test_ticks_are_numbered_as_lifetimes_are(program: Program) -> None:
    found = plan(program, Memory(algorithm="greedy_by_size"))
    timeline = tuple(ticks(program.steps))
    lines = list(planned_lines(program, found, timeline))
    last = max(last for b in found.buffers for _, last in b.live)
    assert last == len(timeline) - 1
    for b in lines:
        used = {i for i, f in enumerate(program.functions) for x in (*f.params, *f.scratch) if x.name == b.name}
        for tick, step in enumerate(timeline):
            if step.kernel in used and b.kind != "scratch":
                assert any(first <= tick <= last for first, last in b.live)


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=3)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60), SPANS), max_size=12))
def test_a_live_byte_counts_once(rows: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
    def spans(raw: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Apart from each other, in order."""
        result, end = [], -2
        for gap, length in raw:
            result.append((end + 2 + gap, end + 2 + gap + length))
            end = result[-1][1]
        return result

    buffers = [buffer(f"b{i}", n, offset, *spans(raw)) for i, (n, offset, raw) in enumerate(rows)]
    count = max((last for b in buffers for _, last in b.live), default=0) + 1
    expected = [len({byte for b in buffers if any(first <= tick <= last for first, last in b.live)
                     for byte in range(b.offset or 0, b.end)}) for tick in range(count)]
    assert live_bytes(buffers, count) == expected


def test_buffers_that_share_bytes_name_each_other() -> None:
    a, b, c = buffer("a", 8, 0, (0, 2)), buffer("b", 8, 4, (2, 3)), buffer("c", 8, 0, (3, 3))
    assert sharing([a, b, c]) == {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
    found = made(a, b, c)
    assert found.peak is not None and (found.peak.nbytes, found.peak.tick) == (12, 2)


def test_nothing_planned_has_no_peak() -> None:
    assert peak_of([], made(ticks=3).timeline) is None and report(lowered("corpus/tmfx_buffer_mutation")).live_bytes >= 0
    assert made().peak is None and made().pools[0].peak is None


def test_each_pool_has_its_own_figures() -> None:
    found = in_pools(lowered("corpus/f_attention_block"), Memory(
        pools=(PoolInfo("fast", 3000), PoolInfo("slow", 1 << 16)), workspace_io=True))
    facts = report(found)
    assert [(p.name, p.limit) for p in facts.workspace_pools] == [("fast", 3000), ("slow", 1 << 16)]
    for pool in facts.workspace_pools:
        inside = [b for b in found.plan.buffers if b.pool == pool.name]
        assert pool.nbytes == max(b.end for b in inside) > 0
        assert pool.peak is not None and set(pool.peak.alive) <= {b.name for b in inside}
        assert pool.nbytes >= pool.live_bytes > 0  # of what is live together, some may share bytes
        alive = [b for b in inside if b.name in pool.peak.alive]
        assert len({byte for b in alive for byte in range(b.byte_offset, b.end)}) <= pool.nbytes
    assert facts.arena == sum(p.nbytes for p in facts.workspace_pools)
    assert {b.kind for b in facts.buffers} >= {"input", "output", "intermediate"}


def test_rows_are_ticks() -> None:
    facts = report(lowered(by_rows(64, 4)))
    rows = [s for s in facts.timeline if s.rows]
    assert len(rows) > 100 and facts.peak is not None
    for number in {s.kernel for s in rows}:
        spans = [s.rows for s in rows if s.kernel == number and s.rows]
        assert spans[0][0] == 0 and spans[-1][1] == 64 and all(a[1] == b[0] for a, b in itertools.pairwise(spans))


@pytest.mark.parametrize("name", ["cortex-m7", "riscv32", "x86-64-v3"])
def test_the_object_is_measured_as_llvm_reads_it(name: str, tmp_path: pathlib.Path) -> None:
    from tosaic.lowering.target.presets import target
    path = pathlib.Path(__file__).parents[1] / "data" / "corpus" / "v_lstm.mlir"
    found = tosaic.load(path).entry().lower(tosaic.CompileOptions(target(name)))
    size = report(found, code=True).object
    assert size is not None
    code = llvm.ObjectFileRef.from_path(str(found.save(tmp_path).object))
    sections = [(s.name() or b"", s.is_text(), s.size()) for s in code.sections()]  # each as it comes: the iterator is shared
    assert size.text == sum(n for _, is_text, n in sections if is_text) > 0
    assert size.zero == sum(n for name, _, n in sections if name.startswith(b".bss"))
    assert size.data == sum(n for name, _, n in sections if name.startswith(b".data"))
    stored = {b.data.tobytes() for b in found.program.constants if b.data is not None and b.data.any()}  # zeros are not
    assert size.constants == sum(map(len, stored))
    assert size.data + size.zero >= sum(v.buffer.nbytes for v in found.program.variables)
    assert report(found).object is None


def test_a_run_moves_through_pools_what_it_moves_of_their_buffers() -> None:
    """And neither the rest of the inputs nor a byte is lost: all buffers together move what the loops do."""
    found = in_pools(lowered("corpus/f_conv_bn_relu_pool_int8"), Memory(pools=(tosaic.Pool("fast", 600), tosaic.Pool("slow"))))
    facts = report(found)
    for pool in facts.pools:
        held = facts.held_by(pool.name)
        assert (pool.read, pool.written) == (sum(b.read for b in held), sum(b.written for b in held))
    every = (*facts.buffers, *facts.inputs, *facts.outputs, *facts.variables, *facts.constant_buffers)
    assert sum(b.read + b.written for b in every) == sum(t.moved for t in program_traffic(found.program).values())
    assert facts.moved == sum(b.read + b.written for b in facts.buffers) > 0
    row = next(line.split() for line in str(facts).splitlines() if line.strip().startswith("if all lay in slow"))
    assert row[-1] == str(facts.moved) and int(row[-2]) + int(row[-3]) == facts.moved
    assert f"{facts.moved:,}" in page(facts, "moved")
