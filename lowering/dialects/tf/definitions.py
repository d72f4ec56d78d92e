"""The verifier of TensorFlow's operations against TensorFlow's operator registry: numbers of operands and results, element
types, attributes and their values. A violation is a Problem when a module is verified.

`definitions.json` holds the registry's entries for the operators that are interpreted or compiled, with the defaults of
attributes, which a text may leave out (`default_of`). An operand is `T` (of the type in attribute T), `N*T` (N of them), `*T`
(of the types in the list T) or `=float`. MLIR derives N and T from the operands, so the values of these attributes in a text
are ignored. Operators that name functions are checked at the calls.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...graph.foreign import callees, find, spelling
from ...graph.graph import Operation, Value
from ...graph.types import TensorType, Type
from ..tf_executor.types import CONTROL, TOKEN
from .types import TensorFlowTensor

Definition = Mapping[str, Any]
FILE = "definitions.json"
ELEMENTS = {"i1": "bool", "f16": "half", "bf16": "bfloat16", "f32": "float", "f64": "double", "f8E4M3FN": "float8_e4m3fn",
            "f8E5M2": "float8_e5m2", "i4": "int4", "ui4": "uint4", "complex<f32>": "complex64", "complex<f64>": "complex128",
            **{f"{sign}{bits}": f"{name}{bits}" for sign, name in (("i", "int"), ("si", "int"), ("ui", "uint"))
               for bits in (8, 16, 32, 64)}}
"""TensorFlow's names of MLIR's element types."""
WRITTEN = {name: element for element, name in reversed(ELEMENTS.items())}
OWN = ("resource", "variant", "string", "qint8", "qint16", "qint32", "quint8", "quint16")
"""TensorFlow's own types that have the same names there."""
BRANCHES = (("then_branch", "else_branch"), ("cond", "true_branch", "false_branch"))
CALLS: Mapping[str, Sequence[Sequence[str]]] = {
    **dict.fromkeys(("tf.If", "tf.StatelessIf"), BRANCHES), **dict.fromkeys(("tf.Case", "tf.StatelessCase"), (("branches",),)),
    **dict.fromkeys(("tf.While", "tf.StatelessWhile"), (("cond", "body"),)),
    **dict.fromkeys(("tf.PartitionedCall", "tf.StatefulPartitionedCall", "tf.LegacyCall"), (("f",),))}
"""Operators that name functions, and the attributes that do: TensorFlow's and, for tf.If, the design document's as well."""
DERIVED = ("type", "list(type)", "shape", "list(shape)")
"""Kinds of attributes that MLIR derives from types."""


def check_definition(operation: Operation) -> None:
    """Raise a Problem unless the operation conforms to its operator's definition; operators that are not in the table are
    unrestricted."""
    name = spelling(operation)
    check_control(operation)
    if (forms := CALLS.get(name)) is not None:
        check_call(operation, forms)
    elif (definition := definitions().get(name)) is not None:
        Check(operation, definition).check()


def check_control(operation: Operation) -> None:
    """Raise a Problem if an operand or result of an operation has a type of the executor."""
    for value in (*operation.operands, *operation.results):
        if value.type in (CONTROL, TOKEN):
            raise Problem(f"{spelling(operation)} has no control, %{value.name} is a {value.type}", operation.position,
                          kind="type", help="control operands are those of a tf_executor.island around it")


def check_call(operation: Operation, forms: Sequence[Sequence[str]]) -> None:
    """Check that a call names the functions of one of these forms; their arguments are checked at the call."""
    found = callees(operation)
    if not any(all(found.get(name) for name in form) for form in forms):
        missing = next(name for name in forms[0] if not found.get(name))
        raise Problem(f"{spelling(operation)} has no {missing}", operation.position, kind="attribute",
                      help=f"it names functions as {' and '.join(forms[0])}")
    takes = 0 if "cond" in found or "f" in found else 1
    if len(operation.operands) < takes:
        raise Problem(f"{spelling(operation)} takes {takes} operands or more, found {len(operation.operands)}",
                      operation.position, kind="type")


@functools.cache
def definitions() -> Mapping[str, Definition]:
    from importlib.resources import files
    found = json.loads(files(__package__).joinpath(FILE).read_bytes())
    return {name: entry for name, entry in found.items() if name.startswith("tf.") and not name.startswith("tf._")}


@dataclass(frozen=True, slots=True)
class DefaultNumber:
    """A number that the text of an operation omits."""
    value: int | float


@functools.cache
def default_of(name: str, attribute: str) -> Any:
    """Return TensorFlow's default of an omitted attribute; None if it is required, or follows from types."""
    found = definitions().get(name, {}).get("attributes", {}).get(attribute, {}).get("default")
    return as_attribute(found)


def as_attribute(value: Any) -> Any:
    """Return a value of the table in the form in which the text's reader returns it."""
    if isinstance(value, list):
        return tuple(map(as_attribute, value))
    return DefaultNumber(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class Check:
    """The check of one operation against its definition, with the values that it infers for attributes."""

    def __init__(self, operation: Operation, definition: Definition) -> None:
        self.operation, self.definition = operation, definition
        self.attributes: Mapping[str, Definition] = definition["attributes"]
        self.counts: dict[str, int] = {}
        self.types: dict[str, tuple[str, str]] = {}
        """The type of each attribute, and the value that determines it."""

    def check(self) -> None:
        for what, values in (("operand", self.operation.operands), ("result", self.operation.results)):
            specs = self.assigned(self.definition[f"{what}s"], len(values), what)
            for number, (spec, value) in enumerate(zip(specs, values)):
                self.element(spec, value, f"{what} {number}")
        for name, attribute in self.attributes.items():
            self.attribute(name, attribute)

    def wrong(self, message: str, kind: str = "type", help: str | None = None) -> Problem:
        return Problem(f"{spelling(self.operation)} {message}", self.operation.position, kind=kind, help=help)

    # ---- operands and results ----------------------------------------------------------------------------------------
    def assigned(self, specs: Sequence[str], total: int, what: str) -> list[str]:
        """Return the required type of each operand or result."""
        lists = [s for s in specs if s.startswith("*")]
        repeated = [s for s in specs if "*" in s[1:]]
        rest = total - (len(specs) - len(lists) - len(repeated))
        share, left = divmod(rest, len(repeated)) if repeated else (0, 0 if lists else rest)
        if rest < 0 or left or (lists and repeated):
            self.refuse_count(specs, total, what)
        found: list[str] = []
        for spec in specs:
            count, _, element = spec.rpartition("*")
            if spec in lists:
                found += [""] * rest  # in MLIR a list may be empty
            elif count:
                self.count(count, share, what)
                found += [element] * share
            else:
                found.append(spec)
        return found

    def refuse_count(self, specs: Sequence[str], total: int, what: str) -> None:
        variable = any("*" in s for s in specs)
        fixed = sum("*" not in s for s in specs)
        plural = f"{what}{'s' * (fixed != 1)}"
        counted = f"more than {fixed} {plural}" if variable else f"{fixed} {plural}"
        verb = "takes" if what == "operand" else "has"
        raise self.wrong(f"{verb} {counted}, found {total}")

    def count(self, name: str, found: int, what: str) -> None:
        """Check the number of operands or results that an attribute counts."""
        least = self.attributes.get(name, {}).get("least", 0)
        before = self.counts.setdefault(name, found)
        if found < least:
            raise self.wrong(f"needs {name} >= {least}: {least} {what}s or more of that kind, found {found}")
        if before != found:
            raise self.wrong(f"has {before} operands and {found} results that must be as many as each other ({name})")

    def element(self, spec: str, value: Value, what: str) -> None:
        """Check that the element type is allowed, and equals that of other values of the same attribute."""
        found = element_name(value.type)
        if not spec or found is None:
            return
        allowed = (spec[1:],) if spec.startswith("=") else self.attributes.get(spec, {}).get("allowed")
        if allowed and found not in allowed:
            names = " or ".join(dict.fromkeys(WRITTEN.get(a, a) for a in allowed))
            raise self.wrong(f"does not allow {value.type} as {what}", help=f"its elements may be {names}")
        if not spec.startswith("="):
            first, where = self.types.setdefault(spec, (found, what))
            if first != found:
                raise self.wrong(f"needs equal element types of {where} and {what}, {WRITTEN.get(first, first)} and "
                                 f"{WRITTEN.get(found, found)}")

    # ---- attributes --------------------------------------------------------------------------------------------------
    def attribute(self, name: str, attribute: Definition) -> None:
        """Check that an attribute is present unless it may be omitted, and has the right kind and an allowed value."""
        kind = attribute["kind"]
        if kind in DERIVED or name in self.counts:
            return
        value = find(self.operation, name)
        if value is None:
            if not attribute.get("optional"):
                raise self.wrong(f"has no {name}", "attribute")
            return
        read = READERS.get(kind)
        items = read(value) if read else ()
        if items is None:
            raise self.wrong(f"has {a_kind(kind)} as its {name}", "attribute", "this one is something else")
        self.allowed(name, attribute, items)

    def allowed(self, name: str, attribute: Definition, items: Sequence[Any]) -> None:
        kind, least, values = attribute["kind"], attribute.get("least"), attribute.get("allowed")
        if values:
            for item in items:
                if item not in values:
                    raise self.wrong(f"does not allow {str(item)[:40]!r} as its {name}", "attribute",
                                     f"it may be {' or '.join(map(str, values))}")
        if least is not None and kind == "int" and items[0] < least:
            raise self.wrong(f"needs {name} >= {least}, it is {items[0]}", "attribute")
        if least is not None and kind.startswith("list") and len(items) < least:
            raise self.wrong(f"needs {least} numbers or more in {name}, found {len(items)}", "attribute")


def element_name(type: Type) -> str | None:
    """Return TensorFlow's name of a type's elements; None if they are unknown."""
    match type:
        case TensorType(element=element):
            return ELEMENTS.get(element.name)
        case TensorFlowTensor(element=element):
            name = element.name.removesuffix("ref")
            return name if name in OWN else ELEMENTS.get(name)
        case _:
            return None


# Values of attributes by kind: of the items of a list, or of the one; None for a value of another kind

def a_kind(kind: str) -> str:
    named = {"bool": "true or false", "int": "a whole number", "float": "a number", "string": "a string"}
    inner = kind.removeprefix("list(").removesuffix(")")
    return named[inner] if inner == kind else f"a list, each {named[inner]},"


def bools(value: Any) -> Sequence[Any] | None:
    is_unit = str(getattr(value, "name", "")) == "UNIT"
    return [value] if isinstance(value, bool) or is_unit else None


def numbers(value: Any) -> Sequence[Any] | None:
    found = getattr(value, "value", None)
    return [found] if isinstance(found, int | float) and not isinstance(found, bool) else None


def integers(value: Any) -> Sequence[Any] | None:
    found = numbers(value)
    return found if found is not None and isinstance(found[0], int) else None


def strings(value: Any) -> Sequence[Any] | None:
    return [value] if isinstance(value, str) else None


def listed(value: Any, read: Any) -> Sequence[Any] | None:
    """Return the items of `[1, 2]` or `array<i64: 1, 2>`."""
    values = getattr(value, "values", value)
    if not isinstance(values, tuple):
        return None
    if values is not value:
        return values
    found = [read(item) for item in values]
    return None if None in found else [item for items in found for item in items]


READERS: Mapping[str, Callable[[Any], Sequence[Any] | None]] = {
    "bool": bools, "int": integers, "float": numbers, "string": strings,
    "list(int)": functools.partial(listed, read=integers), "list(float)": functools.partial(listed, read=numbers),
    "list(string)": functools.partial(listed, read=strings), "list(bool)": functools.partial(listed, read=bools)}
