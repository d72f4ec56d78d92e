"""Memory of steps in parts: scratch and rings once for each part, nothing in place, and plans that break this are found."""
from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Apply, Buffer, Load
from tosaic.lowering.kernels.kernel import Compute, Kernel, Kernels, Parallel
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.substitute_buffers import substituted
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.memory.check.verify import plan_faults
from tosaic.lowering.memory.plan import Plan, names_of
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.lowering.native.process.load import load, native_text
from tosaic.lowering.schedule import lower
from tosaic.runtime.errors import Problem

from .cases import CASES, V4, fine, lowered  # noqa: F401  `fine` is a fixture
from .test_groups import blocks

NEAR = replace(V4, l2_bytes=1 << 8)


def moved(planned: Plan, name: str, onto: str) -> Plan:
    """The plan with a buffer where another one lies."""
    place = next(b for b in planned.buffers if b.name == onto)
    buffers = tuple(replace(b, byte_offset=place.byte_offset) if b.name == name else b for b in planned.buffers)
    pools = tuple(replace(p, size_bytes=planned.size_bytes * 2) for p in planned.pools)
    return replace(planned, buffers=buffers, pools=pools)


def test_the_plan_of_one_thread_is_the_plan_without_threads() -> None:
    for case in (*CASES.values(), blocks):
        for t in (V4, NEAR):
            kernels, program = lowered(case, t, 1)
            plain = lower(kernels, t)
            assert str(plan(program)) == str(plan(plain))
            assert native_text(program, plan(program), t) == native_text(plain, plan(plain), t)


def test_scratch_is_there_for_each_part(fine: None) -> None:  # noqa: F811
    _, program = lowered(CASES["bytes"], replace(V4, dot_product="u8s8", features=V4.features + ",+avx512vnni"), 3)
    own = [b for f in program.functions for b in f.scratch]
    assert own and all(b.copies == 3 and b.nbytes % (3 * 64) == 0 for b in own)


def test_filled_panels_are_shared_between_phases(fine: None) -> None:  # noqa: F811
    _, program = lowered(CASES["product"], V4, 3)
    (function,) = program.functions
    assert len(function.phases) == 2 and [b.copies for b in function.scratch] == [1]


def planted(program: Program) -> list[tuple[str, str]]:
    """Pairs of buffers that parts of one step use at the same time."""
    names, found = names_of(program), []
    for step in program.steps:
        if isinstance(step, Parallel):
            kernels = dict.fromkeys(s.kernel for task in step.tasks for s in task)
            own = [b for k in kernels for b in (*program.functions[k].params, *program.functions[k].scratch)
                   if b in program.temporaries]
            found += [(names[a], names[b]) for a, b in itertools.pairwise(own) if a is not b]
    return found


def test_a_plan_in_which_parts_share_bytes_is_found() -> None:
    _, program = lowered(blocks, NEAR, 3)
    planned = plan(program)
    assert plan_faults(planned, program) == []
    pairs = planted(program)
    assert pairs
    for one, other in pairs:
        assert any("at once" in fault for fault in plan_faults(moved(planned, one, other), program))


def chain() -> Kernels:
    """Three kernels that are not fused: the second may write its result over that of the first."""
    buffers = [Buffer(name, "float32", (1000,), role) for name, role in (
        ("x", "argument"), ("one", "temporary"), ("two", "temporary"), ("result", "result"))]
    kernels = []
    for source, out in itertools.pairwise(buffers):
        i = Axis("i", 1000)
        kernels.append(Kernel(out, (i,), Apply("abs", (Load(source, (Affine.of(i),)),), "float32")))
    return Kernels("chain", (buffers[0],), (buffers[3],), tuple(kernels), tuple(Compute(i) for i in range(3)))


def test_a_plan_in_place_under_parts_is_found(fine: None) -> None:  # noqa: F811
    """What is right for one thread, by the order of its loops, is not for several."""
    whole, program = (lower(chain(), V4, threads=n) for n in (1, 2))
    assert plan(whole).size_bytes == 4000 and plan(program).size_bytes > 2 * 4000
    assert all(isinstance(s, Compute) and s.tasks == 2 for s in program.steps)
    assert plan_faults(plan(whole), whole) == plan_faults(plan(program), program) == []
    found = plan_faults(moved(plan(program), "two", "one"), program)
    assert any("two uses one and two at once" in fault for fault in found)


def without_copies(program: Program) -> Program:
    """The program with room for one part only."""
    own = {b: Buffer(b.name, b.dtype, (b.size // b.copies,), b.role) for f in program.functions
           for b in (*f.params, *f.scratch) if b.copies > 1}
    return replace(program, functions=tuple(substituted(f, own) for f in program.functions))


def test_parts_that_share_scratch_or_rings_are_found(fine: None) -> None:  # noqa: F811
    dot4 = replace(V4, dot_product="u8s8", features=V4.features + ",+avx512vnni")
    for case, t in ((CASES["bytes"], dot4), (blocks, NEAR)):
        _, program = lowered(case, t, 3)
        verify_program(program)
        with pytest.raises(Problem) as found:
            verify_program(without_copies(program))
        assert found.value.kind == "internal"


def test_parts_that_overlap_in_rows_are_found() -> None:
    _, program = lowered(blocks, NEAR, 2)
    index, step = next((i, s) for i, s in enumerate(program.steps) if isinstance(s, Parallel))
    last = step.tasks[0][-1]
    assert last.rows is not None
    longer = replace(step, tasks=((*step.tasks[0], replace(last, rows=(last.rows[1], last.rows[1] + 1))), *step.tasks[1:]))
    with pytest.raises(Problem, match="meet in"):
        verify_program(replace(program, steps=(*program.steps[:index], longer, *program.steps[index + 1:])))


def test_a_plan_for_threads_fits_pools_or_says_so(fine: None) -> None:  # noqa: F811
    kernels, program = lowered(blocks, NEAR, 2)
    for overlap in (True, False):
        planned = plan(program, Memory(overlap=overlap))
        inputs = [np.ones(b.shape, b.dtype) for b in kernels.inputs]
        assert np.isfinite(load(program, planned)(*inputs)[0]).all()
