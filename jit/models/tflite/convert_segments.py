"""The parts of a .tflite file that go through the converter: all of them in one file, in one run; and where the converter
fails or leaves something that is not TOSA, which operator it was.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ....lowering.tflite.cut import cut, part_name
from ....lowering.tflite.divide import Part, part_of
from ....lowering.tflite.plan import Plan
from ....runtime.errors import Label, Position, Problem
from .from_tflite import SECONDS, converted, mapped, mlir_of_tflite

if TYPE_CHECKING:
    from ....lowering.flatbuffer.position import FilePosition
    from ....lowering.graph.graph import Function, Module

FOREIGN = re.compile(r"(?:tf|tfl)\.")
"""How operators are called that the converter has left as they were."""


def convert_parts(data: bytes, plan: Plan, name: str, meanwhile: Callable[[], None] | None = None) -> dict[Part, Function]:
    """The function of each part. Raises a Problem at the operator that the converter does not take."""
    if not plan.parts:
        return {}
    try:
        module = convert(cut(data, plan.model, plan.parts), name, meanwhile)
    except Problem as problem:
        raise blamed(data, plan, name, problem) from None
    return functions_of(module, plan.parts, plan.model.position)


def convert(data: bytes, name: str, meanwhile: Callable[[], None] | None = None) -> Module:
    """The module of a file of parts, its operations located by tensors: of bytecode, or text where that is not understood."""
    with converted(data, name, "Bytecode", SECONDS, meanwhile, True) as result:
        from ....lowering.bytecode.binary import Unreadable
        from ....lowering.bytecode.reader import read_module
        try:
            return read_module(mapped(result), name)
        except (Unreadable, Problem):
            pass
    from ....lowering.text.reader import read_module as read_text
    return read_text(mlir_of_tflite(data, name, located=True), f"{name} (as MLIR)")


def functions_of(module: Module, parts: Sequence[Part], position: FilePosition) -> dict[Part, Function]:
    """The functions by their parts; a single one is called main."""
    names = {f.name: f for f in module.functions}
    found = {p: names.get(part_name(i)) or (names.get("main") if i == 0 else None) for i, p in enumerate(parts)}
    result = {p: f for p, f in found.items() if f is not None
              and (len(f.arguments), len(f.body.yields)) == (len(p.inputs), len(p.outputs))}
    if len(result) != len(parts):
        raise Problem("the converter has not given back all parts of the model", position, kind="file")
    return result


# ---- whose fault it is -----------------------------------------------------------------------------------------------
def blamed(data: bytes, plan: Plan, name: str, problem: Problem) -> Problem:
    """The converter's problem at the first operator with which it has it; as it is, where that cannot be found."""
    def fails(part: Part) -> Problem | None:
        try:
            convert(cut(data, plan.model, [part]), name)
        except Problem as found:
            return found
        return None

    if problem.kind == "file" and problem.help is not None and "pip install" in problem.help:
        return problem
    for part in plan.parts:
        reason = fails(part)
        if reason is None:
            continue
        graph, first, count = plan.model.subgraphs[part.subgraph], 0, len(part.operators)
        while count - first > 1:
            middle = (first + count) // 2
            found = fails(part_of(graph, part.subgraph, part.operators[:middle]))
            first, count, reason = (middle, count, reason) if found is None else (first, middle, found)
        index = part.operators[first]
        kind = graph.operators[index].kind
        return Problem(f"{kind} cannot be converted to TOSA", graph.place(index), kind="unsupported",
                       labels=reason.labels or (Label(None, reason.message),),
                       help="write this operator in another way in the model, and convert the model again")
    return problem


def check_leftovers(module: Module) -> None:
    """A Problem for an operator that the converter has left, that no rewriting takes, and that something needs."""
    from ....lowering.rewrite.legalize import legalize
    from ....lowering.rewrite.prune import prune
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
    from ....lowering.graph.operator import UnknownOp
    for operation in function.body.walk():
        if isinstance(operation.op, UnknownOp) and FOREIGN.match(operation.op.spelling):
            return operation.op.spelling, operation.position
    return None
