"""Runs a planned program one step at a time, in machine code, on an arena of which every byte that the plan calls dead is
overwritten between the steps: a step that still needed one of them gives a wrong answer.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.kernels.kernel import Compute
from tosaic.lowering.loops.ir import buffers_written
from tosaic.lowering.loops.program import Program
from tosaic.lowering.machine_code.codegen import Engine
from tosaic.lowering.memory.plan import Plan, names_of
from tosaic.lowering.memory.planner import Memory, planned_buffers, share
from tosaic.lowering.memory.sharing.instants import INSTANTS
from tosaic.lowering.memory.sharing.occupancy import Occupied
from tosaic.lowering.native.driver.module import written_over
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.native.process.load import frame_places
from tosaic.lowering.target.target import Target
from tosaic.runtime.arena import Array, address, copy, empty

from ..schedule.kernels import Native, row_count

GUARD = 256


class Poisoned:
    """A program with its plan; variables keep their contents from run to run."""

    def __init__(self, program: Program, plan: Plan, options: Memory, target: Target) -> None:
        self.program, self.plan = program, plan
        self.occupied = share(program, planned_buffers(program, options)).occupied
        functions = [replace(f, name=f"f{i}") for i, f in enumerate(program.functions)]
        places = frame_places(program, plan)
        emitted = emit_functions(functions, target, [written_over(f, places) for f in program.functions])
        lines = [f'target triple = "{target.triple}"', *emitted.declarations, *emitted.definitions, *emitted.attributes]
        for i, (f, name) in enumerate(zip(functions, emitted.names)):
            lines += Native.wrapper(i, f, name)
        self.engine = Engine("\n".join(lines), target)
        self.variables = {v.buffer: copy(v.initial.data.reshape(v.buffer.shape)) if v.initial is not None and
                          v.initial.data is not None else np.zeros(v.buffer.shape, np.uint8) for v in program.variables}
        self.rng = np.random.default_rng(11)

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        """The outputs; asserts that no step writes outside of its own buffers, be it in the arena, beside it, or inputs."""
        raw = {p.name: self.noise(p.size_bytes + 2 * GUARD) for p in self.plan.workspace_pools}
        results = {b: empty(b.shape, np.uint8 if b.dtype.startswith(("bfloat", "float8")) else b.dtype)
                   for b in self.program.outputs}
        given = {**dict(zip(self.program.inputs, map(copy, inputs))), **results, **self.variables}
        kept = {b: copy(b.data) for f in self.program.functions for b in f.params if b.data is not None}
        for tick, step in enumerate(self.program.steps):
            if isinstance(step, Compute):
                before = {name: memory.copy() for name, memory in raw.items()}
                self.step(step, raw, {**given, **kept})
                self.check(step, before, raw)
                self.poison(tick, raw)
        assert all(np.array_equal(given[b], x) for b, x in zip(self.program.inputs, inputs))
        return tuple(results[b] for b in self.program.outputs)

    def noise(self, nbytes: int) -> Array:
        result = empty((nbytes,), np.uint8)
        result[...] = self.rng.integers(0, 256, nbytes, np.uint8)
        return result

    def step(self, step: Compute, raw: dict[str, Array], given: dict[Buffer, Array]) -> None:
        function, names, places = self.program.functions[step.kernel], names_of(self.program), self.plan.allocations

        def pointer(b: Buffer) -> int:
            if b in given:
                return address(given[b])
            place = places[names[b]]
            return address(raw[place.pool]) + GUARD + place.byte_offset

        low, high = step.rows or (0, row_count(self.program.kernels[step.kernel]))
        rows = [low, high] if function.rows is not None else []
        frame = np.array([*(pointer(b) for b in (*function.params, *function.scratch)), *rows], np.int64)
        self.engine.function(f"call{step.kernel}")(frame.ctypes.data)

    def check(self, step: Compute, before: dict[str, Array], after: dict[str, Array]) -> None:
        """Each byte that is not of a buffer which the step writes, or has for itself, is as it was."""
        function, names = self.program.functions[step.kernel], names_of(self.program)
        own = {names[b] for b in (*buffers_written(function), *function.scratch) if b in names}
        for pool, memory in after.items():
            changed = memory != before[pool]
            for b in self.plan.buffers:
                if b.pool == pool and b.name in own:
                    changed[GUARD + b.byte_offset:GUARD + b.end] = False
            assert not changed.any(), f"{function.name} writes byte {int(changed.argmax()) - GUARD} of {pool}"

    def poison(self, tick: int, raw: dict[str, Array]) -> None:
        """Overwrite what nobody reads after this tick."""
        for pool, memory in raw.items():
            inside = memory[GUARD:len(memory) - GUARD]
            alive = np.zeros(len(inside), np.bool_)
            for b in self.plan.buffers:
                if b.pool == pool:
                    for o in needed(self.occupied[b.name], tick):
                        alive[b.byte_offset + o.first:b.byte_offset + o.end] = True
            inside[~alive] = self.rng.integers(0, 256, int((~alive).sum()), np.uint8)


def needed(spans: Sequence[Occupied], tick: int) -> list[Occupied]:
    behind = (tick + 1) * INSTANTS
    return [o for o in spans if o.written < behind <= o.read]
