"""Machine code that a process has once for all programs, kept like that of a program: the code of quick calls
(`lowering.native.process.function_object_code`), the pool of threads (`lowering.native.process.thread_pool`), and the interrupt
flag (`lowering.native.process.interrupt_flag`). If they come from the cache, a process does not need LLVM for them."""
from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ...runtime.interrupts import process
from ...runtime.machine_code import Image, LoadedCode
from ...runtime.python_layout import is_known
from ...runtime.threads import PoolCode
from .code import image_fields, loaded_image
from .folder import Folder, folder
from .keys import digest
from .versions import machine, versions

CALLER, POOL, INTERRUPTS = "caller", "thread pool", "interrupts"


# ---- quick calls -----------------------------------------------------------------------------------------------------
@functools.cache
def caller() -> int:
    """Return the address of the function, from the cache or compiled; 0 if the layout of objects is unknown."""
    if not is_known():
        return 0
    loaded = loaded_code(CALLER)
    if loaded is not None:
        return loaded.address("tosaic.call")
    where = folder()
    if where is not None:
        keep_caller(where)
    from ...lowering.native.process import function_object_code
    return function_object_code.caller()


@functools.cache
def keep_caller(where: Folder) -> None:
    """Write the code if it is missing; compile it, as every quick call would."""
    if is_known() and lacks(where, CALLER):
        from ...lowering.native.process import function_object_code
        write(where, CALLER, function_object_code.engine().image)


# ---- threads ---------------------------------------------------------------------------------------------------------
@functools.cache
def thread_pool() -> PoolCode | None:
    """Return the pool's functions, from the cache or compiled; None if this process cannot have a pool."""
    loaded = loaded_code(POOL)
    if loaded is not None:
        return PoolCode(loaded.address("pool.parallel"), loaded.address("pool.stop"), loaded)
    from ...lowering.native.process import thread_pool
    return thread_pool.thread_pool()


@functools.cache
def keep_pool(where: Folder) -> None:
    """Write the code if it is missing."""
    from ...lowering.native.process import thread_pool
    if thread_pool.is_supported() and lacks(where, POOL):
        write(where, POOL, thread_pool.engine().image)


# ---- the interrupt flag ----------------------------------------------------------------------------------------------
def interrupts() -> int:
    """Return the address of the flag and its words, with their code from the cache or compiled."""
    def load() -> LoadedCode:
        loaded = loaded_code(INTERRUPTS, process.bound)
        if loaded is not None:
            return loaded
        from ...lowering.native.process import interrupt_flag
        return interrupt_flag.load()

    return process.words(load)


@functools.cache
def keep_interrupts(where: Folder) -> None:
    """Write the code if it is missing."""
    from ...lowering.native.process import interrupt_flag
    if lacks(where, INTERRUPTS):
        write(where, INTERRUPTS, interrupt_flag.image())


# ---- the cache -------------------------------------------------------------------------------------------------------
@functools.cache
def loaded_code(name: str, bound: Callable[[Image], Image] | None = None) -> LoadedCode | None:
    """Return code from the cache, loaded for the lifetime of the process; `bound` changes its image before loading."""
    where, key = folder(), key_of(name)
    entry = where.read("code", key) if where and key else None
    try:
        return loaded_image(entry.fields["image"], entry.arrays[0], bound) if entry else None
    except OSError:
        return None


def lacks(where: Folder, name: str) -> bool:
    key = key_of(name)
    return key is not None and where.read("code", key) is None


def write(where: Folder, name: str, image: Image) -> None:
    if key := key_of(name):
        where.write("code", key, {"image": image_fields(image)}, [np.frombuffer(image.code, np.uint8)])


def key_of(name: str) -> bytes | None:
    """Return the code's key, or None if the versions are unknown. The code of quick calls is specific to one layout of
    objects."""
    known = versions()
    return digest((name, known, machine())) if known else None
