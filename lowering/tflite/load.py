"""A .tflite file's bytes -> a verified module: the whole package in one call. A converter, which the caller provides, lowers
the operators that this package does not: partitions of the model without signatures, branches, loops and variables, all in one
file and one run. If it fails or leaves operations that are not TOSA, the operator at fault is searched for.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...runtime.errors import Label, Position, Problem
from ..bytecode.reader import read_module
from ..bytecode.sections import Unreadable
from ..graph.operator import UnknownOp
from ..rewrite.infer_shapes import verified
from ..rewrite.legalize import legalize
from ..rewrite.prune import prune
from .cut import partition_name, parts
from .decode import decode
from .divide import Partition, partition_of
from .import_plan import ImportPlan, plan_of

if TYPE_CHECKING:
    from ..graph.file_position import FilePosition
    from ..graph.graph import Function, Module
    from ..graph.types import Array

FOREIGN = re.compile(r"(?:tf|tfl)\.")
"""Pattern for names of operations that the converter has left unchanged."""


class Converter(NamedTuple):
    """A converter from a file of plain operators, given in parts, to MLIR, as bytecode or as text, with the names of tensors as
    locations. It calls `meanwhile` while it works, and raises a Problem if it refuses the file."""
    bytecode: Callable[[Sequence[bytes], str], memoryview]
    text: Callable[[Sequence[bytes], str], str]


def module_of_tflite(data: bytes, name: str, converter: Converter,
                     evaluated: Callable[[Module], Mapping[str, Array | None]]) -> Module:
    """Return the verified module of a .tflite file's bytes: a function for each of its signatures, or `main`; they share
    variables. `evaluated` returns the contents of variables after a function that initialises them. Raise a Problem at an
    operator that is wrong or not supported, or the converter's Problem."""
    plan = plan_of(decode(data, name))
    functions = convert_partitions(data, plan, name, converter)
    from .assemble import assemble, initialised  # while the converter works, earlier imports are enough
    module, initialiser = assemble(plan, functions)
    if initialiser is not None:
        module = initialised(module, evaluated(initialiser))
    found = verified(module)
    check_leftovers(found)
    return found


def convert_partitions(data: bytes, plan: ImportPlan, name: str, converter: Converter) -> dict[Partition, Function]:
    """Return the function of each partition. Raise a Problem at the operator that the converter refuses."""
    if not plan.partitions:
        return {}
    try:
        module = convert(parts(data, plan.model, plan.partitions), name, converter)
    except Problem as problem:
        raise blamed(data, plan, name, converter, problem) from None
    return functions_of(module, plan.partitions, plan.model.position)


def convert(file: Sequence[bytes], name: str, converter: Converter) -> Module:
    """Return the module of a file of partitions, given in parts: from bytecode, or from text if the bytecode is not
    understood."""
    bytecode = converter.bytecode(file, name)
    try:
        return read_module(bytecode, name)
    except (Unreadable, Problem):
        pass
    from ..text.reader import read_module as read_text
    return read_text(converter.text(file, name), f"{name} (as MLIR)")


def functions_of(module: Module, partitions: Sequence[Partition], position: FilePosition) -> dict[Partition, Function]:
    """Return the functions by their partitions; a single one is called main."""
    names = {f.name: f for f in module.functions}
    found = {p: names.get(partition_name(i)) or (names.get("main") if i == 0 else None) for i, p in enumerate(partitions)}
    result = {p: f for p, f in found.items() if f is not None
              and (len(f.arguments), len(f.body.yields)) == (len(p.inputs), len(p.outputs))}
    if len(result) != len(partitions):
        raise Problem("the converter has not given back all partitions of the model", position, kind="file")
    return result


# ---- the operator at fault -------------------------------------------------------------------------------------------
def blamed(data: bytes, plan: ImportPlan, name: str, converter: Converter, problem: Problem) -> Problem:
    """Return the converter's problem at the first operator that causes it; unchanged if that operator is not found."""
    def fails(partition: Partition) -> Problem | None:
        try:
            convert(parts(data, plan.model, [partition]), name, converter)
        except Problem as found:
            return found
        return None

    if problem.kind == "file" and problem.help is not None and "pip install" in problem.help:
        return problem
    for partition in plan.partitions:
        reason = fails(partition)
        if reason is None:
            continue
        graph, first, count = plan.model.subgraphs[partition.subgraph], 0, len(partition.operators)
        while count - first > 1:
            middle = (first + count) // 2
            found = fails(partition_of(graph, partition.subgraph, partition.operators[:middle]))
            first, count, reason = (middle, count, reason) if found is None else (first, middle, found)
        index = partition.operators[first]
        kind = graph.operators[index].kind
        return Problem(f"{kind} cannot be converted to TOSA", graph.place(index), kind="unsupported",
                       labels=reason.labels or (Label(None, reason.message),),
                       help="write this operator in another way in the model, and convert the model again")
    return problem


def check_leftovers(module: Module) -> None:
    """Raise a Problem for an operator that the converter has left, that no rewrite replaces, and that something needs."""
    if not any(leftover(f) for f in module.functions):
        return
    for function in prune(legalize(module)).functions:
        found = leftover(function)
        if found:
            name, position = found
            raise Problem(f"{name} cannot be converted to TOSA", position, kind="unsupported",
                          help="write this operator in another way in the model, and convert the model again")


def leftover(function: Function) -> tuple[str, Position | None] | None:
    """Return the name and the position of the first operation of a dialect that is not TOSA."""
    for operation in function.body.walk():
        if isinstance(operation.op, UnknownOp) and FOREIGN.match(operation.op.spelling):
            return operation.op.spelling, operation.position
    return None
