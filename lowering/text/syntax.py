"""The syntax tree of MLIR text: the nodes of the grammar's rules, before names, types and attributes are resolved.

Leaves are Lark's tokens (strings that know their line and column). Every form of an operation (generic, custom, control flow,
variables) becomes the same `OperationSyntax`, so that the reader treats them alike. The nodes are named tuples, because a text
has many of them and they are cheap to make.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...runtime.errors import Position, Problem, Source
from ...runtime.records import dataclass

if TYPE_CHECKING:
    from lark import Token


@dataclass(slots=True)
class SyntaxFault(Exception):
    """An error inside a token: the reader knows the token's position and makes a `Problem` of it."""
    message: str
    offset: int = 0
    width: int = 1
    kind: str = "syntax"
    help: str | None = None

    def at(self, source: Source, token: Token) -> Problem:
        """Return the fault as a Problem at `offset` characters from the token's first one."""
        return Problem(self.message, place(source, token, self.offset, self.width), kind=self.kind, help=self.help)


def place(source: Source, token: Token, offset: int = 0, width: int | None = None) -> Position:
    """Return the position of a token, or of the character `offset` inside it; tokens may span lines."""
    before = token[:offset]
    lines = before.count("\n")
    column = offset - before.rfind("\n") if lines else (token.column or 1) + offset
    return Position(source, (token.line or 1) + lines, column, len(token) if width is None else width)


class LocationSyntax(NamedTuple):
    """`loc(...)`, from the keyword to the closing parenthesis."""
    start: Token
    end: Token


class ListSyntax(NamedTuple):
    start: Token
    items: tuple[AttributeSyntax, ...]
    depth: int


class DictionarySyntax(NamedTuple):
    start: Token
    entries: tuple[tuple[Token, AttributeSyntax | None], ...]
    depth: int


Leaf: TypeAlias = "Token | ListSyntax | DictionarySyntax | LocationSyntax"


class AttributeSyntax(NamedTuple):
    """A value and the type after its colon."""
    value: Leaf
    type: Token | None

    @property
    def token(self) -> Token:
        """Token that marks the attribute's position."""
        match self.value:
            case ListSyntax(start, _, _) | DictionarySyntax(start, _, _) | LocationSyntax(start, _):
                return start
            case token:
                return token


class InlineSyntax(NamedTuple):
    """`axis(1)` or `nan_mode<IGNORE>`: an attribute in the strict form."""
    name: Token
    value: AttributeSyntax


class ArgumentSyntax(NamedTuple):
    """An argument of a block or function; a declared function may leave the name out."""
    name: Token | None
    type: Token
    attributes: DictionarySyntax | None
    location: LocationSyntax | None


class BlockSyntax(NamedTuple):
    label: Token | None
    arguments: tuple[ArgumentSyntax, ...]
    operations: tuple[AnyOperation, ...]


class RegionSyntax(NamedTuple):
    start: Token
    end: Token
    blocks: tuple[BlockSyntax, ...]
    depth: int


class TypesSyntax(NamedTuple):
    """The types of an operation: a signature token, or lists of them (operands None: not written)."""
    signature: Token | None
    operands: tuple[Token, ...] | None = None
    results: tuple[Token, ...] = ()


class SuccessorSyntax(NamedTuple):
    """A successor of a branch, with its operands: `^bb1(%a : T)`; the generic form has the operands elsewhere."""
    label: Token
    operands: Token | None = None
    types: tuple[Token, ...] = ()


class OperationSyntax(NamedTuple):
    """Any operation except functions and modules. `operands` is one token that holds the list, or one token each."""
    name: Token
    spelling: str
    operands: Token | tuple[Token, ...] | None = None
    types: TypesSyntax = TypesSyntax(None, None, ())
    properties: DictionarySyntax | None = None
    inline: tuple[InlineSyntax, ...] = ()
    attributes: DictionarySyntax | None = None
    regions: tuple[RegionSyntax, ...] = ()
    symbol: Token | None = None
    declared: Token | None = None
    """Type after the name of a variable."""
    initial: AttributeSyntax | None = None
    entry_names: tuple[Token, ...] = ()
    successors: tuple[SuccessorSyntax, ...] = ()
    cases: tuple[Token, ...] = ()
    """Case values of a `cf.switch`, one for each successor after the default."""
    results: Token | None = None
    location: LocationSyntax | None = None


class ResultSyntax(NamedTuple):
    type: Token
    attributes: DictionarySyntax | None


class FunctionSyntax(NamedTuple):
    keyword: Token
    visibility: Token | None
    symbol: Token
    parameters: tuple[ArgumentSyntax, ...]
    declared: tuple[ResultSyntax, ...]
    attributes: DictionarySyntax | None
    body: RegionSyntax | None
    results: Token | None = None
    location: LocationSyntax | None = None

    @property
    def regions(self) -> tuple[RegionSyntax, ...]:
        return (self.body,) if self.body else ()


class ModuleSyntax(NamedTuple):
    keyword: Token
    symbol: Token | None
    attributes: DictionarySyntax | None
    body: RegionSyntax
    results: Token | None = None
    location: LocationSyntax | None = None

    @property
    def regions(self) -> tuple[RegionSyntax, ...]:
        return (self.body,)


AnyOperation: TypeAlias = OperationSyntax | FunctionSyntax | ModuleSyntax


class AliasSyntax(NamedTuple):
    """`#name = attribute` or `!name = type`."""
    name: Token
    value: AttributeSyntax | Token


class ResourcesSyntax(NamedTuple):
    """The named blobs of `dialect_resources`."""
    entries: tuple[tuple[Token, Token], ...]


class FileSyntax(NamedTuple):
    """A text: operations in order, definitions of aliases, blobs by name, and the functions that could not be read."""
    operations: tuple[AnyOperation, ...]
    attribute_aliases: dict[str, AttributeSyntax]
    type_aliases: dict[str, Token]
    blobs: dict[str, Token]
    unread: tuple[UnreadFunction, ...] = ()


class UnreadFunction(NamedTuple):
    """A function with an unknown form: its name, the Problem, and whether only this module sees it."""
    name: str
    problem: Problem
    is_private: bool
