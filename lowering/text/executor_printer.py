"""Executor operations -> text as TensorFlow prints it: the short form where the types allow it, `wraps` where an island holds
one operation and gives its results back.

Where one type does not say all, the signature stands in for it; an operation that has no such form is then printed in the
generic one.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..dialects.tf_executor.operators import (
    PARALLEL_ITERATIONS,
    ControlTrigger,
    Enter,
    ExecutorOp,
    Exit,
    Graph,
    Island,
    Merge,
    NextIterationSink,
    NextIterationSource,
    Switch,
    SwitchN,
    control_operands,
    data_operands,
    data_results,
    wrapped,
)
from ..dialects.tf_executor.types import INDEX_TYPE, PREDICATE
from ..graph.graph import Operation
from .attribute_printer import format_dictionary, format_signature, quoted

if TYPE_CHECKING:
    from .printer import Printer

SHORT_MERGE = 2
"""Data operands of the only Merge that has a short form."""


def print_executor(printer: Printer, operation: Operation, depth: int) -> None:
    match operation.op:
        case Graph():
            print_region(printer, operation, depth, "tf_executor.fetch")
        case Island():
            inner = wrapped(operation)
            if inner is not None and has_wrapping_form(operation, inner):
                printer.generic(inner, depth, lambda: f"{begin(printer, operation)} wraps ")
            else:
                print_region(printer, operation, depth, "tf_executor.yield")
        case SwitchN() | Exit() | ControlTrigger() if not has_short_form(operation):
            printer.generic(operation, depth, lambda: printer.results(operation.results))
        case _:
            text = node(printer, operation)
            results = printer.results(operation.results)
            printer.lines.append(f"{'  ' * depth}{results}{operation.op.name}{text}{end(printer, operation)}")


def has_wrapping_form(island: Operation, inner: Operation) -> bool:
    """Whether the short form of an island holds all that is known of it and of its one operation."""
    bare = not island.attributes and not island.regions[0].terminator_attributes
    return bare and inner.location == island.location and not isinstance(inner.op, ExecutorOp)


def begin(printer: Printer, operation: Operation) -> str:
    """Results and name, and the control operands of an island."""
    uses = printer.uses(operation.operands)
    return f"{printer.results(operation.results)}{operation.op.name}{f'({uses})' if uses else ''}"


def end(printer: Printer, operation: Operation) -> str:
    """Attributes and location."""
    text = f" {format_dictionary(operation.attributes, printer.elide)}" if operation.attributes else ""
    return text + (f" {operation.location}" if operation.location else "")


def print_region(printer: Printer, operation: Operation, depth: int, terminator: str) -> None:
    inner = printer.regions(operation.regions, depth, terminator)
    printer.lines += [f"{'  ' * depth}{begin(printer, operation)} {{", *inner,
                      f"{'  ' * depth}}}{end(printer, operation)}"]


def node(printer: Printer, operation: Operation) -> str:
    """An operation without a region, behind its name."""
    uses = printer.uses(operation.operands)
    match operation.op:
        case NextIterationSource():
            return f" : {operation.results[0].type}"
        case NextIterationSink():
            token, rest = printer.uses(operation.operands[:1]), printer.uses(operation.operands[1:])
            return f"[{token}] {rest} : {operation.operands[1].type}"
        case ControlTrigger():
            return f" {uses}"
        case SwitchN(num_outs=outputs):
            return f" {switch_n(printer, operation, outputs)}"
        case Enter() as enter:
            return f" {uses}{frame(enter)} : {types(operation)}"
        case _:
            return f" {uses} : {types(operation)}"


def switch_n(printer: Printer, operation: Operation, outputs: int) -> str:
    controls = printer.uses(control_operands(operation))
    behind = f" ({controls})" if controls else ""
    return f"{printer.uses(data_operands(operation))} of {outputs}{behind} : {operation.results[0].type}"


def frame(enter: Enter) -> str:
    iterations = enter.parallel_iterations
    parallel = f" parallel_iterations {iterations}" if iterations != PARALLEL_ITERATIONS else ""
    return f" frame {quoted(enter.frame_name)}{parallel}{' constant' * enter.is_constant}"


def types(operation: Operation) -> str:
    """One type where it says all, else the signature."""
    if has_short_form(operation):
        return str(operation.results[0].type)
    return format_signature(tuple(v.type for v in operation.operands), tuple(v.type for v in operation.results))


def has_short_form(operation: Operation) -> bool:
    """Whether the type of the first result says those of all data."""
    data = [v.type for v in data_operands(operation)]
    result = operation.results[0].type
    match operation.op:
        case Switch():
            return data == [result, PREDICATE] and operation.results[1].type == result
        case Merge():
            return data == [result] * SHORT_MERGE and operation.results[1].type == INDEX_TYPE
        case ControlTrigger():  # without operands TensorFlow takes the names of the next results for some
            return bool(operation.operands)
        case SwitchN():
            return data == [result, INDEX_TYPE] and all(v.type == result for v in data_results(operation))
        case _:
            return data == [result]
