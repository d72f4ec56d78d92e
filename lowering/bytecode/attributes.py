"""The types and attributes of MLIR bytecode, as the text reader's values for them (`text.attributes`).

The builtin dialect encodes its own, by the numbers below; those of other dialects (`!tosa.shape<4>`,
`#tosa.rounding_mode<SINGLE_ROUND>`) are stored as text. A large constant is a view of the file's bytes.
"""
from __future__ import annotations

import numpy as np

from ...runtime.errors import Source
from ..graph.types import BF16, ELEMENT_TYPES, F16, F32, F64, INDEX, Array, ElementType, TensorType, Type
from ..text.attributes import Attribute, Dense, Dictionary, FunctionType, Number, Numbers, Symbol, Text, Unit
from ..text.elements import check_size, from_bytes, from_raw, read_only, stored_bytes
from ..text.syntax import SyntaxFault
from ..text.types import TypeReader
from .sections import Cursor, Unreadable

SIGNS = ("i", "si", "ui")
FLOATS = {3: BF16, 4: F16, 5: F32, 6: F64}
DYNAMIC = -(1 << 63)
SMALL = 4096
"""Minimum bytes of a constant that is a view: smaller ones are copied, so that they do not keep the file alive."""
MOST_DEPTH = 8
"""Maximum depth of nested locations that are read."""
BUILTIN = b"builtin"
AnyType = Type | ElementType


class AttributeTable:
    """The types and attributes of a file, each read on first use."""

    def __init__(self, strings: list[bytes], dialects: list[bytes], data: memoryview, offsets: memoryview,
                 blobs: list[memoryview]) -> None:
        self.strings, self.dialects, self.data, self.blobs = strings, dialects, data, blobs
        self.text_types = TypeReader(Source("<bytecode>", ""), {})
        cursor = Cursor(offsets)
        counts = cursor.number(), cursor.number()
        places = self.places(cursor, sum(counts))
        self.attribute_places, self.type_places = places[:counts[0]], places[counts[0]:]
        self.attributes: dict[int, Attribute] = {}
        self.types: dict[int, AnyType] = {}

    @staticmethod
    def places(cursor: Cursor, count: int) -> list[tuple[int, int, int, bool]]:
        """Return the dialect, start, end, and whether the dialect encodes it, of each entry: entries are grouped by dialect."""
        places: list[tuple[int, int, int, bool]] = []
        at = 0
        while len(places) < count:
            dialect = cursor.number()
            for _ in range(cursor.number()):
                size, is_encoded = cursor.flagged()
                places.append((dialect, at, at + size, is_encoded))
                at += size
        return places

    def entry(self, place: tuple[int, int, int, bool]) -> tuple[Cursor, str | None]:
        """Return a cursor at an entry, and the entry's text if it is stored as text."""
        dialect, start, end, is_encoded = place
        if not is_encoded:
            return Cursor(self.data), str(self.data[start:end - 1], "utf-8")
        if self.dialects[dialect] != BUILTIN:
            raise Unreadable(f"an entry of {self.dialects[dialect]!r}")
        return Cursor(self.data[start:end]), None

    # ---- types -------------------------------------------------------------------------------------------------------
    def type(self, index: int) -> AnyType:
        if index not in self.types:
            cursor, text = self.entry(self.type_places[index])
            self.types[index] = self.encoded_type(cursor) if text is None else self.text_type(text)
        return self.types[index]

    def value_type(self, index: int) -> Type:
        """Return the type of a value: scalars are opaque."""
        return self.text_types.as_value(self.type(index))

    def text_type(self, text: str) -> AnyType:
        try:
            found, end = self.text_types.scan(text, 0)
        except SyntaxFault as fault:
            raise Unreadable(fault.message) from None
        if end != len(text):
            raise Unreadable(f"the type {text}")
        return found

    def encoded_type(self, cursor: Cursor) -> AnyType:
        match cursor.number():
            case 0:
                width = cursor.number()
                return known_element(f"{SIGNS[width & 3]}{width >> 2}")
            case 1:
                return INDEX
            case 3 | 4 | 5 | 6 as code:
                return FLOATS[code]
            case 13:
                shape = tuple(cursor.signed() for _ in range(cursor.number()))
                return tensor(tuple(None if n == DYNAMIC else n for n in shape), self.type(cursor.number()))
            case 18:
                return tensor(None, self.type(cursor.number()))
            case code:
                raise Unreadable(f"a builtin type of number {code}")

    # ---- attributes --------------------------------------------------------------------------------------------------
    def attribute(self, index: int) -> Attribute:
        if index not in self.attributes:
            cursor, text = self.entry(self.attribute_places[index])
            self.attributes[index] = self.encoded(cursor) if text is None else Text(text)
        return self.attributes[index]

    def encoded(self, cursor: Cursor) -> Attribute:
        match cursor.number():
            case 0:
                return tuple(self.attribute(cursor.number()) for _ in range(cursor.number()))
            case 1:
                return self.pairs(cursor)
            case 2:
                return self.strings[cursor.number()].decode("utf-8", "surrogateescape")
            case 4:
                return Symbol((self.text(cursor.number()),))
            case 6:
                return self.type(cursor.number())
            case 7:
                return Unit.UNIT
            case 8:
                return integer(cursor, self.element(cursor))
            case 9:
                return real(cursor, self.element(cursor))
            case 15:
                return Text("loc(unknown)")
            case 16:
                return self.resource(cursor)
            case 17:
                return self.numbers(cursor)
            case 18:
                return self.dense(cursor)
            case code:
                raise Unreadable(f"a builtin attribute of number {code}")

    def location_name(self, index: int, depth: int = 0) -> str:
        """Return the first name in a location, "" if it has none."""
        cursor, text = self.entry(self.attribute_places[index])
        if text is not None or depth > MOST_DEPTH:
            return ""
        match cursor.number():
            case 10:
                inner = [cursor.number(), cursor.number()]
            case 12:
                inner = [cursor.number() for _ in range(cursor.number())]
            case 13:
                cursor.number()  # its other parts
                inner = [cursor.number() for _ in range(cursor.number())]
            case 14:
                return self.text(cursor.number())
            case _:
                return ""
        return next(filter(None, (self.location_name(i, depth + 1) for i in inner)), "")

    def pairs(self, cursor: Cursor) -> Dictionary:
        return {self.text(cursor.number()): self.attribute(cursor.number()) for _ in range(cursor.number())}

    def dictionary(self, index: int) -> Dictionary:
        found = self.attribute(index)
        if not isinstance(found, dict):
            raise Unreadable("this should be a dictionary")
        return dict(found)

    def text(self, index: int) -> str:
        found = self.attribute(index)
        if not isinstance(found, str):
            raise Unreadable("this should be a string")
        return found

    def function_type(self, index: int) -> FunctionType:
        """Return the type of a function, which is an attribute of it."""
        cursor, text = self.entry(self.attribute_places[index])
        if text is not None or cursor.number() != 6:
            raise Unreadable("this should be a type")
        cursor, text = self.entry(self.type_places[cursor.number()])
        if text is not None or cursor.number() != 2:
            raise Unreadable("this should be a function's type")
        operands, results = (tuple(self.value_type(cursor.number()) for _ in range(cursor.number())) for _ in range(2))
        return FunctionType(operands, results)

    def element(self, cursor: Cursor) -> ElementType:
        found = self.type(cursor.number())
        if not isinstance(found, ElementType):
            raise Unreadable(f"a number of type {found}")
        return found

    def numbers(self, cursor: Cursor) -> Numbers:
        """Read `array<i64: 1, 1>`."""
        element, count = self.element(cursor), cursor.number()
        values = from_bytes(bytes(cursor.blob()), element)
        if len(values) != count:
            raise Unreadable("an array of another length")
        return Numbers(tuple(values.tolist()), element)

    def resource(self, cursor: Cursor) -> Dense:
        """Read `dense_resource<name>`."""
        type = self.constant_type(cursor)
        blob = self.blobs[cursor.number()]
        if len(blob) != stored_bytes(type.element) * type.size:
            raise Unreadable("a resource of another size")
        return Dense(read_only(elements(blob, type)), type)

    def dense(self, cursor: Cursor) -> Dense:
        type = self.constant_type(cursor)
        return Dense(read_only(elements(cursor.blob(), type)), type)

    def constant_type(self, cursor: Cursor) -> TensorType:
        type = self.type(cursor.number())
        if not isinstance(type, TensorType):
            raise Unreadable(f"a constant of type {type}")
        try:
            check_size(type)
        except SyntaxFault as fault:
            raise Unreadable(fault.message) from None
        return type


def elements(data: memoryview, type: TensorType) -> Array:
    """Return the elements of a constant: all of them, or one for all."""
    found = from_raw(memoryview(bytes(data)) if len(data) < SMALL else data, type)
    if found is None:
        raise Unreadable("a constant of another size")
    return found


def tensor(shape: tuple[int | None, ...] | None, element: AnyType) -> TensorType:
    if not isinstance(element, ElementType):
        raise Unreadable(f"a tensor of {element}")
    return TensorType(shape, element)


def known_element(name: str) -> ElementType:
    found = ELEMENT_TYPES.get(name)
    if found is None:
        raise Unreadable(f"the element type {name}")
    return found


def bits(cursor: Cursor, width: int) -> int:
    """Return the bits of a number of that width, as a signed number."""
    value = cursor.byte() if width <= 8 else cursor.signed()
    return value - 256 if width <= 8 and value > 127 else value


def integer(cursor: Cursor, element: ElementType) -> Attribute:
    value = bits(cursor, element.bits)
    if element.kind == "bool":
        return bool(value & 1)
    return Number(value & ((1 << element.bits) - 1) if element.kind == "unsigned" else value, element)


def real(cursor: Cursor, element: ElementType) -> Number:
    if element.bits not in (16, 32, 64):
        raise Unreadable(f"a number of type {element}")
    pattern = np.array([bits(cursor, element.bits)]).astype(f"int{element.bits}")
    return Number(float(pattern.view(element.dtype)[0]), element)
