"""The model's names for the buffers of a program: the names of tensors in its file, if it has names for them.

A buffer has the name of the value that is stored in it, followed by a dot and a part's name if one value has several; a value
of an imported model is a number. The model's name for it is the name at the position of the operation that computes it. An
operator's intermediate values have another number of elements; their names are the operator's followed by the plan's name.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....lowering.graph.result_names import name_of_result
from ....lowering.graph.types import TensorType, Type
from ....lowering.memory.plan import names_of

if TYPE_CHECKING:
    from ....lowering.elements.expression import Buffer
    from ....lowering.graph.graph import Function
    from ...stage_data import LoweredData

NUMBERED = re.compile(r"_\d+$")
"""Suffix of the name of a buffer whose name another buffer has, too."""


def model_names(lowered: LoweredData) -> dict[str, str]:
    """Return the model's name for each buffer, by the buffer's name: all distinct, and none the name of another buffer."""
    program, planned = lowered.program, names_of(lowered.program)
    known = Known.of(lowered)
    taken = {*planned.values(), *(b.name for b in planned), *(use.buffer.name for use in program.variables)}
    found: dict[str, str] = {}
    for is_constant in (False, True):  # results first: a constant may have the name of the operator that reads it
        buffers = {n: b for b, name in sorted(planned.items(), key=lambda item: item[1])
                   if (b.role == "constant") is is_constant for n in (b.name, name)}
        called = {name: label for name, b in buffers.items() if (label := known.of_buffer(b)) and label != name}
        count = Counter(called.values())
        plain = {name for name, label in called.items() if count[label] == 1 and label not in taken
                 and known.is_whole(label, buffers[name])}
        found |= {name: label if name in plain else f"{label} (%{name})" for name, label in called.items()}
        taken |= set(found.values())
    return found


@dataclass(frozen=True, slots=True)
class Known:
    """The model's names for the values of a function, by the values' names, which several blocks may use; for the buffers that
    kernels write; and for its results."""
    values: Mapping[str, Sequence[tuple[str | None, Type]]]
    written: Mapping[Buffer, str]
    results: Mapping[Buffer, str]
    sizes: Mapping[str, int]
    """Number of elements of the last value with each of the model's names."""

    @classmethod
    def of(cls, lowered: LoweredData) -> Known:
        function, program = lowered.module.function(lowered.traced.name), lowered.program
        values: dict[str, list[tuple[str | None, Type]]] = {}
        sizes: dict[str, int] = {}
        for operation in function.body.walk():
            for value in operation.results:
                called = operation.position.name if operation.position else None
                values.setdefault(value.name, []).append((called, value.type))
                if called and isinstance(value.type, TensorType) and value.type.is_static and value.constant is None:
                    sizes[called] = value.type.size
        written = {k.out: k.position.name for k in program.kernels if k.position is not None and k.position.name}
        results = [name or values.get(value.name, [(None, value.type)])[0][0] for name, value in
                   zip(names_of_results(lowered.traced.function), function.body.yields)]
        return cls(values, written, {b: name for b, name in zip(program.outputs, results) if name}, sizes)

    def is_whole(self, label: str, buffer: Buffer) -> bool:
        """True if the value in a buffer may be all of the tensor of that name: in any layout, and type."""
        names = (buffer.name, NUMBERED.sub("", buffer.name))
        types = [type for name in names for called, type in self.values.get(name, ()) if called == label]
        own, wanted = [t for t in types if is_type_of(t, buffer)] or types, self.sizes.get(label)
        return not own or wanted is None or any(isinstance(t, TensorType) and t.size == wanted for t in own)

    def of_buffer(self, buffer: Buffer) -> str | None:
        """Return the model's name for a buffer: a result, a value, or a part of one."""
        if buffer in self.results:
            return self.results[buffer]
        whole, dot, part = buffer.name.rpartition(".")
        found = self.of_value(buffer, buffer.name)
        if found is None and dot:
            outputs = {b.name: name for b, name in self.results.items()}
            found = outputs.get(whole) or self.of_value(buffer, whole)
            return f"{found}.{part}" if found else None
        return found

    def of_value(self, buffer: Buffer, name: str) -> str | None:
        """Return the model's name for the value of that name in a buffer. If several values have the name (all buffers but the
        first then have a number after it), choose the value of the buffer's type, or the one that is written there."""
        found = self.values.get(name, ())
        if len(found) > 1 or not found:
            found = [*found, *self.values.get(NUMBERED.sub("", name), ())]
            found = [(label, type) for label, type in found if is_type_of(type, buffer)]
        labels = {label for label, _ in found}
        only = labels.pop() if len(labels) == 1 else self.written.get(buffer)
        return only if only in {label for label, _ in found} else None


def is_type_of(type: Type, buffer: Buffer) -> bool:
    return isinstance(type, TensorType) and type.shape == buffer.shape and type.element.storage == buffer.dtype


def names_of_results(function: Function) -> Iterator[str | None]:
    """Yield the model's names for the results of a function; None for a result without one."""
    for attributes in function.result_attributes or ({},) * len(function.body.yields):
        yield name_of_result(attributes)
