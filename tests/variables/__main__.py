"""`python -m tosaic.tests.variables`: pairs of models with state in one process, from each door, give what they give alone.

    python -m tosaic.tests.variables [--pairs N] [--models N] [DOOR ...]

The exit status is 1 where a result is another model's."""
from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
from pathlib import Path

os.environ.setdefault("TOSAIC_CACHE", "off")

from .stateful_models import DOORS, Pairs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tosaic.tests.variables", description=__doc__)
    parser.add_argument("door", nargs="*", default=list(DOORS), help=f"one of {', '.join(DOORS)}")
    parser.add_argument("--pairs", type=int, default=200, help="of each door")
    parser.add_argument("--models", type=int, default=6, help="of each door, each loaded twice")
    options = parser.parse_args()
    faults: list[str] = []
    for door in options.door:
        if importlib.util.find_spec(DOORS[door][0]) is None:
            print(f"{door}: not run, {DOORS[door][0]} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            pairs = Pairs(door, Path(folder), options.models)
            found = [fault for seed in range(options.pairs) if (fault := pairs.wrong(seed))]
        print(f"{door}: {options.pairs} pairs, {len(found)} wrong", flush=True)
        faults += found
    print(*faults[:10], sep="\n")
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
