"""`Problem`, the only exception that a user's input can cause: the error, its position, and the remedy.

Every stage raises `Problem`, or, where Python itself would raise a TypeError, ValueError, IndexError, KeyError or
AttributeError, a subclass of both. A `Position` is cheap to create (a line and a column of a `Source`); the text of the line is
only extracted and shortened when the message is printed.
"""
from __future__ import annotations

import errno
import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Self

from .records import dataclass

WIDTH = 100
"""Maximum number of columns of a source line in a message."""

UNSAFE = ("\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff"
          "\U000e0000-\U000e007f")
"""Characters that could control a terminal, or show text in another order than it has: control characters of ASCII and of ISO
6429, marks of bidirectional text, separators of lines, tags; and halves of surrogates, which no encoding has. In the names of a
model, a line break, too."""
IN_TEXT, IN_NAME = f"[{UNSAFE}]", f"[\n{UNSAFE}]"
"""Regular expressions, compiled only when there is something to print: `re` caches them."""


def printable(text: str) -> str:
    """Return a name or a message on one line, without characters that could control a terminal."""
    return text if text.isascii() and text.isprintable() else re.sub(IN_NAME, escape, text)


def printable_text(text: str) -> str:
    """Return text of several lines without characters that could control a terminal."""
    return re.sub(IN_TEXT, escape, text)


def class_of(value: object) -> str:
    """Return a description of a value for a message: its class with its article, or None."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' or name.startswith('nd') else 'a'} {name}"


def escape(found: re.Match[str]) -> str:
    """Return the escape of a character, as Python writes it."""
    number = ord(found.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A text that positions point into: a model's file, or a Python file (`text` is None, its lines are on disk)."""
    name: str
    text: str | None = field(default=None, repr=False)

    def line(self, number: int) -> str | None:
        """Return line `number`, counted from 1, without its line break; None if there is none."""
        if self.text is None:
            return linecache.getline(self.name, number).rstrip("\n") or None
        start = 0
        for _ in range(number - 1):
            start = self.text.find("\n", start) + 1
            if not start:
                return None
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]

    def position(self, offset: int, width: int = 1) -> Position:
        """Return the position of a character of `text`."""
        assert self.text is not None
        line = self.text.count("\n", 0, offset) + 1
        return Position(self, line, offset - self.text.rfind("\n", 0, offset), width)

    def offset(self, position: Position) -> int:
        """Return the offset in `text` of a position."""
        assert self.text is not None
        start = 0
        for _ in range(position.line - 1):
            start = self.text.find("\n", start) + 1
        return start + position.column - 1


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a source: line and column count from 1; `width` characters are marked. `name` is the model's name of the
    value computed there: a tensor, or the operator of several."""
    source: Source
    line: int
    column: int
    width: int = 1
    name: str | None = None

    def __str__(self) -> str:
        return f"{printable(self.source.name)}:{self.line}:{self.column}"

    def called(self, name: str | None) -> Self:
        """Return the same position with this name of the model, if there is one."""
        return replace(self, name=name) if name else self

    def excerpt(self, mark: str = "^") -> list[str]:
        """Return the line, cut around the column, and a line with the mark below; empty if the text is not known."""
        text = self.source.line(self.line)
        if text is None:
            return []
        start, end = 0, len(text)
        if len(text) > WIDTH:
            start = max(0, min(self.column - 1 - WIDTH // 3, len(text) - WIDTH))
            end = start + WIDTH
        before, shown = "..." * (start > 0), printable(text[start:end].replace("\t", " "))
        indent = len(before) + len(printable(text[start:self.column - 1].replace("\t", " ")))
        width = max(1, min(self.width, end - self.column + 1))
        number = f"{self.line:>5} | "
        return [f"{number}{before}{shown}{'...' * (end < len(text))}", " " * (len(number) - 2) + "| " + " " * indent
                + mark * width]


@dataclass(frozen=True, slots=True)
class Label:
    """A second position that explains a problem."""
    position: Position | None
    text: str


class Problem(Exception):
    """A bad model, argument or option: the error, its position, and the remedy.

    `kind` is the family of the problem (syntax, type, shape, symbol, argument, variable, option, file, unsupported, ...);
    `position` is that of the wrong input; `help` is the remedy; `labels` name other positions that explain it. `inputs` are
    those of a model whose values could solve it.
    """
    inputs: frozenset[str] = frozenset()

    def __init__(self, message: str, position: Position | None = None, *, kind: str = "model", help: str | None = None,
                 labels: tuple[Label, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.position, self.kind, self.help, self.labels = message, position, kind, help, labels

    @property
    def unsupported(self) -> bool:
        """True if the input is correct, and tosaic does not support it."""
        return self.kind == "unsupported"

    def copy(self) -> Problem:
        """Return the same problem as a separate exception, of its class in this module."""
        like: type[Problem] = next(c for c in type(self).__mro__ if c.__module__ == __name__)
        copy = like(self.message, self.position, kind=self.kind, help=self.help, labels=self.labels)
        copy.__cause__ = self.__cause__
        return copy

    def at(self, position: Position | None) -> Problem:
        """Return the same problem, at `position` unless it has one already."""
        if self.position is None:
            self.position = position
        return self

    def of(self, operator: str) -> Problem:
        """Return the same problem, with a message that begins with the operator's name unless it contains it."""
        if operator not in self.message:
            self.message = f"{operator}: {self.message}"
            self.args = (self.message,)
        return self

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        lines = [f"{where}error[{self.kind}]: {printable(self.message)}"]
        if self.position:
            lines += self.position.excerpt()
        for label in self.labels:
            lines.append(f"  {label.position}: {printable(label.text)}" if label.position
                         else f"  note: {printable(label.text)}")
            if label.position:
                lines += label.position.excerpt("~")
        if self.help:
            lines.append(f"  help: {printable(self.help)}")
        return "\n".join(lines)


class TypeProblem(Problem, TypeError):
    """A Problem where Python raises a TypeError: a value of a wrong type, or arguments that a function does not take."""


class ValueProblem(Problem, ValueError):
    """A Problem where Python raises a ValueError: a value of the right type that is not possible here, such as a shape."""


class IndexProblem(Problem, IndexError):
    """A Problem where Python raises an IndexError: an index outside a tensor, or something that is no index."""


class KeyProblem(Problem, KeyError):
    """A Problem where Python raises a KeyError: a name that a mapping does not have, such as a model's entry."""


class AttributeProblem(Problem, AttributeError):
    """A Problem where Python raises an AttributeError: a name that an object does not have."""


class AxisProblem(IndexProblem, ValueProblem):
    """An axis that a tensor does not have: an IndexError and a ValueError, as NumPy's AxisError is both."""


def require(condition: bool, message: str, help: str | None = None, kind: str = "type") -> None:
    """Raise a Problem unless `condition` holds; the caller that knows the position adds it (`Problem.at`)."""
    if not condition:
        raise Problem(message, kind=kind, help=help)


REMEDIES: dict[int, str] = {
    errno.ENOSPC: "the disk is full: make room, or write to another one",
    errno.EDQUOT: "your quota of the disk is used up: make room, or write to another one",
    errno.EFBIG: "the file would be larger than the file system or the limits of this process allow",
    errno.EROFS: "the file system is read-only: write to another one",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EIO: "the disk or its connection fails: write to another one",
    errno.ENXIO: "nothing reads from the other end of this file",
    errno.EMFILE: "this process has too many open files: close some, or raise its limit (ulimit -n)",
    errno.ENFILE: "the system has too many open files",
    errno.ELOOP: "the path has too many symbolic links, or one that leads to itself",
    errno.EINVAL: "the file system does not take this name",
    errno.EILSEQ: "the file system does not take this name",
    errno.EBUSY: "another program holds it",
    errno.ETXTBSY: "a running program is in this file",
    errno.EISDIR: "a directory has this name: choose another one",
    errno.ENOTEMPTY: "a directory has this name: choose another one"}
"""Remedies for system errors of writing a file, by error number. For all others (no permission, no directory) the remedy is
another location."""


def unwritten(error: OSError, what: str, kind: str = "file") -> Problem:
    """Return the Problem for a file that could not be written, with the remedy for that system error; `what` failed, such as
    `cannot write to out`."""
    remedy = REMEDIES.get(error.errno or 0, "name a directory that can be written")
    return Problem(f"{what}: {error.strerror or error}", kind=kind, help=remedy)


@contextmanager
def temporary_file() -> Iterator[None]:
    """Turn system errors that a user can remedy into a Problem while a temporary file is written."""
    try:
        yield
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        from tempfile import gettempdir
        raise unwritten(error, f"a temporary file in {gettempdir()} (TMPDIR) cannot be written") from error


def is_interrupt(error: BaseException | None) -> bool:
    """True if an interrupt is the cause: Python 3.11 raises the RuntimeError of a class that cannot be created if one arrives
    in a field's `__set_name__`, and a module in C may raise an ImportError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
