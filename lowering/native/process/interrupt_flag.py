"""The code of the process's interrupt flag: a handler of SIGINT that sets it and goes on to the handler before, and what loops
of compiled code ask where to look. Its memory is `runtime/interrupts.py`'s.

A flag that a handler sets costs a loop one load of a byte; Python's own is not to be had without the interpreter's lock. Python
installs its handler anew whenever `signal.signal` is called (asyncio and IPython do so all the time), so each run of a program
with loops looks whether ours is there.
"""
from __future__ import annotations

import os

from ....runtime import interrupts
from ....runtime.interrupts import BEGIN, MEMORY
from ....runtime.later import Later
from ...machine_code.codegen import Engine, compiled_image
from ...machine_code.llvm_writer import (
    NULL,
    OWN_ATTRIBUTES,
    Function,
    Member,
    Value,
    attribute_group,
    constant,
    data,
    module,
    symbol,
)
from ...target.presets import host

NEEDED = frozenset({"pthread_self", "sigaction"})

LARGEST_ACTION = 256
"""Bytes for C's `struct sigaction`, which begins with the handler on every system; the largest, glibc's, has 152."""

SIGINT = constant("i32", 2)

PREVIOUS, MAIN, NEVER = Member(interrupts.PREVIOUS), Member(interrupts.MAIN, "i64"), interrupts.NEVER
"""Where things lie in the memory: the handler before ours, the main thread's number, a byte that is never set."""

WORDS = symbol("interrupt.memory")
"""A constant of the code that has the memory's address."""


def handler() -> Function:
    """`interrupt.handle(signal, info, context)`: set the flag; then what the handler before ours does."""
    f = Function("interrupt.handle", "void", {"signal": "i32", "info": "ptr", "context": "ptr"})
    words = Value("ptr", f.put(f"load volatile ptr, {WORDS}"))
    f.store(constant("i8", 1), words, "seq_cst")
    f.call(f.load(words, PREVIOUS), "void", *f.params)
    f.give()
    return f


def beginning(handle: Value, declared: dict[str, str]) -> Function:
    """`ptr interrupt.begin(words)`: where a run of this thread looks. At the flag in the main thread, for which alone Python
    raises KeyboardInterrupt; there the handler is put in the place of the first one that was found, and of none else: another
    library's may call ours by itself."""
    f = Function(BEGIN, "ptr", {"words": "ptr"}, declared, linkage="")
    words, = f.params
    other, ready = f.blocks("other", "ready")
    action = f.room(LARGEST_ACTION, "i8", 16)
    f.require(f.compare("eq", f.call_c("pthread_self", "i64"), f.load(words, MAIN)), other)
    f.call_c("sigaction", "i32", SIGINT, NULL, action)
    now = f.load(action, "ptr")
    f.require(f.compare("ne", now, handle), ready)
    place = f.address(words, PREVIOUS.offset)
    previous = f.load(place, "ptr")
    is_known, is_first = f.compare("eq", now, previous), f.compare("eq", previous, NULL)
    is_function = f.compare("ugt", f.cast("ptrtoint", now, "i64"), 1)
    is_ours_to_follow = f.op("or", is_known, f.op("and", is_first, is_function))
    f.require(f.op("and", is_ours_to_follow, is_function), ready)
    f.store(now, place)
    f.store(handle, action)
    f.call_c("sigaction", "i32", SIGINT, action, NULL)
    f.go_on(ready)
    f.give(words)
    f.enter(other)
    f.give(f.address(words, NEVER))
    return f


def text() -> str:
    """The module. The place of the memory's address is eight bytes that the runtime looks for."""
    declared = dict[str, str]()
    handle = handler()
    memory = data("interrupt.memory", "internal constant", "i64", f"{int.from_bytes(MEMORY, 'little', signed=True)}", align=8)
    begin = beginning(handle.pointer, declared)
    return module(host().triple, declared.values(), [memory], handle.definition(), begin.definition(),
                  [attribute_group(*OWN_ATTRIBUTES)])


def is_supported() -> bool:
    """Whether loops of this process look at the flag: where there are the signals of POSIX."""
    return os.name == "posix"


image = Later(lambda: compiled_image(text(), host(), NEEDED))
"""The machine code, made once for a process."""


def load() -> Engine:
    """The code in this process, with the address of its memory."""
    from ....runtime.interrupts import process
    return Engine("", host(), image=process.bound(image()))


def words() -> int:
    """The address of the flag and what belongs to it; what compiled programs are given."""
    from ....runtime.interrupts import process
    return process.words(load)
