"""What the verifier takes a step of some rows to touch, held against all accesses of those rows one by one; and that it keeps
to itself.
"""
from __future__ import annotations

import ast
import itertools
import pathlib

import tosaic.lowering.memory.check
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Expr, Load, reduce
from tosaic.lowering.kernels.kernel import Compute, Kernel
from tosaic.lowering.loops.ir import INDEX, Address, Function, Literal, LoadFrom, StoreTo, Type, Var
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.check.placed_buffers import Layout, Use
from tosaic.lowering.memory.check.step_uses import StepUses
from tosaic.lowering.memory.plan import PlannedBuffer

VERIFIER = pathlib.Path(next(iter(tosaic.lowering.memory.check.__path__)))
SHARED = {"buffers", "plan"}
"""What modules of the verifier may have from the planner's folder: types, and the plan itself."""

Accesses = list[tuple[Axis, Axis, Load]]


@st.composite
def kernels(draw: st.DrawFn) -> tuple[Kernel, Accesses]:
    """A kernel of rows and columns that sums over a window of each of some loads, which may run backwards, by steps, or over
    the edges; and the loads, with their axes."""
    rows, columns = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    r, c = Axis("r", rows), Axis("c", columns)
    x = Buffer("x", "int8", draw(st.sampled_from([(9, 5), (1, 9, 5), (6, 1)])))
    accesses: Accesses = []
    value: Expr | None = None
    for _ in range(draw(st.integers(1, 3))):
        k = Axis("k", draw(st.integers(2, 3)))
        row = Affine.of(r) * draw(st.sampled_from([-2, -1, 0, 1, 2, 3])) + Affine.of(k) + draw(st.integers(-3, 8))
        if draw(st.booleans()):
            index: tuple[Affine, ...] = (row * x.strides[-2] + Affine.of(c) * draw(st.integers(0, 1)),)
        else:
            index = (*[Affine()] * (len(x.shape) - 2), row, Affine.of(c) * draw(st.integers(0, 1)))
        accesses.append((r, k, Load(x, index)))
        term = reduce("add", (k,), accesses[-1][2])
        value = term if value is None else value + term
    assert value is not None
    return Kernel(Buffer("out", "int8", (rows, columns)), (r, c), value), accesses


def planned(kernel: Kernel) -> StepUses:
    """A program of the one kernel, everything at the same place, so that nothing is left out."""
    x, zero, byte = next(iter(loads_of(kernel))), Literal(0, INDEX), Type("int8")
    body = [LoadFrom(Var(0, byte, 0), Address(x, zero, 0), 1), StoreTo(Address(kernel.out, zero, 0), Literal(1, byte), 1)]
    program = Program("main", (), (), (kernel,), (Function("f", (x, kernel.out), (), body),), (Compute(0),))  # type: ignore[arg-type]
    return StepUses(program, Layout({b: PlannedBuffer(b.name, "p", 0, b.nbytes, 1) for b in (x, kernel.out)}))


def loads_of(kernel: Kernel) -> set[Buffer]:
    from tosaic.lowering.elements.traverse import loads
    return {load.buffer for load in loads(kernel.value)}


def touched(accesses: Accesses, rows: range) -> set[int]:
    """The bytes of those rows of `x` that lie in it and are read in any way."""
    found: set[int] = set()
    for r, k, load in accesses:
        shape, strides = load.buffer.shape, load.buffer.strides
        for at in itertools.product(rows, range(k.extent), range(4)):
            values = [sum(c * {id(r): at[0], id(k): at[1]}.get(id(t), at[2]) for t, c in i.terms) + i.const for i in load.index]
            inside = all(0 <= v < n for v, n in zip(values, shape if len(values) > 1 else [load.buffer.size]))
            column = next((t for t, _ in load.index[-1].terms if t not in (r, k)), None)
            if inside and at[2] < (column.extent if isinstance(column, Axis) else 1):
                found.add(sum(v * s for v, s in zip(values, strides if len(values) > 1 else (1,))))
    return found


@settings(max_examples=300, deadline=None, derandomize=True)
@given(kernels(), st.data())
def test_rows_touch_all_that_their_loads_touch(drawn: tuple[Kernel, Accesses], data: st.DataObject) -> None:
    kernel, accesses = drawn
    low = data.draw(st.integers(0, kernel.axes[0].extent - 1))
    end = data.draw(st.integers(low + 1, kernel.axes[0].extent))
    uses = planned(kernel)
    (read,), (written,) = (part for part in (uses.touched(0, (low, end)).reads, uses.touched(0, (low, end)).writes))
    wanted = touched(accesses, range(low, end))
    assert all(read.first <= byte < read.end for byte in wanted)
    assert written == Use(kernel.out, low * kernel.axes[1].extent, end * kernel.axes[1].extent)


def test_rows_touch_no_more_than_their_rows() -> None:
    r, k, c = Axis("r", 4), Axis("k", 3), Axis("c", 5)
    x = Buffer("x", "int8", (10, 5))
    load = Load(x, (Affine.of(r) * 2 + Affine.of(k) + -1, Affine.of(c)))
    uses = planned(Kernel(Buffer("out", "int8", (4, 5)), (r, c), reduce("add", (k,), load)))
    assert [tuple(uses.touched(0, (i, i + 1)).reads[0])[1:] for i in range(4)] == [(0, 10), (5, 20), (15, 30), (25, 40)]
    assert uses.touched(0, (1, 3)).reads == (Use(x, 5, 30),)
    assert uses.touched(0, None).reads == (Use(x, 0, 50),)


def test_what_shares_no_bytes_is_left_out() -> None:
    r, c = Axis("r", 4), Axis("c", 5)
    x, out = Buffer("x", "int8", (4, 5)), Buffer("out", "int8", (4, 5))
    uses = planned(Kernel(out, (r, c), Load(x, (Affine.of(r), Affine.of(c)))))
    assert [u.buffer for u in uses.touched(0, None).uses] == [x, out]
    for at, count in ((20, 0), (19, 2)):
        places = {x: PlannedBuffer("x", "p", 0, 20, 1), out: PlannedBuffer("out", "p", at, 20, 1)}
        assert len(StepUses(uses.program, Layout(places)).touched(0, (0, 2)).uses) == count
    places = {x: PlannedBuffer("x", "p", 0, 20, 1), out: PlannedBuffer("out", "q", 0, 20, 1)}
    assert StepUses(uses.program, Layout(places)).touched(0, None).uses == ()


def test_the_verifier_shares_no_code_with_the_planner() -> None:
    modules = [path for path in VERIFIER.glob("*.py") if path.stem != "__init__"]
    assert len(modules) >= 5
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert node.module in SHARED, f"{path.stem} imports {node.module} of the planner"
            if isinstance(node, ast.ImportFrom) and node.level == 3:
                assert not (node.module or "").startswith("row_tiling"), f"{path.stem} imports {node.module}"
