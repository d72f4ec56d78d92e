"""The code of the process's interrupt flag: a handler of SIGINT that sets it and goes on to the handler before, and what loops
of compiled code ask where to look. Its memory is `runtime/interrupts.py`'s.

A flag that a handler sets costs a loop one load of a byte; Python's own is not to be had without the interpreter's lock. Python
installs its handler anew whenever `signal.signal` is called (asyncio and IPython do so all the time), so each run of a program
with loops looks whether ours is there.
"""
from __future__ import annotations

import os

from ....runtime.interrupts import BEGIN, MAIN, MEMORY, NEVER, PREVIOUS
from ....runtime.later import Later
from ...machine_code.codegen import Engine, compiled_image
from ...target.presets import host

NEEDED = frozenset({"pthread_self", "sigaction"})

LARGEST_ACTION = 256
"""Bytes for C's `struct sigaction`, which begins with the handler on every system; the largest, glibc's, has 152."""

SIGINT = 2

TEXT = f"""
declare i64 @pthread_self()
declare i32 @sigaction(i32, ptr, ptr)
@interrupt.memory = internal constant i64 {int.from_bytes(MEMORY, "little", signed=True)}, align 8

; Set the flag; then what the handler before ours does.
define internal void @interrupt.handle(i32 %signal, ptr %info, ptr %context) #0 {{
  %words = load volatile ptr, ptr @interrupt.memory
  store atomic i8 1, ptr %words seq_cst, align 1
  %previous.at = getelementptr i8, ptr %words, i64 {PREVIOUS}
  %previous = load ptr, ptr %previous.at
  call void %previous(i32 %signal, ptr %info, ptr %context)
  ret void
}}

; Where a run of this thread looks: at the flag in the main thread, for which alone Python raises KeyboardInterrupt. There the
; handler is put in the place of the first one that was found, and of none else: another library's may call ours by itself.
define ptr @{BEGIN}(ptr %words) #0 {{
entry:
  %action = alloca [{LARGEST_ACTION} x i8], align 16
  %self = call i64 @pthread_self()
  %main.at = getelementptr i8, ptr %words, i64 {MAIN}
  %main = load i64, ptr %main.at
  %is.main = icmp eq i64 %self, %main
  br i1 %is.main, label %look, label %other
look:
  %asked = call i32 @sigaction(i32 {SIGINT}, ptr null, ptr %action)
  %now = load ptr, ptr %action
  %is.ours = icmp eq ptr %now, @interrupt.handle
  br i1 %is.ours, label %ready, label %compare
compare:
  %previous.at = getelementptr i8, ptr %words, i64 {PREVIOUS}
  %previous = load ptr, ptr %previous.at
  %is.known = icmp eq ptr %now, %previous
  %is.first = icmp eq ptr %previous, null
  %number = ptrtoint ptr %now to i64
  %is.function = icmp ugt i64 %number, 1
  %is.new = and i1 %is.first, %is.function
  %is.right = or i1 %is.known, %is.new
  %installs = and i1 %is.right, %is.function
  br i1 %installs, label %install, label %ready
install:
  store ptr %now, ptr %previous.at
  store ptr @interrupt.handle, ptr %action
  %set = call i32 @sigaction(i32 {SIGINT}, ptr %action, ptr null)
  br label %ready
ready:
  ret ptr %words
other:
  %never = getelementptr i8, ptr %words, i64 {NEVER}
  ret ptr %never
}}

attributes #0 = {{ nounwind "no-builtins" }}
"""


def is_supported() -> bool:
    """Whether loops of this process look at the flag: where there are the signals of POSIX."""
    return os.name == "posix"


image = Later(lambda: compiled_image(f'target triple = "{host().triple}"\n{TEXT}', host(), NEEDED))
"""The machine code, made once for a process."""


def load() -> Engine:
    """The code in this process, with the address of its memory."""
    from ....runtime.interrupts import process
    return Engine("", host(), image=process.bound(image()))


def words() -> int:
    """The address of the flag and what belongs to it; what compiled programs are given."""
    from ....runtime.interrupts import process
    return process.words(load)
