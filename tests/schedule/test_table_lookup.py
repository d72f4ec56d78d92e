"""Tables of 256 bytes: from registers where the processor permutes bytes, else by loads."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.table import Table
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Cast, Expr, Load
from tosaic.lowering.elements.tensor import gathered, stored
from tosaic.lowering.graph.types import I8, TensorType
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Function, GatherFrom, Let, walk
from tosaic.lowering.schedule import describe, schedule
from tosaic.lowering.target.presets import host

from ..native.harness import Native, differences, interpreted, named
from .kernels import TARGETS, V4, check

BYTES = replace(V4, features=V4.features + ",+avx512vbmi")
ALL = {**TARGETS, "permutations of bytes": BYTES}
ENTRIES = np.random.default_rng(3).integers(-128, 128, 256).astype(np.int8)


def table(extent: int, data: np.ndarray | None = ENTRIES) -> Kernel:
    """A table of a constant, or of an input."""
    i = Axis("i", extent)
    x = Buffer("x", "int8", (extent,), "argument")
    t = Buffer("t", "int8", (256,), "argument" if data is None else "constant", data)
    tensors = [stored(TensorType(b.shape, I8), b) for b in (x, t)]
    value = Table().element(TensorType((extent,), I8), *tensors)(Affine.of(i))
    return Kernel(Buffer("y", "int8", (extent,), "result"), (i,), value)


def operations(f: Function) -> set[str]:
    return {s.op for s in walk(f.body) if isinstance(s, Let)}


@pytest.mark.parametrize("extent", [1, 5, 63, 64, 100, 300])
def test_every_target_finds_the_same_entries(extent: int) -> None:
    check([table(extent), table(extent, None)], targets=ALL)


def test_every_byte_has_its_entry() -> None:
    x = np.arange(-128, 128, dtype=np.int8)
    k = table(256)
    buffer = next(e.buffer for e in [k.value.index[0].terms[0][0].value.args[0].arg])  # type: ignore[attr-defined]
    check([k], targets=ALL, data={buffer: x})


def test_a_processor_that_permutes_bytes_reads_no_entry_alone() -> None:
    assert "elementwise: 4 vectors of 64" in describe(table(4096), BYTES)
    f = schedule(table(4096), BYTES)
    assert "lookup" in operations(f) and not any(isinstance(s, GatherFrom) for s in walk(f.body))
    assert "lookup" not in operations(schedule(table(4096), V4))


def test_entries_that_are_computed_with_are_looked_up_too() -> None:
    """In vectors of the wider type."""
    k = table(100)
    wide: Expr = Cast(k.value, "int32") * 3
    check([Kernel(Buffer("y", "int32", (100,), "result"), k.axes, wide)], targets=ALL)


def test_other_tables_are_gathered() -> None:
    i = Axis("i", 70)
    x, t = Buffer("x", "int8", (70,), "argument"), Buffer("t", "int8", (200,), "constant", ENTRIES[:200])
    place = gathered(Cast(Load(x, (Affine.of(i),)), "int32") + 128, 200)
    k = Kernel(Buffer("y", "int8", (70,), "result"), (i,), Load(t, (place,)))
    assert "lookup" not in operations(schedule(k, BYTES))
    check([k], targets={"permutations of bytes": BYTES})


@pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")
@pytest.mark.parametrize("name", ["host", "x86-64", "x86-64-v3", "32 bits"])
@pytest.mark.parametrize("lanes", [1, 2, 16, 64])
def test_the_operation_is_right_on_targets_without_permutations(name: str, lanes: int) -> None:
    x, t, out = Buffer("x", "int8", (256,), "argument"), Buffer("t", "int8", (256,), "argument"), Buffer(
        "y", "int8", (256,), "result")
    b, axis = Builder("look_up"), Axis("i", 256 // lanes)

    def body() -> None:
        parts = [b.load(t, Affine.of(64 * i), 64) for i in range(4)]
        vector = b.load(x, Affine.of(axis) * lanes, lanes)
        b.store(out, Affine.of(axis) * lanes, b.op("lookup", vector, *parts, type=vector.type))

    b.loop(axis, body)
    f = b.finish()
    data = {x: np.random.default_rng(1).permutation(np.arange(-128, 128)).astype(np.int8), t: ENTRIES}
    with Native([f], *named(name)) as native:
        assert not differences(native.run(f, data), interpreted(f, data))
