"""The LLVM module of one or several programs, as text: the kernels' functions, and a driver for each program."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.ir import Function
from ...loops.program import Program
from ...memory.plan import Plan, PlannedPool, names_of
from ...target.target import Target
from ..llvm.emit import emit_functions
from ..llvm.llvm_text import plain
from .driver import Driver, Places, Slot

if TYPE_CHECKING:
    from ..process.concurrent_codegen import Ahead

DECLARATIONS = ("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")


@dataclass(frozen=True, slots=True)
class Part:
    """A program of a module; its symbols begin with `prefix`, and it finds its memory at `places`. One that is `exported`
    is called from outside of the module. With `events`, it notes there when each step begins and ends."""
    prefix: str
    program: Program
    places: Places
    exported: bool = False
    events: Slot | None = None

    def driver(self, names: Sequence[str], target: Target) -> Driver:
        """What runs it on the target; `names` are those of its kernels."""
        if self.events is None:
            return Driver(self.prefix, self.program, names, self.places, self.exported)
        from .timed_driver import TimedDriver
        return TimedDriver(self.prefix, self.program, names, self.places, self.exported, self.events, target)


def module_text(parts: Sequence[Part], target: Target, more: Sequence[str] = (), ahead: Ahead | None = None) -> str:
    """LLVM IR of the parts; `more` are lines of the interface that calls `@<prefix>.run(ptr %frame)`. What has been compiled
    `ahead` is only declared."""
    functions = [f for part in parts for f in part.program.functions]
    spelled = [f"{part.prefix}.kernel_{i}_{plain(f.name)}" for part in parts for i, f in enumerate(part.program.functions)]
    over = [written_over(f, part.places) for part in parts for f in part.program.functions]
    emitted = emit_functions(functions, target, over, spelled, ahead)
    names = iter(emitted.names)
    drivers = [line for part in parts
               for line in part.driver([next(names) for _ in part.program.functions], target).lines()]
    own = [d for d in DECLARATIONS if d not in emitted.declarations]
    return "\n".join([f'target triple = "{target.triple}"', *emitted.declarations, *own, *emitted.definitions, *drivers,
                      *more, *emitted.attributes, ""])


def written_over(function: Function, places: Places) -> frozenset[Buffer]:
    """The buffers of a function that share bytes with others that it uses, and are not the same pointer to LLVM."""
    slots = [(b, place) for b in (*function.params, *function.scratch) if isinstance(place := places.buffers.get(b), Slot)]
    return frozenset(b for b, one in slots for o, other in slots if b is not o and one.index == other.index
                     and max(one.offset, other.offset) < min(one.offset + b.nbytes, other.offset + o.nbytes))


def constants_read(program: Program) -> tuple[Buffer, ...]:
    """The constant buffers that kernels read, each once. (An initial value that no kernel reads is not among
    them.)"""
    return tuple(dict.fromkeys(b for f in program.functions for b in f.params if b.role == "constant"))


def pools_used(plan: Plan) -> tuple[PlannedPool, ...]:
    """The workspace pools that hold something."""
    return tuple(p for p in plan.workspace_pools if p.size_bytes)


def pool_slots(program: Program, plan: Plan, first: int) -> dict[Buffer, Slot]:
    """Where each temporary lies, if the pointers to the pools that are used begin at `first` in the frame. (Inputs and outputs
    that have a place in the plan keep it in objects; arrays of Python stay where they are.)"""
    index = {pool.name: first + i for i, pool in enumerate(pools_used(plan))}
    names, allocations = names_of(program), plan.allocations
    places = {buffer: allocations[names[buffer]] for buffer in program.temporaries}
    return {buffer: Slot(index.get(place.pool, 0), place.byte_offset) for buffer, place in places.items()}
