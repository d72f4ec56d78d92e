"""Kernels of one signature are scheduled once: the function of a later one is that of the first with its own buffers, and with
what the schedule makes of its own constants. Where these say something else than those of the first, it is scheduled anew.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain

from ...runtime.errors import printable
from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..graph.types import Array
from ..kernels.kernel import Kernel
from ..loops.ir import Function, note_alike
from ..loops.schedule_record import KernelRecord, NestRecord
from ..loops.substitute_buffers import substituted
from ..target.target import Target
from .derived_constants import Derived, constant_buffer
from .kernel_signature import Text, signature_of
from .search_space import Choices
from .strategy import Precision, Weights

Rings = Mapping[Buffer, Buffer]
NONE: Rings = {}
MAX_TRIED_FUNCTIONS = 3
"""Functions of one signature, for constants that say different things, that are tried for a kernel."""


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """How a kernel is to be scheduled: for a machine, in a precision, as a whole or `by_rows`, with buffers that lie in
    `rings`, keeping loops that run once down to the depth `keeps`; with the strategies that `findings` say, or
    that are `asked` for, and `weights` of bytes kept so; or in `plain` loops alone."""
    target: Target
    precision: Precision = "f32"
    by_rows: bool = False
    rings: Rings = field(default_factory=dict)
    keeps: int = 0
    findings: Choices = ()
    asked: KernelRecord | None = None
    weights: Weights = "int8"
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The loops of a kernel, its nests with their strategies, and what is derived from constants, where that is known.
    `in_floats` says why a contraction is computed in float32 where limbs are allowed."""
    function: Function
    nests: tuple[NestRecord, ...] = ()
    derived: tuple[Derived, ...] | None = None
    in_floats: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What has been scheduled, the buffers of its kernel in the order of the signature with their rings, and what it has of
    constants."""
    scheduled: Scheduled
    buffers: tuple[Buffer, ...]
    derived: tuple[Derived, ...]

    def again(self, kernel: Kernel, buffers: Mapping[Buffer, Buffer]) -> Scheduled | None:
        """The same for another kernel of the signature, whose buffers stand for these; None where there is none."""
        made, function = [d.again(buffers) for d in self.derived], self.scheduled.function
        if any(arrays is None for arrays in made):
            return None
        old, new = function.name, kernel.out.name
        own = {b: like(b, new + b.name.removeprefix(old)) for b in function.scratch}
        own |= {b: constant_buffer(new + b.name.removeprefix(old), array) for b, array in self.arrays(made)}
        found = substituted(function, {**buffers, **own}, new)
        note_alike(found, function)
        return Scheduled(found, tuple([replace(n, name=printable(new) + n.name.removeprefix(printable(old)))
                                       for n in self.scheduled.nests]))

    def arrays(self, made: Sequence[tuple[Array, ...] | None]) -> list[tuple[Buffer, Array]]:
        return [pair for d, arrays in zip(self.derived, made) for pair in zip(d.buffers, arrays or ())]


def like(buffer: Buffer, name: str) -> Buffer:
    """A buffer of its own that is like another."""
    return Buffer(name, buffer.dtype, buffer.shape, buffer.role, buffer.data, buffer.copies)


@dataclass(slots=True)
class ScheduleCache:
    """What has been scheduled for one program, by a function that schedules one kernel."""
    scheduled: Callable[[Kernel, ScheduleRequest], Scheduled]
    known: dict[Text, list[Known]] = field(default_factory=dict)

    def schedule(self, kernel: Kernel, request: ScheduleRequest) -> Scheduled:
        """A kernel scheduled, as the function does it."""
        if request.findings or request.precision != "f32":  # more than the signature decides, and more is read of constants
            return self.scheduled(kernel, request)
        signature, buffers = signature_of(kernel, request.rings)
        asked = None if request.asked is None else tuple([n.strategy for n in request.asked.nests])
        known = self.known.setdefault((request.target, request.by_rows, request.keeps, request.weights, asked, *signature), [])
        for one in known[:MAX_TRIED_FUNCTIONS]:
            if found := one.again(kernel, matched(one.buffers, buffers, request.rings)):
                return found
        made = self.scheduled(kernel, request)
        own = (*buffers, *ringed(buffers, request.rings))
        if made.derived is not None and is_known(made.function, own, made.derived):
            known.append(Known(made, own, made.derived))
        return made


def ringed(buffers: Sequence[Buffer], rings: Rings) -> tuple[Buffer, ...]:
    """The rings that these buffers lie in."""
    return tuple([rings[b] for b in buffers if b in rings])


def matched(old: Sequence[Buffer], buffers: Sequence[Buffer], rings: Rings) -> dict[Buffer, Buffer]:
    """What stands for the buffers of a function of the same signature, and for their rings."""
    return dict(zip(old, (*buffers, *ringed(buffers, rings)), strict=True))


def is_known(function: Function, buffers: Sequence[Buffer], derived: Sequence[Derived]) -> bool:
    """True if all memory of a function is of the kernel, scratch, or derived, and what it has of its own is named after it."""
    made = {b for d in derived for b in d.buffers}
    named = all(b.name.startswith(function.name) for b in chain(made, function.scratch))
    return named and {*buffers, *made}.issuperset(function.params)
