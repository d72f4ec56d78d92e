"""The tensor graph -> MLIR text that reads back to an equal graph.

Functions and modules print in their custom form, operations in the generic one, which all tools exchange; those of TensorFlow's
executor print as TensorFlow prints them. Names are kept if they are unique and MLIR allows them.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...runtime.errors import printable
from ..dialects.standard.blocks import Blocks
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
from ..dialects.tf_executor.operators import PREFIX as EXECUTOR
from ..dialects.tf_executor.types import INDEX_TYPE, PREDICATE
from ..graph.graph import AbsentFunction, Block, Function, Module, Operation, Value
from ..graph.operator import UnknownOp
from ..graph.types import Type
from .attribute_printer import format_dictionary, format_signature, quoted, symbol
from .attributes import Attribute
from .block_printer import print_blocks
from .fields import field_attributes

IDENTIFIER = re.compile(r"[0-9]+|[A-Za-z_$.][A-Za-z0-9_$.]*(?:-[A-Za-z0-9_$.]+)*")


def as_identifier(wanted: str) -> str:
    """Return a name as MLIR can write it."""
    return wanted if IDENTIFIER.fullmatch(wanted) else "v" + re.sub(r"[^A-Za-z0-9_$.]", "_", wanted)


def print_module(module: Module, *, elide: int | None = None) -> str:
    """Return the text of a module. `elide`: constants of more elements print as a name only (to look at, not to read back)."""
    lines = [f"module{f' {symbol(module.name)}' if module.name else ''}{with_attributes(module.attributes)} {{"]
    printer = Printer(elide)
    for declaration in module.declarations:
        printer.operation(declaration, 1)
    lines += printer.lines
    for function in module.functions:
        lines += function_lines(function, 1, elide)
    lines += [f"  {absent_line(function)}" for function in module.absent]
    return "\n".join([*lines, "}", ""])


def absent_line(function: AbsentFunction) -> str:
    """Return a declaration; a comment for a function that is not understood."""
    if function.types is None:
        return f"// {symbol(function.name)} is left out: {printable(function.problem.message)}"
    arguments, results = function.types
    arrow = f" -> ({', '.join(map(str, results))})" if results else ""
    return f"func.func private {symbol(function.name)}({', '.join(map(str, arguments))}){arrow}"


def print_function(function: Function, *, elide: int | None = None) -> str:
    """Return the text of one function."""
    return "\n".join([*function_lines(function, 0, elide), ""])


def function_lines(function: Function, depth: int, elide: int | None) -> list[str]:
    printer = Printer(elide)
    indent = "  " * depth
    arguments = [f"{printer.define(v)}: {v.type}{beside(attributes)}"
                 for v, attributes in beside_each(function.arguments, function.argument_attributes)]
    results = [f"{t}{beside(attributes)}" for t, attributes in
               beside_each(function.result_types, function.result_attributes)]
    bare = len(results) == 1 and not any(function.result_attributes) and is_foreign(function)
    arrow = f" -> {results[0]}" if bare else f" -> ({', '.join(results)})" if results else ""
    printer.lines.append(f"{indent}func.func {'private ' if function.is_private else ''}{symbol(function.name)}"
                         f"({', '.join(arguments)}){arrow}{with_attributes(function.attributes)} {{")
    if isinstance(function.body.operations[0].op if function.body.operations else None, Blocks):
        print_blocks(printer, function.body.operations[0], depth)
        printer.lines.append(f"{indent}}}")
        return printer.lines
    for operation in function.body.operations:
        printer.operation(operation, depth + 1)
    yields = function.body.yields
    types = f" : {', '.join(str(v.type) for v in yields)}" if yields else ""
    printer.lines += [f"{indent}  return{' ' * bool(yields)}{printer.uses(yields)}{types}", f"{indent}}}"]
    return printer.lines


def is_foreign(function: Function) -> bool:
    """True if a function holds operations of TensorFlow's dialects, and is printed as TensorFlow prints it."""
    return any(o.op.foreign for o in function.body.operations)


def beside_each(items: Sequence[Any], attributes: Sequence[Mapping[str, Attribute]]) -> Iterable[tuple[Any, Any]]:
    """Yield each item with its dictionary, an empty one if it has none."""
    return zip(items, attributes or ({},) * len(items))


def beside(attributes: Mapping[str, Attribute]) -> str:
    return f" {format_dictionary(attributes)}" if attributes else ""


def with_attributes(attributes: Mapping[str, Attribute]) -> str:
    return f" attributes {format_dictionary(attributes)}" if attributes else ""


class Printer:
    """The printer of operations as lines, which knows the visible names."""

    def __init__(self, elide: int | None = None) -> None:
        self.lines: list[str] = []
        self.elide = elide
        self.names: dict[Value, str] = {}
        self.visible: set[str] = set()
        self.counters: dict[str, int] = {}

    def define(self, value: Value) -> str:
        """Return a new name for a value: its own, if that is free."""
        name = self.names[value] = f"%{self.free(value.name)}"
        return name

    def free(self, wanted: str) -> str:
        name = as_identifier(wanted)
        base = f"v{name}" if name[0].isdigit() else name
        while name in self.visible:
            self.counters[base] = self.counters.get(base, 0) + 1
            name = f"{base}_{self.counters[base]}"
        self.visible.add(name)
        return name

    def results(self, values: Sequence[Value]) -> str:
        """Return `%0 = `, `%0:2 = ` or `%a:2, %b = `."""
        parts: list[str] = []
        at = 0
        while at < len(values):
            count = group_at(values, at)
            parts.append(self.define(values[at]) if count == 1 else self.group(values[at:at + count]))
            at += count
        return ", ".join(parts) + " = " * bool(values)

    def group(self, values: Sequence[Value]) -> str:
        """Return a new name for several results: `%0:2`."""
        base = self.free(values[0].name.rpartition("#")[0])
        self.names.update((v, f"%{base}#{i}") for i, v in enumerate(values))
        return f"%{base}:{len(values)}"

    def uses(self, values: Sequence[Value]) -> str:
        return ", ".join(self.names.get(v, f"%{v.name}") for v in values)

    def operation(self, operation: Operation, depth: int) -> None:
        if isinstance(operation.op, ExecutorOp):
            print_executor(self, operation, depth)
        else:
            self.generic(operation, depth, lambda: self.results(operation.results))

    def generic(self, operation: Operation, depth: int, begin: Callable[[], str]) -> None:
        """Print the generic form; `begin` returns the text before the name, once the regions are printed."""
        op, indent = operation.op, "  " * depth
        operand_types = tuple(v.type for v in operation.operands)
        result_types = tuple(v.type for v in operation.results)
        known = not isinstance(op, UnknownOp)
        name = op.name if known else op.spelling  # type: ignore[attr-defined]
        properties = field_attributes(op, operand_types, result_types) if known else op.properties  # type: ignore[attr-defined]
        uses = self.uses(operation.operands)
        ends = [op.terminator_of(n) if op.foreign or known else None for n in range(len(operation.regions))]
        inner = self.regions(operation.regions, depth, ends)
        text = [f"{indent}{begin()}{quoted(name)}({uses})"]
        if properties:
            text.append(f" <{format_dictionary(properties, self.elide)}>")
        tail = f" {format_dictionary(operation.attributes, self.elide)}" if operation.attributes else ""
        tail += f" : {format_signature(operand_types, result_types)}"
        tail += f" {operation.location}" if operation.location else ""
        if not inner:
            self.lines.append("".join(text) + tail)
            return
        self.lines.append("".join(text) + " ({")
        self.lines += inner
        self.lines.append(f"{indent}}}){tail}")

    def regions(self, regions: Sequence[Block], depth: int, terminators: Sequence[str | None]) -> list[str]:
        """Return the lines of an operation's regions, between the outermost braces; one of `terminators` ends each block."""
        outer, self.lines = self.lines, []
        for number, (block, terminator) in enumerate(zip(regions, terminators)):
            if number:
                self.lines.append("  " * depth + "}, {")
            self.block(block, depth, terminator)
        lines, self.lines = self.lines, outer
        return lines

    def block(self, block: Block, depth: int, terminator: str | None) -> None:
        outer, self.visible = self.visible, set(self.visible)
        indent = "  " * depth
        arguments = ", ".join(f"{self.define(v)}: {v.type}" for v in block.arguments)
        if arguments:
            self.lines.append(f"{indent}^bb0({arguments}):")
        for operation in block.operations:
            self.operation(operation, depth + 1)
        if terminator:
            self.lines.append(f"{indent}  {self.terminator(block, terminator)}")
        self.visible = outer

    def terminator(self, block: Block, name: str) -> str:
        """Return the terminator of a block, in the generic form, except for those of the executor."""
        types: tuple[Type, ...] = tuple(v.type for v in block.yields)
        attributes, uses = beside(block.terminator_attributes), self.uses(block.yields)
        if name.startswith(EXECUTOR):
            return f"{name} {uses} : {', '.join(map(str, types))}{attributes}" if types else f"{name}{attributes}"
        return f"{quoted(name)}({uses}){attributes} : {format_signature(types, ())}"


def group_at(values: Sequence[Value], at: int) -> int:
    """Return the number of values from `at` on that are named `x#0`, `x#1`, ...; 1 if none are."""
    base, _, number = values[at].name.rpartition("#")
    if not base or number != "0":
        return 1
    count = 1
    while at + count < len(values) and values[at + count].name == f"{base}#{count}":
        count += 1
    return count


SHORT_MERGE = 2
"""Number of data operands of the only Merge that has a short form."""


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
    """True if the short form holds all information on an island and its one operation."""
    bare = not island.attributes and not island.regions[0].terminator_attributes
    return bare and inner.location == island.location and not isinstance(inner.op, ExecutorOp)


def begin(printer: Printer, operation: Operation) -> str:
    """Return results and name, and the control operands of an island."""
    uses = printer.uses(operation.operands)
    return f"{printer.results(operation.results)}{operation.op.name}{f'({uses})' if uses else ''}"


def end(printer: Printer, operation: Operation) -> str:
    """Return attributes and location."""
    text = f" {format_dictionary(operation.attributes, printer.elide)}" if operation.attributes else ""
    return text + (f" {operation.location}" if operation.location else "")


def print_region(printer: Printer, operation: Operation, depth: int, terminator: str) -> None:
    inner = printer.regions(operation.regions, depth, [terminator] * len(operation.regions))
    printer.lines += [f"{'  ' * depth}{begin(printer, operation)} {{", *inner,
                      f"{'  ' * depth}}}{end(printer, operation)}"]


def node(printer: Printer, operation: Operation) -> str:
    """Return the text of an operation without a region, after its name."""
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
    """Return one type if it determines all others, else the signature."""
    if has_short_form(operation):
        return str(operation.results[0].type)
    return format_signature(tuple(v.type for v in operation.operands), tuple(v.type for v in operation.results))


def has_short_form(operation: Operation) -> bool:
    """True if the type of the first result determines those of all data."""
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
