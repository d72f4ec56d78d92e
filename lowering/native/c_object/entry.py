"""The entry functions of an object, in LLVM IR: they check the caller's arguments, put the pointers into a frame and run the
program's driver.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...machine_code.llvm_writer import NULL, Function, Value, Writer, symbol
from . import interface as codes
from .amx_permission import refused, uses_tiles
from .interface import STATE_ARGUMENT, THREAD_POOL, CEntry, CInterface, Given
from .variables import CVariable


def entry_lines(interface: CInterface, entry: CEntry, checksum: int, declared: dict[str, str]) -> list[str]:
    """The function that runs a program, by the name that the header gives it, and by its plain name."""
    arguments, given, name = interface.arguments(entry), interface.given(entry), f"{entry.name}_run"
    w = Function(linked(name, checksum), "i32", dict.fromkeys(arguments, "ptr"), declared, linkage="")
    passed = dict(zip(arguments, w.params))
    states = checked_state(w, interface, passed[STATE_ARGUMENT]) if STATE_ARGUMENT in passed else []
    pointers = checked(w, passed, given, interface.word)
    refuse_other_types(w, [interface.variables[use.buffer.name] for use in entry.program.variables])
    if uses_tiles(entry.program):
        refuse(w, [refused(w)], codes.MACHINE)
    if entry.program.variables:
        initialize(w, interface, states)
    held = [pointers[g] for g in given] + states + [p for name, p in passed.items() if name == THREAD_POOL]
    frame = w.room(max(len(held), 1), "ptr")
    for i, pointer in enumerate(held):
        w.store(pointer, w.address(frame, i, "ptr"))
    w.give(w.call(symbol(f"{entry.name}.run"), "i32", frame))
    types = ", ".join(p.type for p in w.params)
    return [*w.definition(), f"@{name} = alias i32 ({types}), {w.pointer}"]


def linked(name: str, checksum: int) -> str:
    """The symbol that a program with the right header asks for."""
    return f"{name}_{checksum:08x}"


def checked(w: Writer, structures: Mapping[str, Value], given: Sequence[Given], word: str) -> Mapping[Given, Value]:
    """Load the caller's arguments, and return an error unless all are non-null, large enough and aligned. Return the
    pointers."""
    needed = [g for g in given if g.nbytes]
    refuse(w, [w.compare("eq", structures[s], NULL) for s in dict.fromkeys(g.structure for g in needed)], codes.NULL)
    pointers = {g: member(w, structures, g, 0, "ptr") if g.nbytes else NULL for g in given}
    refuse(w, [w.compare("eq", pointers[g], NULL) for g in needed], codes.NULL)
    refuse(w, [w.compare("ne" if g.exact else "ult", member(w, structures, g, 1, word), g.nbytes) for g in needed], codes.SIZE)
    refuse(w, [misaligned(w, pointers[g], g.alignment) for g in needed if g.alignment > 1], codes.ALIGNMENT)
    return pointers


def member(w: Writer, structures: Mapping[str, Value], given: Given, which: int, type: str) -> Value:
    """The pointer (0) or the size (1); both are as large as a pointer."""
    return w.load(w.address(structures[given.structure], 2 * given.number + which, "ptr"), type)


def checked_state(w: Writer, interface: CInterface, state: Value) -> list[Value]:
    """Return the pointers to the caller's structures of variables; the function returns an error unless all are non-null and
    aligned."""
    layout = interface.caller_state
    assert layout is not None, "the caller holds no variables"
    found: list[Value] = []
    for number, structure in enumerate(layout.structures):
        found.append(w.load(w.address(state, layout.pointers[number - 1]), "ptr") if number else state)
        refuse(w, [w.compare("eq", found[number], NULL)], codes.NULL)
        if structure.alignment > 1:
            refuse(w, [misaligned(w, found[number], structure.alignment)], codes.ALIGNMENT)
    return found


def initialize(w: Writer, interface: CInterface, states: Sequence[Value]) -> None:
    """Give the variables that have not been written their initial values, where some have any."""
    if interface.initialized:
        w.call(symbol(interface.initialize), "void", *states)


def refuse_other_types(w: Writer, variables: Sequence[CVariable]) -> None:
    """Return an error where another object has given one of the variables that they share another type."""
    refuse(w, [w.compare("ne", w.load(symbol(v.type_symbol), "i32"), v.checksum) for v in variables if v.is_shared],
           codes.VARIABLE)


def refuse(w: Writer, conditions: Sequence[Value], code: int) -> None:
    """Return `code` if one of the conditions holds."""
    if conditions:
        refused, passed = w.blocks("refused", "passed")
        w.branch(w.either(conditions), refused, passed)
        w.enter(refused)
        w.give(Value("i32", f"{code}"))
        w.enter(passed)


def misaligned(w: Writer, pointer: Value, alignment: int) -> Value:
    return w.compare("ne", w.op("and", w.cast("ptrtoint", pointer, "i64"), alignment - 1), 0)
