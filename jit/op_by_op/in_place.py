"""Kernels that write their result over an argument: the arguments that allow it, by the order of loads and stores, and the code
for it. This code is compiled separately, because the usual LLVM code promises that a result shares no bytes with operands.
"""
from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...runtime.arena import Array, address
from ..compiled import Compiled
from .compile_lock import compiling

if TYPE_CHECKING:
    from ...runtime.executable import Executable
    from ..stage_data import LoweredData


class OverArguments:
    """The in-place versions of a compiled function of one kernel; each is determined, and compiled, on first use."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled: Compiled | None = compiled
        self._lowered: LoweredData | None = None
        self._arguments: tuple[int, ...] | None = None
        self._code: dict[int, Executable] = {}
        self._lock = threading.Lock()

    def arguments(self) -> Sequence[int]:
        """Return the arguments that the result may be written over."""
        if self._arguments is None:
            with self._lock:
                if self._arguments is None:
                    self._find()
        assert self._arguments is not None
        return self._arguments

    def _find(self) -> None:
        assert self._compiled is not None
        with compiling():
            self._lowered = self._compiled.lowered
        self._arguments = overwritable(self._lowered)
        self._compiled = None

    def run(self, number: int, arrays: Sequence[Array]) -> None:
        """Run the version for an argument; the result is in that argument's array."""
        executable = self._code.get(number)
        if executable is None:
            with self._lock:
                assert self._lowered is not None
                executable = self._code.get(number) or self._code.setdefault(number, over_argument(self._lowered, number))
        pointers = [address(a) for a in arrays]
        workspace = executable.workspaces.take()
        try:
            workspace.bind([*pointers, pointers[number]])
            executable.code.run(workspace.frame_address)
        finally:
            executable.workspaces.give(workspace)


def overwritable(lowered: LoweredData) -> tuple[int, ...]:
    """Return the inputs that the result may overwrite, for a program of one kernel and one result."""
    from ...lowering.kernels.kernel import Compute
    from ...lowering.memory.sharing.occupancy import may_write_over
    program = lowered.program
    if len(program.functions) != 1 or len(program.steps) != 1 or len(program.outputs) != 1 or program.variables:
        return ()
    step, kernel, function, out = program.steps[0], program.kernels[0], program.functions[0], program.outputs[0]
    if not isinstance(step, Compute) or step.rows is not None or step.tasks > 1 or kernel.out is not out:
        return ()
    return tuple(n for n, b in enumerate(program.inputs) if b in function.params and may_write_over(kernel, function, b))


def over_argument(lowered: LoweredData, number: int) -> Executable:
    """Compile the program with its result at the address of an input."""
    from ...lowering.native.driver.module import PlacedProgram, module_text
    from ...lowering.native.process.load import frame_places, native_code
    from ...runtime.executable import Executable
    program, plan, target = lowered.program, lowered.plan, lowered.target
    places = frame_places(program, plan)
    shared = replace(places, buffers={**places.buffers, program.outputs[0]: places.buffers[program.inputs[number]]})
    text = module_text([PlacedProgram("program", program, shared, exported=True)], target)
    with compiling():
        return Executable(native_code(program, plan, target, text=text)[0])
