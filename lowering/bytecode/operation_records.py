"""The operations of MLIR bytecode as stored: records of numbers, before types, attributes and operands are resolved.

A region is read whole before the graph is built from it (`reader`), because MLIR's text counts the names of values in the
regions inside an operation from the end of those of the enclosing region.
"""
from __future__ import annotations

from ...runtime.records import dataclass
from .sections import IR, Cursor, Unreadable, read_section

ATTRIBUTES, RESULTS, OPERANDS, SUCCESSORS, REGIONS, USE_ORDER, PROPERTIES = (1 << i for i in range(7))
"""Bits of an operation's mask, one for each part that it has."""
MOST_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Record:
    """An operation. `operator` is the number of its name, `location` that of its location attribute, `attributes` and
    `properties` those of their attributes (None: it has none), `results` numbers of types, `operands` numbers of values."""
    operator: int
    location: int
    attributes: int | None
    properties: int | None
    results: tuple[int, ...]
    operands: tuple[int, ...]
    regions: tuple[BytecodeRegion, ...]


@dataclass(frozen=True, slots=True)
class BytecodeRegion:
    """The one block of a region: numbers of its arguments' types, its operations. Its values have the numbers from `first` on;
    in an `isolated` region, only they are visible."""
    isolated: bool
    first: int
    arguments: tuple[int, ...]
    operations: tuple[Record, ...]


def read_ir(section: memoryview) -> tuple[Record, ...]:
    """Return the operations at the top of a file."""
    cursor = Cursor(section)
    count, has_arguments = cursor.flagged()
    if has_arguments:
        raise Unreadable("arguments outside of functions")
    return tuple(read_operation(cursor, 0, 0) for _ in range(count))


def read_operation(cursor: Cursor, visible: int, depth: int) -> Record:
    """Return one operation; `visible` is the number of values that are numbered before its regions' own."""
    operator, mask = cursor.number(), cursor.byte()
    location = cursor.number()
    attributes = cursor.number() if mask & ATTRIBUTES else None
    properties = cursor.number() if mask & PROPERTIES else None
    results = numbers(cursor) if mask & RESULTS else ()
    operands = numbers(cursor) if mask & OPERANDS else ()
    if mask & SUCCESSORS:
        raise Unreadable("branches")
    if mask & USE_ORDER:
        skip_use_order(cursor, len(results))
    regions = read_regions(cursor, visible, depth) if mask & REGIONS else ()
    return Record(operator, location, attributes, properties, results, operands, regions)


def numbers(cursor: Cursor) -> tuple[int, ...]:
    return tuple([cursor.number() for _ in range(cursor.number())])


def read_regions(cursor: Cursor, visible: int, depth: int) -> tuple[BytecodeRegion, ...]:
    count, isolated = cursor.flagged()
    if depth > MOST_DEPTH:
        raise Unreadable("regions nested too deeply")
    if isolated:  # a section of their own lets readers skip them
        number, section = read_section(cursor)
        if number != IR:
            raise Unreadable("a region outside of a section")
        cursor, visible = Cursor(section), 0
    return tuple(read_region(cursor, isolated, visible, depth + 1) for _ in range(count))


def read_region(cursor: Cursor, isolated: bool, visible: int, depth: int) -> BytecodeRegion:
    if cursor.number() != 1:
        raise Unreadable("a region without a block, or with several")
    values = cursor.number()
    count, has_arguments = cursor.flagged()
    arguments = read_arguments(cursor) if has_arguments else ()
    operations = tuple([read_operation(cursor, visible + values, depth) for _ in range(count)])
    return BytecodeRegion(isolated, visible, arguments, operations)


def read_arguments(cursor: Cursor) -> tuple[int, ...]:
    types = []
    for _ in range(cursor.number()):
        type, has_location = cursor.flagged()
        if has_location:
            cursor.number()
        types.append(type)
    if cursor.byte():
        skip_use_order(cursor, len(types))
    return tuple(types)


def skip_use_order(cursor: Cursor, values: int) -> None:
    """Skip the order in which the uses of some of these values are listed, which means nothing here."""
    for _ in range(cursor.number() if values > 1 else 1):
        if values > 1:
            cursor.number()  # which value
        for _ in range(cursor.flagged()[0]):
            cursor.number()
