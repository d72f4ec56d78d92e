"""A program: functions of the loop IR over buffers, and the table of steps that runs them. What the memory planner
plans and the emitter emits.
"""
from __future__ import annotations

from ...runtime.errors import printable
from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..kernels.kernel import Fault, Kernel, Step, VariableUse
from .ir import Function
from .schedule_record import KernelRecord


@dataclass(frozen=True, slots=True)
class Program:
    """`functions[i]` computes `kernels[i]`; `Compute(i)` in `steps` runs it. `schedules[i]` says how its loops have come about;
    a program that is read, or built by hand, has none."""
    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    functions: tuple[Function, ...]
    steps: tuple[Step, ...]
    variables: tuple[VariableUse, ...] = ()
    faults: tuple[Fault, ...] = ()
    schedules: tuple[KernelRecord, ...] = ()

    def __repr__(self) -> str:
        return printable(f"<Program {self.name}: {len(self.kernels)} kernels, {len(self.steps)} steps>")

    @property
    def constants(self) -> tuple[Buffer, ...]:
        """Constant buffers that the functions read, once each, in order of first use; variables' initial values too."""
        found = dict.fromkeys(b for f in self.functions for b in f.params if b.role == "constant")
        found.update(dict.fromkeys(v.initial for v in self.variables if v.initial is not None))
        return tuple(found)

    @property
    def temporaries(self) -> tuple[Buffer, ...]:
        """Buffers that the memory planner places: between kernels, and scratch inside them."""
        found = dict.fromkeys(b for f in self.functions for b in f.params if b.role == "temporary")
        found.update(dict.fromkeys(b for f in self.functions for b in f.scratch))
        return tuple(found)
