"""The recorded calls of an example, as data and as a C header: the inputs of each entry function of a model, call by call, and
the expected outputs. `recorded_example` writes the program that compares them; `jit/projects` records them.

Where compiled code may round differently, an element of an output must be between a `least` and a `most`. Floats are compared
as integers in the order of floats, so that the comparison needs no floating-point arithmetic.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from .c_names import c_type
from .header_sections import comment
from .interface import CEntry, CInterface

Array = np.ndarray[Any, np.dtype[Any]]

COLUMNS = 120
FLOATS = {"float16": (16, 0x7c00), "bfloat16": (16, 0x7f80), "float32": (32, 0x7f80_0000), "float64": (64, 0x7ff0 << 48),
          "float8_e4m3fn": (8, 0x7e), "float8_e5m2": (8, 0x7c), "float6_e2m3fn": (6, 0x1f), "float6_e3m2fn": (6, 0x1f),
          "float4_e2m1fn": (4, 7)}
"""By dtype: bits of a float, and its largest non-NaN value, as bits without a sign; larger bits are a NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedOutput:
    """The expected value of an output: `values`, or the range from `least` to `most` if rounding may change it. An element
    whose least is above its most may have any value."""
    values: Array
    least: Array | None = None
    most: Array | None = None

    @property
    def lowest(self) -> Array:
        return self.values if self.least is None else self.least

    @property
    def highest(self) -> Array:
        return self.values if self.most is None else self.most


@dataclass(frozen=True, slots=True, eq=False)
class RecordedCall:
    """A call of an entry function: its inputs, its return code, and its outputs if the code is 0."""
    inputs: tuple[Array, ...]
    outputs: tuple[ExpectedOutput, ...]
    code: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The calls of each entry function of a model, the same number of each; they are made in turns, one of each function."""
    calls: tuple[tuple[RecordedCall, ...], ...]

    @property
    def count(self) -> int:
        return len(self.calls[0])


def data_header(interface: CInterface, recording: Recording) -> str:
    """Return the header with the arrays."""
    prefix = interface.prefix
    sections = [f"/* Recorded calls of {prefix}.h: what goes in, and what must come out. */",
                f"#ifndef {prefix.upper()}_RECORDED_H\n#define {prefix.upper()}_RECORDED_H", "#include <stdint.h>",
                f"#define {prefix.upper()}_RECORDED_CALLS {recording.count}"]
    for entry, calls in zip(interface.entries, recording.calls, strict=True):
        sections += entry_arrays(entry, calls)
    if any(word in text for text in sections for word in (" NAN", " INFINITY", "-INFINITY")):
        sections.insert(2, "#include <math.h>")
    return "\n\n".join([*sections, "#endif"]) + "\n"


def entry_arrays(entry: CEntry, calls: Sequence[RecordedCall]) -> list[str]:
    """Return the arrays of an entry function, by call."""
    codes = ", ".join(str(call.code) for call in calls)
    sections = [f"/* {comment(entry.program.name)} */\n"
                f"static const int32_t {entry.name}_recorded_codes[{len(calls)}] = {{{codes}}};"]
    for number, (buffer, name) in enumerate(entry.inputs.items()):
        sections.append(array_text(f"{entry.name}_recorded_input_{name}", buffer, [c.inputs[number] for c in calls]))
    for number, (buffer, name) in enumerate(entry.outputs.items()):
        expected = [c.outputs[number] if c.outputs else None for c in calls]
        exact = [None if e is None else e.values for e in expected]
        sections.append(array_text(f"{entry.name}_expected_{name}", buffer, exact))
        if is_bounded(calls, number):
            least = [None if e is None else e.lowest for e in expected]
            most = [None if e is None else e.highest for e in expected]
            sections += [array_text(f"{entry.name}_least_{name}", buffer, least),
                         array_text(f"{entry.name}_most_{name}", buffer, most)]
    return sections


def is_bounded(calls: Sequence[RecordedCall], number: int) -> bool:
    """True if an output has bounds in any call."""
    return any(call.outputs and call.outputs[number].least is not None for call in calls)


def array_text(name: str, buffer: Buffer, arrays: Sequence[Array | None]) -> str:
    """Return a C array with the elements of each call; zeros for a missing array."""
    size, element = max(1, buffer.size), c_type(buffer.dtype)
    rows = [folded([number_text(v, buffer.dtype) for v in ([0] if a is None else stored(a).tolist())]) for a in arrays]
    text = ",\n".join(f"    {{{row}}}" for row in rows)
    return f"static const {element} {name}[{len(arrays)}][{size}] = {{\n{text}\n}};"


def stored(array: Array) -> Array:
    """Return the elements as C stores them: floats without a C type as their bits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "b":
        return flat.astype(np.uint8)
    if flat.dtype.name not in ("float32", "float64") and (flat.dtype.kind == "f" or "float" in flat.dtype.name):
        return flat.view(f"u{flat.dtype.itemsize}")
    return flat if flat.dtype.name != "float32" else flat.astype(np.float64)


def number_text(value: Any, dtype: str) -> str:
    """Return an element as a C literal."""
    if dtype in ("float32", "float64") and isinstance(value, float):
        if np.isnan(value):
            return "NAN"
        if np.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        text = f"{value:.9g}" if dtype == "float32" else f"{value:.17g}"
        text = text if any(c in text for c in ".e") else f"{text}.0"
        return f"{text}f" if dtype == "float32" else text
    if value == -2 ** 63:
        return "INT64_MIN"
    if dtype == "int32" and value == -2 ** 31:
        return "INT32_MIN"
    return f"{value}{'LL' * (dtype == 'int64')}{'ULL' * (dtype == 'uint64')}"


def folded(words: Sequence[str]) -> str:
    """Return the words, separated by commas, in lines filled to the line width."""
    lines, width = [""], 0
    for word in words:
        if width + len(word) + 2 > COLUMNS - 6:
            lines.append("")
            width = 0
        lines[-1] += f"{word}, "
        width += len(word) + 2
    return "\n     ".join(line.rstrip() for line in lines).removesuffix(",")
