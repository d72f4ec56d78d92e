"""Kernels of one form are scheduled once: the function of a later one is that of the first with its own buffers, and with what
the schedule makes of its own constants. Where these say something else than those of the first, it is scheduled anew.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import chain

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..graph.types import Array
from ..kernels.kernel import Kernel
from ..loops.ir import Function, note_alike
from ..loops.substitute import substituted
from ..target.target import Target
from .derived_constants import Derived, constant_buffer
from .kernel_signature import Text, form_of

Rings = Mapping[Buffer, Buffer]
NONE: Rings = {}
Scheduled = Callable[[Kernel, Target, bool, Rings, int], "tuple[Function, tuple[Derived, ...] | None]"]
"""Schedules a kernel; what is derived from its constants comes with the function, None where that is not known."""
MOST_TRIED = 3
"""Functions of one form, for constants that say different things, that are tried for a kernel."""


@dataclass(frozen=True, slots=True)
class Known:
    """A function, the buffers of its kernel in the order of the form with their rings, and what it has of constants."""
    function: Function
    buffers: tuple[Buffer, ...]
    derived: tuple[Derived, ...]

    def again(self, kernel: Kernel, buffers: Mapping[Buffer, Buffer]) -> Function | None:
        """The function for another kernel of the form, whose buffers stand for these; None where there is none."""
        made = [d.again(buffers) for d in self.derived]
        if any(arrays is None for arrays in made):
            return None
        old, new = self.function.name, kernel.out.name
        own = {b: like(b, new + b.name.removeprefix(old)) for b in self.function.scratch}
        own |= {b: constant_buffer(new + b.name.removeprefix(old), array) for b, array in self.arrays(made)}
        function = substituted(self.function, {**buffers, **own}, new)
        note_alike(function, self.function)
        return function

    def arrays(self, made: Sequence[tuple[Array, ...] | None]) -> list[tuple[Buffer, Array]]:
        return [pair for d, arrays in zip(self.derived, made) for pair in zip(d.buffers, arrays or ())]


def like(buffer: Buffer, name: str) -> Buffer:
    """A buffer of its own that is like another."""
    return Buffer(name, buffer.dtype, buffer.shape, buffer.role, buffer.data, buffer.copies)


@dataclass(slots=True)
class Repeated:
    """What has been scheduled for one program."""
    scheduled: Scheduled
    known: dict[Text, list[Known]] = field(default_factory=dict)

    def schedule(self, kernel: Kernel, target: Target, by_rows: bool = False, rings: Rings = NONE, keeps: int = 0) -> Function:
        """The loops of a kernel, as `schedule.schedule` makes them."""
        if target.findings or target.precision != "f32":  # then more than the form decides, and more is read of constants
            return self.scheduled(kernel, target, by_rows, rings, keeps)[0]
        form, buffers = form_of(kernel, rings)
        known = self.known.setdefault((target, by_rows, keeps, *form), [])
        for one in known[:MOST_TRIED]:
            if found := one.again(kernel, matched(one.buffers, buffers, rings)):
                return found
        function, derived = self.scheduled(kernel, target, by_rows, rings, keeps)
        if derived is not None and is_known(function, (*buffers, *ringed(buffers, rings)), derived):
            known.append(Known(function, (*buffers, *ringed(buffers, rings)), derived))
        return function


def ringed(buffers: Sequence[Buffer], rings: Rings) -> tuple[Buffer, ...]:
    """The rings that these buffers lie in."""
    return tuple([rings[b] for b in buffers if b in rings])


def matched(old: Sequence[Buffer], buffers: Sequence[Buffer], rings: Rings) -> dict[Buffer, Buffer]:
    """What stands for the buffers of a function of the same form, and for their rings."""
    return dict(zip(old, (*buffers, *ringed(buffers, rings)), strict=True))


def is_known(function: Function, buffers: Sequence[Buffer], derived: Sequence[Derived]) -> bool:
    """Whether all memory of a function is of the kernel, scratch, or derived, and what it has of its own is named after it."""
    made = {b for d in derived for b in d.buffers}
    named = all(b.name.startswith(function.name) for b in chain(made, function.scratch))
    return named and {*buffers, *made}.issuperset(function.params)
