"""The stack that calls of a model need, for the header, command line and report: bounds that `machine_code/stack` reads from
the object's code, for each entry function and for all functions of the model.
"""
from __future__ import annotations

from collections.abc import Mapping

from ....runtime.records import dataclass
from ...machine_code.elf import is_elf
from ...machine_code.stack.bound import StackBound, StackUse
from ...machine_code.stack.instruction import UnknownStack
from .interface import CInterface


@dataclass(frozen=True, slots=True)
class ModelStack:
    """The stack bounds of a model. `entries` holds those of the functions that run an entry, by the entry's name in C; `whole`
    is that of any function of the model. If nothing is known, `unknown` says why, and both are empty."""
    entries: Mapping[str, StackBound]
    whole: StackBound = StackBound(0)
    unknown: str = ""


def model_stack(interface: CInterface, code: bytes) -> ModelStack:
    """Return the stack bounds of an object's code."""
    try:
        if not is_elf(code):
            raise UnknownStack("the object is not ELF")
        use = StackUse(code, interface.target)
        return ModelStack({entry.name: use.bound(f"{entry.name}_run") for entry in interface.entries}, use.whole())
    except UnknownStack as reason:
        return ModelStack({}, unknown=str(reason))


def besides(bound: StackBound) -> str:
    """Return the part of a bound that is an allowance, and the calls that it cannot count; empty if it is the object's own code
    alone."""
    parts = [f"{bound.allowance} of them for {', '.join(bound.outside)}"] if bound.allowance else []
    return ", ".join([*parts, *["the thread pool's function comes on top"] * bound.calls_given])
