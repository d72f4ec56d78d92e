"""The permission to use the tiles of x86's matrix unit (AMX). Linux requires a process to request it once, before the first
use; its threads and child processes inherit it. Code with tiles stops a process that has not requested it.
"""
from __future__ import annotations

import functools
import platform
import sys

from .machine_code import c_library

ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 158, 0x1023, 18
"""Linux's number of the system call on x86-64, its request, and the component of the processor's state that it concerns."""


@functools.cache
def may_use_tiles() -> bool:
    """True if this process may use tiles; requests the permission."""
    if not sys.platform.startswith("linux") or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    return bool(c_library().syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0)
