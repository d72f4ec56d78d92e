"""Conversion of compiled code to an entry of the cache, and back: the image is one array, each constant and each initial value
another."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...runtime.arena import Array
from ...runtime.arguments import Signature, Tensor
from ...runtime.errors import Position, Problem, Source
from ...runtime.executable import Code, Failure
from ...runtime.machine_code import Image, LoadedCode, MappedCode, function_at
from ...runtime.quantization import quantization_from
from ...runtime.threads import PoolCode
from ...runtime.tiles import may_use_tiles
from ...runtime.variable import Declaration
from .entry_file import CacheEntry, Fields

ENTRY = "program.run"


class LaterSource(Source):
    """A model's text that is read again only when an error shows a position in it. It pickles as that text."""
    __slots__ = ("_find",)
    _find: Callable[[], Source]

    def __init__(self, find: Callable[[], Source]) -> None:
        object.__setattr__(self, "_find", find)

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (self.name, self.text)

    @property
    def name(self) -> str:
        return self._found().name

    @property
    def text(self) -> str | None:
        return self._found().text

    def _found(self) -> Source:
        """Return the text, or an empty one if the file is gone or has changed: the error must still print."""
        try:
            return self._find()
        except Problem:
            return Source("<model>", "")


# ---- to an entry -------------------------------------------------------------------------------------------------
def fields_of(code: Code, image: Image) -> tuple[Fields, list[Array]]:
    """Return the fields and arrays of an entry for some code."""
    arrays = [np.frombuffer(image.code, np.uint8), *code.constants]
    initials = [v.initial for v in code.variables if v.initial is not None]
    fields = {
        "image": image_fields(image),
        "name": code.signature.name,
        "inputs": list(map(tensor_fields, code.signature.inputs)),
        "outputs": list(map(tensor_fields, code.signature.outputs)),
        "arena": [code.arena_nbytes, code.arena_alignment],
        "pools": code.pools,
        "constants": len(code.constants),
        "variables": [[tensor_fields(v.tensor), v.initial is not None, position_fields(v.position), v.external]
                      for v in code.variables],
        "failures": [[f.message, f.help, f.kind, position_fields(f.position)] for f in code.failures],
        "parts": code.tasks,
        "interrupts": code.interrupts is not None,
        "steps": None if math.isinf(code.steps) else code.steps,
    }
    return fields, arrays + initials


def image_fields(image: Image) -> Fields:
    return {"form": image.form, "symbols": dict(image.symbols), "imports": image.imports, "tiles": image.tiles,
            "functions": image.functions}


def tensor_fields(tensor: Tensor) -> list[Any]:
    return [tensor.name, tensor.dtype, tensor.shape, tensor.element, tensor.quantization and tensor.quantization.fields()]


def position_fields(position: Position | None) -> list[Any] | None:
    """Return a position's fields; its source is None for the model's own text."""
    if position is None:
        return None
    name = position.source.name if position.source.text is None else None
    return [name, position.line, position.column, position.width, getattr(position, "path", None)]


# ---- from an entry -----------------------------------------------------------------------------------------------
def code_of(entry: CacheEntry, own: Source, caller: Callable[[], int], pool: Callable[[], PoolCode | None],
            interrupts: Callable[[], int]) -> Code:
    """Return the code in this process; positions in the model's own text are in `own`. Raises OSError if the system lets no
    process create code."""
    fields, arrays = entry.fields, iter(entry.arrays)
    loaded = loaded_image(fields["image"], next(arrays))
    address = loaded.address(ENTRY)
    constants = tuple(next(arrays) for _ in range(fields["constants"]))
    place = functools.partial(position_of, own=own)
    return Code(
        Signature(fields["name"], tuple(map(tensor_of, fields["inputs"])), tuple(map(tensor_of, fields["outputs"]))),
        function_at(address), loaded.close, fields["arena"][0], fields["arena"][1], tuple(fields["pools"]), constants,
        tuple(declaration_of(*v, arrays=arrays, place=place) for v in fields["variables"]),
        tuple(Failure(message, place(at), help, kind) for message, help, kind, at in fields["failures"]), address,
        math.inf if fields["steps"] is None else fields["steps"], caller, fields["parts"],
        pool if fields["parts"] > 1 else None, interrupts if fields["interrupts"] else None)


def loaded_image(fields: Fields, code: Array, bound: Callable[[Image], Image] | None = None) -> LoadedCode:
    """Return an image loaded in this process, without LLVM if the image is linked; `bound` changes the image before loading."""
    imports = tuple((name, at) for name, at in fields["imports"])
    image = Image(code.tobytes(), fields["symbols"], imports, fields["form"], fields["tiles"],
                  tuple((name, at, nbytes) for name, at, nbytes in fields["functions"]))
    if image.tiles and not may_use_tiles():
        raise OSError("this process may not use the tiles that the code needs")
    if bound is not None:
        image = bound(image)
    if image.form == "linked":
        return MappedCode(image)
    from ...lowering.machine_code.codegen import load_image
    return load_image(image)


def tensor_of(fields: list[Any]) -> Tensor:
    name, dtype, shape, element, told = fields
    return Tensor(name, dtype, tuple(shape), element, told and quantization_from(told))


def declaration_of(tensor: list[Any], has_initial: bool, at: list[Any] | None, external: bool, *, arrays: Iterator[Array],
                   place: Callable[[list[Any] | None], Position | None]) -> Declaration:
    found = tensor_of(tensor)
    initial = next(arrays).view(found.numpy_dtype).reshape(found.shape) if has_initial else None
    return Declaration(found, initial, place(at), external)


def position_of(fields: list[Any] | None, own: Source) -> Position | None:
    if fields is None:
        return None
    name, line, column, width, path = fields
    source = own if name is None else Source(name)
    if path is None:
        return Position(source, line, column, width)
    from ...lowering.graph.file_position import FilePosition
    return FilePosition(source, line, column, width, path=tuple(path))


def own_source(positions: Iterator[Position | None]) -> Source:
    """Return the text that a model was read from, if one of its positions refers to it."""
    known = (p.source for p in positions if p is not None and p.source.text is not None)
    return next(known, Source("<model>", ""))

