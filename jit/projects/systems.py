"""The build systems of projects, by name, and the default form of code for each: C source for systems that compile libraries
for many boards, and for processors without an LLVM back end; an object for the others."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...lowering.target.target import Target
from ...runtime.errors import ValueProblem
from . import arduino, cmake, esp_idf, make, platformio, zephyr
from .contents import Contents


@dataclass(frozen=True, slots=True)
class System:
    """A build system: the layout of its files, and whether its libraries come as sources."""
    files: Callable[[Contents], dict[str, bytes]]
    prefers_source: bool


SYSTEMS: Mapping[str, System] = {
    "cmake": System(cmake.files, False),
    "esp-idf": System(esp_idf.files, True),
    "zephyr": System(zephyr.files, True),
    "platformio": System(platformio.files, True),
    "arduino": System(arduino.files, True),
    "make": System(make.files, False),
}


def system_of(name: str) -> System:
    """Return the system of that name."""
    if name not in SYSTEMS:
        raise ValueProblem(f"project is {name!r}", kind="option", help=f"it may be {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def emitted(emit: str | None, project: str | None, target: Target | None) -> str:
    """Return "object" or "c", as the user says, or as the project or the machine decides."""
    if emit is not None or project is None:
        return emit or "object"
    is_source = system_of(project).prefers_source or not (target is None or target.has_object_code)
    return "c" if is_source else "object"
