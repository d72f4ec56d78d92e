"""The conversion of a kernel program's text to its functions, verified. Any error in a text is a Problem at its line and
column."""
from __future__ import annotations

import re

from ....lowering.text.reader import decoded
from ....runtime.errors import Source
from .forms import read_form
from .kernel_program import Program
from .program_reader import ProgramReader
from .verify import verify_program

KERNEL_PROGRAM = re.compile(r'(?:^|[{])[ \t]*(?:%[^=\n]*=[ \t]*)?"?(?:tfrt|corert)\.[a-z]', re.MULTILINE)


def is_program(text: str | bytes) -> bool:
    """True if a text is a kernel program: one of its lines is a kernel of `tfrt` or `corert`."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return KERNEL_PROGRAM.search(text) is not None


def read_program(text: str | bytes, name: str = "<text>") -> Program:
    """Return the kernel program of a text, verified. `name` is the text's name in problems."""
    program = ProgramReader(Source(name, decoded(text, name)), read_form).program()
    verify_program(program)
    return program
