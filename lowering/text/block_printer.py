"""The blocks of a function (`dialects.standard.blocks`) -> MLIR text, with the branches between them in their custom form."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..dialects.standard.blocks import COND_BRANCH, RETURN, SWITCH, Blocks, Exit
from ..graph.graph import Block, Operation, Value
from .attribute_printer import format_dictionary


class Printer(Protocol):
    """The printer of operations as lines, which knows names: `printer.Printer`."""
    lines: list[str]

    def define(self, value: Value) -> str: ...
    def uses(self, values: Sequence[Value]) -> str: ...
    def operation(self, operation: Operation, depth: int) -> None: ...


def print_blocks(printer: Printer, operation: Operation, depth: int) -> None:
    """Append the lines of all blocks, the first one without a header."""
    op = operation.op
    assert isinstance(op, Blocks)
    for number, (block, end) in enumerate(zip(operation.regions, op.exits, strict=True)):
        if number:
            arguments = ", ".join(f"{printer.define(v)}: {v.type}" for v in block.arguments)
            printer.lines.append(f"{'  ' * depth}^bb{number}{f'({arguments})' if arguments else ''}:")
        for inner in block.operations:
            printer.operation(inner, depth + 1)
        printer.lines.append(f"{'  ' * depth}  {terminator(printer, block, end)}")


def terminator(printer: Printer, block: Block, end: Exit) -> str:
    attributes = f" {format_dictionary(block.terminator_attributes)}" if block.terminator_attributes else ""
    if end.spelling == RETURN:
        return f"return{attributes}{listed(printer, block.yields)}"
    targets = [f"^bb{target}{f'({listed(printer, values).lstrip()})' if values else ''}"
               for target, values in zip(end.targets, end.handed(block.yields))]
    decision = printer.uses(block.yields[:end.decides])
    if end.spelling == SWITCH:
        cases = ", ".join(f"{case}: {target}" for case, target in zip(("default", *end.cases), targets))
        return f"{end.spelling} {decision} : {block.yields[0].type}, [{cases}]{attributes}"
    first = f"{decision}, " if end.spelling == COND_BRANCH else ""
    return f"{end.spelling} {first}{', '.join(targets)}{attributes}"


def listed(printer: Printer, values: Sequence[Value]) -> str:
    """Return ` %a, %b : T, U`, or nothing."""
    return f" {printer.uses(values)} : {', '.join(str(v.type) for v in values)}" if values else ""
