"""`python tests/tensorflow`: the table of the corpus (`table`). As a folder, because other packages install a package `tests`."""
from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

NAME = "corpus_of_tensorflow"

if __name__ == "__main__":
    package = types.ModuleType(NAME)
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules[NAME] = package
    sys.exit(importlib.import_module(f"{NAME}.table").main())
