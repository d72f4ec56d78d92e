"""The printer of kernel programs, in the newer spelling, which reads back to an equal program.

Kernels that have a custom form print in it, the others in MLIR's generic one. Names are kept if they are unique.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ....lowering.text.attribute_printer import (
    format_attribute,
    format_dictionary,
    format_number,
    format_signature,
    quoted,
    symbol,
)
from ....lowering.text.attributes import Attribute, Number
from .kernel_program import Body, Function, Kernel, Program, Value, pairs_of
from .kernel_table import RETURN

NAME = re.compile(r"[0-9]+|[A-Za-z_$.][A-Za-z0-9_$.]*(?:-[A-Za-z0-9_$.]+)*")
LISTED = ("tfrt.new.chain", "tfrt.merge.chains", "tfrt.print.", "tfrt.add.", "corert.tensorhandle_to_int32")
"""Prefixes of the names of kernels that print as a list of operands."""


def print_program(program: Program) -> str:
    """Return the text of a program."""
    return "\n".join(line for function in program.functions for line in (*FunctionPrinter().function(function), ""))


class FunctionPrinter:
    """A printer of one function; `names` are those of its values."""

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []

    # Names

    def define(self, value: Value) -> str:
        wanted = (value.name or "ch").replace("#", "_")
        wanted = wanted if NAME.fullmatch(wanted) else f"v{wanted}"
        name, number = wanted, 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        self.names[value] = name
        return f"%{name}"

    def uses(self, values: Iterable[Value]) -> str:
        return ", ".join(f"%{self.names[v]}" for v in values)

    def passed(self, values: Iterable[Value]) -> str:
        return f"({self.uses(values)})"

    # Functions and bodies

    def function(self, function: Function) -> list[str]:
        arguments = ", ".join(f"{self.define(v)}: {v.type}" for v in function.body.arguments)
        results = function.result_types
        arrow = f" -> {results[0] if len(results) == 1 else listed(results)}" if results else ""
        attributes = f" attributes {format_dictionary(function.attributes)}" if function.attributes else ""
        self.lines.append(f"func.func {symbol(function.name)}({arguments}){arrow}{attributes} {{")
        self.body(function.body, "  ")
        return [*self.lines, "}"]

    def body(self, body: Body, indent: str) -> None:
        for kernel in body.kernels:
            self.kernel(kernel, indent)
        types = f" : {', '.join(v.type for v in body.returned)}" if body.returned else ""
        self.lines.append(f"{indent}{RETURN}{' ' * bool(types)}{self.uses(body.returned)}{types}")

    def region(self, body: Body, outside: tuple[Value, ...], indent: str) -> None:
        """Print a region, whose arguments have the names of the values passed to them; its other names stay local."""
        names = dict(self.names)
        self.names |= {argument: names[value] for argument, value in zip(body.arguments, outside)}
        self.body(body, indent + "  ")
        self.names = names

    # Kernels

    def kernel(self, kernel: Kernel, indent: str) -> None:
        form = FORMS.get(kernel.name) or (plain if kernel.name.startswith(LISTED) else with_data(kernel))
        text = form(self, kernel)
        named = is_used(kernel)
        regions, before = kernel.regions, len(self.lines)
        self.lines.append("")
        for number, region in enumerate(regions if form in (if_text, repeat_text) else ()):
            if number:
                self.lines.append(f"{indent}}} else {{")
            self.region(region, kernel.operands[1:], indent)
        if len(self.lines) > before + 1:
            self.lines.append(f"{indent}}}")
            text += " {"
        results = f"{', '.join(map(self.define, kernel.results))} = " if named else ""
        self.lines[before] = f"{indent}{results}{text}"


Form: TypeAlias = Callable[[FunctionPrinter, Kernel], str]


def is_used(kernel: Kernel) -> bool:
    """True if the results have names; results that a reader made have none and are used all the same."""
    return bool(kernel.results) and (kernel.results[0].name is not None or kernel.name == "tfrt.new.chain")


def listed(types: Iterable[str]) -> str:
    return f"({', '.join(types)})"


def signature(operands: Iterable[Value], results: Iterable[Value]) -> str:
    """`(types) -> (types)`"""
    return f"{listed(v.type for v in operands)} -> {listed(v.type for v in results)}"


def functions(kernel: Kernel, *names: str) -> str:
    return " ".join(format_attribute(kernel.attributes[name]) for name in names)


def generic(printer: FunctionPrinter, kernel: Kernel) -> str:
    attributes = f" {format_dictionary(kernel.attributes)}" if kernel.attributes else ""
    types = format_signature(kernel.operand_types, kernel.result_types)
    return f"{quoted(kernel.name)}{printer.passed(kernel.operands)}{attributes} : {types}"


def plain(printer: FunctionPrinter, kernel: Kernel) -> str:
    """`kernel %a, %b`"""
    if kernel.attributes:
        return generic(printer, kernel)
    types = f" : {', '.join(kernel.operand_types)}" if kernel.name == "tfrt.merge.chains" and kernel.operands else ""
    return f"{kernel.name}{' ' * bool(kernel.operands)}{printer.uses(kernel.operands)}{types}"


def with_data(kernel: Kernel) -> Form:
    """Return the form of a constant; for other kernels the generic one."""
    only_value = set(kernel.attributes) == {"value"}
    if kernel.name.startswith("tfrt.constant.") and only_value:
        return constant_text
    if kernel.name == "corert.const_dense_tensor" and only_value:
        return lambda printer, kernel: f"{kernel.name} {format_attribute(kernel.attributes['value'])}"
    if kernel.name.startswith(("corert.const_string_tensor", "corert.create_dense_tensor.")):
        return lambda printer, kernel: f"{kernel.name} {format_dictionary(kernel.attributes)}"
    return generic


def constant_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    value = kernel.attributes["value"]
    text = format_number(value.value, value.type) if isinstance(value, Number) else format_attribute(value)
    return f"{kernel.name} {text}"


def handler_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    """`corert.get_op_handler %ch "cpu"`"""
    return f"{kernel.name} {printer.uses(kernel.operands)} {format_attribute(kernel.attributes['name'])}"


def execute_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    context = 2 if kernel.name.endswith(".seq") else 1
    given = pairs(kernel.attributes)
    attributes = f" {format_dictionary(given)}" if given else ""
    count = len(kernel.results) - context + 1
    return (f"{kernel.name}{printer.passed(kernel.operands[:context])} {format_attribute(kernel.attributes['op_name'])}"
            f"{printer.passed(kernel.operands[context:])}{attributes} : {count}")


def pairs(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return the attributes of an operation as a dictionary."""
    return {key: value for name in ("op_attrs", "op_func_attrs") for key, value in pairs_of(attributes, name)}


def call_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    return (f"{kernel.name} {functions(kernel, 'callee')}{printer.passed(kernel.operands)} : "
            f"{signature(kernel.operands, kernel.results)}")


def branches_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    predicate, *operands = kernel.operands
    return (f"{kernel.name} {printer.uses([predicate])} {functions(kernel, 'a_true_fn', 'b_false_fn')} "
            f"{printer.passed(operands)} : {signature(operands, kernel.results)}")


def case_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    index, *operands = kernel.operands
    return (f"{kernel.name} {printer.uses([index])} {format_attribute(kernel.attributes['branches'])} "
            f"{printer.passed(operands)} : {signature(operands, kernel.results)}")


def while_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    predicate, *operands = kernel.operands
    parallel = kernel.attributes.get("parallel_iterations")
    suffix = f" parallel_iterations({parallel.value})" if isinstance(parallel, Number) else ""
    return (f"{kernel.name} {printer.uses([predicate])} {functions(kernel, 'body_fn')}{printer.passed(operands)}{suffix} : "
            f"{signature(operands, kernel.results)}")


def if_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    return f"{kernel.name} {printer.uses(kernel.operands)} : {signature(kernel.operands[1:], kernel.results)}"


def repeat_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    types = f" : {', '.join(kernel.result_types)}" if kernel.results else ""
    return f"{kernel.name} {printer.uses(kernel.operands)}{types}"


def tensor_cond_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    predicate, chain, *operands = kernel.operands
    return (f"{kernel.name} {printer.uses([predicate])} {functions(kernel, 'a_true_fn', 'b_false_fn')} "
            f"{printer.passed([chain, *operands])} : {signature(operands, kernel.results[1:])}")


def tensor_while_text(printer: FunctionPrinter, kernel: Kernel) -> str:
    return (f"{kernel.name} {functions(kernel, 'a_cond_fn', 'b_body_fn')} {printer.passed(kernel.operands)} : "
            f"{signature(kernel.operands[1:], kernel.results[1:])}")


FORMS: dict[str, Form] = {
    "corert.executeop": execute_text, "corert.executeop.seq": execute_text, "corert.get_op_handler": handler_text,
    "corert.register_op_handler": handler_text, "tfrt.call": call_text, "tfrt.cond": branches_text, "tfrt.case": case_text,
    "tfrt.while": while_text, "tfrt.if": if_text, "tfrt.repeat.i32": repeat_text, "corert.cond": tensor_cond_text,
    "corert.while": tensor_while_text}

