"""Suggest the options of the command line that close the open extents of a function's inputs, for messages."""
from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Function

LEADING = 1
"""The suggestion for a first extent, which is usually the batch."""
INNER = {4: 224, 5: 16}
"""Suggestions for open extents behind the first, by rank: the usual sizes of images and volumes."""
ANY = 8


def shape_options(function: Function) -> str:
    """Return an option for each input with open extents: known extents as they are, one number for one name."""
    attributes: Iterable[Mapping[str, Sequence[str]]] = function.argument_attributes or ({},) * len(function.arguments)
    known: dict[str, int] = {}
    options = [shape_option(value.name, getattr(value.type, "shape", None), own.get("onnx.dimensions", ()), known)
               for value, own in zip(function.arguments, attributes) if not getattr(value.type, "is_static", True)]
    return " ".join(options)


def shape_option(name: str, shape: Sequence[int | None] | None, names: Sequence[str] = (),
                 known: dict[str, int] | None = None) -> str:
    """Return the option for an input of that shape, whose open extents may have names; `known` are the numbers of names."""
    if shape is None:
        return f"--shape {shlex.quote(f'{name}=')}EXTENTS"
    known = {} if known is None else known
    extents = []
    for axis, extent in enumerate(shape):
        suggested = LEADING if axis == 0 else INNER.get(len(shape), ANY)
        key = names[axis] if axis < len(names) else ""
        extents.append(extent if extent is not None else known.setdefault(key, suggested) if key else suggested)
    return f"--shape {shlex.quote(name + '=' + 'x'.join(map(str, extents)))}"
