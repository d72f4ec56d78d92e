"""`--limits nodes=100000,bytes=1G,seconds=10`: the resources that reading and compiling a model may use."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...runtime.errors import Problem
from ...runtime.limits import Limits


def limits_of(text: str | None) -> AbstractContextManager[Any]:
    """Return the limits of an option's text, as a context manager that does nothing if there is no text."""
    if text is None:
        return nullcontext()
    from .memory_options import nbytes, unknown
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in ("nodes", "bytes", "seconds"):
            raise unknown("limit", name, ("nodes", "bytes", "seconds"))
        if not equals:
            raise Problem(f"the limit {name} has no value", kind="option", help=f"for example {name}=10000")
        found[name] = {"nodes": count, "bytes": lambda text: nbytes(text, "bytes"), "seconds": seconds}[name](value)
    return Limits(**found)


def count(text: str) -> int:
    if not text.strip().isdecimal():
        raise Problem(f"nodes is {text!r}, which is no number of operators", kind="option", help="for example nodes=100000")
    return int(text)


def seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Problem(f"seconds is {text!r}, which is no number", kind="option", help="for example seconds=10") from None
