"""`python tests/crosscheck/planted`: each fault of the list planted, and its model without it: what `check` says of both."""
from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

NAME = "planted_faults_of_tosaic"

if __name__ == "__main__":
    package = types.ModuleType(NAME)
    package.__path__ = [str(Path(__file__).parents[2])]
    sys.modules[NAME] = package
    sys.exit(importlib.import_module(f"{NAME}.crosscheck.planted.table").main(sys.argv[1:]))
