"""Constants in C: static arrays of the element type, with names from the model, and type and shape in a comment. Equal
constants of one type share an array.
"""
from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import field

import numpy as np

from ....runtime.arguments import MLIR_NAMES, tensor_text
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import Array
from ..c_object.data_symbols import bytes_of
from ..c_object.header_sections import comment
from .c_text import COLUMNS, float_text, memory_type, number


def words_of(text: str) -> str:
    """Return a model name as a part of a C identifier."""
    return re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "x"


@dataclass(slots=True)
class Constants:
    """The constants of one file. `names` is keyed by dtype and bytes; `taken` holds all names of the file."""
    taken: set[str]
    names: dict[tuple[str, bytes], str] = field(default_factory=dict)
    definitions: list[str] = field(default_factory=list)
    nbytes: int = 0

    def name(self, buffer: Buffer) -> str:
        """Return the name of the array that holds the data of a constant buffer."""
        assert buffer.data is not None
        contents = bytes_of(buffer.data)
        key = buffer.dtype, hashlib.sha256(contents).digest()
        if key not in self.names:
            self.names[key] = distinct_name(f"constant_{words_of(buffer.name)}", self.taken)
            self.nbytes += len(contents)
            self.definitions.append(definition(self.names[key], buffer, buffer.data))
        return self.names[key]


def distinct_name(wanted: str, taken: set[str]) -> str:
    """Return a name that the file does not use yet."""
    name, n = wanted, 1
    while name in taken:
        n += 1
        name = f"{wanted}_{n}"
    taken.add(name)
    return name


def definition(name: str, buffer: Buffer, data: Array) -> str:
    type = tensor_text(buffer.shape, MLIR_NAMES.get(buffer.dtype, buffer.dtype))
    return (f"/* {comment(buffer.name)}: {comment(type)} */\n"
            f"static const {memory_type(buffer.dtype)} {name}[{max(buffer.size, 1)}] = {{\n"
            + "\n".join(rows(elements(data))) + "\n};")


def elements(data: Array) -> list[str]:
    """Return the elements as C literals; at least one."""
    flat = np.ascontiguousarray(data).reshape(-1)
    if not flat.size:
        return ["0"]
    match flat.dtype.name:
        case "float32" | "float64" as dtype:
            return [float_text(x, dtype) for x in flat]
        case "int64" | "uint64" | "int32" | "int16" as dtype:
            return [number(x, dtype) for x in flat.tolist()]
        case "bool" | "int8" | "uint8" | "uint16" | "uint32":
            return list(map(str, flat.astype("u1" if flat.dtype.kind == "b" else flat.dtype).tolist()))
    return list(map(str, flat.view(f"u{flat.dtype.itemsize}").tolist()))


def rows(texts: Iterable[str]) -> list[str]:
    """Return the elements, separated by commas, in lines filled to the line width."""
    lines: list[str] = []
    line = "   "
    for text in texts:
        if len(line) + len(text) + 2 > COLUMNS:
            lines.append(line)
            line = "   "
        line += f" {text},"
    return [*lines, line.removesuffix(",")]
