"""Oracle: the printer's text reads back to an equal module."""
from __future__ import annotations

from tosaic.lowering.graph.graph import Module
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module

from ...text.equality import equal_modules


def check_text(module: Module) -> None:
    text = print_module(module)
    assert equal_modules(module, read_module(text))
