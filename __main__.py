"""`python -m tosaic`: the command `tosaic`, where it is not on the path."""
from __future__ import annotations

import sys

from .jit.command_line.cli import main

if __name__ == "__main__":
    sys.exit(main())
