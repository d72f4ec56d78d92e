"""`tosaic info`: the format and the contents of a model's file, without compiling it."""
from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from ..descriptors import TensorDescriptor
from ..models.model_facts import EntryFacts, ModelFacts, facts_of
from .answer import YES, Answer
from .model_options import path_of, shapes_of, standard_input
from .progress import Progress

MOST_SHOWN = 12
"""Maximum number of operators that a line shows; --json has all."""
MOST_LETTERS = 100
"""Maximum number of characters of the file's producer information that a line shows."""


def info(options: argparse.Namespace) -> Answer:
    """Return kind, producer, entries with their tensors, operators, constants and multiply-adds."""
    with Progress(f"reading {options.model}"):
        if options.model == "-":
            found = facts_of(standard_input(options), "<stdin>", shapes_of(options))
        else:
            found = facts_of(path_of(options.model), options.model, shapes_of(options))
    return Answer(YES, "\n".join(lines(found)), found.as_json())


def lines(facts: ModelFacts) -> Iterator[str]:
    size = "" if facts.nbytes is None else f", {facts.nbytes:,} bytes"
    yield f"{facts.name}: {facts.kind.words}{size}"
    for key, value in facts.made.items():
        yield f"  {key}: {value if len(value) <= MOST_LETTERS else value[:MOST_LETTERS] + '...'}"
    if facts.kind.extra:
        missing = facts.kind.missing
        state = f"{' and '.join(missing)} missing: pip install \"tosaic[{facts.kind.extra}]\"" if missing else "installed"
        yield f"  extra: {facts.kind.extra}, {state}"
    if facts.operators:
        yield f"  operators: {counted(facts.operators)}"
    for entry in facts.entries:
        yield from entry_lines(entry)


def entry_lines(entry: EntryFacts) -> Iterator[str]:
    yield f"entry {entry.name}"
    for title, tensors in (("input", entry.inputs), ("output", entry.outputs), ("variable", entry.variables)):
        for tensor in tensors:
            yield f"  {title} {tensor.name}: {described(tensor)}"
    if entry.operators is not None:
        yield f"  in TOSA: {counted(entry.operators) or 'no operators'}"
    if entry.constant_bytes is not None:
        yield f"  constants: {entry.constant_bytes:,} bytes"
    if entry.multiply_adds is not None:
        yield f"  multiply-adds: {entry.multiply_adds:,}"
    if entry.note:
        yield f"  note: {entry.note.removeprefix(f'{entry.name}: ')}"
    if entry.unknown:
        yield f"  not known: {entry.unknown}"


def counted(operators: Mapping[str, int]) -> str:
    """Return the total number of operators and the number of each, the most frequent first."""
    ordered = sorted(operators.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{n} {name}" for name, n in ordered[:MOST_SHOWN])
    more = f", {len(ordered) - MOST_SHOWN} others" if len(ordered) > MOST_SHOWN else ""
    return f"{sum(operators.values()):,}: {shown}{more}" if ordered else ""


def described(tensor: TensorDescriptor) -> str:
    """Return type, shape, and quantization as text."""
    extents = "*" if tensor.shape is None else ", ".join("?" if n is None else str(n) for n in tensor.shape)
    text = f"{tensor.dtype}[{extents}]"
    if tensor.quantization is None:
        return text
    if tensor.axis is None:
        return f"{text}, scale {tensor.scales[0]:.6g}, zero point {tensor.zero_points[0]}"
    return f"{text}, {len(tensor.scales)} scales along axis {tensor.axis}, {min(tensor.scales):.6g} to {max(tensor.scales):.6g}"
