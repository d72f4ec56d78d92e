"""The position in MLIR text of an operator of a .tosa file."""
from __future__ import annotations

import re

LOCATION = re.compile(r"loc\((.*)\)", re.DOTALL)
PIECE = re.compile(r'"(?:[ !#-\[\]-~]|\\["\\nt]|\\[0-9A-Fa-f]{2})*"|[\[\](),: ]|unknown|callsite|fused|at\b|[0-9]{1,9}')
CLOSED_BY = {"(": ")", "[": "]"}


def location_of(text: str) -> str | None:
    """Return MLIR's `loc(...)` for an operator's location, which may be any text; None for no text."""
    if not text:
        return None
    match = LOCATION.fullmatch(text)
    if match and is_location(match.group(1)):
        return text
    from ..text.attribute_printer import quoted
    return f"loc({quoted(text)})"


def is_location(text: str) -> bool:
    """True if the text consists of the pieces of MLIR's locations, with balanced brackets."""
    place, wanted = 0, []
    while place < len(text):
        match = PIECE.match(text, place)
        if match is None:
            return False
        piece, place = match.group(), match.end()
        if piece in CLOSED_BY:
            wanted.append(CLOSED_BY[piece])
        elif piece in CLOSED_BY.values() and (not wanted or wanted.pop() != piece):
            return False
    return not wanted and bool(text.strip())
