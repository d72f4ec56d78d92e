"""The lines and tokens of the text of kernels, in order, with their positions: the common part of the readers of kernels
(`text_reader`) and of their expressions (`expression_reader`).
"""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ...runtime.errors import Problem, Source, printable
from ..graph.types import ITEM_SIZES

TOKEN = re.compile(r'\s*("(?:[^"\\\n]|\\.)*"|0x[0-9a-f]*|%\d+|\.\.\.|:=|<=|==|<<|>>|-?(?:inf|nan)(?![\w.])'
                   r'|-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])|[A-Za-z_][\w./$-]*|[][(){},:=<>+\-*/&|^#])', re.ASCII)


class KernelTokens:
    """A tokenizer that works line by line. A line consists of tokens, except for the origin of a kernel, which is any text.
    `last` is the offset of the token that was read last."""

    def __init__(self, text: str, source: str) -> None:
        self.source, self.text = Source(source, text), text
        self.lines = [(start, line) for start, line in lines_of(text) if line.strip()]
        self.at = 0
        self.tokens: list[tuple[str, int]] = []
        self.place = 0
        self.last = 0

    def problem(self, message: str) -> Problem:
        """Return a Problem at the token that was read last."""
        return Problem(message, self.source.position(min(self.last, max(len(self.text) - 1, 0))), kind="syntax",
                       help="what `tosaic show MODEL kernels --whole` prints reads back")

    @property
    def line(self) -> str:
        """The next line without its margin; an empty string at the end."""
        return self.lines[self.at][1].strip() if self.at < len(self.lines) else ""

    def open(self) -> None:
        """Split the next line into tokens."""
        if self.at == len(self.lines):
            self.last = len(self.text)
            raise self.problem("the text ends too early")
        start, line = self.lines[self.at]
        self.at, self.tokens, self.place, at = self.at + 1, [], 0, 0
        self.last = start + len(line) - len(line.lstrip())
        while at < len(line.rstrip()):
            match = TOKEN.match(line, at)
            if match is None:
                self.last = start + at
                raise self.problem("this is no part of a kernel")
            self.tokens.append((match[1], start + match.start(1)))
            at = match.end()

    def close(self) -> None:
        if self.place < len(self.tokens):
            self.take()
            raise self.problem("the line should end before this")

    @property
    def next(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        if self.place == len(self.tokens):
            raise self.problem("the line ends too early")
        token, self.last = self.tokens[self.place]
        self.place += 1
        return token

    def accept(self, *wanted: str) -> bool:
        found = [t for t, _ in self.tokens[self.place:self.place + len(wanted)]]
        if found != list(wanted):
            return False
        self.place += len(wanted)
        return True

    def expect(self, *wanted: str) -> None:
        for token in wanted:
            if (found := self.take()) != token:
                raise self.problem(f"expected {token}, found {printable(found)}")

    def string(self) -> str:
        token = self.take()
        if not token.startswith('"'):
            return token
        try:
            return str(json.loads(token))
        except ValueError:
            raise self.problem("this is not a JSON string") from None

    def whole(self) -> int:
        token = self.take()
        negative = token == "-"
        token = self.take() if negative else token
        if not re.fullmatch(r"-?\d{1,18}", token, re.ASCII):
            raise self.problem(f"expected a whole number, found {printable(token)}")
        return -int(token) if negative else int(token)

    def listed(self, each: Callable[[], Any], end: str) -> tuple[Any, ...]:
        """Read items separated by commas, up to `end`."""
        found: list[Any] = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(each())
        return tuple(found)

    def dtype(self) -> str:
        dtype = self.take()
        if dtype not in ITEM_SIZES:
            raise self.problem(f"there is no dtype {printable(dtype)}")
        return dtype

    def number(self, token: str) -> float | int:
        try:
            return int(token) if re.fullmatch(r"-?\d+", token) else float(token)
        except ValueError:
            raise self.problem(f"expected a number, found {printable(token)}") from None


def lines_of(text: str) -> list[tuple[int, str]]:
    """Return each line with the offset at which it begins."""
    found, start = [], 0
    for line in text.split("\n"):
        found.append((start, line))
        start += len(line) + 1
    return found
