"""From the syntax of an attribute to its value: aliases and resources are followed, constants decoded."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from ...runtime.errors import Problem, Source
from ...runtime.records import dataclass
from ..dialects.tf.types import is_string
from ..graph.types import F64, I1, I64, ElementType, TensorType
from .attributes import Attribute, Dense, Dictionary, FunctionType, Number, Numbers, Symbol, Text, Unit
from .elements import decode, decode_blob
from .scalars import integer, real
from .strings import decode_strings, unescape
from .syntax import AttributeSyntax, DictionarySyntax, ListSyntax, LocationSyntax, SyntaxFault, place
from .typed_elements import IS_TYPED, decode_typed
from .types import AnyType, TypeReader

if TYPE_CHECKING:
    from lark import Token

MAXIMUM_EXPANSION = 100_000
"""Maximum number of attributes of one alias; nested aliases count at each use."""
MAXIMUM_DEPTH = 64
SYMBOL_PART = re.compile(r'@("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[\w$.-]+)')
PLACE_ALIAS = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|#[\w$.]+')
LONGEST_LOCATION, MAXIMUM_LOCATION_DEPTH = 4096, 16
INTEGER_LIST = re.compile(r"array<\s*([\w!]+)\s*(?::([^>]*))?>")


@dataclass()
class AttributeReader:
    """The reader of one text's attributes. `aliases` holds the definitions of `#name`, `blobs` the resources."""
    source: Source
    types: TypeReader
    aliases: Mapping[str, AttributeSyntax]
    blobs: Mapping[str, Token]
    known: dict[str, Attribute] = field(default_factory=dict)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def dictionary(self, syntax: DictionarySyntax | None) -> Dictionary:
        """Return the attributes of `{...}`; a name without a value is a unit attribute."""
        result: Dictionary = {}
        for key, value in syntax.entries if syntax else ():
            name = self.string(key) if key.type == "STRING" else str(key)
            if name in result:
                raise Problem(f"the attribute {name} is given twice", place(self.source, key), kind="syntax")
            result[name] = Unit.UNIT if value is None else self.read(value)
        return result

    def read(self, syntax: AttributeSyntax) -> Attribute:
        """Return the value of an attribute; raise a Problem at its position if it has none."""
        match syntax.value:
            case ListSyntax(_, items, _):
                return tuple(map(self.read, items))
            case DictionarySyntax():
                return self.dictionary(syntax.value)
            case LocationSyntax():
                return Text(self.location(syntax.value) or "loc(unknown)")
            case token:
                try:
                    return self.leaf(token, syntax.type)
                except SyntaxFault as fault:
                    raise fault.at(self.source, token) from None

    def type_of(self, syntax: AttributeSyntax) -> AnyType:
        """Return the type of a constant: the type after its colon, or the default type of a number."""
        if syntax.type is not None:
            return self.types.read(syntax.type)
        value = self.read(syntax)
        if isinstance(value, bool):
            return I1
        if isinstance(value, Number):
            return value.type
        raise Problem("expected ':' and the type of the constant", place(self.source, syntax.token), kind="syntax")

    def leaf(self, token: Token, type_token: Token | None) -> Attribute:
        match token.type:
            case "NUMBER":
                return self.number(token, type_token)
            case "STRING":
                text = self.string(token)
                return text if type_token is None else Text(f"{token} : {self.types.read(type_token)}")
            case "CURLY_STRING":
                return token[1:-1]
            case "SYMBOL":
                return Symbol(self.symbol(token))
            case "TYPE":
                return self.types.read(token)
            case "SIGNATURE":
                return FunctionType(*self.types.signature(token))
            case "DENSE":
                return self.constant(token, type_token)
            case "ARRAY":
                return self.numbers(token)
            case "HASH" if token in self.aliases:
                return self.follow(str(token))
            case "HASH" if "." not in token and "<" not in token:
                raise SyntaxFault(f"unknown attribute alias {token}", 0, len(token), "symbol")
            case "WORD" if token in ("true", "false"):
                return token == "true"
            case "WORD" if token == "unit":
                return Unit.UNIT
            case _:
                return Text(str(token) if type_token is None else f"{token} : {self.types.read(type_token)}")

    def number(self, token: Token, type_token: Token | None) -> Number:
        is_real = "." in token
        element = self.types.read(type_token) if type_token else F64 if is_real else I64
        if not isinstance(element, ElementType):
            assert type_token is not None
            raise Problem(f"a number cannot be of type {element}", place(self.source, type_token), kind="type")
        return Number(real(token, element) if element.is_float else integer(token, element), element)

    def numbers(self, token: Token) -> Numbers:
        match = INTEGER_LIST.fullmatch(token)
        if match is None:
            raise SyntaxFault("expected the element type and numbers, as in array<i64: 1, 2>")
        element, _ = self.types.scan(token, match.start(1))
        if not isinstance(element, ElementType):
            raise SyntaxFault(f"an array cannot hold {element}", match.start(1), kind="type")
        items = list(re.compile(r"[^,]+").finditer(token, match.start(2), match.end(2))) if match.group(2) else []
        return Numbers(tuple(item(i.group(), element, i.start()) for i in items), element)

    def constant(self, token: Token, type_token: Token | None) -> Attribute:
        if IS_TYPED.match(token):
            array, found = decode_typed(token, self.types.scan)
            if type_token is not None and self.types.read(type_token) != found:
                raise SyntaxFault(f"the constant is {found}, behind it is another type", len(token), kind="type")
            return Dense(array, found)
        if type_token is None:
            raise SyntaxFault("expected ':' and the type of the constant", len(token))
        type = self.types.read(type_token)
        if is_string(type):
            return decode_strings(token, type)
        if not isinstance(type, TensorType):
            return Text(f"{token} : {type}")
        if not token.startswith("dense_resource"):
            return Dense(decode(token, type), type)
        key = token[len("dense_resource<"):-1].strip().strip('"')
        if key not in self.blobs:
            raise SyntaxFault(f"the text has no resource {key}", len("dense_resource<"), len(key), "symbol",
                              "print the constants in full" if "elided" in key else "it belongs at the end, in {-# ... #-}")
        blob = self.blobs[key]
        try:
            return Dense(decode_blob(blob[1:-1], type), type)
        except SyntaxFault as fault:
            fault.offset += 1
            raise fault.at(self.source, blob) from None

    def follow(self, name: str) -> Attribute:
        """Return the attribute of an alias."""
        if name not in self.known:
            self.measure(self.aliases[name], 1, frozenset({name}))
            self.known[name] = self.read(self.aliases[name])
        return self.known[name]

    def measure(self, syntax: AttributeSyntax | None, depth: int, path: frozenset[str]) -> tuple[int, int]:
        """Return the number of attributes in an attribute with its aliases expanded, and their nesting depth; `path` holds the
        enclosing aliases.

        Raise a SyntaxFault if an alias contains itself, or is too large or too deep.
        """
        parts: Sequence[tuple[int, int]] = ()
        if depth > MAXIMUM_DEPTH:
            raise SyntaxFault(f"the alias stands for attributes nested more than {MAXIMUM_DEPTH} deep", kind="nesting")
        match syntax.value if syntax else None:
            case ListSyntax(_, items, _):
                parts = [self.measure(i, depth + 1, path) for i in items]
            case DictionarySyntax(_, entries, _):
                parts = [self.measure(v, depth + 1, path) for _, v in entries]
            case str() as name if name in path:
                raise SyntaxFault(f"the alias {name} contains itself", kind="symbol")
            case str() as name if name in self.aliases:
                if name not in self.sizes:
                    self.sizes[name] = self.measure(self.aliases[name], depth + 1, path | {name})
                parts = [self.sizes[name]]
            case _:
                pass
        weight, height = 1 + sum(w for w, _ in parts), 1 + max((h for _, h in parts), default=0)
        if weight > MAXIMUM_EXPANSION or depth + height > 2 * MAXIMUM_DEPTH:
            raise SyntaxFault(f"the alias stands for more than {MAXIMUM_EXPANSION} attributes", kind="nesting")
        return weight, height

    def location(self, syntax: LocationSyntax | None) -> str | None:
        """Return the text of `loc(...)` with its aliases expanded; unknown if that is long."""
        if syntax is None:
            return None
        text = self.place_of(syntax)
        for _ in range(MAXIMUM_LOCATION_DEPTH):
            if "#" not in text or len(text) > LONGEST_LOCATION:
                break
            text = PLACE_ALIAS.sub(self.place_alias, text)
        return f"loc({text})" if len(text) <= LONGEST_LOCATION else "loc(unknown)"

    def place_of(self, syntax: LocationSyntax) -> str:
        assert self.source.text is not None
        inner = self.source.text[syntax.start.end_pos:syntax.end.start_pos].strip()
        return inner.removeprefix("(").strip()

    def place_alias(self, match: re.Match[str]) -> str:
        if match.group().startswith('"') or "." in match.group():
            return match.group()
        found = self.aliases.get(match.group())
        text = self.place_of(found.value) if found and isinstance(found.value, LocationSyntax) else "unknown"
        return text if len(text) <= LONGEST_LOCATION else "unknown"

    def string(self, token: Token) -> str:
        """Return the string of a quoted token."""
        try:
            return unescape(token).decode("utf-8", "surrogateescape")
        except SyntaxFault as fault:
            raise fault.at(self.source, token) from None

    def symbol(self, token: Token) -> tuple[str, ...]:
        """Return the names of `@a::@"b c"`; of `"a"` and `1`, which older texts write, the one name."""
        try:
            names = SYMBOL_PART.findall(token) or [str(token)]
            return tuple(unescape(n).decode("utf-8") if n.startswith('"') else n for n in names)
        except UnicodeDecodeError:
            raise SyntaxFault("the name is not UTF-8", 0, len(token), "symbol").at(self.source, token) from None
        except SyntaxFault as fault:
            raise fault.at(self.source, token) from None


def item(text: str, element: ElementType, offset: int) -> int | float | bool:
    """Return one number of an array, with white space around it."""
    stripped = text.strip()
    at = offset + len(text) - len(text.lstrip())
    if element.kind == "bool" and stripped in ("true", "false"):
        return stripped == "true"
    return real(stripped, element, at) if element.is_float else integer(stripped, element, at)
