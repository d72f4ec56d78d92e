"""A place that the grammar does not allow -> a Problem in the words of MLIR: what was expected, what was found.

Tokens are coarse, so what is wrong is often inside one that did not match: an unclosed string, a type with a slip.
These are looked at first.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem, Source
from .syntax import Fault
from .types import TypeReader

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput

VALUE = "a value of the attribute"
WORDS = {
    "COLON": "':'", "COMMA": "','", "EQUAL": "'='", "LPAR": "'('", "RPAR": "')'", "LBRACE": "'{'", "RBRACE": "'}'",
    "LSQB": "'['", "RSQB": "']'", "MORETHAN": "'>'", "LESSTHAN": "'<'", "ELSE": "'else'", "DO": "'do'", "TO": "'to'",
    "ATTRIBUTES": "'attributes'", "SSA": "a value, as in %0", "OPERANDS": "operands, as in %0, %1", "TYPE": "a type",
    "SIGNATURE": "types, as in (tensor<2xf32>) -> tensor<2xf32>", "SYMBOL": "a name, as in @main",
    "KEY": "a name of an attribute", "NAME": "a name", "CARET": "a block, as in ^bb0", "OPERATOR": "an operation",
    "FUNC": "an operation", "VARIABLE": "an operation", "RESULTS": "an operation", "PLACE": "a location",
    "DENSE": VALUE, "ARRAY": VALUE, "WORD": VALUE, "HASH": VALUE, "NUMBER": VALUE, "VERBATIM": VALUE,
    "VISIBILITY": "'private'",
}
"""What a message calls a terminal; those not here need no mention."""
FOUND = re.compile(r'"?[\w%@#!^$.-]{1,40}|->|[^\s\w]')
OPENED = re.compile(r"(dense|array|dense_resource|sparse|tensor|vector|affine_map|affine_set)<|loc\(")
MOST_WORDS = 4


def diagnose(error: UnexpectedInput, source: Source) -> Problem:
    """The Problem that a parse error is."""
    text = source.text or ""
    at = position_of(error, text)
    expected = expected_at(error)
    try:
        inside(text, at, expected, source)
        message, width, help = in_general(text, at, expected, error)
        fault = Fault(message, at, width, help=help)
    except Fault as found:
        fault = found
    offset = min(fault.offset, max(len(text) - 1, 0)) if fault.offset >= len(text) else fault.offset
    return Problem(fault.message, source.position(offset, max(1, fault.width)), kind=fault.kind, help=fault.help)


def position_of(error: UnexpectedInput, text: str) -> int:
    """The offset of the first character that does not fit; behind the text at its end."""
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        return len(text.rstrip())
    at = getattr(error, "pos_in_stream", None)
    return len(text) if at is None or at < 0 else int(at)


def expected_at(error: UnexpectedInput) -> set[str]:
    """Names of the terminals that may come here."""
    parser: Any = getattr(error, "interactive_parser", None)
    return set(parser.accepts()) if parser is not None else set(getattr(error, "expected", None) or ())


def inside(text: str, at: int, expected: set[str], source: Source) -> None:
    """Raise a Fault for what is wrong inside the token that begins here, if one begins."""
    if text.startswith('"', at) and expected & {"STRING", "PLACE", "KEY"}:
        raise Fault("the string is not closed on its line", at, end_of_line(text, at) - at)
    if "SIGNATURE" in expected and text.startswith("(", at):
        TypeReader(source, {}).scan_signature(text, at)
    opened = OPENED.match(text, at)
    if "TYPE" in expected and (VALUE not in words(expected) or opened or text.startswith("!", at)) and re.compile(
            r"[A-Za-z!]").match(text, at):
        TypeReader(source, {}).scan(text, at)
    if opened:
        raise Fault(f"{opened.group()}... is not closed", at, len(opened.group()))
    if re.compile(r"%(?![\w$.])").match(text, at):
        raise Fault("expected a name after '%'", at)


def in_general(text: str, at: int, expected: set[str], error: UnexpectedInput) -> tuple[str, int, str | None]:
    """What was expected and what was found; how many characters that are; what to do."""
    found = FOUND.match(text, at)
    name = found.group() if found else ""
    if at >= len(text.rstrip()):
        return f"the text ends where {listed(words(expected))} is expected", 1, None
    if name.startswith("%") and "RESULTS" in expected and "OPERANDS" not in expected:
        return f"expected '=' and an operation after {name}", len(name), None
    operator = unknown_form(error)
    if operator:
        return (f"expected {listed(words(expected))} in {operator}, found {name!r}", len(name),
                f"only the generic form of {operator} is known: print the text with --mlir-print-op-generic")
    return f"expected {listed(words(expected))}, found {name!r}", max(1, len(name)), None


def unknown_form(error: UnexpectedInput) -> str | None:
    """The operator that is being read, where it is of a dialect whose own form is not known."""
    parser: Any = getattr(error, "interactive_parser", None)
    for item in reversed(parser.parser_state.value_stack if parser is not None else ()):
        kind = getattr(item, "type", None)
        if kind == "OPERATOR":
            return None if item.startswith("tosa.") else str(item)
        if kind in ("LBRACE", "STRING", "FUNC"):
            return None
    return None


def words(expected: Iterable[str]) -> list[str]:
    """What a message calls these terminals, in the order of the table."""
    names = set(expected)
    return list(dict.fromkeys(word for terminal, word in WORDS.items() if terminal in names))


def listed(items: list[str]) -> str:
    """`a, b or c`"""
    items = items[:MOST_WORDS] if items else ["the end of the text"]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"


def end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
