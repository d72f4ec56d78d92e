"""A table of an answer on a terminal, made with the library rich: fitted to the terminal's width, with long cells on several
lines. Elsewhere the answer's own text is printed."""
from __future__ import annotations

import os
from typing import TextIO

from ...runtime.errors import printable, printable_text
from .answer import Table


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def show_table(table: Table, stream: TextIO) -> None:
    """Print a table; nothing in its cells can control the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text
    shown = RichTable(box=SIMPLE_HEAD, show_header=any(table.head), header_style="bold", pad_edge=False, show_edge=False)
    for number, name in enumerate(table.head):
        shown.add_column(Text(printable(name)), style="cyan" if number == 0 else "", no_wrap=number == 0, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(file=stream)
    console.print(shown)
    if table.foot:
        console.print(Text(printable_text(table.foot)))
