"""The rooms of `lowering/schedule` and their order: each imports only those before it, so that a reader can begin at the
first."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import tosaic

SCHEDULE = Path(str(tosaic.__file__)).parent / "lowering" / "schedule"
ROOMS = ("nest", "vectorize", "elementwise", "row_reduction", "contraction", "window", "winograd")
UPPER = ("strategies", "parallelize", "schedule", "schedule_cache", "search_space", "schedule_text", "fft")
"""What stands above all rooms."""


def imported(path: Path) -> Iterator[str]:
    """The modules below `lowering.schedule` that a file imports, wherever it does so, by their first name."""
    parents = path.relative_to(SCHEDULE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(parents) + 1:
            full = [*parents[:len(parents) - node.level + 1], *(node.module or "").split(".")]
            yield next(filter(None, full), "")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_those_before_it(room: str) -> None:
    later = {*ROOMS[ROOMS.index(room) + 1:], *UPPER}
    for path in sorted((SCHEDULE / room).rglob("*.py")):
        assert not later & set(imported(path)), path


def test_every_room_is_in_the_order_and_says_what_it_is_for() -> None:
    folders = {path.name for path in SCHEDULE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders == set(ROOMS)
    for path in SCHEDULE.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
