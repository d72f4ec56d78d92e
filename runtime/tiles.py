"""The permission to use the tiles of x86's matrix unit (AMX). Linux wants a process to ask once, before the first use; threads
and processes that it begins later have it, too. Code with tiles stops a process that has not asked.
"""
from __future__ import annotations

import functools
import platform
import sys

from .machine_code import c_library

ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 158, 0x1023, 18
"""Linux' number of the system call on x86-64, its request, and which part of the processor's state it is for."""


@functools.cache
def may_use_tiles() -> bool:
    """True if this process may use tiles; asks for it."""
    if not sys.platform.startswith("linux") or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    return bool(c_library().syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0)
