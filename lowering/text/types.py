"""Types in MLIR text: `tensor<2x?xf32>`, `!tosa.shape<4>`, signatures `(types) -> types`, and aliases of types.

Types come as coarse tokens and repeat often, so each spelling is read once per text. A type that is not a tensor of a known
element is kept as text (`OpaqueType`).
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from ...runtime.errors import Position, Source
from ..dialects.tf.types import PREFIX, TensorFlowType, tensorflow_tensor, tensorflow_type
from ..dialects.tf_executor.types import SPELLINGS
from ..graph.types import ELEMENT_TYPES, ElementType, OpaqueType, ShapeType, TensorType, Type
from .quantized import NAMES as QUANTIZED
from .quantized import read_quantized
from .syntax import SyntaxFault, place

if TYPE_CHECKING:
    from lark import Token

AnyType: TypeAlias = Type | ElementType
Signature: TypeAlias = tuple[tuple[Type, ...], tuple[Type, ...]]

GAP = re.compile(r"(?:\s|//[^\n]*+)*+")
NAME = re.compile(r"!?[A-Za-z_][\w$.]*")
DIMENSION = re.compile(r"\s*(\?|[0-9]+)\s*x")
SPACE = re.compile(r"\s+")
SHAPE = re.compile(r"<\s*([0-9]{1,4})\s*>")
BRACKET = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|->|[<>]')
OTHER_SCALARS = re.compile(r"[su]?i[0-9]{1,7}|tf32|f80|f128|b?f[0-9]E[0-9]M[0-9]\w*|none")
DOCUMENT = re.compile(r"tf\.[A-Za-z_]\w*\s+[%\d-]")
GENERIC_EXECUTOR = re.compile(r'"tf_executor\.')
"""Pattern of the generic form, which no document writes: its operands include no scalars."""
TENSORFLOW = ("!tf_type.", "!tf.", "!tf_executor", "!_tf_executor")
OLD_PREFIX = "!tf."
"""Prefix of TensorFlow's types in its dialect's design document."""
CONTAINERS = {"vector", "memref", "tuple", "complex"}
MAXIMUM_EXTENT = (1 << 63) - 1
ALIAS = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|![A-Za-z_]\w*+(?![\w$.<])')
MAXIMUM_DEPTH, LONGEST_OPAQUE = 32, 1 << 16


class TypeReader:
    """The reader of one text's types; `aliases` maps `!name` to the token of its definition.

    In texts of TensorFlow's design document a scalar is the type of a tensor without axes (`i32`).
    """

    def __init__(self, source: Source, aliases: dict[str, Token]) -> None:
        self.source, self.aliases = source, aliases
        self.scalars_are_tensors = is_document(source.text or "")
        self.types: dict[str, AnyType] = {}
        self.signatures: dict[str, Signature] = {}

    def read(self, token: Token) -> AnyType:
        """Return the type that a token spells; a scalar is an ElementType."""
        found = self.types.get(token)
        if found is None:
            try:
                found, end = self.scan(token, 0)
            except SyntaxFault as fault:
                raise fault.at(self.source, token) from None
            if end != len(token):
                raise SyntaxFault("expected the type to end here", end).at(self.source, token)
            self.types[str(token)] = found
        return found

    def value(self, token: Token) -> Type:
        """Return the type of a value: scalars are opaque."""
        return self.as_value(self.read(token))

    def signature(self, token: Token) -> Signature:
        """Return the operand types and result types of `(types) -> types`."""
        found = self.signatures.get(token)
        if found is None:
            try:
                found, _ = self.scan_signature(token, 0)
            except SyntaxFault as fault:
                raise fault.at(self.source, token) from None
            self.signatures[str(token)] = found
        return found

    def operand_position(self, token: Token, number: int) -> Position:
        """Return the position of type `number` in a signature's list."""
        at = skip(token, 1)
        for _ in range(number):
            at = skip(token, self.scan(token, at)[1])
            at = skip(token, at + 1)
        return place(self.source, token, at, max(1, self.scan(token, at)[1] - at))

    # Scanning: each takes a text and an offset, and returns its result and the offset after it.

    def scan(self, text: str, at: int, depth: int = 0) -> tuple[AnyType, int]:
        match = NAME.match(text, at)
        if match is None:
            raise SyntaxFault(f"expected a type{found_at(text, at)}", at)
        if depth > MAXIMUM_DEPTH:
            raise SyntaxFault(f"types or their aliases are nested more than {MAXIMUM_DEPTH} deep", at, kind="nesting")
        name, end = match.group(), match.end()
        if name == "tensor":
            return self.scan_tensor(text, at, end, depth)
        if name.startswith("!"):
            return self.scan_named(text, at, name, end, depth)
        if name in ELEMENT_TYPES:
            return ELEMENT_TYPES[name], end
        if OTHER_SCALARS.fullmatch(name):
            return OpaqueType(name), end
        if name in CONTAINERS and text[end:end + 1] == "<":
            end = angles(text, end)
            return self.opaque(text, at, end), end
        raise SyntaxFault(f"unknown type {name}", at, len(name), "type", f"{name}<...> is written with its dimensions"
                          if name in CONTAINERS else None)

    def scan_named(self, text: str, at: int, name: str, end: int, depth: int) -> tuple[AnyType, int]:
        if name.startswith(TENSORFLOW) and (special := self.tensorflow(text, name, end, depth)):
            return special
        if "." not in name:
            return self.follow(name, at, depth), end
        if name == "!tosa.shape":
            match = SHAPE.match(text, end)
            if match is None:
                raise SyntaxFault("expected the rank of the shape, as in !tosa.shape<4>", end)
            return ShapeType(int(match.group(1))), match.end()
        end = angles(text, end)
        if name.startswith("!tosa.") and (found := ELEMENT_TYPES.get(SPACE.sub("", text[at:end]))):
            return found, end
        if name in QUANTIZED:
            return self.quantized(text, at, name, end), end
        return self.opaque(text, at, end), end

    def tensorflow(self, text: str, name: str, end: int, depth: int) -> tuple[AnyType, int] | None:
        """Return a type of TensorFlow's dialects; None if the name is an alias."""
        behind = angles(text, end)
        if control := SPELLINGS.get(name + SPACE.sub("", text[end:behind])):
            return control, behind
        prefix = next((p for p in (PREFIX, OLD_PREFIX) if name.startswith(p)), None)
        if prefix is None:
            return None
        own, subtypes = name.removeprefix(prefix), []
        while end < behind - 1:
            found, end = self.scan(text, skip(text, end + 1), depth + 1)
            subtypes.append(self.as_value(found))
            end = skip(text, end)
            if text[end:end + 1] not in (",", ">"):
                raise SyntaxFault(f"expected ',' or '>' in {name}<...>{found_at(text, end)}", end)
        return tensorflow_type(own, *subtypes), behind

    def quantized(self, text: str, at: int, name: str, end: int) -> AnyType:
        """Return a quantized element type; one of an unknown kind is kept as text."""
        try:
            return read_quantized(text[at:end], name) or self.opaque(text, at, end)
        except SyntaxFault as fault:
            fault.offset += at
            raise

    def opaque(self, text: str, at: int, end: int) -> OpaqueType:
        """Return a type that is kept as its text, with the aliases in it replaced."""
        found = text[at:end]
        for _ in range(MAXIMUM_DEPTH):
            replaced = ALIAS.sub(lambda m: str(self.aliases.get(m.group(), m.group())), found) if self.aliases else found
            if replaced == found:
                return OpaqueType(found)
            found = replaced
            if len(found) > LONGEST_OPAQUE:
                break
        raise SyntaxFault("the aliases in this type stand for too much", at, end - at, "nesting")

    def follow(self, name: str, at: int, depth: int) -> AnyType:
        if name not in self.aliases:
            raise SyntaxFault(f"unknown type alias {name}", at, len(name), "symbol")
        token = self.aliases[name]
        if token.startswith("("):
            return self.opaque(token, 0, len(token))
        try:
            return self.scan(token, 0, depth + 1)[0]
        except SyntaxFault as fault:
            message = fault.message if fault.kind == "nesting" else f"the type alias {name}: {fault.message}"
            raise SyntaxFault(message, at, len(name), fault.kind) from None

    def scan_tensor(self, text: str, at: int, end: int, depth: int) -> tuple[AnyType, int]:
        if text[end:end + 1] != "<":
            raise SyntaxFault("expected '<' after tensor", end)
        shape, end = scan_shape(text, end + 1)
        element, end = self.scan(text, skip(text, end), depth + 1)
        end = skip(text, end)
        encoded = text[end:end + 1] == ","
        if not encoded and text[end:end + 1] != ">":
            raise SyntaxFault(f"expected '>' at the end of the tensor type{found_at(text, end)}", end)
        end = angles(text, text.index("<", at)) if encoded else end + 1
        if isinstance(element, TensorFlowType) and not encoded:
            return tensorflow_tensor(shape, element), end
        known = isinstance(element, ElementType) and not encoded
        return TensorType(shape, element) if known else self.opaque(text, at, end), end  # type: ignore[arg-type]

    def scan_types(self, text: str, at: int) -> tuple[tuple[Type, ...], int]:
        """Return the types of `(type, ...)`."""
        types: list[Type] = []
        at = skip(text, at + 1)
        while text[at:at + 1] != ")":
            if types:
                if text[at:at + 1] != ",":
                    raise SyntaxFault(f"expected ',' or ')' in the list of types{found_at(text, at)}", at)
                at = skip(text, at + 1)
            found, at = self.scan(text, at)
            types.append(self.as_value(found))
            at = skip(text, at)
        return tuple(types), at + 1

    def scan_signature(self, text: str, at: int) -> tuple[Signature, int]:
        if text[at:at + 1] != "(":
            raise SyntaxFault(f"expected '(' before the operand types{found_at(text, at)}", at)
        operands, at = self.scan_types(text, at)
        at = skip(text, at)
        if not text.startswith("->", at):
            raise SyntaxFault(f"expected '->' and the result types{found_at(text, at)}", at)
        at = skip(text, at + 2)
        if text[at:at + 1] == "(":
            results, at = self.scan_types(text, at)
            return (operands, results), at
        result, at = self.scan(text, at)
        return (operands, (self.as_value(result),)), at

    def as_value(self, type: AnyType) -> Type:
        if not isinstance(type, ElementType):
            return type
        return TensorType((), type) if self.scalars_are_tensors else OpaqueType(type.name)


def is_document(text: str) -> bool:
    """True if a text is of the executor's dialect in its own form, or writes operations as the design document does."""
    if "tf_executor." in text and GENERIC_EXECUTOR.search(text) is None:
        return True
    return "tf." in text and DOCUMENT.search(text) is not None


def scan_shape(text: str, at: int) -> tuple[tuple[int | None, ...] | None, int]:
    """`2x?x` or `*x`."""
    at = skip(text, at)
    if text.startswith("*x", at):
        return None, at + 2
    shape: list[int | None] = []
    while match := DIMENSION.match(text, at):
        digits = match.group(1)
        if digits != "?" and (len(digits) > 19 or int(digits) > MAXIMUM_EXTENT):
            raise SyntaxFault("the extent is more than 2^63 - 1", match.start(1), len(digits), "shape")
        shape.append(None if digits == "?" else int(digits))
        at = match.end()
    return tuple(shape), at


def angles(text: str, at: int) -> int:
    """Return the offset after the `<...>` that may begin at `at`."""
    if text[at:at + 1] != "<":
        return at
    depth = 0
    for match in BRACKET.finditer(text, at):
        depth += {"<": 1, ">": -1}.get(match.group(), 0)
        if not depth:
            return match.end()
    raise SyntaxFault("'<' is not closed", at)


def skip(text: str, at: int) -> int:
    """Return the offset after white space and comments."""
    return GAP.match(text, at).end()  # type: ignore[union-attr]


def found_at(text: str, at: int) -> str:
    """", found x" for a message."""
    match = re.compile(r'->|"?[\w%@#!^$.-]{1,30}|\S').match(text, at)
    return f", found {match.group()!r}" if match else ", found the end"


