"""The order of kernels: never worse, the best where all orders can be tried, and the same answers."""
from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Expr, Load, apply
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.types import F32, TensorType
from tosaic.lowering.kernels.interpret import run
from tosaic.lowering.kernels.kernel import Compute, Kernel, Kernels
from tosaic.lowering.row_tiling.kernel_order import kept, ordered, run_of

from .graphs import Graph


def kernel(name: str, size: int, *read: Buffer, role: str = "temporary") -> Kernel:
    """out[i] = sum of the first elements of what it reads."""
    out, axis = Buffer(name, "float32", (size,), role), Axis("i", size)  # type: ignore[arg-type]
    value: Expr = Load(read[0], (Affine(),)) if read else Load(Buffer("c", "float32", (1,), "constant", np.ones(1, "f4")),
                                                            (Affine(),))
    for buffer in read[1:]:
        value = apply("add", value, Load(buffer, (Affine(),)))
    return Kernel(out, (axis,), value)


@st.composite
def programs(draw: st.DrawFn) -> Kernels:
    found: list[Kernel] = []
    for i in range(draw(st.integers(2, 6))):
        read = draw(st.lists(st.sampled_from(found), max_size=3, unique_by=id)) if found else []
        found.append(kernel(f"t{i}", draw(st.integers(1, 40)), *(k.out for k in read)))
    last = kernel("result", 1, found[-1].out, role="result")
    found.append(last)
    return Kernels("main", (), (last.out,), tuple(found), tuple(Compute(i) for i in range(len(found))))


def peak(kernels: Kernels) -> int:
    order = [s.kernel for s in kernels.steps if isinstance(s, Compute)]
    return run_of([kernels.kernels[i] for i in order], kept(kernels)).peak(range(len(order)))


def legal(kernels: Kernels, order: tuple[int, ...]) -> bool:
    place = {n: i for i, n in enumerate(order)}
    writer = {k.out: i for i, k in enumerate(kernels.kernels)}
    return all(place[writer[x.buffer]] < place[i] for i, k in enumerate(kernels.kernels)
               for x in _loads(k) if x.buffer in writer)


def _loads(k: Kernel) -> list[Load]:
    from tosaic.lowering.elements.traverse import loads
    return loads(k.value)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(programs())
def test_the_order_is_the_best_of_all(kernels: Kernels) -> None:
    found = ordered(kernels)
    chosen = tuple(s.kernel for s in found.steps if isinstance(s, Compute))
    assert sorted(chosen) == list(range(len(kernels.kernels))) and legal(kernels, chosen)
    orders = [o for o in itertools.permutations(range(len(kernels.kernels))) if legal(kernels, o)]
    best = min(peak(replace(kernels, steps=tuple(map(Compute, o)))) for o in orders)
    assert peak(found) == best
    if peak(kernels) == best:
        assert found.steps == kernels.steps


def test_two_towers_run_one_after_the_other() -> None:
    """Written layer by layer, both towers' wide tensors would be live together."""
    wide = [kernel(f"wide{i}", 100) for i in range(2)]
    narrow = [kernel(f"narrow{i}", 1, w.out) for i, w in enumerate(wide)]
    last = kernel("result", 1, *(n.out for n in narrow), role="result")
    written = (*wide, *narrow, last)
    kernels = Kernels("main", (), (last.out,), written, tuple(Compute(i) for i in range(5)))
    assert [s.kernel for s in ordered(kernels).steps] == [0, 2, 1, 3, 4]  # type: ignore[union-attr]
    assert (peak(kernels), peak(ordered(kernels))) == (804, 408)
    assert np.array_equal(run(ordered(kernels), [])[0], run(kernels, [])[0])


def test_a_write_to_a_variable_stays_behind_what_reads_it() -> None:
    g, state = Graph(), TensorType((64,), F32)
    old = g.read("s", state)
    small = [g.op("reduce_sum", g.op("exp", old), axis=0) for _ in range(3)]
    g.write("s", g.op("negate", old, np.zeros(1, "f4"), np.zeros(1, "f4")))
    module = g.module(*small, variables=[("s", state, np.ones(64, np.float32))])
    found = ordered(fuse(module, module.function("main")))
    order = [found.kernels[s.kernel] for s in found.steps if isinstance(s, Compute)]
    write = next(i for i, k in enumerate(order) if k.out.role == "variable")
    assert all(x.buffer.role != "variable" for k in order[write + 1:] for x in _loads(k))
