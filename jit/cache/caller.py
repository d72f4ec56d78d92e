"""The machine code behind all quick calls (`lowering.native.function_object`), kept like that of a program: where it comes from
the cache, a process makes quick calls without LLVM."""
from __future__ import annotations

import functools

import numpy as np

from ...runtime.machine_code import LoadedCode
from ...runtime.python_layout import is_known
from .code import image_fields, loaded_image
from .folder import Folder, folder
from .keys import digest
from .versions import machine, versions

NAME = "tosaic.call"


@functools.cache
def caller() -> int:
    """The address of the function, from the cache or made; 0 where the layout of objects is not known."""
    if not is_known():
        return 0
    loaded = loaded_caller()
    if loaded is not None:
        return loaded.address(NAME)
    where = folder()
    if where is not None:
        keep_caller(where)
    from ...lowering.native import function_object
    return function_object.caller()


@functools.cache
def loaded_caller() -> LoadedCode | None:
    """The code from the cache, which stays for as long as the process."""
    where, key = folder(), caller_key()
    entry = where.read("code", key) if where and key else None
    try:
        return loaded_image(entry.fields["image"], entry.arrays[0]) if entry else None
    except OSError:
        return None


@functools.cache
def keep_caller(where: Folder) -> None:
    """Write the code, where it is not there; it is made, which every quick call would do."""
    key = caller_key()
    if key and is_known() and where.read("code", key) is None:
        from ...lowering.native import function_object
        image = function_object.engine().image
        where.write("code", key, {"image": image_fields(image)}, [np.frombuffer(image.code, np.uint8)])


def caller_key() -> bytes | None:
    """Its key: the code is written for one layout of objects, and used where that is found."""
    known = versions()
    return digest(("caller", known, machine())) if known else None
