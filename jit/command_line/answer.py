"""The result of a command: exit code, text, and the same as JSON. No command prints or ends the process; `cli` does."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

YES, NO = 0, 1


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below a header row, and a text below them."""
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    foot: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command. The `table` holds the same as the text, for terminals."""
    code: int
    text: str
    json: dict[str, Any]
    table: Table | None = None
