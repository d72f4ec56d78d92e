"""MLIR text -> the tensor graph.

`read_module` checks its input (size, encoding, bytecode), parses it to a syntax tree and builds functions and declarations from
that; `verify` of the graph then checks the result. Any error in a text is a `Problem` at its line and column.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Position, Problem, Source
from ..dialects import tosa, tosaic  # noqa: F401  registers the operators
from ..graph.graph import AbsentFunction, Block, Function, Module, Operation
from ..graph.types import Type
from .attribute_reader import AttributeReader
from .attributes import Attribute, FunctionType
from .blocks import read_blocks
from .executor import read_special
from .names import Scopes
from .operations import RETURNS, OperationReader
from .parser import parse
from .syntax import AnyOperation, DictionarySyntax, FunctionSyntax, ModuleSyntax, OperationSyntax, RegionSyntax, place
from .types import TypeReader

if TYPE_CHECKING:
    from lark import Token

MAXIMUM_SIZE = 1 << 31
"""Characters of a text."""
PRIVATE = ("private", "nested")
BYTECODE = b"ML\xefR"
SEPARATOR = re.compile(r"^// -----[ \t]*$", re.MULTILINE)
CODE = re.compile(r"(?:\s|//[^\n]*+)*+\S")


def read_module(text: str | bytes, name: str = "<text>") -> Module:
    """Return the module of an MLIR text.

    `name` is the name of the text in problems. Raises a Problem for a text that is not UTF-8, too large, nested too deeply, or
    not supported MLIR.
    """
    return ModuleReader(Source(name, decoded(text, name))).module()


def read_modules(text: str | bytes, name: str = "<text>") -> tuple[Module, ...]:
    """The modules of a text that lines `// -----` split. Positions count from the beginning of the whole text."""
    whole = decoded(text, name)
    pieces, start = [], 0
    for match in SEPARATOR.finditer(whole):
        pieces.append((start, whole[start:match.start()]))
        start = match.end()
    pieces.append((start, whole[start:]))
    return tuple(ModuleReader(Source(name, "\n" * whole.count("\n", 0, at) + piece)).module()
                 for at, piece in pieces if len(pieces) == 1 or CODE.match(piece))


def decoded(text: str | bytes, name: str) -> str:
    """The characters of a text."""
    if len(text) > MAXIMUM_SIZE:
        raise Problem(f"{name} has {len(text)} characters, more than {MAXIMUM_SIZE}", kind="file")
    if isinstance(text, str):
        try:
            return text if text.isascii() else text.encode("utf-8").decode("utf-8")
        except UnicodeEncodeError as error:
            raise Problem(f"{name} holds half a surrogate pair at character {error.start}", kind="file") from None
    if text.startswith(BYTECODE):
        raise Problem(f"{name} is MLIR bytecode, not text", kind="file",
                      help="turn it into text with tosa-opt, or with the converter's option --text")
    try:
        return bytes(text).removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        before = text[:error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise Problem(f"{name} is not UTF-8: byte {text[error.start]:#04x} at line {line}, byte {column}",
                      kind="file") from None


class ModuleReader:
    """Builds one module."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.syntax = parse(source)
        self.types = TypeReader(source, self.syntax.type_aliases)
        self.attributes = AttributeReader(source, self.types, self.syntax.attribute_aliases, self.syntax.blobs)

    def module(self) -> Module:
        """The module of the text: the one that it writes, or all that it holds."""
        modules = [o for o in self.syntax.operations if is_module(o)]
        if not modules:
            return self.build(self.syntax.operations, None, {}, None)
        other = next((o for o in self.syntax.operations if o is not modules[0]), None)
        if other is not None:
            raise Problem("expected the end of the text after the module", self.place(other), kind="syntax",
                          help="read_modules takes texts that lines // ----- split")
        match modules[0]:
            case ModuleSyntax(_, symbol, attributes, body) as syntax:
                name = self.attributes.symbol(symbol)[0] if symbol else None
                return self.build(self.only_block(body), name, self.attributes.dictionary(attributes), syntax)
            case OperationSyntax() as syntax:
                given = self.generic_attributes(syntax)
                symbol_name = given.pop("sym_name", None)
                name = symbol_name if isinstance(symbol_name, str) else None
                return self.build(self.only_block(self.only_region(syntax)), name, given, syntax)
            case _:
                raise AssertionError("a function is no module")

    def build(self, items: Sequence[AnyOperation], name: str | None, attributes: Mapping[str, Attribute],
              syntax: AnyOperation | None) -> Module:
        functions: list[Function] = []
        declarations: list[Operation] = []
        absent = [AbsentFunction(f.name, f.problem, f.is_private) for f in self.syntax.unread]
        reader = OperationReader(self.source, self.types, self.attributes, Scopes(self.source), read_special)
        for item in items:
            if isinstance(item, FunctionSyntax) and item.body is None:
                absent.append(self.declared(item))
            elif isinstance(item, FunctionSyntax):
                self.understood(item, functions, absent)
            elif isinstance(item, OperationSyntax) and item.spelling == "func.func":
                functions.append(self.generic_function(item))
            elif is_module(item):
                raise Problem("a module inside a module is not supported", self.place(item), kind="unsupported")
            else:
                operation = reader.any_operation(item, RETURNS)
                declarations += [operation] if operation else []
        position = self.place(syntax) if syntax else Position(self.source, 1, 1)
        if not functions and (first := next((f for f in absent if f.types is None), None)):
            raise first.problem
        return Module(tuple(functions), tuple(declarations), name, attributes, position, tuple(absent))

    def understood(self, syntax: FunctionSyntax, functions: list[Function], absent: list[AbsentFunction]) -> None:
        """Read a function; one that holds something that is not supported is absent, and others need not care."""
        try:
            functions.append(self.function(syntax))
        except Problem as problem:
            if problem.kind != "unsupported":
                raise
            absent.append(AbsentFunction(self.attributes.symbol(syntax.symbol)[0], problem, syntax.visibility in PRIVATE))

    def declared(self, syntax: FunctionSyntax) -> AbsentFunction:
        """A function without a body: it is somewhere else."""
        name = self.attributes.symbol(syntax.symbol)[0]
        if syntax.visibility not in PRIVATE:
            raise Problem(f"the function {syntax.symbol} has no body", place(self.source, syntax.symbol), kind="syntax",
                          help="a declaration is private")
        problem = Problem(f"the function {syntax.symbol} has no body", place(self.source, syntax.symbol), kind="unsupported",
                          help="give the text of what it does")
        takes = tuple(self.types.value(p.type) for p in syntax.parameters)
        return AbsentFunction(name, problem, True, (takes, tuple(self.types.value(r.type) for r in syntax.declared)))

    def function(self, syntax: FunctionSyntax) -> Function:
        """A function in the custom form."""
        assert syntax.body is not None
        entry = self.entry(syntax, syntax.body)
        operations = OperationReader(self.source, self.types, self.attributes, Scopes(self.source), read_special)
        results = tuple(self.types.value(r.type) for r in syntax.declared)
        return Function(self.attributes.symbol(syntax.symbol)[0], self.body(operations, syntax.body, entry, results), results,
                        self.attributes.dictionary(syntax.attributes),
                        self.each(p.attributes for p in syntax.parameters),
                        self.each(r.attributes for r in syntax.declared), syntax.visibility in PRIVATE,
                        place(self.source, syntax.symbol))

    def body(self, operations: OperationReader, region: RegionSyntax, entry: Sequence[tuple[Token, Type]],
             results: tuple[Type, ...]) -> Block:
        """The body of a function, of one block or of several."""
        if len(region.blocks) > 1:
            return read_blocks(operations, region, entry, results)
        return operations.region(region, entry, RETURNS)

    def entry(self, syntax: FunctionSyntax, body: RegionSyntax) -> list[tuple[Token, Type]]:
        """The arguments that a signature names; none where the header of the first block does."""
        types = [self.types.value(p.type) for p in syntax.parameters]
        names = [p.name for p in syntax.parameters]
        first = body.blocks[0]
        if names and None not in names:
            if first.label is not None:
                raise Problem(f"the arguments of {syntax.symbol} are named in its signature, its first block has no header",
                              place(self.source, first.label), kind="syntax")
            return [(name, type) for name, type in zip(names, types) if name is not None]
        if names and first.label is None:
            number = names.index(None)
            position = place(self.source, syntax.parameters[number].type)
            raise Problem(f"argument {number} of {syntax.symbol} has no name", position, kind="syntax",
                          help="the signature names it, or the header of the first block")
        header = [self.types.value(a.type) for a in first.arguments]
        if header != types:
            raise Problem(f"{syntax.symbol} takes ({', '.join(map(str, types))}), its first block "
                          f"({', '.join(map(str, header))})", place(self.source, first.label or syntax.symbol), kind="type")
        return []

    def each(self, dictionaries: Iterable[DictionarySyntax | None]) -> tuple[Mapping[str, Attribute], ...]:
        return tuple(self.attributes.dictionary(d) for d in dictionaries)

    def generic_function(self, syntax: OperationSyntax) -> Function:
        """A function in the generic form."""
        given = self.generic_attributes(syntax)
        name, type = given.pop("sym_name", None), given.pop("function_type", None)
        if not isinstance(name, str) or not isinstance(type, FunctionType):
            raise Problem("func.func needs the attributes sym_name and function_type", self.place(syntax),
                          kind="attribute")
        visibility = given.pop("sym_visibility", "public")
        arguments, results = given.pop("arg_attrs", ()), given.pop("res_attrs", ())
        operations = OperationReader(self.source, self.types, self.attributes, Scopes(self.source), read_special)
        body = self.body(operations, self.only_region(syntax), (), type.results)
        found: tuple[Type, ...] = tuple(a.type for a in body.arguments)
        if found != type.operands:
            raise Problem(f"the block's arguments are ({', '.join(map(str, found))}), but the function's type says "
                          f"({', '.join(map(str, type.operands))})", body.position, kind="type")
        return Function(name, body, type.results, given, dictionaries(arguments, len(found)),
                        dictionaries(results, len(type.results)), visibility in PRIVATE, self.place(syntax))

    def generic_attributes(self, syntax: OperationSyntax) -> dict[str, Attribute]:
        return self.attributes.dictionary(syntax.attributes) | self.attributes.dictionary(syntax.properties)

    def only_region(self, syntax: OperationSyntax) -> RegionSyntax:
        if len(syntax.regions) != 1:
            raise Problem(f"{syntax.spelling} has one region, found {len(syntax.regions)}", self.place(syntax),
                          kind="type")
        return syntax.regions[0]

    def only_block(self, region: RegionSyntax) -> tuple[AnyOperation, ...]:
        if len(region.blocks) > 1:
            raise Problem("a module has one block", place(self.source, region.blocks[1].label or region.start),
                          kind="syntax")
        return region.blocks[0].operations

    def place(self, syntax: AnyOperation) -> Position:
        return place(self.source, syntax.name if isinstance(syntax, OperationSyntax) else syntax.keyword)


def is_module(syntax: AnyOperation) -> bool:
    if isinstance(syntax, OperationSyntax):
        return syntax.spelling == "builtin.module"
    return isinstance(syntax, ModuleSyntax)


def dictionaries(value: Attribute, count: int) -> tuple[Mapping[str, Attribute], ...]:
    """`arg_attrs` or `res_attrs`: one dictionary each, or none at all."""
    items = value if isinstance(value, tuple) else ()
    kept = tuple(v for v in items if isinstance(v, dict))
    return kept if len(kept) == count else ({},) * count
