"""What a command found: exit code, text, and the same as JSON. Nothing in a command prints or ends the process; `cli` does."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

YES, NO = 0, 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found."""
    code: int
    text: str
    json: dict[str, Any]
