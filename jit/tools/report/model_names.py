"""What the model calls the buffers of a program: the names of tensors in its file, where it has names for them.

A buffer has the name of the value that is stored in it, and parts of its own behind a dot where one value has several; a value
of an imported model is a number. What the model calls it is the name at the position of the operation that computes it.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ....lowering.memory.plan import names_of

if TYPE_CHECKING:
    from ....lowering.graph.graph import Function
    from ...stage_data import LoweredData


def model_names(lowered: LoweredData) -> dict[str, str]:
    """By a buffer's name what the model calls it: no two the same, and none the name of another buffer."""
    program, planned = lowered.program, names_of(lowered.program)
    values = names_of_values(lowered.module.function(lowered.traced.name))
    values |= {b.name: called for b, called in zip(program.outputs, names_of_results(lowered.traced.function)) if called}
    taken = {*planned.values(), *(b.name for b in planned), *(use.buffer.name for use in program.variables)}
    found: dict[str, str] = {}
    for is_constant in (False, True):  # results first: a constant may be called as the operator is that reads it
        names = {n for b, name in planned.items() if (b.role == "constant") is is_constant for n in (b.name, name)}
        labels = {name: of_buffer(name, values) for name in sorted(names)}
        called = {name: label for name, label in labels.items() if label and label != name}
        count = Counter(called.values())
        own = {name: label if count[label] == 1 and label not in taken else f"{label} (%{name})"
               for name, label in called.items()}
        taken |= set(own.values())
        found |= own
    return found


def names_of_values(function: Function) -> dict[str, str]:
    """What the model calls the values of a function, by their names."""
    return {value.name: operation.position.name for operation in function.body.walk() for value in operation.results
            if operation.position is not None and operation.position.name}


def of_buffer(name: str, values: Mapping[str, str]) -> str | None:
    """What the model calls a buffer: a value, or a part of one."""
    if name in values:
        return values[name]
    value, dot, part = name.rpartition(".")
    return f"{values[value]}.{part}" if dot and value in values else None


def names_of_results(function: Function) -> Iterator[str | None]:
    """What the model calls the results of a function, where it says it."""
    for attributes in function.result_attributes or ({},) * len(function.body.yields):
        yield name_of_result(attributes)


def name_of_result(attributes: Mapping[str, Any]) -> str | None:
    path = attributes.get("tf_saved_model.index_path")
    found = attributes.get("onnx.name") or (path[0] if isinstance(path, tuple) and len(path) == 1 else None)
    return found if isinstance(found, str) and found else None
