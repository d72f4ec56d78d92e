"""The extent of a function in a text, found by its brackets alone: so one that cannot be parsed can be left out."""
from __future__ import annotations

import re

from ...runtime.records import dataclass

BEGIN = re.compile(r'\bfunc(?:\.func)?\s+(?:(public|private|nested)\s+)?@("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[\w$.-]++)\s*+\(')
PART = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|//[^\n]*+|[(){}\[\]]')
BODY = re.compile(r"(?:\s|//[^\n]*+)*+\{(?!-#)")
"""Pattern of the text after the dictionary of a function's attributes."""
IN_LOCATION = r'(?:[^()"]++|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")'
LOCATION = re.compile(rf"\s*+loc\s*+\((?:{IN_LOCATION}|\({IN_LOCATION}*+\))*+\)")
SHOWN = re.compile(r"[^\n]")
CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function in a text: from its keyword to its last bracket."""
    name: str
    is_private: bool
    start: int
    end: int

    def left_out(self, text: str) -> str:
        """Return the text with blanks in place of the function, so that all offsets stay the same."""
        return text[:self.start] + SHOWN.sub(" ", text[self.start:self.end]) + text[self.end:]


def function_around(text: str, offset: int) -> FunctionText | None:
    """Return the function around an offset of a text; None if there is none, or if its brackets do not match."""
    begin = None
    for match in BEGIN.finditer(text, 0, min(offset + 1, len(text))):
        begin = match
    if begin is None:
        return None
    end = end_of(text, begin.end() - 1)
    if end is None or end <= offset:
        return None
    return FunctionText(begin[2].strip('"'), begin[1] in ("private", "nested"), begin.start(), end)


def end_of(text: str, at: int) -> int | None:
    """Return the offset after a function, with its body and location, whose parameters' parenthesis is at `at`; None if
    brackets do not match."""
    opened: list[str] = []
    for match in PART.finditer(text, at):
        part = match.group()
        if part in CLOSING:
            opened.append(CLOSING[part])
        elif part in (")", "}", "]"):
            if not opened or opened.pop() != part:
                return None
            if not opened and part == "}" and not BODY.match(text, match.end()):
                location = LOCATION.match(text, match.end())
                return location.end() if location else match.end()
    return None
