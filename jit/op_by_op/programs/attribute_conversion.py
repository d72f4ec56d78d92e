"""The conversion of a text's attributes to attributes of an operation, and their printed form.

A list of numbers becomes an array of their type (i64 if none is written). A list of different things, and a dictionary, become
an aggregate; the entries of a list are named by their numbers.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....lowering.graph.types import BY_STORAGE, ElementType
from ....lowering.text.attributes import Attribute, Dense, Number, Numbers, Symbol
from ....runtime.errors import Problem
from ....runtime.op_by_op.attributes import Attribute as Entry
from ....runtime.op_by_op.attributes import Attributes, FrozenOpAttrs, OpAttrs
from ..program_text.kernel_program import pairs_of
from ..program_text.shape_attributes import is_shape, shape_of

MOST_PRINTED = 5
"""Maximum number of entries of an array that are printed."""


def operation_attributes(attributes: Mapping[str, Attribute]) -> FrozenOpAttrs:
    """Return the attributes of `executeop`, from its pairs of names and values."""
    found = OpAttrs()
    for name in ("op_attrs", "op_func_attrs"):
        for key, value in pairs_of(attributes, name):
            set_attribute(found, key, value)
    return found.freeze()


def set_attribute(attributes: OpAttrs, name: str, value: Attribute) -> bool:
    """Set an attribute from its form in the text; return False if the name is already set."""
    match value:
        case bool():
            return attributes.set(name, value, "bool")
        case str():
            return attributes.set(name, value, "string")
        case Number(_, type):
            return attributes.set(name, plain(value), type_of(type))
        case Numbers(numbers, type):
            return attributes.set_array(name, [plain(Number(n, type)) for n in numbers], type_of(type))
        case Symbol(path):
            return attributes.set(name, "::".join(path), "function")
        case Dense(array, _):
            return attributes.set(name, array, "dense")
        case ElementType():
            return attributes.set(name, value.dtype, "dtype")
        case tuple():
            return set_list(attributes, name, value)
        case Mapping():
            return attributes.set(name, aggregate(value), "aggregate")
        case _ if is_shape(value):
            return attributes.set(name, shape_of(value), "shape")
    raise Problem(f"the attribute {name} is nothing that an operation takes", kind="attribute",
                  help="numbers, strings, true, false, types, constants, shapes, functions, lists and dictionaries of them")


def set_list(attributes: OpAttrs, name: str, items: tuple[Attribute, ...]) -> bool:
    """Set an array if all items are of one type, else an aggregate."""
    match items:
        case ():
            return attributes.set_array(name, (), "i64")
        case (Number(_, type), *_) if all(isinstance(i, Number) and i.type == type for i in items):
            return attributes.set_array(name, [plain(i) for i in items], type_of(type))
        case (bool(), *_) if all(isinstance(i, bool) for i in items):
            return attributes.set_array(name, items, "bool")
        case (str(), *_) if all(isinstance(i, str) for i in items):
            return attributes.set_array(name, items, "string")
        case (ElementType(), *_) if all(isinstance(i, ElementType) for i in items):
            return attributes.set_array(name, [i.dtype for i in items if isinstance(i, ElementType)], "dtype")
    return attributes.set(name, aggregate({str(n): item for n, item in enumerate(items)}), "aggregate")


def aggregate(values: Mapping[str, Attribute]) -> OpAttrs:
    found = OpAttrs()
    for name, value in values.items():
        set_attribute(found, name, value)
    return found


def plain(number: Attribute) -> int | float | bool:
    """Return a number in Python."""
    if isinstance(number, bool):
        return number
    assert isinstance(number, Number)
    return bool(number.value) if number.type.name == "i1" else number.value


def type_of(type: ElementType) -> str:
    """Return the runtime's name of a number's type."""
    return {"i1": "bool", "index": "i64", "si8": "i8", "si16": "i16", "si32": "i32", "si64": "i64"}.get(type.name, type.name)


# Printed

def attributes_lines(attributes: Attributes) -> list[str]:
    """Return all attributes, sorted by name."""
    if not len(attributes):
        return ["OpAttrs is empty"]
    return [f"OpAttrs contains {len(attributes)} entries:", *(f"  '{n}' {entry_text(e)}" for n, e in attributes.items())]


def entry_text(entry: Entry) -> str:
    """`type=I32 value=[1, 2, 3, 4, 5...]`"""
    if not entry.is_array:
        return f"type={entry.type.upper()} value={value_text(entry.type, entry.value)}"
    items = ", ".join(value_text(entry.type, v) for v in entry.value[:MOST_PRINTED])
    return f"type={entry.type.upper()} value=[{items}{'...' * (len(entry.value) > MOST_PRINTED)}]"


def value_text(type: str, value: Any) -> str:
    match type:
        case "bool":
            return str(int(value))
        case "dtype":
            return str(BY_STORAGE.get(value.name, value.name)).upper()
        case "shape":
            return f"<{'x'.join('?' if n is None else str(n) for n in value)}>" if value is not None else "<*>"
        case "dense":
            element = BY_STORAGE.get(value.dtype.name, value.dtype.name)
            return f"dtype={str(element).upper()}, rank={value.ndim}, elt_count={value.size}"
        case "aggregate":
            return f"{{{', '.join(f'{n}: {entry_text(e)}' for n, e in value.items())}}}"
        case "string":
            return f'"{value}"'
        case "function":
            return f"@{value}"
    return str(value)
