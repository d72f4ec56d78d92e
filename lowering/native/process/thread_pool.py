"""The code of the process's pool of threads: what `runtime/threads.py` starts and compiled programs are given. It needs nothing
but pthreads and Linux's futex, so that no compiler has to be there.
"""
from __future__ import annotations

import functools
import sys

from ....runtime.later import Later
from ....runtime.threads import MOST, PoolCode
from ...machine_code.codegen import Engine
from ...target.presets import host
from .thread_pool_ir import SLOT, SLOTS, TEXT

FUTEX = {"x86": 202, "aarch64": 98, "riscv": 98}
"""The number of the system call, by architecture."""

PAUSE = {"x86": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)", "riscv": ""}

MODES = {"x86": ("call void @llvm.x86.sse.stmxcsr(ptr %mode.at)", "call void @llvm.x86.sse.ldmxcsr(ptr %mode.at)"),
         "aarch64": ("%mode = call i64 @llvm.aarch64.get.fpcr()\n  store i64 %mode, ptr %mode.at",
                     "%mode = load i64, ptr %mode.at\n  call void @llvm.aarch64.set.fpcr(i64 %mode)"),
         "riscv": ("", "")}
"""How the mode of floats (rounding, denormals) is noted and taken over."""

NEEDED = frozenset({"pthread_create", "pthread_join", "pthread_sigmask", "syscall", "memset"})

DECLARED = {"x86": ("void @llvm.x86.sse2.pause()", "void @llvm.x86.sse.stmxcsr(ptr)", "void @llvm.x86.sse.ldmxcsr(ptr)"),
            "aarch64": ("void @llvm.aarch64.hint(i32)", "i64 @llvm.aarch64.get.fpcr()", "void @llvm.aarch64.set.fpcr(i64)"),
            "riscv": ()}


def is_supported() -> bool:
    """Whether this process can have a pool."""
    return sys.platform == "linux" and host().architecture in FUTEX and "64" in host().triple.split("-")[0]


def module_text() -> str:
    """The pool's module for this machine."""
    name = host().architecture
    own = "".join(f"declare {d}\n" for d in DECLARED[name])
    note, take = MODES[name]
    parts = {"DECLARATIONS": own, "PAUSE": PAUSE[name], "FUTEX": str(FUTEX[name]), "NOTE_MODE": note, "TAKE_MODE": take}
    text = TEXT
    for word, replacement in parts.items():
        text = text.replace(word, replacement)
    return f'target triple = "{host().triple}"\n{text}'


engine = Later(lambda: Engine(module_text(), host(), NEEDED))
"""The pool's machine code, made once for a process, whichever thread asks: its addresses outlive every call."""


@functools.cache
def thread_pool() -> PoolCode | None:
    """The pool's functions in this process; None where it can have no pool, so that programs run serially."""
    if not is_supported():
        return None
    return PoolCode(engine().address("pool.parallel"), engine().address("pool.stop"), engine())


assert SLOTS + SLOT * MOST <= 4096
