"""tosaic beside its peers: `python tests/bench/peers`; what it does and its options are in command.py. With `--worker` this is
one of its processes, in an environment that has a peer and perhaps not tosaic.
"""
from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.pop(0)  # modules of the peers must not be hidden by these
    sys.path.append(str(Path(__file__).parents[1]))
    if sys.argv[1:] == ["--worker"]:
        from peers.worker import main
    else:
        from peers.command import main
    main()
