"""The words of the text of a program, one after the other, and where each stands."""
from __future__ import annotations

import json
import re

from ...runtime.errors import Problem, Source

TOKEN = re.compile(r'\s*("(?:[^"\\\n]|\\.)*"|0x[0-9a-f]*|\.\.\.|@[\w.$-]+|%\d+|'
                   r'-?(?:inf|nan|\d+(?:\.\d*)?(?:e[+-]?\d+)?)(?![\w.])|[\w.$]+|[][(){},:=+-])', re.ASCII)


class LoopTokens:
    """The tokens of a text; `at` is the next one."""

    def __init__(self, text: str, source: str) -> None:
        self.source = Source(source, text)
        self.tokens: list[tuple[str, int]] = []
        self.at = 0
        self.tokenize(text)

    def tokenize(self, text: str) -> None:
        at, end = 0, len(text.rstrip())
        while at < end:
            match = TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise Problem("this is no part of a program", self.source.position(at), kind="syntax")
            self.tokens.append((match[1], match.start(1)))
            at = match.end()

    def problem(self, message: str) -> Problem:
        """A problem at the token read last."""
        if not self.tokens:
            return Problem("the text is empty", kind="syntax")
        token, offset = self.tokens[min(max(self.at - 1, 0), len(self.tokens) - 1)]
        return Problem(message, self.source.position(offset, len(token)), kind="syntax")

    @property
    def next(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        if self.at == len(self.tokens):
            raise self.problem("the text ends too early")
        self.at += 1
        return self.tokens[self.at - 1][0]

    def accept(self, *wanted: str) -> bool:
        """Take these tokens if they are next."""
        if [t for t, _ in self.tokens[self.at:self.at + len(wanted)]] != list(wanted):
            return False
        self.at += len(wanted)
        return True

    def expect(self, *wanted: str) -> None:
        for token in wanted:
            if (found := self.take()) != token:
                raise self.problem(f"expected {token}, found {found}")

    def number(self) -> int:
        token = self.take()
        if not re.fullmatch(r"-?\d{1,19}", token, re.ASCII):
            raise self.problem(f"expected a whole number, found {token}")
        return int(token)

    def string(self) -> str:
        """A word, or any text in quotes."""
        token = self.take()
        if not token.startswith('"'):
            return token
        try:
            return str(json.loads(token))
        except ValueError:
            raise self.problem("this is not a JSON string") from None

    def numbers(self) -> list[int]:
        """Numbers in brackets."""
        self.expect("[")
        found: list[int] = []
        while not self.accept("]"):
            if found:
                self.expect(",")
            found.append(self.number())
        return found
