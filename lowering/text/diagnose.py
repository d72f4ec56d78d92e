"""A syntax error of the grammar -> a Problem in the words of MLIR: the expected tokens and the found one.

Tokens are coarse, so the error is often inside a token that did not match: an unclosed string, a type with a slip. These are
checked first.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem, Source
from ..dialects.foreign_dialects import advice
from .syntax import SyntaxFault
from .types import TypeReader, angles

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedInput

OPERATION, VALUE = "an operation", "an attribute's value"
WORDS = {
    "COLON": "':'", "COMMA": "','", "EQUAL": "'='", "LPAR": "'('", "RPAR": "')'", "LBRACE": "'{'", "RBRACE": "'}'",
    "LSQB": "'['", "RSQB": "']'", "MORETHAN": "'>'", "LESSTHAN": "'<'", "ELSE": "'else'", "DO": "'do'", "TO": "'to'",
    "ATTRIBUTES": "'attributes'", "SSA": "a value, as in %0", "OPERANDS": "operands, as in %0, %1", "TYPE": "a type",
    "SIGNATURE": "types, as in (tensor<2xf32>) -> tensor<2xf32>", "SYMBOL": "a name, as in @main",
    "KEY": "an attribute's name", "NAME": "a name", "CARET": "a block, as in ^bb0", "PLACE": "a location",
    "VISIBILITY": "'private'",
}
"""Name of a terminal in a message; terminals without an entry need no mention."""
FOUND = re.compile(r'"?[\w%@#!^$.-]{1,40}|->|[^\s\w]')
OPENED = re.compile(r"(dense|array|dense_resource|sparse|tensor|vector|affine_map|affine_set|![\w.]+|#[\w.]+)<")
WORD_BEFORE, WORD_AHEAD = re.compile(r"[!#]?[\w.]*$"), re.compile(r"[A-Za-z!]")
MOST_WORDS = 4


def diagnose(error: UnexpectedInput, source: Source) -> Problem:
    """Return the Problem of a parse error."""
    text = source.text or ""
    at = position_of(error, text)
    expected = expected_at(error)
    try:
        inside(text, at, expected, source)
        fault = in_general(text, at, expected, error)
    except SyntaxFault as found:
        fault = found
    offset = min(fault.offset, max(len(text) - 1, 0)) if fault.offset >= len(text) else fault.offset
    return Problem(fault.message, source.position(offset, max(1, fault.width)), kind=fault.kind, help=fault.help)


def position_of(error: UnexpectedInput, text: str) -> int:
    """Return the offset of the first character that does not fit; at the end of the text, the offset after it."""
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        return len(text.rstrip())
    at = getattr(error, "pos_in_stream", None)
    return len(text) if at is None or at < 0 else int(at)


def expected_at(error: UnexpectedInput) -> set[str]:
    """Return the names of the terminals that may come here."""
    parser: Any = getattr(error, "interactive_parser", None)
    return set(parser.accepts()) if parser is not None else set(getattr(error, "expected", None) or ())


def inside(text: str, at: int, expected: set[str], source: Source) -> None:
    """Raise a SyntaxFault for an error inside the token that begins here, if one begins."""
    if text.startswith('"', at) and expected & {"STRING", "PLACE", "KEY"}:
        raise SyntaxFault("the string is not closed on its line", at, end_of_line(text, at) - at)
    if "SIGNATURE" in expected and text.startswith("(", at):
        TypeReader(source, {}).scan_signature(text, at)
    start = at - len(WORD_BEFORE.search(text, max(0, at - 40), at).group()) if text.startswith("<", at) else at  # type: ignore[union-attr]
    opened = OPENED.match(text, start)
    if "TYPE" in expected and WORD_AHEAD.match(text, at) and (opened or "WORD" not in expected):
        TypeReader(source, {}).scan(text, at)
    if opened:
        angles(text, opened.end() - 1)
        if start < at:
            raise SyntaxFault(f"{opened.group(1)}<...> is not well formed", start, len(opened.group(1)))
    if text.startswith("%", at) and not FOUND.match(text, at + 1):
        raise SyntaxFault("expected a name after '%'", at)


def in_general(text: str, at: int, expected: set[str], error: UnexpectedInput) -> SyntaxFault:
    """Return the fault of any other error: the expected and the found tokens, the number of characters, and advice."""
    found = FOUND.match(text, at)
    name = found.group() if found else ""
    if at >= len(text.rstrip()):
        return SyntaxFault(f"the text ends where {listed(words(expected))} is expected", at)
    if name.startswith("%") and "RESULTS" in expected and "OPERANDS" not in expected:
        return SyntaxFault(f"expected '=' and an operation after {name}", at, len(name))
    operator = unknown_form(error)
    if operator is not None:
        return SyntaxFault(f"the form of {operator} is not known", operator.start_pos or 0, len(operator), "unsupported",
                           advice(operator) or "only its generic form can be read: print the text with --mlir-print-op-generic")
    return SyntaxFault(f"expected {listed(words(expected))}, found {name!r}", at, max(1, len(name)))


def unknown_form(error: UnexpectedInput) -> Token | None:
    """Return the operator that is being read, if its dialect's own form is not known; else None."""
    parser: Any = getattr(error, "interactive_parser", None)
    for item in reversed(parser.parser_state.value_stack if parser is not None else ()):
        kind = getattr(item, "type", None)
        if kind == "OPERATOR":
            return None if item.startswith("tosa.") else item
        if kind in ("LBRACE", "STRING", "FUNC"):
            return None
    return None


def words(expected: set[str]) -> list[str]:
    """Return the names of these terminals in a message."""
    closers = [WORDS[name] for name in ("RBRACE", "RSQB") if name in expected]
    if "RESULTS" in expected and "COLON" not in expected:
        return [OPERATION, *closers]
    if "WORD" in expected:
        return [VALUE, *closers]
    return [word for name, word in WORDS.items() if name in expected]


def listed(items: list[str]) -> str:
    """`a, b or c`"""
    items = items[:MOST_WORDS] if items else ["the end of the text"]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"


def end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
