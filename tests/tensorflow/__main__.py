"""`python tests/tensorflow`: the table of the corpus (`table`); `islands FIRST END FILE`: random graphs for TensorFlow
(`graph_nodes`). As a folder: other packages install a package `tests`."""
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
    if sys.argv[1:2] == ["islands"]:
        sys.exit(importlib.import_module(f"{NAME}.graph_nodes").main(sys.argv[2:]))
    sys.exit(importlib.import_module(f"{NAME}.table").main())
