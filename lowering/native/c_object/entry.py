"""The entry functions of an object, in LLVM IR: they check what the caller gives, put the pointers into a frame and run the
program's driver.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..driver.driver import Writer
from .amx_permission import refused, uses_tiles
from .data import ObjectVariable
from .interface import ALIGNMENT, MACHINE, NULL, SIZE, THREAD_POOL, VARIABLE, Entry, Given, Interface


def entry_lines(interface: Interface, entry: Entry, checksum: int) -> list[str]:
    """The function that runs a program, by the name that the header gives it, and by its plain name."""
    w, arguments, given = Writer(), interface.arguments(entry), interface.given(entry)
    pointers = checked(w, given, interface.word)
    used = [interface.variables[use.buffer.name] for use in entry.program.variables]
    refuse_other_types(w, used)
    if uses_tiles(entry.program):
        refuse(w, [refused(w)], MACHINE)
    held = [pointers[g] for g in given] + [f"%{THREAD_POOL}"] * (THREAD_POOL in arguments)
    frame = w.put(f"alloca [{max(len(held), 1)} x ptr]")
    for i, pointer in enumerate(held):
        w.do(f"store ptr {pointer}, ptr {w.offset(frame, i, 'ptr')}")
    w.do(f"ret i32 {w.put(f'call i32 @{entry.name}.run(ptr {frame})')}")
    name, types = f"{entry.name}_run", ", ".join("ptr" for _ in arguments)
    return [f"define i32 @{linked(name, checksum)}({', '.join(f'ptr %{s}' for s in arguments)}) #0 {{", *w.lines, "}",
            f"@{name} = alias i32 ({types}), ptr @{linked(name, checksum)}"]


def linked(name: str, checksum: int) -> str:
    """The symbol that a program with the right header asks for."""
    return f"{name}_{checksum:08x}"


def checked(w: Writer, given: Sequence[Given], word: str) -> Mapping[Given, str]:
    """Load what the caller gives, and return an error unless all of it is there, large enough and aligned. The pointers."""
    needed = [g for g in given if g.nbytes]
    refuse(w, [w.put(f"icmp eq ptr %{s}, null") for s in dict.fromkeys(g.structure for g in needed)], NULL)
    pointers = {g: member(w, g, 0, "ptr") if g.nbytes else "null" for g in given}
    refuse(w, [w.put(f"icmp eq ptr {pointers[g]}, null") for g in needed], NULL)
    refuse(w, [w.put(f"icmp {'ne' if g.exact else 'ult'} {word} {member(w, g, 1, word)}, {g.nbytes}") for g in needed], SIZE)
    refuse(w, [misaligned(w, pointers[g], g.alignment) for g in needed if g.alignment > 1], ALIGNMENT)
    return pointers


def member(w: Writer, given: Given, which: int, type: str) -> str:
    """The pointer (0) or the size (1); both are as large as a pointer."""
    return w.put(f"load {type}, ptr {w.offset(f'%{given.structure}', 2 * given.number + which, 'ptr')}")


def refuse_other_types(w: Writer, variables: Sequence[ObjectVariable]) -> None:
    """Return an error where another object has given one of the variables another type."""
    refuse(w, [w.put(f"icmp ne i32 {w.put(f'load i32, ptr @{v.type_symbol}')}, {v.checksum}") for v in variables], VARIABLE)


def refuse(w: Writer, conditions: Sequence[str], code: int) -> None:
    """Return `code` if one of the conditions holds."""
    if not conditions:
        return
    any_holds = conditions[0]
    for condition in conditions[1:]:
        any_holds = w.put(f"or i1 {any_holds}, {condition}")
    refused, passed = w.labels("refused", "passed")
    w.split(any_holds, refused, passed)
    w.start(refused)
    w.do(f"ret i32 {code}")
    w.start(passed)


def misaligned(w: Writer, pointer: str, alignment: int) -> str:
    low = w.put(f"and i64 {w.put(f'ptrtoint ptr {pointer} to i64')}, {alignment - 1}")
    return w.put(f"icmp ne i64 {low}, 0")
