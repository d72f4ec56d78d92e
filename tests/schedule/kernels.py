"""Runs kernels as the schedules write them, in NumPy and natively, and compares them with what their expressions
mean."""
from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tosaic.lowering.elements.affine import Axis
from tosaic.lowering.elements.expression import Buffer, Expr, is_float
from tosaic.lowering.elements.interpret import evaluate, numpy_dtype
from tosaic.lowering.elements.traverse import loads
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.interpret import LoopMemory, run_function
from tosaic.lowering.loops.ir import Function
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.machine_code.codegen import Engine
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.schedule import schedule
from tosaic.lowering.schedule.search_space import Choices
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..native.machines import runs_here, used, with_dot_products

V4, V3, V2 = target("x86-64-v4"), target("x86-64-v3"), target("x86-64")
TARGETS: dict[str, Target] = {
    "512 bits, dot4": replace(V4, dot_product="u8s8", features=V4.features + ",+avx512vnni"),
    "512 bits": V4,
    "256 bits, no masks": V3,
    "256 bits, no masks, dot4": with_dot_products(V3),
    "128 bits": V2,
    "scalar": replace(V2, vector_bytes=1),
    "4 bytes": replace(V2, vector_bytes=4),
}
INTERPRETED = frozenset({"512 bits, dot4", "256 bits, no masks, dot4", "scalar"})
"""Targets whose loops are interpreted too, whole and by rows in turn, as that is slow; all are verified."""
GUARD = 256
"""Bytes around a buffer that must stay as they are."""


def kernel(out: Buffer, axes: Sequence[Axis], value: Expr) -> Kernel:
    return Kernel(out, tuple(axes), value)


def random_data(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    """Small whole numbers and halves, so that sums of a few are exact in every order, or the whole range of
    integers."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if is_float(dtype):
        return (rng.integers(-6, 7, shape) / 2).astype(numpy_dtype(dtype))
    info = np.iinfo(dtype)
    low, high = max(info.min, -1 << 20), min(info.max, 1 << 20)
    return rng.integers(low, high, shape, endpoint=True).astype(dtype)


def buffers_of(k: Kernel) -> list[Buffer]:
    """What a kernel reads that is not constant."""
    return [b for b in dict.fromkeys(x.buffer for x in loads(k.value)) if b.data is None]


def same(actual: Array, expected: Array, what: str) -> None:
    if is_float(expected.dtype.name):
        np.testing.assert_allclose(actual.astype("f8"), expected.astype("f8"), rtol=2e-5, atol=2e-5, err_msg=what)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=what)


def meaning(k: Kernel, data: Mapping[Buffer, Array]) -> Array:
    return evaluate(k.value, k.axes, data).astype(numpy_dtype(k.out.dtype)).reshape(k.out.shape)


def interpreted(function: Function, k: Kernel, data: Mapping[Buffer, Array], rows: Sequence[tuple[int, int]] = ()) -> Array:
    """The output, by the loop IR's interpreter, which checks every access."""
    memory = LoopMemory()
    for b in function.params:
        if b in data and b is not k.out:
            memory.add(b, data[b])
    for span in rows or [None]:
        run_function(function, memory, span)
    if k.out not in memory.arrays:  # nothing to write
        memory.add(k.out)
    return memory.array(k.out)


class Native:
    """Functions compiled for one target, callable with arrays."""

    def __init__(self, functions: Sequence[Function], t: Target) -> None:
        functions = [replace(f, name=f"f{i}") for i, f in enumerate(functions)]
        emitted = emit_functions(functions, t)
        lines = [f'target triple = "{t.triple}"', *emitted.declarations, *emitted.definitions, *emitted.attributes]
        for i, (f, name) in enumerate(zip(functions, emitted.names)):
            lines += self.wrapper(i, f, name)
        self.engine = Engine("\n".join(lines), t)

    @staticmethod
    def wrapper(number: int, f: Function, name: str) -> list[str]:
        """i32 call<number>(ptr): arguments from a table of 64-bit words."""
        types = ["ptr"] * (len(f.params) + len(f.scratch)) + ["i64"] * (2 if f.rows else 0)
        lines = [f"define i32 @call{number}(ptr %frame) {{"]
        for i, t in enumerate(types):
            lines += [f" %a{i} = getelementptr i64, ptr %frame, i64 {i}", f" %v{i} = load {t}, ptr %a{i}"]
        passed = ", ".join(f"{t} %v{i}" for i, t in enumerate(types))
        quoted = '"' + name + '"'
        return [*lines, f" call void @{quoted}({passed})", " ret i32 0", "}"]

    def call(self, number: int, f: Function, k: Kernel, data: Mapping[Buffer, Array],
             rows: Sequence[tuple[int, int]] = ()) -> Array:
        """The output; memory around each buffer must stay as it was."""
        memory = {b: guarded(b, b.data if b is k.out else data.get(b, b.data)) for b in (*f.params, *f.scratch)}
        pointers = [memory[b].ctypes.data + GUARD for b in (*f.params, *f.scratch)]
        for span in rows or [()]:
            frame = np.array([*pointers, *span], np.int64)
            self.engine.function(f"call{number}")(frame.ctypes.data)
        for b, raw in memory.items():
            edges = np.concatenate([raw[:GUARD], raw[GUARD + b.nbytes:]])
            assert (edges == 0xA5).all(), f"{f.name} writes outside {b!r}"
        if k.out not in memory:
            return np.zeros(k.out.shape, numpy_dtype(k.out.dtype))
        inside = memory[k.out][GUARD:GUARD + k.out.nbytes]
        return inside.view(numpy_dtype(k.out.dtype)).reshape(k.out.shape)


def guarded(b: Buffer, data: Array | None) -> Array:
    """Aligned memory with guards on both sides."""
    raw = np.full(b.nbytes + 2 * GUARD + 64, 0xA5, np.uint8)
    raw = raw[-raw.ctypes.data % 64:][:b.nbytes + 2 * GUARD]
    if data is not None:
        raw[GUARD:GUARD + b.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return raw


def spans(rows: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A range of rows in a few parts."""
    cuts = sorted({0, rows, *(int(c) for c in rng.integers(0, rows + 1, 2))})
    return list(itertools.pairwise(cuts))


def row_count(k: Kernel) -> int:
    return next((a.extent for a in k.axes if a.extent != 1), 1)


def check(kernels: Sequence[Kernel], seed: int = 0, targets: Mapping[str, Target] = TARGETS, interpret: bool = True,
          data: Mapping[Buffer, Array] = {}, findings: Choices = ()) -> None:
    """Each kernel, whole and by rows, on every target: verified, by the interpreter of loops, and natively."""
    turns = itertools.count(seed + sum(kernels[0].out.shape))
    rng = np.random.default_rng(seed)
    values = dict(data)
    written = {k.out for k in kernels}
    for k in kernels:
        for b in buffers_of(k):
            if b not in written:
                values.setdefault(b, random_data(b.shape, b.dtype, rng))
    expected = []
    for k in kernels:
        values[k.out] = meaning(k, values)
        expected.append(values[k.out])
    for name, t in targets.items():
        whole = [schedule(k, t, findings=findings) for k in kernels]
        by_rows = [schedule(k, t, by_rows=True, findings=findings) for k in kernels]
        parts = [spans(row_count(k), rng) for k in kernels]
        for f in (*whole, *by_rows):
            verify(f)
        if interpret and name in INTERPRETED:
            for k, f, g, span, right in zip(kernels, whole, by_rows, parts, expected):
                if next(turns) % 2:
                    same(interpreted(f, k, values), right, f"{name}, interpreted")
                else:
                    same(interpreted(g, k, values, span), right, f"{name}, by rows, interpreted")
        needed = used([*whole, *by_rows], t)
        if runs_here(needed):
            native = Native([*whole, *by_rows], needed)
            for i, (k, f, g, span, right) in enumerate(zip(kernels, whole, by_rows, parts, expected)):
                same(native.call(i, f, k, values), right, f"{name}, native")
                same(native.call(len(kernels) + i, g, k, values, span), right, f"{name}, by rows, native")
            native.engine.close()
