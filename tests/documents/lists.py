"""The lists of what the documents say, read: rows with their tests, and what is not followed (`README.md`)."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS, SOURCES = HERE.parent, HERE.parents[1]
DOCUMENTS = ("op_by_op", "tensorflow_dialects", "tosa_rationale", "tosa_stateful", "usmp")
LEFT_OUT = "## Not followed"


@dataclass(frozen=True)
class Row:
    """A statement of a document, how it is met, and the tests that would fail if it were untrue."""
    section: str
    statement: str
    how: str
    tests: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.section}: {self.statement}"


@cache
def parts(document: str) -> tuple[str, str]:
    """The list's text: rows that are tested, and rows that are not followed."""
    tested, mark, left_out = (HERE / f"{document}.md").read_text().partition(LEFT_OUT)
    assert mark, f"{document} does not say what is not followed"
    return tested, left_out


def cells(text: str) -> list[list[str]]:
    """The cells of the rows of all tables, without heads and lines below them."""
    lines = [[c.strip() for c in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [line for line in lines if line[0] != "section" and not set(line[0]) <= {"-"}]


@cache
def rows_of(document: str) -> tuple[Row, ...]:
    """The rows that are tested."""
    return tuple(Row(section, statement, how, tuple(re.findall(r"`([^`]+)`", tests)))
                 for section, statement, how, tests in cells(parts(document)[0]))
