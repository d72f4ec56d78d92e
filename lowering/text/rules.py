"""The actions of the rules of `grammar.lark`: from the parts of a rule to a node of the syntax tree. Lark calls them while it
parses.

The methods hold no state but the counts of the text that a thread reads, so one parser serves all threads.
"""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ...runtime.limits import check_nodes
from .syntax import (
    AliasSyntax,
    AnyOperation,
    ArgumentSyntax,
    AttributeSyntax,
    BlockSyntax,
    DictionarySyntax,
    FileSyntax,
    FunctionSyntax,
    InlineSyntax,
    Leaf,
    ListSyntax,
    LocationSyntax,
    ModuleSyntax,
    OperationSyntax,
    RegionSyntax,
    ResourcesSyntax,
    ResultSyntax,
    SuccessorSyntax,
    SyntaxFault,
    TypesSyntax,
)

if TYPE_CHECKING:
    from lark import Token

MAXIMUM_DEPTH = 64
"""Maximum depth of nested regions, and of nested lists or dictionaries."""


class Reading(threading.local):
    """Counters of the text that this thread reads: the open brackets, and the operations so far."""
    depth = 0
    operations = 0


reading = Reading()
ENDS = ("return", "yield", "fetch", "scf.condition", "cf.br", "cf.cond_br", "cf.switch")
"""Names of terminators, which are not operators."""


class TokenFault(Exception):
    """A fault that a rule finds at a token while the parser runs."""

    def __init__(self, token: Token, fault: SyntaxFault) -> None:
        self.token, self.fault = token, fault


class Rules:
    """One method per rule of the grammar: from the rule's parts to a node. An absent optional part is None."""

    def start(self, *items: Any) -> FileSyntax:
        attributes: dict[str, AttributeSyntax] = {}
        types: dict[str, Token] = {}
        blobs: dict[str, Token] = {}
        for item in items:
            match item:
                case AliasSyntax(name, AttributeSyntax() as value):
                    define(attributes, name, value)
                case AliasSyntax(name, value):
                    define(types, name, value)
                case ResourcesSyntax(entries):
                    for name, value in entries:
                        define(blobs, name, value)
        operations = tuple(i for i in items if not isinstance(i, AliasSyntax | ResourcesSyntax))
        return FileSyntax(operations, attributes, types, blobs)

    def attribute_alias(self, name: Token, value: AttributeSyntax) -> AliasSyntax:
        return AliasSyntax(name, value)

    def type_alias(self, name: Token, value: Token) -> AliasSyntax:
        return AliasSyntax(name, value)

    def resources(self, *sections: Any) -> ResourcesSyntax:
        dialects = [entry for key, section in filter(None, sections) if key == "dialect_resources" for entry in section]
        return ResourcesSyntax(tuple(entry for _, section in dialects if isinstance(section, tuple)
                                     for entry in section if not isinstance(entry[1], tuple)))

    def section(self, key: Token, *entries: Any) -> tuple[Token, tuple[Any, ...]]:
        return key, tuple(e for e in entries if e)

    def resource_value(self, key: Token, value: Token) -> tuple[Token, Token]:
        return key, value

    # Operations

    def operation(self, results: Token | None, body: Any, location: LocationSyntax | None) -> AnyOperation:
        if isinstance(body, OperationSyntax) and not body.spelling.endswith(ENDS):
            reading.operations += 1
            check_nodes(reading.operations)
        if results and not isinstance(body, OperationSyntax):
            raise TokenFault(results, SyntaxFault(f"{body.keyword} has no results", 0, len(results), "type"))
        return body._replace(results=results, location=location) if results or location else body

    def generic(self, name: Token, operands: Token | None, successors: tuple[SuccessorSyntax, ...] | None,
                properties: DictionarySyntax | None, regions: tuple[RegionSyntax, ...] | None,
                attributes: DictionarySyntax | None, signature: Token) -> OperationSyntax:
        return OperationSyntax(name, name[1:-1], operands, TypesSyntax(signature), properties, (), attributes,
                               regions or (), successors=successors or ())

    def labels(self, _start: Token, *labels: Token) -> tuple[SuccessorSyntax, ...]:
        return tuple(map(SuccessorSyntax, labels))

    def properties(self, dictionary: DictionarySyntax) -> DictionarySyntax:
        return dictionary

    def regions(self, *regions: RegionSyntax) -> tuple[RegionSyntax, ...]:
        return regions

    def custom(self, name: Token, operands: Token | None, *rest: Any) -> OperationSyntax:
        *inline, attributes, signature = rest
        return OperationSyntax(name, str(name), operands, TypesSyntax(signature), None, tuple(inline), attributes)

    def custom_types(self, name: Token, operands: Token | None, *rest: Any) -> OperationSyntax:
        """`op %a, %b : T`, with one type for all and the result, or `op %a : T to U`."""
        *inline, attributes, types, after = rest
        if name.startswith("tosa."):
            raise TokenFault(types[0], SyntaxFault(f"expected types, as in (tensor<2xf32>) -> tensor<2xf32>, found {types[0]}"))
        before = types if after is not None else None
        return OperationSyntax(name, str(name), operands, TypesSyntax(None, before, types if after is None else after), None,
                               tuple(inline), attributes)

    def element_of(self, name: Token, tensor: Token, _start: Token, indices: Token | None, attributes: DictionarySyntax | None,
                   type: Token) -> OperationSyntax:
        return OperationSyntax(name, str(name), tuple(filter(None, (tensor, indices))), TypesSyntax(None, None, (type,)),
                               attributes=attributes)

    def constant(self, name: Token, value: AttributeSyntax) -> OperationSyntax:
        types = () if value.type is None else (value.type,)
        return OperationSyntax(name, str(name), types=TypesSyntax(None, (), types), initial=value)

    def condition(self, name: Token, condition: Token, attributes: DictionarySyntax | None, operands: Token | None,
                  types: tuple[Token, ...] | None) -> OperationSyntax:
        return OperationSyntax(name, str(name), tuple(filter(None, (condition, operands))), attributes=attributes)

    # Branches between blocks

    def successor(self, label: Token, operands: Token | None, types: tuple[Token, ...] | None) -> SuccessorSyntax:
        return SuccessorSyntax(label, operands, types or ())

    def jump(self, name: Token, successor: SuccessorSyntax, attributes: DictionarySyntax | None) -> OperationSyntax:
        return OperationSyntax(name, dialect_of(name), attributes=attributes, successors=(successor,))

    def fork(self, name: Token, condition: Token, first: SuccessorSyntax, second: SuccessorSyntax,
             attributes: DictionarySyntax | None) -> OperationSyntax:
        return OperationSyntax(name, dialect_of(name), (condition,), attributes=attributes, successors=(first, second))

    def switch(self, name: Token, flag: Token, type: Token, _start: Token, *rest: Any) -> OperationSyntax:
        *cases, attributes = rest
        if cases[0][0] is not None or any(number is None for number, _ in cases[1:]):
            raise TokenFault(name, SyntaxFault("the cases of a switch are the default, then one for each number"))
        return OperationSyntax(name, dialect_of(name), (flag,), TypesSyntax(None, (type,)), attributes=attributes,
                               successors=tuple(s for _, s in cases), cases=tuple(number for number, _ in cases[1:]))

    def case(self, *parts: Any) -> tuple[Token | None, SuccessorSyntax]:
        *number, successor = parts
        return (number[0] if number else None), successor

    def inline_value(self, name: Token, value: AttributeSyntax) -> InlineSyntax:
        return InlineSyntax(name, value)

    def inline_keyword(self, name: Token, keyword: Token) -> InlineSyntax:
        return InlineSyntax(name, AttributeSyntax(keyword, None))

    def empty_terminator(self, name: Token, attributes: DictionarySyntax | None) -> OperationSyntax:
        return OperationSyntax(name, str(name), types=TypesSyntax(None, ()), attributes=attributes)

    def terminator(self, name: Token, before: DictionarySyntax | None, operands: Token, after: DictionarySyntax | None,
                   types: tuple[Token, ...]) -> OperationSyntax:
        return OperationSyntax(name, str(name), operands, TypesSyntax(None, types), attributes=before or after)

    def conditional(self, name: Token, condition: Token, bindings: tuple[tuple[Token, Token], ...] | None,
                    type: Token | None, types: TypesSyntax | None, then: RegionSyntax, other: RegionSyntax | None,
                    attributes: DictionarySyntax | None) -> OperationSyntax:
        bound = bindings or ()
        if other is None and name != "scf.if":
            raise TokenFault(then.end, SyntaxFault("expected 'else' and the second region of tosa.cond_if"))
        other = other or RegionSyntax(then.end, then.end, (BlockSyntax(None, (), ()),), 1)
        types = types or TypesSyntax(None)
        if type is not None and (types.signature or not bound):
            types = types._replace(operands=(type,))
        return OperationSyntax(name, str(name), (condition, *(value for _, value in bound)), types,
                               attributes=attributes, regions=(then, other),
                               entry_names=tuple(n for n, _ in bound))

    def conditional_types(self, types: Token | tuple[Token, ...]) -> TypesSyntax:
        return TypesSyntax(None, None, types) if isinstance(types, tuple) else TypesSyntax(types)

    def result_types(self, types: Any) -> tuple[Token, ...]:
        return types if isinstance(types, tuple) and not isinstance(types, str) else (types,) if types else ()

    def loop(self, name: Token, bindings: tuple[tuple[Token, Token], ...] | None, signature: Token,
             before: DictionarySyntax | None, condition: RegionSyntax, body: RegionSyntax,
             after: DictionarySyntax | None) -> OperationSyntax:
        bound = bindings or ()
        return OperationSyntax(name, str(name), tuple(value for _, value in bound), TypesSyntax(signature),
                               attributes=before or after, regions=(condition, body),
                               entry_names=tuple(n for n, _ in bound))

    def bindings(self, *bindings: tuple[Token, Token] | None) -> tuple[tuple[Token, Token], ...]:
        return tuple(b for b in bindings if b)

    def binding(self, name: Token, value: Token) -> tuple[Token, Token]:
        return name, value

    def symbol(self, name: Token) -> Token:
        return name

    def variable_value(self, name: Token, symbol: Token, attributes: DictionarySyntax | None,
                       initial: AttributeSyntax) -> OperationSyntax:
        return OperationSyntax(name, "tosa.variable", attributes=attributes, symbol=symbol, initial=initial)

    def variable_type(self, name: Token, symbol: Token, attributes: DictionarySyntax | None,
                      type: Token) -> OperationSyntax:
        return OperationSyntax(name, "tosa.variable", attributes=attributes, symbol=symbol, declared=type)

    def variable_read(self, name: Token, symbol: Token, attributes: DictionarySyntax | None,
                      type: Token) -> OperationSyntax:
        return OperationSyntax(name, "tosa.variable_read", None, TypesSyntax(None, (), (type,)), attributes=attributes,
                               symbol=symbol)

    def variable_write(self, name: Token, symbol: Token, value: Token, attributes: DictionarySyntax | None,
                       type: Token) -> OperationSyntax:
        return OperationSyntax(name, "tosa.variable_write", (value,), TypesSyntax(None, (type,)), attributes=attributes,
                               symbol=symbol)

    def cast(self, name: Token, operands: Token | None, attributes: DictionarySyntax | None, before: tuple[Token, ...] | None,
             after: tuple[Token, ...]) -> OperationSyntax:
        return OperationSyntax(name, str(name), operands, TypesSyntax(None, before or (), after), attributes=attributes)

    def call(self, name: Token, symbol: Token, operands: Token | None, attributes: DictionarySyntax | None,
             signature: Token) -> OperationSyntax:
        return OperationSyntax(name, "func.call", operands, TypesSyntax(signature), attributes=attributes,
                               symbol=symbol)

    def types(self, *types: Token) -> tuple[Token, ...]:
        return types


    # Functions, modules, regions

    def function(self, keyword: Token, *rest: Any) -> FunctionSyntax:
        if keyword.type == "DOCUMENT_FUNC":
            rest = (None, *rest)
        visibility, symbol, parameters, results, attributes, body = rest
        return FunctionSyntax(keyword, visibility, symbol, parameters or (), results or (), attributes, body)

    def parameters(self, *parameters: ArgumentSyntax) -> tuple[ArgumentSyntax, ...]:
        return parameters

    def parameter(self, name: Token | None, type: Token, attributes: DictionarySyntax | None,
                  location: LocationSyntax | None) -> ArgumentSyntax:
        return ArgumentSyntax(name, type, attributes, location)

    def single_result(self, type: Token) -> tuple[ResultSyntax, ...]:
        return (ResultSyntax(type, None),)

    def result_list(self, *results: ResultSyntax | None) -> tuple[ResultSyntax, ...]:
        return tuple(r for r in results if r)

    def result(self, type: Token, attributes: DictionarySyntax | None) -> ResultSyntax:
        return ResultSyntax(type, attributes)

    def module(self, keyword: Token, symbol: Token | None, attributes: DictionarySyntax | None,
               body: RegionSyntax) -> ModuleSyntax:
        return ModuleSyntax(keyword, symbol, attributes, body)

    def region(self, start: Token, *rest: Any) -> RegionSyntax:
        *items, end = rest
        blocks = tuple(i for i in items if isinstance(i, BlockSyntax))
        operations = tuple(i for i in items if not isinstance(i, BlockSyntax))
        if operations or not blocks:
            blocks = (BlockSyntax(None, (), operations), *blocks)
        inner = [region.depth for block in blocks for operation in block.operations for region in operation.regions]
        return RegionSyntax(start, end, blocks, nested(start, inner, "regions"))

    def block(self, label: Token, arguments: tuple[ArgumentSyntax, ...] | None, *operations: Any) -> BlockSyntax:
        return BlockSyntax(label, arguments or (), operations)

    def block_arguments(self, *arguments: ArgumentSyntax) -> tuple[ArgumentSyntax, ...]:
        return arguments

    def block_argument(self, name: Token, type: Token, location: LocationSyntax | None) -> ArgumentSyntax:
        return ArgumentSyntax(name, type, None, location)

    # Attributes

    def attribute(self, value: Leaf, type: Token | None) -> AttributeSyntax:
        return AttributeSyntax(value, type)

    def dictionary(self, start: Token, *entries: tuple[Token, AttributeSyntax | None] | None) -> DictionarySyntax:
        kept = tuple(e for e in entries if e)
        return DictionarySyntax(start, kept, nested(start, [depth_of(v) for _, v in kept], "attributes"))

    def entry(self, key: Token, value: AttributeSyntax | None) -> tuple[Token, AttributeSyntax | None]:
        return key, value

    def elements(self, start: Token, *items: AttributeSyntax | None) -> ListSyntax:
        kept = tuple(i for i in items if i)
        return ListSyntax(start, kept, nested(start, [depth_of(i) for i in kept], "attributes"))

    def location(self, start: Token, *rest: Token) -> LocationSyntax:
        return LocationSyntax(start, rest[-1])


def dialect_of(name: Token) -> str:
    """Return `cf.br` for `br`, its name before it had a dialect of its own."""
    return str(name) if "." in name else f"cf.{name}"


def nested(token: Token, inner: list[int], what: str) -> int:
    """Return one more than the greatest depth inside; raise a fault if that is too deep."""
    depth = 1 + max(inner, default=0)
    if depth > MAXIMUM_DEPTH:
        raise TokenFault(token, SyntaxFault(f"{what} are nested more than {MAXIMUM_DEPTH} deep", kind="nesting"))
    return depth


def depth_of(attribute: AttributeSyntax | None) -> int:
    value = attribute.value if attribute else None
    return value.depth if isinstance(value, ListSyntax | DictionarySyntax) else 0


def define(table: dict[str, Any], name: Token, value: Any) -> None:
    """Define an alias or a blob, once."""
    key = name[1:-1] if name.type == "STRING" else str(name)
    if key in table:
        raise TokenFault(name, SyntaxFault(f"{name} is defined twice", kind="symbol"))
    table[key] = value
