"""Oracle: machine code gives what the graph means, on several targets, whatever its arena held before, without a step
outside its outputs.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tosaic.jit.stages import Compiled, Lowered, executable
from tosaic.jit.tools.check.crosscheck import crosscheck
from tosaic.lowering.graph.types import Array
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target
from tosaic.runtime.arena import address
from tosaic.runtime.errors import Problem
from tosaic.runtime.variables import Context

from ...native.machines import runs_here, with_dot_products
from .reference import Outcome, Requirement

HOST, AVX2, BASE = target("host"), target("x86-64-v3"), target("x86-64")
TARGETS: dict[str, Target] = {
    "host": HOST,
    "host by rows": replace(HOST, l2_bytes=512),
    "host by rows, for memory": replace(HOST, has_cache=False),
    "64 bytes": replace(target("x86-64-v4"), l2_bytes=8192),
    "32 bytes": AVX2,
    "32 bytes, dot products": replace(with_dot_products(AVX2), l2_bytes=4096),
    "16 bytes": BASE,
    "4 bytes": replace(BASE, vector_bytes=4, l2_bytes=256),
    "scalar": replace(BASE, vector_bytes=1),
}
"""By name. Tiny caches force kernels to run by rows, and tensors past the caches."""
USABLE = {name: t for name, t in TARGETS.items() if runs_here(t)}
GUARD = 256


class Guarded:
    """Arrays between bytes that must stay as they are."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.raw: list[Array] = []
        self.arrays = tuple(map(self.place, arrays))

    def place(self, array: Array) -> Array:
        raw = np.full(array.nbytes + 2 * GUARD + 64, 0xA5, np.uint8)
        raw = raw[-address(raw) % 64:][:array.nbytes + 2 * GUARD]
        self.raw.append(raw)
        inside = np.ndarray(array.shape, array.dtype, raw, GUARD)
        inside[...] = array
        return inside

    def check(self, what: str) -> None:
        for number, raw in enumerate(self.raw):
            edges = np.concatenate([raw[:GUARD], raw[-GUARD:]])
            assert (edges == 0xA5).all(), f"{what}: bytes around array {number} have changed"


def poison(compiled: Compiled) -> None:
    """Fill every free arena with bytes that no result may come from."""
    for workspace in compiled.executable.workspaces._free:
        workspace.arena[:] = 0xA5


def outcome(compiled: Compiled, calls: Sequence[Sequence[Array]], context: Context, what: str) -> Outcome:
    results: list[tuple[Array, ...]] = []
    states: list[dict[str, Array | None]] = []
    types = compiled.executable.signature.outputs
    for inputs in calls:
        given = Guarded(inputs)
        out = Guarded([np.zeros(t.shape, t.numpy_dtype) for t in types])
        try:
            compiled(*given.arrays, out=list(out.arrays), context=context)
        except Problem as problem:
            return Outcome(tuple(results), (*states, dict(context.snapshot())), problem)
        finally:
            poison(compiled)
        given.check(what)
        out.check(what)
        for before, after in zip(inputs, given.arrays):
            assert before.tobytes() == after.tobytes(), f"{what}: an input has changed"
        results.append(tuple(a.copy() for a in out.arrays))
        states.append(dict(context.snapshot()))
    return Outcome(tuple(results), tuple(states))


def check_native(lowered: Lowered, calls: Sequence[Sequence[Array]], expected: Requirement, what: str) -> None:
    context = Context(what)
    compiled = lowered.compile(context)
    try:
        expected.check(outcome(compiled, calls, context, what), what)
    finally:
        compiled.close()


def check_operators(lowered: Lowered, calls: Sequence[Sequence[Array]], what: str) -> None:
    """Every operator by its own bound, on the operands that it had in native code."""
    module = lowered.module
    try:
        found = crosscheck(module, module.function("main"), calls, executable, lowered.options)
    except Problem as problem:
        if problem.kind == "internal":
            raise
        return
    operator = found.difference is not None and not found.difference.where.startswith(("output", "variable"))
    assert not operator, f"{what}, operators: {found.difference}"
