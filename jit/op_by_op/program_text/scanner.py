"""The scanner of a kernel program's text, from left to right; unexpected text is a Problem at its position.

It scans names, strings, numbers and the punctuation between them; white space and comments are skipped. Every regular
expression scans its match once, so reading takes linear time.
"""
from __future__ import annotations

import re
from bisect import bisect_right

from ....lowering.text.strings import unescape
from ....lowering.text.syntax import SyntaxFault
from ....runtime.errors import Position, Problem, Source

GAP = re.compile(r"(?:\s|//[^\n]*+)*+")
USE = re.compile(r"%([\w$.]++(?:-[\w$.]++)*+)(?:#([0-9]{1,6}+))?")
NAME = re.compile(r"[A-Za-z_][\w$]*+(?:\.[\w$]++)*+")
SYMBOL = re.compile(r'@([A-Za-z_$.0-9][\w$.-]*+|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")')
STRING = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"')
NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+(?:[eE][-+]?[0-9]++)?)?)")
COUNT = re.compile(r"[0-9]{1,6}+(?![\w.])")
TYPE = re.compile(r"![A-Za-z_][\w$]*+(?:\.[\w$]++)*+|(?:[su]?i[0-9]{1,4}|b?f[0-9]{1,3})(?![\w$.])")
WORD = re.compile(r"[\w$.]")
FOUND = re.compile(r'"?[\w%@#!^$.-]{1,30}|->|\S')
WHAT = {USE: "a value, as in %0", NAME: "a name", SYMBOL: "a function's name, as in @main", STRING: "a string",
        NUMBER: "a number", COUNT: "a number of results", TYPE: "a type, as in !tfrt.chain"}


class Scanner:
    """A position in a text."""

    def __init__(self, source: Source) -> None:
        assert source.text is not None
        self.source, self.text, self.at = source, source.text, 0
        self.lines = [0, *(m.end() for m in re.finditer("\n", self.text))]
        self.skip()

    def skip(self) -> None:
        """Skip white space and comments."""
        self.at = GAP.match(self.text, self.at).end()  # type: ignore[union-attr]

    def place(self, at: int, width: int = 1) -> Position:
        line = bisect_right(self.lines, at)
        return Position(self.source, line, at - self.lines[line - 1] + 1, max(width, 1))

    def here(self, width: int = 1) -> Position:
        return self.place(self.at, width)

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.text)

    def expected(self, what: str) -> Problem:
        """Return the Problem of unexpected text here."""
        if self.at_end:
            return Problem(f"the text ends where {what} is expected", self.place(max(len(self.text.rstrip()) - 1, 0)),
                           kind="syntax")
        if self.text.startswith('"', self.at) and not STRING.match(self.text, self.at):
            return Problem("the string is not closed on its line", self.here(), kind="syntax")
        found = FOUND.match(self.text, self.at)
        name = found.group() if found else ""
        return Problem(f"expected {what}, found {name!r}", self.here(len(name)), kind="syntax")

    def sees(self, literal: str) -> bool:
        return self.text.startswith(literal, self.at)

    def accept(self, literal: str) -> bool:
        """True if the literal is next, which is then consumed; a word must end there, too."""
        if not self.sees(literal):
            return False
        end = self.at + len(literal)
        if literal[-1].isalnum() and WORD.match(self.text, end):
            return False
        self.at = end
        self.skip()
        return True

    def expect(self, literal: str) -> int:
        """Consume the literal; return its offset."""
        start = self.at
        if not self.accept(literal):
            raise self.expected(repr(literal))
        return start

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of the pattern here, which is then consumed."""
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
            self.skip()
        return match

    def take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = self.match(pattern)
        if match is None:
            raise self.expected(WHAT[pattern])
        return match

    def string(self) -> str:
        match = self.take(STRING)
        return self.unescaped(match.group(), match.start())

    def symbol(self) -> str:
        match = self.take(SYMBOL)
        name = match.group(1)
        return self.unescaped(name, match.start(1)) if name.startswith('"') else name

    def unescaped(self, text: str, at: int) -> str:
        try:
            return unescape(text).decode("utf-8", "surrogateescape")
        except SyntaxFault as fault:
            raise self.fault(fault, at) from None

    def fault(self, fault: SyntaxFault, at: int) -> Problem:
        """Return the Problem of a fault inside the text that begins at `at`."""
        return Problem(fault.message, self.place(min(at + fault.offset, max(len(self.text) - 1, 0)), fault.width),
                       kind=fault.kind, help=fault.help)
