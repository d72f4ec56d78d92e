"""MLPerf Tiny on emulated microcontrollers: `python tests/bench/microcontrollers`; what it does and its options are in
command.py. It runs as a part of the package whose checkout this is, because it builds programs as the tests of objects do.
"""
from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its modules have names of their own only inside the package
    from tosaic.tests.bench.microcontrollers.command import main
    sys.exit(main())
