"""LLVM's machine code: from the text of a module to an object file, and from there to code in this process.

This file relies on these facts: an engine takes over its target machine, so each has one of its own, while one that emits files
serves for all of a target; an unverified module can crash code generation; an undefined symbol would only show when it is
called. llvmlite is imported on first use. Code for this process is an object, too, so that a cache can keep it: `link` makes an
image of it that is mapped without LLVM; if that is not possible, LLVM's engine loads the object.
"""
from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol

from ...runtime.errors import Position, Problem
from ...runtime.limits import checkpoint, seconds_left
from ...runtime.machine_code import Image, LoadedCode, MappedCode, function_at
from ...runtime.progress import report_progress
from ..target.features import SHAPES_TILES
from ..target.target import C_ONLY, Target
from .arm_objects import completed, completed_text
from .debug_lines import with_debug_lines
from .link import image_of, is_supported
from .split_module import defined, split
from .worker_processes import can_fork, compiled, module_count, within

DECLARED = re.compile(r'\ndeclare [^@\n]*@("[^"\n]*"|[-\w.$]+)')
"""The name of a function that a module only declares: one to a line, as tosaic writes them."""
ELF = "-elf"
"""Suffix of a triple whose objects are ELF on a system with another format."""
ALLOWED = frozenset({"memcpy", "memset"})
"""Functions outside the module that it may declare, besides LLVM's intrinsics."""


@functools.cache
def binding() -> Any:
    """Return llvmlite's binding, with every target initialized."""
    import llvmlite.binding as llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    fork_between_calls(llvm)
    return llvm


def fork_between_calls(llvm: Any) -> None:
    """Make a fork wait until no thread is inside LLVM: the child could never get llvmlite's lock otherwise."""
    lock = getattr(llvm.ffi.lib, "_lock", None)
    if lock is not None and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.__enter__, after_in_parent=lock.__exit__, after_in_child=lock.__exit__)


def parse(text: str, allowed: frozenset[str] = ALLOWED) -> Any:
    """Return the verified module of a text; raise an error of tosaic's own if parsing or verification fails. The module may
    call the C functions `allowed`."""
    llvm = binding()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise AssertionError(f"tosaic wrote LLVM IR that LLVM refuses: {error}") from error
    unknown = [name for name in (found.strip('"') for found in DECLARED.findall("\n" + text))
               if not name.startswith("llvm.") and name not in allowed]
    assert not unknown, f"the module calls {', '.join(unknown)}, which nobody defines"
    return module


def target_machine(target: Target, reloc: str, codemodel: str) -> Any:
    """Return a new target machine. Raise a Problem if LLVM writes no code for the target."""
    check_has_object_code(target)
    return binding().Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc=reloc, codemodel=codemodel)


def check_has_object_code(target: Target) -> None:
    if not target.has_object_code:
        raise Problem(f"no object can be made for {target.cpu}: {C_ONLY[target.architecture]}", kind="option",
                      help="tosaic compile --emit c writes C source, for the compiler that you have")


@functools.lru_cache(maxsize=8)
def emitting(target: Target, reloc: str) -> Any:
    """Return a target machine that emits one module after the other: a new one takes a millisecond or two to learn the
    processor. llvmlite lets one thread at a time into LLVM."""
    return target_machine(target, reloc, "default")


class ObjectEngine:
    """An object that LLVM's engine has loaded."""

    def __init__(self, code: bytes) -> None:
        from ..target.presets import host
        llvm = binding()
        empty = llvm.parse_assembly(f'target triple = "{host().triple}"')
        self._engine = llvm.create_mcjit_compiler(empty, target_machine(host(), "pic", "jitdefault"))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        address: int = self._engine.get_function_address(name)
        return address

    def close(self) -> None:
        self._engine.close()


def load_image(image: Image) -> LoadedCode:
    """Load an image as code in this process."""
    return MappedCode(image) if image.form == "linked" else ObjectEngine(image.code)


def object_of(text: str, target: Target, allowed: frozenset[str] = ALLOWED) -> bytes:
    """Return the object of a module, for this process. LLVM cannot be stopped: if there is a time limit another process
    compiles it."""
    def compile(text: str) -> bytes:
        return bytes(emitting(in_loadable_format(target), "pic").emit_object(parse(text, allowed)))

    checkpoint()
    if (seconds := seconds_left()) is None or not can_fork():
        return compile(text)
    binding()
    code = within(seconds, text, compile)
    checkpoint()
    return code or compile(text)


def in_loadable_format(target: Target) -> Target:
    """Return the target with the object format that LLVM's engine loads: ELF on Windows, too."""
    if sys.platform != "win32" or target.triple.endswith(ELF):
        return target
    return replace(target, triple=target.triple + ELF)


class EarlierCode(Protocol):
    """Functions of a module that are compiled while others of it are still written: their names, and their objects."""

    @property
    def names(self) -> frozenset[str]: ...

    @property
    def uses_tiles(self) -> bool: ...

    def finish(self) -> list[bytes]: ...


def compiled_image(text: str, target: Target, allowed: frozenset[str] = ALLOWED) -> Image:
    """Return a module's machine code, made by several processes if it is long."""
    report_progress("machine code")
    image = image_of_modules(text, target, allowed) or image_of([object_of(text, target, allowed)])
    assert image is not None
    return image._replace(tiles=SHAPES_TILES in text)


def debugged_image(text: str, positions: Mapping[str, Position], target: Target) -> Image:
    """Return a module's machine code with the lines of its functions, as one object: LLVM's loader shows it to debuggers."""
    code = object_of(with_debug_lines(text, positions), target)
    return Image(code, form="object", tiles=SHAPES_TILES in text)


def image_of_modules(text: str, target: Target, allowed: frozenset[str], earlier: EarlierCode | None = None) -> Image | None:
    """Return the image of a split module and of the code compiled `earlier`; None if the module is not split and nothing is
    compiled earlier, or if the objects cannot be linked."""
    texts = split(text, module_count(text)) if is_supported() else [text]
    if len(texts) == 1 and earlier is None:
        return None
    others = allowed | {name for one in texts[1:] for name in defined(one)} | (earlier.names if earlier else frozenset())
    objects = compiled(texts, lambda one: object_of(one, target, others))
    return image_of([*objects, *(earlier.finish() if earlier else ())])


def image_with(earlier: EarlierCode, text: str, target: Target) -> Image | None:
    """Return the image of a module that declares the functions compiled `earlier`; None if they cannot be linked."""
    image = image_of_modules(text, target, ALLOWED, earlier)
    return image and image._replace(tiles=SHAPES_TILES in text or earlier.uses_tiles)


class Engine:
    """Machine code in this process, made from one module, and released by `close`, when none of it may be running. `image` is
    the module's, if it has been made already."""

    def __init__(self, text: str, target: Target, allowed: frozenset[str] = ALLOWED, image: Image | None = None) -> None:
        self.image = image or compiled_image(text, target, allowed)
        self._loaded = load_image(self.image)

    def function(self, name: str) -> Callable[[int], int]:
        """Return the function i32 name(ptr), callable with an address; it runs without the interpreter's lock."""
        return function_at(self.address(name))

    def address(self, name: str) -> int:
        """Return the address of a function of the module."""
        address = self._loaded.address(name)
        assert address, f"the module has no function {name}"
        return address

    def close(self) -> None:
        self._loaded.close()


def object_file(text: str, target: Target, reloc: Literal["pic", "static"] = "pic") -> bytes:
    """Return the object file of a module."""
    code = bytes(emitting(target, reloc).emit_object(parse(text)))
    is_arm_elf = target.has_build_attributes and code[:4] == b"\x7fELF" and code[4:6] == b"\x01\x01"
    return completed(code) if is_arm_elf else code


def assembly(text: str, target: Target, reloc: Literal["pic", "static"] = "pic") -> str:
    """Return the module in the target's assembly language."""
    written = str(emitting(target, reloc).emit_assembly(parse(text)))
    return completed_text(written) if target.has_build_attributes else written
