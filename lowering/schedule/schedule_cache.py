"""A cache of schedules: kernels of one signature are scheduled once. A later kernel gets the function of the first with its
own buffers, and with the arrays derived from its own constants. If its constants have other facts than those of the first
kernel, the later kernel is scheduled anew.
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
"""Maximum number of functions of one signature, for constants with different facts, that are tried for a kernel."""


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """The parameters of a kernel's schedule: the target, the precision, whether the kernel runs as a whole or `by_rows`, the
    `rings` in which buffers are stored, and the depth `keeps` down to which loops stay that run once; the strategies from
    `findings`, or those `asked` for; the storage of byte `weights`; or `plain` loops alone."""
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
    """The loops of a kernel, its nests with their strategies, and the arrays derived from constants, if these are known.
    `in_floats` is the reason why a contraction is computed in float32 although limbs are allowed."""
    function: Function
    nests: tuple[NestRecord, ...] = ()
    derived: tuple[Derived, ...] | None = None
    in_floats: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A schedule in the cache, the buffers of its kernel in the order of the signature, followed by their rings, and the arrays
    derived from constants."""
    scheduled: Scheduled
    buffers: tuple[Buffer, ...]
    derived: tuple[Derived, ...]

    def again(self, kernel: Kernel, buffers: Mapping[Buffer, Buffer]) -> Scheduled | None:
        """Return this schedule with other buffers, for another kernel of the signature; None if it needs different code."""
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
    """Return a new buffer that differs from another only in its name."""
    return Buffer(name, buffer.dtype, buffer.shape, buffer.role, buffer.data, buffer.copies)


@dataclass(slots=True)
class ScheduleCache:
    """The schedules of one program. `scheduled` is the function that schedules one kernel."""
    scheduled: Callable[[Kernel, ScheduleRequest], Scheduled]
    known: dict[Text, list[Known]] = field(default_factory=dict)

    def schedule(self, kernel: Kernel, request: ScheduleRequest) -> Scheduled:
        """Return the schedule of a kernel, as `scheduled` would."""
        if request.findings or request.precision != "f32":  # depends on more than the signature, and reads more of constants
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
    """Return the rings in which these buffers are stored."""
    return tuple([rings[b] for b in buffers if b in rings])


def matched(old: Sequence[Buffer], buffers: Sequence[Buffer], rings: Rings) -> dict[Buffer, Buffer]:
    """Map the old buffers of a function of the same signature, and their rings, to the new ones."""
    return dict(zip(old, (*buffers, *ringed(buffers, rings)), strict=True))


def is_known(function: Function, buffers: Sequence[Buffer], derived: Sequence[Derived]) -> bool:
    """True if each buffer of a function is the kernel's, scratch or derived, and the names of scratch and derived buffers start
    with the function's name."""
    made = {b for d in derived for b in d.buffers}
    named = all(b.name.startswith(function.name) for b in chain(made, function.scratch))
    return named and {*buffers, *made}.issuperset(function.params)
