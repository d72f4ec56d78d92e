"""A .tflite file's bytes -> a verified module: what the whole folder does, in one call. What is not read here, partitions of
the model without signatures, branches, loops and variables, goes through a converter, which the caller brings: all partitions
in one file, in one run; and where it fails or leaves something that is not TOSA, the operator is found that it was.
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
"""How operators are called that the converter has left as they were."""


class Converter(NamedTuple):
    """What turns a file of plain operators, given in parts, into MLIR, as bytecode or as text, with the names of tensors as
    locations.
    `meanwhile` is called while it works. Raises a Problem where it refuses the file."""
    bytecode: Callable[[Sequence[bytes], str], memoryview]
    text: Callable[[Sequence[bytes], str], str]


def module_of_tflite(data: bytes, name: str, converter: Converter,
                     evaluated: Callable[[Module], Mapping[str, Array | None]]) -> Module:
    """The verified module of a .tflite file's bytes: a function for each of its signatures, or `main`; they share variables.
    `evaluated` gives what variables hold after a function that initialises them. Raises a Problem at the operator that is wrong
    or not supported, and as the converter does."""
    plan = plan_of(decode(data, name))
    functions = convert_partitions(data, plan, name, converter)
    from .assemble import assemble, initialised  # while the converter works, what comes before it is enough
    module, initialiser = assemble(plan, functions)
    if initialiser is not None:
        module = initialised(module, evaluated(initialiser))
    found = verified(module)
    check_leftovers(found)
    return found


def convert_partitions(data: bytes, plan: ImportPlan, name: str, converter: Converter) -> dict[Partition, Function]:
    """The function of each partition. Raises a Problem at the operator that the converter does not take."""
    if not plan.partitions:
        return {}
    try:
        module = convert(parts(data, plan.model, plan.partitions), name, converter)
    except Problem as problem:
        raise blamed(data, plan, name, converter, problem) from None
    return functions_of(module, plan.partitions, plan.model.position)


def convert(file: Sequence[bytes], name: str, converter: Converter) -> Module:
    """The module of a file of partitions, given in parts: of bytecode, or text where that is not understood."""
    bytecode = converter.bytecode(file, name)
    try:
        return read_module(bytecode, name)
    except (Unreadable, Problem):
        pass
    from ..text.reader import read_module as read_text
    return read_text(converter.text(file, name), f"{name} (as MLIR)")


def functions_of(module: Module, partitions: Sequence[Partition], position: FilePosition) -> dict[Partition, Function]:
    """The functions by their partitions; a single one is called main."""
    names = {f.name: f for f in module.functions}
    found = {p: names.get(partition_name(i)) or (names.get("main") if i == 0 else None) for i, p in enumerate(partitions)}
    result = {p: f for p, f in found.items() if f is not None
              and (len(f.arguments), len(f.body.yields)) == (len(p.inputs), len(p.outputs))}
    if len(result) != len(partitions):
        raise Problem("the converter has not given back all partitions of the model", position, kind="file")
    return result


# ---- whose fault it is -----------------------------------------------------------------------------------------------
def blamed(data: bytes, plan: ImportPlan, name: str, converter: Converter, problem: Problem) -> Problem:
    """The converter's problem at the first operator with which it has it; as it is, where that cannot be found."""
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
    """A Problem for an operator that the converter has left, that no rewriting takes, and that something needs."""
    if not any(leftover(f) for f in module.functions):
        return
    for function in prune(legalize(module)).functions:
        found = leftover(function)
        if found:
            name, position = found
            raise Problem(f"{name} cannot be converted to TOSA", position, kind="unsupported",
                          help="write this operator in another way in the model, and convert the model again")


def leftover(function: Function) -> tuple[str, Position | None] | None:
    """The first operation of a dialect that is not TOSA: its name and its place."""
    for operation in function.body.walk():
        if isinstance(operation.op, UnknownOp) and FOREIGN.match(operation.op.spelling):
            return operation.op.spelling, operation.position
    return None
