"""The LLVM module of one or several programs, as text: the kernels' functions, and a driver for each program."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....runtime.errors import Position
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.program import Program
from ...machine_code.llvm_writer import module, plain
from ...memory.plan import Plan, PlannedPool, names_of
from ...target.target import Target
from ..llvm.emit import EmittedEarlier, emit_functions
from .buffer_addresses import BufferAddresses, Slot, written_over
from .driver import Driver

MOST_OPERATORS = 3
"""Maximum number of a kernel's operators in its name."""


@dataclass(frozen=True, slots=True)
class PlacedProgram:
    """A program of a module; its symbols begin with `prefix`, and its memory is at `places`. An `exported` program is called
    from outside the module. With `events`, the program records there when each step begins and ends."""
    prefix: str
    program: Program
    places: BufferAddresses
    exported: bool = False
    events: Slot | None = None

    def kernel_names(self) -> list[str]:
        """Return the names of the kernels' functions in the module: each has the kernel's number and its last operators."""
        operators = [[word.rpartition(".")[2] for word in k.origin.split()[:MOST_OPERATORS]] for k in self.program.kernels]
        return [f"{self.prefix}.kernel_{i}_{plain('_'.join(words) or f.name)}"
                for i, (words, f) in enumerate(zip(operators, self.program.functions, strict=True))]

    def driver(self, names: Sequence[str], declared: dict[str, str], target: Target) -> Driver:
        """Return the program's driver for the target; `names` are those of its kernels, `declared` collects the module's other
        declarations."""
        if self.events is None:
            return Driver(self.prefix, self.program, names, self.places, declared, self.exported)
        from .timed_driver import TimedDriver
        return TimedDriver(self.prefix, self.program, names, self.places, declared, self.exported, self.events, target)


def module_text(programs: Sequence[PlacedProgram], target: Target, more: Sequence[str] = (),
                declared: Mapping[str, str] | None = None, earlier: EmittedEarlier | None = None) -> str:
    """Return the LLVM IR of the programs. `more` holds lines of the interface that calls `@<prefix>.run(ptr %frame)`, and
    `declared` their declarations. Functions emitted `earlier` are only declared."""
    functions = [f for one in programs for f in one.program.functions]
    spelled = [name for one in programs for name in one.kernel_names()]
    over = [written_over(f, one.places) for one in programs for f in one.program.functions]
    emitted = emit_functions(functions, target, over, spelled, earlier)
    names, needed = iter(emitted.names), dict(declared or {})
    drivers = [line for one in programs
               for line in one.driver([next(names) for _ in one.program.functions], needed, target).lines()]
    own = [text for text in needed.values() if text not in emitted.declarations]
    return module(target.triple, [*emitted.declarations, *own], emitted.definitions, drivers, more, emitted.attributes)


def kernel_positions(programs: Sequence[PlacedProgram]) -> dict[str, Position]:
    """Return the positions in the model of the programs' kernels, by the names of their functions."""
    found: dict[str, Position] = {}
    for one in programs:
        for name, kernel in zip(one.kernel_names(), one.program.kernels, strict=True):
            if kernel.position is not None:
                found[name] = kernel.position
    return found


def constants_read(program: Program) -> tuple[Buffer, ...]:
    """Return the constant buffers that kernels read, each once. (An initial value that no kernel reads is not among them.)"""
    return tuple(dict.fromkeys(b for f in program.functions for b in f.params if b.role == "constant"))


def pools_used(plan: Plan) -> tuple[PlannedPool, ...]:
    """Return the workspace pools that are not empty."""
    return tuple(p for p in plan.workspace_pools if p.size_bytes)


def pool_slots(program: Program, plan: Plan, first: int) -> dict[Buffer, Slot]:
    """Return the slot of each temporary, if the pointers to the used pools begin at `first` in the frame. (Objects keep inputs
    and outputs that the plan allocates in the pools; Python arrays stay in their own memory.)"""
    index = {pool.name: first + i for i, pool in enumerate(pools_used(plan))}
    names, allocations = names_of(program), plan.allocations
    places = {buffer: allocations[names[buffer]] for buffer in program.temporaries}
    return {buffer: Slot(index.get(place.pool, 0), place.byte_offset) for buffer, place in places.items()}
