"""A report that was written with `--json`, read back."""
from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, TypeVar

from ....runtime.errors import Problem
from .figures import FORMAT
from .shown_report import Report

T = TypeVar("T")


def read(data: bytes, name: str) -> Report:
    """Return the report in the bytes of a file. Raise a Problem for any other content."""
    try:
        found = json.loads(data)
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError("it is no report of this version")
        report: Report = built(Report, found)
        check(report)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Problem(f"{name} is JSON, but no report of tosaic: {error}", kind="file",
                      help="write it with: tosaic report MODEL --json > FILE") from None
    return report


def built(kind: Any, value: Any) -> Any:
    """Return a value of JSON as the type of a field. Raise ValueError if it has another type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return instance(kind, value)
    if origin is tuple:
        return sequence(arguments, value)
    if origin is dict:
        return {key: built(arguments[1], item) for key, item in expect(value, dict).items()}
    if origin in (types.UnionType, typing.Union):
        return None if value is None else built(arguments[0], value)
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"{value!r} is none of {', '.join(map(str, arguments))}")
        return value
    if kind is float and isinstance(value, int):
        return float(value)
    return expect(value, kind)


def sequence(arguments: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    items = expect(value, list)
    if arguments[-1] is Ellipsis:
        return tuple(built(arguments[0], item) for item in items)
    if len(items) != len(arguments):
        raise ValueError(f"{len(items)} numbers where {len(arguments)} should be")
    return tuple(map(built, arguments, items))


def instance(kind: Any, value: Any) -> Any:
    """Return a dataclass from an object with its fields."""
    given = expect(value, dict)
    hints = typing.get_type_hints(kind)
    for f in dataclasses.fields(kind):
        if f.name not in given:
            raise ValueError(f"it has no {f.name}")
    return kind(**{f.name: built(hints[f.name], given[f.name]) for f in dataclasses.fields(kind)})


def expect(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < 0)):  # type: ignore[operator]
        raise ValueError(f"{str(value)[:40]} is no {kind.__name__}")
    return value


def check(report: Report) -> None:
    """Raise ValueError if numbers refer to kernels, ticks or buffers that do not exist."""
    names = {b.name for b in report.buffers}
    kernels, ticks = len(report.kernels), len(report.timeline)
    peaks = [p for p in (report.peak, *(pool.peak for pool in report.pools)) if p]
    numbers = [n for b in report.buffers for n in (b.producer, b.last_reader)] + [s.kernel for s in report.timeline]
    spans = [span for b in report.buffers for span in b.live] + [(p.tick, p.tick) for p in peaks]
    if not all(n is None or 0 <= n < kernels for n in numbers):
        raise ValueError("a kernel is not in the list")
    if not all(0 <= first <= last < ticks for first, last in spans):
        raise ValueError("a lifetime is not in the timeline")
    if not all(name in names for p in peaks for name in p.alive):
        raise ValueError("a buffer is not in the list")
