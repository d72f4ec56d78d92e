"""The native half of `runtime/interrupts.py`: a signal handler that sets the process's interrupt flag and then calls Python's
handler, and the functions with which loops of compiled code poll the flag.

Polling a flag that a handler sets costs a loop one load of a byte; Python's own flag needs the interpreter's lock. Checking
which signals have a handler takes microseconds, and Python reinstalls its own handler whenever `signal.signal` is called
(asyncio and IPython do so all the time). So a run makes this check after a millisecond; it reads the clock in its iterations 1,
2, 4, 8 and so on.
"""
from __future__ import annotations

import os
import sys

from ....runtime import interrupts
from ....runtime.interrupts import BEGIN, HANDLER, INTERRUPTED, MEMORY, RUN_WORDS, VISIT
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

NEEDED = frozenset({"pthread_self", "clock_gettime"})

PATIENCE = 1_000_000
"""Nanoseconds after which a run first makes the slow check."""

MONOTONIC = constant("i32", 6 if sys.platform == "darwin" else 1)
"""The clock's number."""

NEVER_AGAIN = 1 << 62

PREVIOUS, MAIN, NEVER = Member(interrupts.PREVIOUS), Member(interrupts.MAIN, "i64"), interrupts.NEVER
CALLED, ERROR = Member(interrupts.CALLED), interrupts.ERROR
ENSURE, CALL, FETCH, RELEASE = (Member(interrupts.API + 8 * i) for i in range(len(interrupts.PYTHON_FUNCTIONS)))
"""Offsets in the interrupt memory: Python's handler, the main thread's number, a byte that is never set, the object that the
slow check calls, the exception that it raised, and functions of Python."""

LEFT, DISTANCE, BEGUN = (Member(8 * i, "i64") for i in range(RUN_WORDS))
"""Offsets of a run's own words: iterations until the next clock read, the distance from the last one, and the time of the
first."""

WORDS = symbol("interrupt.memory")
"""The constant of the code that holds the memory's address."""


def handler() -> Function:
    """`interrupt.handle(signal, info, context)`: set the flag, then call the previous handler."""
    f = Function(HANDLER, "void", {"signal": "i32", "info": "ptr", "context": "ptr"}, linkage="")
    words = Value("ptr", f.put(f"load volatile ptr, {WORDS}"))
    f.store(constant("i8", 1), words, "seq_cst")
    f.call(f.load(words, PREVIOUS), "void", *f.params)
    f.give()
    return f


def beginning(declared: dict[str, str]) -> Function:
    """`ptr interrupt.begin(words, run)`: return the byte that a run of this thread polls: the flag in the main thread, where
    alone Python runs handlers, else a byte that is never set."""
    f = Function(BEGIN, "ptr", {"words": "ptr", "run": "ptr"}, declared, linkage="")
    words, run = f.params
    other, = f.blocks("other")
    f.keep(1, run, LEFT)
    f.keep(0, run, DISTANCE)
    f.require(f.compare("eq", f.call_c("pthread_self", "i64"), f.load(words, MAIN)), other)
    f.give(words)
    f.enter(other)
    f.keep(NEVER_AGAIN, run, LEFT)
    f.give(f.address(words, NEVER))
    return f


def visit(declared: dict[str, str]) -> Function:
    """`i32 interrupt.look(words, run)`: run Python's handlers if the flag is set or the run has taken long. Return 0 if the run
    goes on, else INTERRUPTED."""
    f = Function(VISIT, "i32", {"words": "ptr", "run": "ptr"}, declared, linkage="")
    words, run = f.params
    timed, first, following, handle, failed, end = f.blocks("timed", "first", "following", "handle", "failed", "end")
    f.branch(f.compare("eq", f.load(run, LEFT), 0), timed, handle)
    f.enter(timed)
    clock = f.room(2, "i64", 8)
    f.call_c("clock_gettime", "i32", MONOTONIC, clock)
    now = f.op("add", f.op("mul", f.load(clock, "i64"), 1_000_000_000), f.load(clock, Member(8, "i64")))
    distance = f.load(run, DISTANCE)
    f.branch(f.compare("eq", distance, 0), first, following)
    f.enter(first)
    f.keep(now, run, BEGUN)
    f.keep(1, run, LEFT)
    f.keep(1, run, DISTANCE)
    f.give(constant("i32", 0))
    f.enter(following)
    f.keep(f.op("shl", distance, 1), run, DISTANCE)
    f.keep(distance, run, LEFT)
    f.require(f.compare("slt", f.op("sub", now, f.load(run, BEGUN)), PATIENCE), handle)
    f.give(constant("i32", 0))

    f.enter(handle)
    f.keep(NEVER_AGAIN, run, LEFT)
    had_lock = f.call(f.load(words, ENSURE), "i32")
    result = f.call(f.load(words, CALL), "ptr", f.load(words, CALLED), NULL)
    f.branch(f.compare("eq", result, NULL), failed, end(0))
    f.enter(failed)
    f.call(f.load(words, FETCH), "void", *(f.address(words, ERROR + 8 * i) for i in range(3)))
    f.jump(end(INTERRUPTED))
    status, = f.enter(end, "i32")
    f.call(f.load(words, RELEASE), "void", had_lock)
    f.give(status)
    return f


def text() -> str:
    """Return the module. The runtime finds the slot of the memory's address by its eight marker bytes."""
    declared = dict[str, str]()
    functions = handler(), beginning(declared), visit(declared)
    memory = data("interrupt.memory", "internal constant", "i64", f"{int.from_bytes(MEMORY, 'little', signed=True)}", align=8)
    return module(host().triple, declared.values(), [memory], *(f.definition() for f in functions),
                  [attribute_group(*OWN_ATTRIBUTES)])


def is_supported() -> bool:
    """True if loops of this process poll the flag: on systems with POSIX signals."""
    return os.name == "posix"


image = Later(lambda: compiled_image(text(), host(), NEEDED))
"""The machine code, made once per process."""


def load() -> Engine:
    """Return the code in this process, bound to the address of its memory."""
    from ....runtime.interrupts import process
    return Engine("", host(), image=process.bound(image()))


def words() -> int:
    """Return the address of the interrupt memory, which compiled programs receive."""
    from ....runtime.interrupts import process
    return process.words(load)
