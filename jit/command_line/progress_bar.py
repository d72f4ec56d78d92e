"""The line that `Progress` shows, made with the library rich: a spinner and the current work and, for counted work, a bar, the
count, and the time that is left."""
from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

BAR = 24
"""Columns of the bar."""


class WhereCounted(ProgressColumn):
    """Another column, shown only if the total is known."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self.column = column

    def render(self, task: Task) -> object:  # type: ignore[override]
        return self.column(task) if task.total else Text()


def bar() -> Progress:
    """Return the line with its one task, not yet shown; it disappears when it is stopped."""
    said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (SpinnerColumn(), said, *map(WhereCounted, (BarColumn(BAR), MofNCompleteColumn(), TimeRemainingColumn())))
    shown = Progress(*columns, console=Console(stderr=True), transient=True)
    shown.add_task("", total=None)
    return shown
